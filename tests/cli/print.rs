//! `print` in a stencil, and what `stencilc run` shows of it.

use crate::common::folder::{Folder, text};
use serde_json::{Value, json};
use std::fs;
use stencilc_runtime::mesh::{Map, Mesh, Set, save};

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

/// Three doublings of what lies on one side, and what each begins with.
const DOUBLED: &str = "stencil twice {
    in  a
    out b
    let right = a[i+1]
    print(\"right\", right)
    print(a[i-30])
    b = 2 * right
}
program thrice {
    inout q
    repeat 3 { q = twice(q) }
}
";

fn doubled() -> Folder {
    let folder = Folder::new();
    fs::write(folder.path("thrice.stn"), DOUBLED).unwrap();
    let silent: Vec<&str> = DOUBLED.lines().filter(|line| !line.contains("print")).collect();
    fs::write(folder.path("silent.stn"), silent.join("\n")).unwrap();
    folder
}

/// What lines print, without how fast it was.
fn told(folder: &Folder, lines: &[&str]) -> String {
    let text = folder.transcript(lines);
    let steady = |line: &str| match line.split_once(" steps, ") {
        Some((before, _)) => format!("{before} steps\n"),
        None => format!("{line}\n"),
    };
    text.lines().map(steady).collect()
}

#[test]
fn prints_of_a_program_on_its_way() {
    let folder = doubled();
    let run = "run thrice.stn --program thrice --in q=phi.npy --at 2,1,1 --at 8,0,0";
    insta::assert_snapshot!(told(
        &folder,
        &[
            &format!("{run} --device cpu --every 2 --no-graph"),
            &format!("{run} --device cpu --every 1 --bits"),
            &format!("{run} --device cpu --resume none.npz"),
            "run thrice.stn --program thrice --in q=phi.npy --device cpu",
            "run thrice.stn --program thrice --in q=phi.npy --device cpu --at 9,0,0",
            "run silent.stn --program thrice --in q=phi.npy --device cpu --bits",
        ]
    ));
}

#[test]
fn prints_of_a_program_are_the_same_in_every_way() {
    let folder = doubled();
    // By hand: (i+1)^4, then twice (i+2)^4, then four times (i+3)^4. Cells at the right keep what is given, so at 5 and 6 it reads that.
    let (third, right) = ([256.0, 1250.0, 5184.0], [1296.0, 4802.0, 16384.0]);
    for way in ["--device cpu", "--device emulate", "--device emulate --fuse recomputed", "--device emulate --no-graph"]
    {
        let run =
            format!("run thrice.stn --program thrice --in q=phi.npy {way} --at 3,2,1 --at 5,0,0 --every 1 --json");
        let said = folder.json(&run);
        let steps = said["printed_on_the_way"].as_array().unwrap();
        let shown: Vec<[&Value; 3]> = steps
            .iter()
            .map(|step| {
                let cells = &step["prints"][0]["cells"];
                [&step["step"], &cells[0]["value"], &cells[1]["value"]]
            })
            .collect();
        let expected: Vec<[Value; 3]> =
            (0..3).map(|step| [json!(step + 1), json!(third[step]), json!(right[step])]).collect();
        let expected: Vec<[&Value; 3]> = expected.iter().map(|[a, b, c]| [a, b, c]).collect();
        assert_eq!(shown, expected, "{way}");
        assert_eq!(said["prints"], steps[2]["prints"], "{way}");
        assert_eq!(said["prints"][0]["called_at"]["line"], 11);
        assert_eq!(said["prints"][1]["cells"][0]["computed"], false);
    }
}

