//! `stencilc report`: what it reads, and what the page holds. `tests/report.rs` looks at the page in a browser.

use crate::common::folder::{Folder, text};
use base64::Engine;
use serde_json::{Value, json};
use std::fs;
use std::io::Read;
use stencilc_runtime::bench::hash;

/// Rows of two kernels.
const BENCH: &str = "bench laplap --device emulate --grid 21x11x3 --runs 1 --blocks usual --access idxvar";

/// The text of a script of a page, by its id.
fn script(page: &str, id: &str) -> String {
    let (_, rest) = page.split_once(&format!("id=\"{id}\">")).unwrap();
    rest.split_once("</script>").unwrap().0.to_owned()
}

fn page(folder: &Folder, name: &str) -> (String, Value, Vec<String>) {
    let page = fs::read_to_string(folder.path(name)).unwrap();
    let data = serde_json::from_str(&script(&page, "data")).unwrap();
    let packed = base64::engine::general_purpose::STANDARD.decode(script(&page, "texts")).unwrap();
    let mut texts = String::new();
    flate2::read::GzDecoder::new(&packed[..]).read_to_string(&mut texts).unwrap();
    (page, data, serde_json::from_str(&texts).unwrap())
}

/// The rows of a file, changed.
fn change(folder: &Folder, from: &str, to: &str, change: impl Fn(&mut Value)) {
    let lines = fs::read_to_string(folder.path(from)).unwrap();
    let changed = lines.lines().map(|line| {
        let mut row: Value = serde_json::from_str(line).unwrap();
        change(&mut row);
        format!("{row}\n")
    });
    fs::write(folder.path(to), changed.collect::<String>()).unwrap();
}

/// Why kernels are not shown, and of how many.
fn missing(folder: &Folder, call: &str) -> Vec<(String, u64)> {
    let said = folder.json(&format!("{call} --json"));
    let missing = said["cuda"]["missing"].as_array().unwrap().iter();
    missing.map(|own| (own["reason"].as_str().unwrap().to_owned(), own["kernels"].as_u64().unwrap())).collect()
}

#[test]
fn a_page_is_one_file_with_all_that_was_measured() {
    let folder = Folder::new();
    folder.done(&format!("{BENCH},zloop -o a.jsonl"));
    folder.done("bench weigh.stn --device emulate --grid 9x6x3 --runs 1 --blocks usual --access idxvar --storage regular -o b.jsonl");
    let said = folder.done("report a.jsonl b.jsonl -o page.html --title <My>&page");
    assert!(said.contains("laplap f64 21x11x3"), "{said}");
    assert!(said.contains("wrote page.html: 7 kernels, 2 cases, "), "{said}");
    let (page, data, texts) = page(&folder, "page.html");
    assert!(page.contains("<title>&lt;My&gt;&amp;page</title>") && !page.contains("<My>"));
    assert_eq!(data["rows"].as_array().unwrap().len(), 7);
    // Every kernel is shown as it was measured.
    let mut rows: Vec<Value> = Vec::new();
    for name in ["a.jsonl", "b.jsonl"] {
        let text = fs::read_to_string(folder.path(name)).unwrap();
        rows.extend(text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()));
    }
    for (row, shown) in rows.iter().zip(data["rows"].as_array().unwrap()) {
        let text = &texts[shown["text"].as_u64().unwrap() as usize];
        assert_eq!(hash(&[text.as_bytes()]), row["kernel"]["plan"]);
        let case = &data["cases"][shown["case"].as_u64().unwrap() as usize];
        assert_eq!(case["stencil"], row["subject"]["stencil"]);
        // The call that is told makes the kernel: of weigh, a parameter decides which levels are computed.
        let words = [&case["head"], &shown["options"], &case["tail"]].map(|words| words.as_str().unwrap());
        let call = words.join(" ");
        let printed = folder.done(&format!("{} --emit cuda", call.strip_prefix("stencilc ").unwrap()));
        assert!(printed.contains(text.split_once("*/").unwrap().1) || case["stencil"] == "weigh", "{call}");
        assert_eq!(call.contains(" --set first="), case["stencil"] == "weigh", "{call}");
    }
    // The stencil computes a mean over levels of what explain tells.
    let explained = folder.json("explain laplap --grid 21x11x3 --json");
    let laplap = data["cases"].as_array().unwrap().iter().find(|case| case["stencil"] == "laplap").unwrap();
    assert_eq!(laplap["flops"], explained["flops_per_cell"]);
    // Nothing is fetched from anywhere.
    let program = page.replace(&script(&page, "library"), "").replace(&script(&page, "data"), "");
    for word in ["src=", "@import", "url(", "http://", "https://", "fetch("] {
        assert!(!program.contains(word), "{word}");
    }
    // Without CUDA it is smaller.
    folder.done("report a.jsonl b.jsonl -o less.html --no-cuda");
    assert!(fs::metadata(folder.path("less.html")).unwrap().len() < page.len() as u64);
}

