//! `import "file.stn"`.

use crate::common::folder::Folder;
use std::fs;

const LIBRARY: &str = "\
// What several files use.
param dx: real = 0.5
const half = 1/2
fn ddx(a) = half * (a[i+1] - a[i-1]) / dx
fn never(a) = a
stencil slope { in a = 2..3; out b; b = ddx(a) }
program alone { inout a; boundary { i: copy }; a = slope(a) }
test \"of a ramp\" { slope { a = i }; expect b == 2 }
";

const MAIN: &str = "\
import \"parts/library.stn\"
program twice {
    in a
    out b
    boundary { i: periodic }
    let c = slope(a)
    b = slope(c)
}
test \"of a square\" { slope { a = i*i }; expect b == 4*i }
";

fn folder(files: &[(&str, &str)]) -> Folder {
    let folder = Folder::new();
    fs::create_dir_all(folder.path("parts")).unwrap();
    for (name, text) in files {
        fs::write(folder.path(name), text).unwrap();
    }
    folder
}

#[test]
fn what_is_imported_is_as_if_it_stood_there() {
    let folder = folder(&[("main.stn", MAIN), ("parts/library.stn", LIBRARY)]);
    insta::assert_snapshot!(folder.transcript(&[
        "check --strict main.stn",
        "check parts/library.stn",
        "run main.stn --grid 8x4x2 --draw --device cpu",
        "run main.stn --grid 8x4x2 --stencil slope --device cpu --set dx=1e999",
        "test main.stn",
        "test parts/library.stn",
        "run main.stn --grid 8x4x2 --program alone --draw --device cpu",
    ]));
    folder.done("verify main.stn --grid 40x8x2 --device emulate");
    let kernel = folder.done("build main.stn --stencil slope --emit cuda");
    assert!(kernel.contains("stencilc build main.stn"), "{kernel}");
    folder.done("explain main.stn --stencil slope --grid 8x4x2");
}

#[test]
fn a_place_is_told_in_its_file() {
    let main = |import: &str| format!("// é\nimport \"{import}\"\nstencil own {{ in a; out b; b = f(a) }}\n");
    let files = [
        ("syntax.stn", main("parts/syntax.stn")),
        ("open.stn", main("parts/open.stn")),
        ("wrong.stn", main("parts/wrong.stn")),
        ("clash.stn", main("parts/clash.stn")),
        ("inside.stn", main("parts/inside.stn")),
        ("missing.stn", main("parts/missng.stn")),
        ("directory.stn", main("parts")),
        ("nothing.stn", main("")),
        ("latin.stn", main("parts/latin.stn")),
        ("words.stn", "import parts/syntax.stn\n".to_owned()),
        ("self.stn", main("self.stn")),
        ("circle.stn", main("parts/circle.stn")),
        ("parts/syntax.stn", "fn f(a) = a\n\nfn g(a) = a +\n".to_owned()),
        ("parts/open.stn", "fn f(a) = (a\n".to_owned()),
        ("parts/wrong.stn", "\n\nfn f(a) = a + unknwn\nconst unknown = 1\n".to_owned()),
        ("parts/clash.stn", "fn f(a) = a\nstencil own { in a; out b; b = a }\n".to_owned()),
        ("parts/inside.stn", "import \"deeper.stn\"\n".to_owned()),
        ("parts/deeper.stn", "fn f(a) = a[q+1]\n".to_owned()),
        ("parts/circle.stn", "import \"back.stn\"\nfn f(a) = a\n".to_owned()),
        ("parts/back.stn", "fn g(a) = a\nimport \"../circle.stn\"\n".to_owned()),
        ("parts/missing.stn", "fn f(a) = a\n".to_owned()),
    ];
    let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (*name, text.as_str())).collect();
    let folder = folder(&files);
    fs::write(folder.path("parts/latin.stn"), b"fn f(a) = a // \xe9\n").unwrap();
    let names = [
        "syntax",
        "open",
        "wrong",
        "clash",
        "inside",
        "missing",
        "directory",
        "nothing",
        "latin",
        "words",
        "self",
        "circle",
    ];
    let calls: Vec<String> = names.iter().map(|name| format!("check {name}.stn")).collect();
    insta::assert_snapshot!(folder.transcript(&calls.iter().map(String::as_str).collect::<Vec<_>>()));
    let told = folder.run("check clash.stn --json");
    let told: serde_json::Value = serde_json::from_slice(&told.stdout).unwrap();
    let told = &told[0]["diagnostics"][0];
    assert_eq!((&told["file"], &told["line"]), (&"parts/clash.stn".into(), &2.into()), "{told}");
    assert_eq!(told["span"]["start"], 20, "{told}");
    let note = &told["notes"][0];
    assert_eq!(
        (&note["in_file"], &note["line"], &note["column"]),
        (&"clash.stn".into(), &3.into(), &9.into()),
        "{told}"
    );
}

