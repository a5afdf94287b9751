//! The page of `stencilc report`, in a real browser: what it shows, and that it can be used by eye, finger and keyboard.

mod browser;

use crate::common::folder::Folder;
use browser::{Browser, View};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use stencilc_runtime::bench::hash;

const DESKTOP: View = View { width: 1280, height: 800, is_dark: false };
const PHONE: View = View { width: 390, height: 844, is_dark: false };

/// A name that breaks out of a page which reads it as markup.
const HOSTILE: &str = "</script><img src=x onerror='window.broken = true'>\"'&amp;.stn";

/// Rows of the emulator on two grids, and rows made of them: as many as a sweep on a GPU has, of a GPU that is known, with
/// kernels that failed, and with names that no page should read as markup.
fn rows() -> Vec<Value> {
    let folder = Folder::new();
    let bench = "bench laplap --device emulate --runs 2 --access naive,idxvar,zloop -o rows.jsonl";
    folder.done(&format!("{bench} --grid 21x13x4 --blocks 32x1x1,64x1x1,32x2x1"));
    folder.done(&format!("{bench} --grid 32x16x4 --blocks usual"));
    let text = fs::read_to_string(folder.path("rows.jsonl")).unwrap();
    let own: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let mut all = own.clone();
    for round in 0..12 {
        for (number, row) in own.iter().filter(|row| row["subject"]["grid"] == "21x13x4").enumerate() {
            let mut row = row.clone();
            row["key"] = json!(format!("{round} {number}"));
            row["machine"]["device"] = json!("cuda");
            row["machine"]["name"] = json!("NVIDIA H200");
            row["kernel"]["plan"] = json!(format!("{round}"));
            row["kernel"]["resources"] = json!({"kernel": "k", "registers": 30 + number, "spill_stores": 0,
                "spill_loads": 0, "stack": 0, "shared": 0, "constant": 0});
            row["outcome"]["median_us"] = json!(50.0 + ((round * 37 + number * 11) % 101) as f64);
            row["outcome"]["limit"]["median_us"] = json!(50.0);
            row["outcome"]["of_limit"] = json!(50.0 / row["outcome"]["median_us"].as_f64().unwrap());
            if number == 5 {
                row["outcome"] = json!({"status": "failed", "reason": "`<b>res</b>` differs in 3 cells"});
            }
            if round == 11 {
                row["subject"]["file"] = json!(HOSTILE);
                row["subject"]["grid"] = json!(HOSTILE);
                row["machine"]["name"] = json!(HOSTILE);
                row["kernel"]["choices"]["storage"] = json!(HOSTILE);
                row["subject"]["text"] = Value::Null;
            }
            all.push(row);
        }
    }
    all
}

/// A page of them.
fn page(folder: &Folder) -> (PathBuf, &'static [Value]) {
    static ROWS: OnceLock<Vec<Value>> = OnceLock::new();
    let rows = ROWS.get_or_init(rows);
    let text: String = rows.iter().map(|row| format!("{row}\n")).collect();
    fs::write(folder.path("all.jsonl"), text).unwrap();
    let said = folder.json("report all.jsonl -o page.html --json");
    assert_eq!(said["rows"], rows.len());
    assert_eq!(said["failed"], 12);
    assert_eq!(said["cases"].as_array().unwrap().len(), 4);
    // What the emulator measured has its CUDA; what was made here has none.
    assert_eq!(said["cuda"]["shown"], 36);
    (folder.path("page.html"), rows)
}

/// Marks that an SVG shows: paths with an area, which axes and lines of a grid have not.
const MARKS: &str = "(id) => [...document.querySelectorAll(`#${id} svg path`)].filter((path) => {
    const { width, height } = path.getBoundingClientRect();
    return width > 0 && height > 0 && path.getAttribute('fill') !== 'transparent';
}).length";