#[test]
fn prints_of_a_program_change_nothing() {
    let folder = doubled();
    let outputs = |file: &str, way: &str| -> Vec<u8> {
        folder.done(&format!("run {file} --program thrice {way} --out q=q.npy"));
        fs::read(folder.path("q.npy")).unwrap()
    };
    let given = "--in q=phi.npy --device";
    for way in ["cpu", "emulate", "emulate --fuse recomputed"] {
        let way = format!("{given} {way}");
        assert_eq!(outputs("thrice.stn", &way), outputs("silent.stn", &way), "{way}");
    }
    // A checkpoint of one goes on in the other.
    let run = "--program thrice --in q=phi.npy --device cpu --every 2 --checkpoint";
    folder.done(&format!("run thrice.stn {run} with-{{step}}.npz"));
    folder.done(&format!("run silent.stn {run} without-{{step}}.npz"));
    let rest = |file: &str, checkpoint: &str| outputs(file, &format!("--device cpu --resume {checkpoint}"));
    let whole = outputs("silent.stn", &format!("{given} cpu"));
    assert_eq!([rest("silent.stn", "without-2.npz"), rest("thrice.stn", "with-2.npz")], [whole.clone(), whole]);
    let said = folder.done("run thrice.stn --program thrice --device cpu --at 3,2,1 --resume with-2.npz");
    assert!(said.contains("line 5  right    at 3,2,1  5184.0"), "{said}");
}

/// What flows along edges, and what it adds up to.
const FLOWING: &str = "mesh triangles {
    set node, edge
    map edge.nodes -> node[2]
}
stencil flux over triangles.edge {
    in  q on node
    inc r on node
    let d = q[nodes.1] - q[nodes.0]
    print(\"difference\", d)
    r[nodes.0] += d
    r[nodes.1] -= d
}
stencil add over triangles.node {
    in  q, r
    out next
    print(r)
    next = q + 0.125 * r
}
program spread over triangles {
    inout q on node
    repeat 2 {
        let r = flux(q)
        q = add(q, r)
    }
}
";

fn flowing() -> Folder {
    let folder = Folder::new();
    fs::write(folder.path("spread.stn"), FLOWING).unwrap();
    folder.done("mesh make triangles --size 4x3 -o mesh.npz");
    folder
}

#[test]
fn prints_over_meshes() {
    let folder = flowing();
    let run = "run spread.stn --mesh mesh.npz --draw";
    insta::assert_snapshot!(told(
        &folder,
        &[
            &format!("{run} --device cpu"),
            &format!("{run} --device cpu --at 2 --at 25 --every 1"),
            &format!("{run} --device cpu --stencil flux --at 2 --bits"),
            &format!("{run} --device cpu --at 99"),
            &format!("{run} --device cpu --at 2,1"),
            &format!("{run} --device cpu --at 2,1,0"),
        ]
    ));
}

#[test]
fn what_is_printed_on_a_set_without_elements() {
    let folder = flowing();
    let set = |name: &str, size| Set { name: name.to_owned(), size };
    let nodes = Map { name: "nodes".to_owned(), from: 1, to: 0, arity: 2, table: Vec::new() };
    let (sets, maps) = (vec![set("node", 3), set("edge", 0)], vec![nodes]);
    save(&Mesh { origin: "lone.npz".to_owned(), sets, maps, fields: Vec::new() }, &folder.path("lone.npz")).unwrap();
    let run = "run spread.stn --mesh lone.npz --draw --device cpu";
    insta::assert_snapshot!(told(&folder, &[&format!("{run} --at 0"), &format!("{run} --stencil flux --at 0")]));
}

#[test]
fn prints_over_meshes_are_the_same_in_every_way() {
    let folder = flowing();
    let run = "run spread.stn --mesh mesh.npz --draw --at 2 --at 25 --every 1 --json";
    let of = |way: &str| {
        let said = folder.json(&format!("{run} {way}"));
        let sets: Vec<&str> =
            said["prints"].as_array().unwrap().iter().map(|print| print["set"].as_str().unwrap()).collect();
        assert_eq!(sets, ["edge", "node"]);
        (said["printed_on_the_way"].clone(), said["prints"].clone())
    };
    let told = of("--device cpu");
    assert_eq!(told.0.as_array().unwrap().len(), 2);
    for way in ["--device emulate", "--device emulate --strategy tiled --order rcm", "--device emulate --fuse separate"]
    {
        assert_eq!(of(way), told, "{way}");
    }
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