#[test]
fn a_file_counts_once() {
    let folder = folder(&[
        (
            "main.stn",
            "import \"parts/a.stn\"\nimport \"./parts/../parts/b.stn\"\nstencil s { in x; out y; y = f(x) + g(x) }\n",
        ),
        ("parts/a.stn", "import \"base.stn\"\nfn f(x) = c*x"),
        ("parts/b.stn", "\u{FEFF}import \"base.stn\"\nfn g(x) = c + x // without a line break"),
        ("parts/base.stn", "const c = 2"),
        (
            "along.stn",
            "import \"laplap\"\nprogram p { in phi; out res; boundary { i: copy, j: copy }; .. = laplap(..) }\n",
        ),
    ]);
    folder.done("check --strict main.stn");
    folder.done("run main.stn --grid 8x4x2 --draw --device cpu");
    fs::create_dir(folder.path("elsewhere")).unwrap();
    folder.done("check elsewhere/../main.stn");
    folder.done("run along.stn --grid 8x8x2 --draw --device cpu");
}

#[test]
fn a_checkpoint_knows_what_is_imported() {
    let folder = folder(&[
        ("main.stn", "import \"step.stn\"\nprogram p { inout a; boundary { i: copy }; repeat 4 { a = step(a) } }\n"),
        ("step.stn", "stencil step { in a; out b; b = 0.5*(a[i-1] + a[i+1]) }\n"),
    ]);
    let run = "run main.stn --grid 8x4x1 --device cpu";
    folder.done(&format!("{run} --draw --checkpoint way.npz"));
    fs::write(folder.path("step.stn"), "stencil step { in a; out b; b = 0.25*(a[i-1] + a[i+1]) }\n").unwrap();
    let told = folder.refused(&format!("{run} --resume way.npz"));
    assert!(told.contains("main.stn") || told.contains("source") || told.contains("text"), "{told}");
}

/// The two files of the reference.
#[test]
fn the_example_of_the_reference_runs() {
    let text = include_str!("../../docs/language.md");
    let (_, section) = text.split_once("\n## Imports\n").unwrap();
    let mut blocks = section.split("\n```").skip(1).step_by(2);
    let folder = folder(&[("differences.stn", blocks.next().unwrap()), ("main.stn", blocks.next().unwrap())]);
    folder.done("check --strict main.stn");
    folder.done("run main.stn --grid 8x8x2 --draw --device cpu");
    folder.done("run differences.stn --grid 8x8x2 --device cpu");
}

/// However large and deep what is imported is, it is answered.
#[test]
fn there_is_a_limit() {
    let folder = folder(&[]);
    for n in 0..120 {
        let text = format!("import \"c{}.stn\"\nfn f{n}(a) = a\n", n + 1);
        fs::write(folder.path(&format!("c{n}.stn")), text).unwrap();
    }
    assert!(folder.refused("check c0.stn").contains("a file imports at most 100 others"));
    let long = format!("fn f(a) = a // {}\n", "x".repeat(400 << 10));
    fs::write(folder.path("long.stn"), &long).unwrap();
    fs::write(folder.path("both.stn"), format!("import \"long.stn\"\n{}", long.replace("f(a)", "g(a)"))).unwrap();
    assert!(folder.refused("check both.stn").contains("a file and all that it imports are at most 512 KiB"));
}

/// A text without a place has nobody who reads what it imports.
#[test]
fn a_text_alone_imports_nothing() {
    use stencilc_compiler::source::Source;
    let text = "import \"other.stn\"\nstencil s { in a; out b; b = a }";
    let told = stencilc_compiler::check(&Source::new("s.stn", text)).diagnostics;
    assert!(told[0].message.contains("this text stands by itself"), "{told:?}");
}

#[test]
fn a_library_has_no_stencil_and_is_fine() {
    let folder = folder(&[
        (
            "library.stn",
            "param dx: real = 0.5\nconst half = 1/2\nfn ddx(a) = half * (a[i+1] - a[i-1]) / dx\nfn never(a) = a\n",
        ),
        ("wrong.stn", "fn ddx(a) = b\n"),
        ("comments.stn", "// nothing\n"),
    ]);
    insta::assert_snapshot!(folder.transcript(&[
        "check --strict library.stn",
        "check library.stn --json",
        "check wrong.stn",
        "check comments.stn",
        "run library.stn --grid 8x8x1 --draw",
        "test library.stn",
        "explain library.stn",
    ]));
}