/// Visible texts whose colour is too near to what is behind them: less than 4.5 to 1 (WCAG 2.2).
const FAINT: &str = r##"(() => {
    const context = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
    const rgba = (colour) => {
        context.clearRect(0, 0, 1, 1);
        context.fillStyle = colour;
        context.fillRect(0, 0, 1, 1);
        return [...context.getImageData(0, 0, 1, 1).data];
    };
    const light = ([r, g, b]) => [r, g, b].map((x) => x / 255).map((x) => x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4)
        .reduce((sum, x, at) => sum + x * [0.2126, 0.7152, 0.0722][at], 0);
    const behind = (element) => {
        for (let own = element; own; own = own.parentElement) {
            const colour = rgba(getComputedStyle(own).backgroundColor);
            if (colour[3] > 250) return colour;
        }
        return [255, 255, 255];
    };
    const texts = [...document.querySelectorAll("body *")].filter((element) => element.checkVisibility() && !element.closest("svg, .plot")
        && [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim()));
    return texts.flatMap((element) => {
        const [a, b] = [light(rgba(getComputedStyle(element).color)), light(behind(element))];
        const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
        return contrast < 4.5 ? [`${element.tagName} ${element.textContent.slice(0, 40)}: ${contrast.toFixed(2)}`] : [];
    });
})()"##;

/// What stands out of the window at its side, but for what scrolls in a box of its own.
const OUTSIDE: &str = "[...document.querySelectorAll('body *')]
    .filter((element) => element.checkVisibility() && !element.closest('.box, .skip, pre, textarea'))
    .filter((element) => element.getBoundingClientRect().right > innerWidth + 1)
    .map((element) => `${element.tagName}.${element.className} ${element.id}`)";

/// Shows the case with this word in its name.
fn show(browser: &mut Browser, word: &str) {
    let cases = "[...document.querySelectorAll('#answers .case')]";
    browser.eval(&format!("{cases}.find((button) => button.textContent.includes('{word}')).click()"));
}

/// Opens the page with this case, as a link to it does.
fn open_at(browser: &mut Browser, path: &Path, view: View, word: &str) {
    browser.open(path, "", view);
    show(browser, word);
    let hash = browser.eval("location.hash");
    browser.open(path, hash.as_str().unwrap(), view);
}

#[test]
fn a_page_is_drawn_in_every_view() {
    let Some(mut browser) = Browser::start() else { return };
    let folder = Folder::new();
    let (path, _) = page(&folder);
    let mut backs = Vec::new();
    for view in [DESKTOP, PHONE] {
        for is_dark in [false, true] {
            let view = View { is_dark, ..view };
            browser.open(&path, "", view);
            for case in 0..4 {
                browser.eval(&format!("document.querySelectorAll('#answers .case')[{case}].click()"));
                let width = browser.eval("document.documentElement.scrollWidth").as_u64().unwrap();
                assert!(width <= u64::from(view.width), "{view:?}: {width}");
                assert_eq!(browser.eval(OUTSIDE), json!([]), "{view:?}, case {case}");
                assert_eq!(browser.eval(FAINT), json!([]), "{view:?}, case {case}");
            }
            show(&mut browser, "H200");
            // Three strategies on three storages.
            let cells = "[...document.querySelectorAll('.heat tbody button')].map((cell) => [cell.clientWidth, cell.clientHeight])";
            let cells = browser.eval(cells);
            let cells = cells.as_array().unwrap();
            assert_eq!(cells.len(), 9, "{view:?}");
            assert!(cells.iter().all(|size| size[0].as_u64() > Some(30) && size[1].as_u64() > Some(30)), "{cells:?}");
            for (figure, least) in [("bars", 9), ("blocks", 9), ("roofline", 9)] {
                let marks = browser.eval(&format!("({MARKS})('{figure}')")).as_u64().unwrap();
                assert!(marks >= least, "{view:?}: {figure} has {marks} marks");
            }
            let told = "[...document.querySelectorAll('.plot')].filter((plot) => plot.checkVisibility())
                .map((plot) => plot.getAttribute('role') === 'img' && plot.getAttribute('aria-label').length > 20)";
            assert_eq!(browser.eval(told), json!([true, true, true]), "{view:?}");
            // On two grids there is one more plot.
            show(&mut browser, "(emulate)");
            let marks = browser.eval(&format!("({MARKS})('domains')")).as_u64().unwrap();
            assert!(marks >= 6, "{view:?}: domains has {marks} marks");
            backs.push(browser.eval("getComputedStyle(document.body).backgroundColor"));
            assert_eq!(browser.complaints(), Vec::<&Value>::new(), "{view:?}");
            let elsewhere =
                |url: &String| !url.starts_with("file:///") && !url.starts_with("data:") && url != "about:blank";
            assert_eq!(browser.requests().into_iter().filter(elsewhere).collect::<Vec<_>>(), Vec::<String>::new());
            assert_eq!(browser.requests().iter().filter(|url| url.starts_with("file:///")).count(), 1);
            // Nothing that rows hold was read as markup.
            assert_eq!(
                browser.eval("[window.broken === undefined, document.querySelectorAll('img, b b').length]"),
                json!([true, 0])
            );
        }
    }
    assert!(backs[0] != backs[1] && backs[0] == backs[2] && backs[1] == backs[3], "{backs:?}");
}