#[test]
fn rows_are_read_in_every_form_that_bench_writes() {
    let folder = Folder::new();
    let printed = folder.done(&format!("{BENCH} -o a.jsonl --json"));
    fs::write(folder.path("printed.json"), printed).unwrap();
    let rows = |call: &str| {
        let output = folder.run(&format!("report {call} -o page.html --json"));
        assert!(output.status.success(), "{call}: {}", text(&output.stderr));
        let said: Value = serde_json::from_slice(&output.stdout).unwrap();
        (said["rows"].as_u64().unwrap(), text(&output.stderr))
    };
    assert_eq!(rows("a.jsonl"), (3, String::new()));
    assert_eq!(rows("printed.json"), (3, String::new()));
    let (number, said) = rows("a.jsonl printed.json");
    assert!(number == 3 && said.contains("3 rows stood there more than once: the last one of each counts"), "{said}");
    // Of a sweep that is under way, or was killed, the last row may be half there.
    let bytes = fs::read(folder.path("a.jsonl")).unwrap();
    fs::write(folder.path("cut.jsonl"), &bytes[..bytes.len() - 9]).unwrap();
    let (number, said) = rows("cut.jsonl");
    assert!(number == 2 && said.contains("the last row of `cut.jsonl` was not written whole"), "{said}");
    assert!(fs::read(folder.path("cut.jsonl")).unwrap().len() == bytes.len() - 9);
    // Machines do not mix.
    change(&folder, "a.jsonl", "other.jsonl", |row| {
        row["machine"]["name"] = json!("Another machine");
        row["key"] = json!(format!("other {}", row["key"]));
    });
    let (number, said) = rows("a.jsonl other.jsonl");
    assert!(number == 6 && said.contains("rows are of 2 machines, each a case of its own: the emulator on "), "{said}");
}

#[test]
fn kernels_that_cannot_be_shown_say_why() {
    let folder = Folder::new();
    fs::write(folder.path("mine.stn"), "stencil mine { in a; out b; b = a[i-1] + a[i+1] }").unwrap();
    folder.done("grid make quadtree --size 12x10 --depth 2 --refine circle -o quad.npz");
    let call = "bench mine.stn --device emulate --runs 1 --blocks usual --access idxvar --storage compressed";
    folder.done(&format!("{call} --grid 21x11x3 --share two.stn -o shared.jsonl"));
    folder.done(&format!("{call} --grid quad.npz --levels 3 -o quad.jsonl"));
    folder.done(&format!("{call} --grid 21x11x3 -o rows.jsonl"));
    let all = "report shared.jsonl quad.jsonl rows.jsonl -o page.html";
    assert_eq!(missing(&folder, all), []);
    // Rows hold the stencil: its file may change.
    fs::write(folder.path("mine.stn"), "stencil mine { in a; out b; b = a }").unwrap();
    assert_eq!(missing(&folder, all), []);
    // Those of older versions do not.
    change(&folder, "rows.jsonl", "older.jsonl", |row| drop(row["subject"].as_object_mut().unwrap().remove("text")));
    let gone = "the rows do not hold the stencil, and `mine.stn` is gone or has changed".to_owned();
    assert_eq!(missing(&folder, "report older.jsonl -o page.html"), [(gone, 1)]);
    // A text that is not what was measured is never shown.
    change(&folder, "rows.jsonl", "forged.jsonl", |row| {
        row["subject"]["text"] = json!("stencil mine { in a; out b; b = 2*a[i-1] + a[i+1] }");
    });
    assert_eq!(missing(&folder, "report forged.jsonl -o page.html")[0].1, 1);
    change(&folder, "rows.jsonl", "newer.jsonl", |row| {
        row["machine"]["stencilc"] = json!("9.9.9");
        row["kernel"]["plan"] = json!("0");
    });
    let newer = missing(&folder, "report newer.jsonl -o page.html").remove(0).0;
    assert!(newer.starts_with("it was made by stencilc 9.9.9, and "), "{newer}");
    // Files that kernels depend on are read again.
    fs::write(folder.path("two.stn"), "stencil two { in a; out b; b = 2*a[i-3, j-3] + a[i+4, j+4] }").unwrap();
    let shared = missing(&folder, "report shared.jsonl -o page.html");
    assert!(shared[0].0.contains("two.stn may have changed since"), "{shared:?}");
    folder.done("grid make quadtree --size 12x10 --depth 1 --refine circle -o quad.npz");
    let changed = "the grid `quad.npz` has changed".to_owned();
    assert_eq!(missing(&folder, "report quad.jsonl -o page.html"), [(changed, 1)]);
    fs::remove_file(folder.path("quad.npz")).unwrap();
    let gone = missing(&folder, "report quad.jsonl -o page.html");
    assert!(gone[0].0.starts_with("the grid is gone: "), "{gone:?}");
}

