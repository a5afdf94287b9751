//! `print` in a stencil, and what `stencilc run` shows of it.

use crate::common::folder::{Folder, text};
use serde_json::{Value, json};
use std::fs;

/// phi.npy is the fourth power of i; its fourth difference is 24.
const SHOWN: &str = "stencil shown {
    in  phi
    out res
    let lap = laplacian(phi)
    print(phi)
    print(\"smoothed\", laplacian(lap))
    print(phi[i+1,
              j-3])
    print(if k >= 1 { phi[k-1] > 0 } else { false })
    print(k * 2)
    res = laplacian(lap)
}
fn laplacian(a) = 4*a - a[i-1] - a[i+1] - a[j-1] - a[j+1]
";

fn folder() -> Folder {
    let folder = Folder::new();
    fs::write(folder.path("shown.stn"), SHOWN).unwrap();
    // The same without what it prints.
    let mut silent: Vec<&str> = SHOWN.lines().collect();
    silent.drain(4..10);
    fs::write(folder.path("silent.stn"), silent.join("\n")).unwrap();
    folder
}

#[test]
fn values_at_chosen_cells() {
    let folder = folder();
    let said = folder.done("run shown.stn --in phi=phi.npy --device cpu --at 3,2,1 --at 8,5,0 --at 2,3 --bits");
    insta::assert_snapshot!(said);
}

#[test]
fn values_by_hand() {
    let folder = folder();
    let said = folder.json("run shown.stn --in phi=phi.npy --device cpu --at 3,3,1 --at 0,0,0 --json");
    let prints = said["prints"].as_array().unwrap();
    let shown = |number: usize, cell: usize| {
        let cell = &prints[number]["cells"][cell];
        (cell["computed"].as_bool().unwrap(), cell["text"].as_str().map(str::to_owned))
    };
    let value = |text: &str| (true, Some(text.to_owned()));
    let none = (false, None);
    // phi = i^4, wherever it is; its fourth difference where two neighbours are there on each side.
    assert_eq!([shown(0, 0), shown(0, 1)], [value("81.0"), value("0.0")]);
    assert_eq!([shown(1, 0), shown(1, 1)], [value("24.0"), none.clone()]);
    assert_eq!([shown(2, 0), shown(2, 1)], [value("256.0"), none.clone()]);
    assert_eq!([shown(3, 0), shown(3, 1)], [value("true"), value("false")]);
    assert_eq!([shown(4, 0), shown(4, 1)], [value("2"), value("0")]);
    assert_eq!(prints[2]["label"], "phi[i+1, j-3]");
    assert_eq!(
        (&prints[1]["label"], &prints[1]["line"], &prints[1]["column"]),
        (&json!("smoothed"), &json!(6), &json!(5))
    );
    assert_eq!(prints[0]["cells"][0]["bits"], format!("{:#x}", 81.0f64.to_bits()));
    assert_eq!(prints[2]["region"]["j"], json!({ "start": 3, "end": 6 }));
    // Without being told, the middle of the computed cells.
    let said = folder.json("run shown.stn --in phi=phi.npy --device cpu --json");
    assert_eq!(said["region"]["i"], json!({ "start": 2, "end": 7 }));
    let cell = &said["prints"][0]["cells"][0];
    assert_eq!([&cell["i"], &cell["j"], &cell["k"]], [&json!(4), &json!(3), &json!(1)]);
}

#[test]
fn a_print_changes_nothing() {
    let folder = folder();
    let outputs = |file: &str| -> (Value, Vec<u8>) {
        let said = folder.json(&format!("run {file} --grid 9x7x4 --seed 5 --device cpu --out res=res.npy --json"));
        (said["region"].clone(), fs::read(folder.path("res.npy")).unwrap())
    };
    // One of the prints reads three rows up, the outputs two.
    assert_eq!(outputs("shown.stn"), outputs("silent.stn"));
    let kernel = |file: &str| {
        let text = folder.done(&format!("build {file} --emit cuda"));
        // The head names the file.
        text[text.find("__global__").unwrap()..].to_owned()
    };
    assert_eq!(kernel("shown.stn"), kernel("silent.stn"));
    let output = folder.run("build shown.stn -o made");
    assert!(text(&output.stderr).contains("note: the kernel leaves out what the stencil prints"));
}

#[test]
fn a_print_that_is_computed_nowhere() {
    let folder = Folder::new();
    fs::write(folder.path("far.stn"), "stencil far { in a; out b; print(a[i-9]); b = a }\n").unwrap();
    let output = folder.run("run far.stn --in a=phi.npy --device cpu");
    assert!(output.status.success());
    assert!(text(&output.stdout).contains("line 1  a[i-9]  at 4,3,1  not computed here"), "{}", text(&output.stdout));
    let said = text(&output.stderr);
    assert!(
        said.contains("note: the print at line 1 is computed nowhere: the grid 9x6x3 is smaller than what it reads"),
        "{said}"
    );
}

#[test]
fn wrong_prints() {
    let folder = folder();
    let wrong = [
        "println(a)",
        "printf(\"%f\", a)",
        "print()",
        "print(a, b)",
        "print(a, \"b\")",
        "print([a, 1])",
        "print(b)",
        "print(c)",
        "print a",
        "b = print(a)",
        "let v = { print(a); a }",
        "let v = { print(a) }",
        "let print = a",
    ];
    for (number, statement) in wrong.iter().enumerate() {
        let text = format!("stencil s {{\n    in a\n    out b\n    {statement}\n    b = a\n}}\n");
        fs::write(folder.path(&format!("wrong{number}.stn")), text).unwrap();
    }
    let mut lines: Vec<String> = (0..wrong.len()).map(|number| format!("check wrong{number}.stn")).collect();
    lines.push("run shown.stn --in phi=phi.npy --device cpu --at 9,0,0".to_owned());
    lines.push("run shown.stn --in phi=phi.npy --device cpu --at middle".to_owned());
    lines.push("run two.stn --stencil one --in a=phi.npy --device cpu --at 1,1,1".to_owned());
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    insta::assert_snapshot!(folder.transcript(&lines));
}