/// The texts of the table's rows in a column, by its name.
fn column(browser: &mut Browser, name: &str) -> Vec<String> {
    let text = format!(
        "(() => {{
            const at = [...document.querySelectorAll('#rows thead th')].findIndex((head) => head.textContent.startsWith('{name}'));
            return [...document.querySelectorAll('#rows tbody tr')].map((line) => line.children[at].textContent);
        }})()"
    );
    serde_json::from_value(browser.eval(&text)).unwrap()
}

fn sorted(browser: &mut Browser) -> Value {
    browser
        .eval("[...document.querySelectorAll('#rows th[aria-sort]')].map((head) => [head.textContent, head.ariaSort])")
}

fn numbers(texts: &[String]) -> Vec<f64> {
    texts.iter().filter_map(|text| text.parse().ok()).collect()
}

#[test]
fn rows_are_sorted_and_filtered_by_keyboard() {
    let Some(mut browser) = Browser::start() else { return };
    let folder = Folder::new();
    let (path, _) = page(&folder);
    browser.open(&path, "", DESKTOP);
    show(&mut browser, "H200");
    // The fastest come first, and those that failed last.
    assert_eq!(sorted(&mut browser), json!([["µs ↑", "ascending"]]));
    // At first a hundred of them.
    assert!(numbers(&column(&mut browser, "µs")).is_sorted() && column(&mut browser, "µs").len() == 100);
    browser.eval("document.getElementById('everything').focus()");
    browser.press("Enter");
    let times = column(&mut browser, "µs");
    assert!(times.len() == 27 * 11 && numbers(&times).len() == 26 * 11 && numbers(&times).is_sorted());
    assert!(times[26 * 11..].iter().all(String::is_empty));
    assert!(column(&mut browser, "result")[26 * 11].starts_with("FAILED: `<b>res</b>` differs"));
    // A head sorts, and keeps the focus, so that the next press turns the order round.
    browser.eval("document.querySelector('[data-column=registers]').focus()");
    browser.press("Enter");
    assert_eq!(sorted(&mut browser), json!([["registers ↑", "ascending"]]));
    let ascending = numbers(&column(&mut browser, "registers"));
    assert!(ascending.is_sorted() && ascending[0] == 30.0);
    browser.press("Enter");
    assert_eq!(sorted(&mut browser), json!([["registers ↓", "descending"]]));
    let descending = numbers(&column(&mut browser, "registers"));
    assert!(descending.is_sorted_by(|a, b| a >= b) && descending[0] == 56.0);
    assert_eq!(browser.eval("document.activeElement.dataset.column"), "registers");
    // Words in any order.
    browser.eval("document.getElementById('words').focus()");
    browser.write("zloop 64x1x1 uncompressed");
    browser.wait("document.getElementById('count').textContent === '11 of 297 kernels'");
    assert!(column(&mut browser, "storage").iter().all(|name| name == "uncompressed"));
    browser.write(" nothing");
    browser.wait("document.getElementById('count').textContent.startsWith('None of 297 kernels')");
    browser.eval(
        "const words = document.getElementById('words'); words.value = ''; words.dispatchEvent(new Event('input'))",
    );
    let set = |id: &str, value: &str| {
        format!(
            "{{ const own = document.getElementById('{id}'); own.value = '{value}'; own.dispatchEvent(new Event('change')) }}"
        )
    };
    browser.eval(&set("status", "failed"));
    browser.wait("document.getElementById('count').textContent === '11 of 297 kernels'");
    browser.eval(&set("scope", "all"));
    assert_eq!(browser.eval("document.getElementById('count').textContent"), "12 of 360 kernels");
    assert!(column(&mut browser, "case").iter().any(|name| name.contains("</script>")));
    assert_eq!(browser.complaints(), Vec::<&Value>::new());
}