#[test]
fn rows_that_make_no_sense_are_shown_as_they_are() {
    let folder = Folder::new();
    folder.done(&format!("{BENCH} -o a.jsonl"));
    let huge = u64::MAX;
    let changes: [(&str, Value); 12] = [
        ("/subject/extents", json!({"ni": huge, "nj": huge, "nk": huge})),
        ("/subject/extents", json!({"ni": 0, "nj": 0, "nk": 0})),
        ("/subject/extents", json!({"ni": 1 << 20, "nj": 1 << 20, "nk": 1})),
        ("/subject/region/i", json!({"start": 9, "end": 2})),
        ("/subject/region/k", json!({"start": 0, "end": huge})),
        ("/subject/cells", json!(huge)),
        ("/subject/parameters", json!({"none": "NaN"})),
        ("/kernel/choices/block", json!([0, 0, 0])),
        ("/kernel/choices/access", json!("another")),
        ("/kernel/choices/run_width", json!(0)),
        ("/outcome/median_us", json!(0.0)),
        ("/outcome/limit/median_us", json!(-1e300)),
    ];
    for (pointer, value) in changes {
        change(&folder, "a.jsonl", "wrong.jsonl", |row| *row.pointer_mut(pointer).unwrap() = value.clone());
        let output = folder.run("report wrong.jsonl -o page.html");
        assert!(output.status.success(), "{pointer} {value}: {}", text(&output.stderr));
    }
}

#[test]
fn wrong_calls_of_report() {
    let folder = Folder::new();
    folder.done(&format!("{BENCH} -o a.jsonl"));
    let whole = fs::read_to_string(folder.path("a.jsonl")).unwrap();
    fs::write(folder.path("empty.jsonl"), "").unwrap();
    fs::write(folder.path("damaged.jsonl"), whole.replacen("median_us", "mean_us", 1)).unwrap();
    fs::write(folder.path("older.jsonl"), whole.replace("stencilc bench 1", "stencilc bench 0")).unwrap();
    fs::write(folder.path("page.html"), "as it was").unwrap();
    fs::write(folder.path("table.csv"), "a,b\n1,2\n").unwrap();
    for (call, status, part) in [
        ("report", 2, "<FILE>..."),
        ("report nothing.jsonl", 1, "there is no file `nothing.jsonl`"),
        (
            "report folder.stn",
            1,
            "`folder.stn` is a directory, not a file of rows\nhelp: name files in it, one or several: folder.stn/*.jsonl",
        ),
        ("report /dev/zero", 1, "`/dev/zero` is no file of rows: it is a device or a pipe, not a file"),
        (
            "report empty.jsonl",
            1,
            "`empty.jsonl` holds no rows\nhelp: measure something: stencilc bench laplap -o rows.jsonl",
        ),
        ("report empty.jsonl empty.jsonl", 1, "none of the 2 files holds a row"),
        (
            "report damaged.jsonl",
            1,
            "`damaged.jsonl` cannot be shown: line 1 is no row of results (missing field `median_us`",
        ),
        ("report damaged.jsonl", 1, "help: take that line out if the others are to be shown"),
        ("report older.jsonl", 1, "but `stencilc bench 0`"),
        ("report phi.npy", 1, "line 1 is no row of results"),
        ("report table.csv", 1, "help: name a file that `stencilc bench -o` wrote"),
        (
            "report a.jsonl -o page.txt",
            2,
            "-o writes .html, and `page.txt` says another kind of file\nhelp: call it `page.html`",
        ),
        ("report a.jsonl -o folder.stn", 2, "-o writes .html"),
        ("report a.jsonl -o home", 1, "home"),
        ("report a.jsonl -o nowhere/page.html", 1, "nowhere"),
    ] {
        let output = folder.run(&format!("{call}{}", if call.contains("-o") { "" } else { " -o page.html" }));
        let said = text(&output.stderr);
        assert!(output.status.code() == Some(status) && said.contains(part), "{call}: {:?} {said}", output.status);
        assert_eq!(fs::read_to_string(folder.path("page.html")).unwrap(), "as it was", "{call}");
    }
}