#[test]
fn a_row_opens_its_cuda_and_escape_closes_it() {
    let Some(mut browser) = Browser::start() else { return };
    let folder = Folder::new();
    let (path, rows) = page(&folder);
    open_at(&mut browser, &path, DESKTOP, "(emulate)");
    let opening = "document.querySelectorAll('#rows tbody .open')";
    for number in [0, 26] {
        browser.eval(&format!("{opening}[{number}].focus()"));
        browser.press("Enter");
        browser.wait("document.getElementById('kernel-code').textContent.length > 10");
        // The text that was measured: the hash of its row says so.
        let row =
            browser.eval(&format!("Number({opening}[{number}].closest('tr').dataset.row)")).as_u64().unwrap() as usize;
        let text = browser.eval("document.getElementById('kernel-code').textContent");
        let text = text.as_str().unwrap();
        assert_eq!(hash(&[text.as_bytes()]), rows[row]["kernel"]["plan"], "{text}");
        // What the call that stands above it prints begins with it.
        let call = browser.eval("document.getElementById('kernel-command').textContent");
        let call = call.as_str().unwrap().strip_prefix("stencilc ").unwrap().to_owned();
        assert!(folder.done(&format!("{call} --emit cuda")).starts_with(text), "{call}");
        // While it is there, the focus stays in it.
        for _ in 0..8 {
            assert_eq!(
                browser.eval(
                    "document.activeElement === document.body || document.activeElement.closest('dialog') !== null"
                ),
                true
            );
            browser.press("Tab");
        }
        browser.press("Escape");
        assert_eq!(browser.eval("document.getElementById('kernel').open"), false);
        assert_eq!(browser.eval(&format!("document.activeElement === {opening}[{number}]")), true);
    }
    // A kernel whose text is not what was measured is not shown; the page says why, and what prints it.
    show(&mut browser, "H200");
    browser.eval(&format!("{opening}[0].focus()"));
    browser.press("Enter");
    let why = browser.eval(
        "[document.getElementById('kernel-code').checkVisibility(), document.getElementById('kernel-why').textContent]",
    );
    assert_eq!(why[0], false);
    let why = why[1].as_str().unwrap();
    assert!(why.starts_with("Not shown: this version of stencilc makes another kernel of it. This prints it: stencilc build laplap --access "), "{why}");
    browser.press("Escape");
    assert_eq!(browser.complaints(), Vec::<&Value>::new());
}

#[test]
fn patches_are_drawn_where_a_kernel_computes_them() {
    let Some(mut browser) = Browser::start() else { return };
    let folder = Folder::new();
    folder.done("grid make quadtree --size 12x10 --depth 2 --refine circle -o quad.npz");
    let bench = "bench laplap --grid quad.npz --levels 3 --device emulate --runs 1 --blocks usual";
    folder.done(&format!("{bench} --access patches,idxvar -o rows.jsonl"));
    folder.done("report rows.jsonl -o page.html");
    open_at(&mut browser, &folder.path("page.html"), DESKTOP, "laplap");
    let opening = "document.querySelectorAll('#rows tbody .open')";
    let mut drawn = Vec::new();
    for number in 0..browser.eval(&format!("{opening}.length")).as_u64().unwrap() {
        browser.eval(&format!("{opening}[{number}].click()"));
        let title = browser.eval("document.getElementById('kernel-title').textContent");
        let is_drawn = browser.eval("document.getElementById('kernel-picture')?.checkVisibility() ?? false") == true;
        assert_eq!(is_drawn, title.as_str().unwrap().contains(" patches "), "{title}");
        if is_drawn {
            browser.wait("document.getElementById('kernel-picture').naturalWidth >= 480");
        }
        drawn.push(is_drawn);
        browser.press("Escape");
    }
    assert!(drawn.contains(&true) && drawn.contains(&false), "{drawn:?}");
    assert_eq!(browser.complaints(), Vec::<&Value>::new());
}

#[test]
fn everything_is_reached_by_tab_and_seen_there() {
    let Some(mut browser) = Browser::start() else { return };
    let folder = Folder::new();
    let (path, _) = page(&folder);
    open_at(&mut browser, &path, PHONE, "(emulate)");
    let mut reached = Vec::new();
    loop {
        browser.press("Tab");
        let focus = browser.eval(
            "(() => {
                const own = document.activeElement;
                if (own === document.body) return null;
                const { outlineStyle, outlineWidth } = getComputedStyle(own);
                const { left, right, width } = own.getBoundingClientRect();
                return [own.tagName + '#' + own.id + '.' + own.className + ' ' + (own.closest('[id]:not(button, summary)')?.id ?? ''),
                    outlineStyle !== 'none' && parseFloat(outlineWidth) >= 2, width > 0 && right > 0 && left < innerWidth];
            })()",
        );
        if focus.is_null() || reached.len() > 400 {
            break;
        }
        assert!(focus[1] == true && focus[2] == true, "{focus}");
        reached.push(focus[0].as_str().unwrap().to_owned());
    }
    for part in [
        "SELECT#theme",
        "BUTTON#.case answers",
        "BUTTON#.kernel open answers",
        "BUTTON#. matrix",
        "BUTTON#.best matrix",
        "SUMMARY#. bars",
        "SELECT#blocks-storage",
        "SELECT#domains-access",
        "SUMMARY#. roofline",
        "INPUT#words",
        "DIV#rows-box",
        "BUTTON#. rows",
        "BUTTON#.open rows",
    ] {
        assert!(reached.iter().any(|own| own.starts_with(part)), "{part} is not among {reached:#?}");
    }
    // Answers, cells, rows: as many as there are.
    let count = |part: &str| reached.iter().filter(|own| own.starts_with(part)).count();
    assert_eq!((count("BUTTON#.case"), count("BUTTON#.open rows")), (4, 27));
}

#[test]
fn colours_follow_the_switch_and_paper_is_white() {
    let Some(mut browser) = Browser::start() else { return };
    let folder = Folder::new();
    let (path, _) = page(&folder);
    open_at(&mut browser, &path, View { is_dark: true, ..DESKTOP }, "H200");
    let back = "getComputedStyle(document.body).backgroundColor";
    let axis = "document.querySelector('#bars svg text').getAttribute('fill')";
    let (dark, dark_axis) = (browser.eval(back), browser.eval(axis));
    let set = |theme: &str| {
        format!(
            "{{ const own = document.getElementById('theme'); own.value = '{theme}'; own.dispatchEvent(new Event('change')) }}"
        )
    };
    browser.eval(&set("light"));
    let (light, light_axis) = (browser.eval(back), browser.eval(axis));
    assert_eq!(light, "rgb(255, 255, 255)");
    // The plots go along.
    assert!(dark != light && dark_axis != light_axis, "{dark} {light} {dark_axis} {light_axis}");
    browser.eval(&set("dark"));
    assert_eq!((browser.eval(back), browser.eval(axis)), (dark, dark_axis.clone()));
    browser.eval("dispatchEvent(new Event('beforeprint'))");
    assert_eq!((browser.eval(back), browser.eval(axis)), (light, light_axis));
    // A plot that is wider than the paper shrinks, and keeps its shape.
    browser.call("Emulation.setEmulatedMedia", json!({"media": "print"}));
    let shape = "(() => {
        document.body.style.width = '600px';
        const { width, height } = document.querySelector('#bars svg').getBoundingClientRect();
        const [, , w, h] = document.querySelector('#bars svg').getAttribute('viewBox').split(' ');
        return [width <= 600, w > 1000, Math.abs(width / height - w / h) < 0.05];
    })()";
    assert_eq!(browser.eval(shape), json!([true, true, true]));
    browser.call("Emulation.setEmulatedMedia", json!({"media": "screen"}));
    browser.eval("dispatchEvent(new Event('afterprint'))");
    assert_eq!(browser.eval(axis), dark_axis);
    assert_eq!(browser.complaints(), Vec::<&Value>::new());
}
