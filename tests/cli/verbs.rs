//! The table of docs/command-line.md that says what each command does with each subject: every cell of it is tried.

use crate::common::folder::{Folder, text};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// What is computed, in the order of the columns.
struct Subject {
    column: usize,
    /// A file with tests.
    tested: &'static str,
    /// The file, and which of it.
    what: &'static str,
    /// Where.
    place: &'static str,
    /// What keeps measurements short.
    short: &'static str,
}

const STENCIL: Subject = Subject {
    column: 0,
    tested: "laplap",
    what: "laplap",
    place: "--grid 32x24x3",
    short: "--storage regular --access idxvar",
};
const PROGRAM: Subject = Subject {
    column: 1,
    tested: "heat",
    what: "heat --program heat_periodic",
    place: "--grid 32x24x3",
    short: "--fuse merged --times 6",
};
const STENCIL_OVER_MESH: Subject = Subject {
    column: 2,
    tested: "tested.stn",
    what: "airfoil --stencil res_calc",
    place: "--mesh mesh.npz",
    short: "--strategy owner",
};
const PROGRAM_OVER_MESH: Subject = Subject {
    column: 3,
    tested: "tested.stn",
    what: "airfoil --program airfoil_flow --set steps=2",
    place: "--mesh mesh.npz",
    short: "--strategy owner --times 2",
};

/// The cells of a column, each beside what its row begins with.
fn column(number: usize) -> Vec<(String, String)> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/command-line.md");
    let page = fs::read_to_string(page).unwrap();
    let table = page.lines().skip_while(|line| !line.starts_with("| | stencil, grid |")).skip(2);
    let cells = |line: &str| -> Vec<String> { line.split('|').map(|cell| cell.trim().to_owned()).collect() };
    let rows = table.take_while(|line| line.starts_with('|')).map(cells);
    rows.map(|row| (row[1].clone(), row[2 + number].clone())).collect()
}

/// A stencil and a program over a mesh, with a test of each.
const TESTED: &str = "mesh triangles { set node, cell; map cell.nodes -> node[3] }
stencil first over triangles.cell { in x on node; out y; y = x[nodes.0] }
program both over triangles { inout y on cell; in x on node; y = first(x) }
test \"a stencil\" { mesh triangles(3, 2); first { x = 2 }; expect y == 2 }
test \"a program\" { mesh triangles(3, 2); both { x = 3; y = 0 }; expect y == 3 }
";

/// A folder with a mesh, and an `ncu` that has counted something.
fn folder() -> Folder {
    let folder = Folder::new();
    folder.done("mesh make airfoil --size 24x12 -o mesh.npz");
    fs::write(folder.path("tested.stn"), TESTED).unwrap();
    let ncu = r#"#!/bin/sh
[ "$1" = --version ] && { echo 'Version 2025.3.1.0'; exit 0; }
while [ "$1" != --log-file ]; do [ "$1" = --kernel-name ] && kernel=$2; shift; done
log=$2; shift 2; "$@" || exit 1
printf '"ID","Kernel Name","gpu__time_duration.sum"\n"","","ns"\n"0","%s()","1000"\n' "$kernel" > "$log"
"#;
    fs::write(folder.path("ncu"), ncu).unwrap();
    fs::set_permissions(folder.path("ncu"), fs::Permissions::from_mode(0o755)).unwrap();
    folder
}

fn every_cell(subject: &Subject) {
    let folder = folder();
    let Subject { tested, what, place, short, .. } = subject;
    let refused = |line: &str, because: &str| {
        let output = folder.run(line);
        assert_eq!(output.status.code(), Some(2), "{line}");
        assert!(text(&output.stderr).contains(because), "{line}\n{}", text(&output.stderr));
    };
    let has_steps = subject.column % 2 == 1;
    let is_stencil_on_grid = subject.column == 0;
    let measured = "--device emulate --runs 2";
    for (row, cell) in column(subject.column) {
        match (row.as_str(), cell.as_str()) {
            ("`check`, `test`, `explain`", "yes") => {
                folder.done(&format!("check {tested}"));
                assert!(folder.done(&format!("test {tested}")).contains(" passed"));
                folder.done(&format!("explain {what} {place}"));
            }
            ("`run`, with prints, pictures, `--vtu` or `.npy` files", "yes") => {
                let output = if subject.column == 1 { "t" } else { "res" };
                let output = if subject.column == 3 { "q" } else { output };
                let picture = if subject.column < 2 {
                    format!("--plot {output}=picture.png")
                } else {
                    "--vtu all.vtu".to_owned()
                };
                for device in ["cpu", "emulate"] {
                    let line =
                        format!("run {what} {place} --draw --out {output}=array.npy {picture} --device {device}");
                    folder.done(&line);
                    let made = folder.path("array.npy");
                    assert!(fs::metadata(&made).unwrap().len() > 128, "{line}");
                    fs::remove_file(made).unwrap();
                }
                refused(&format!("run {what} {place} --draw --device cpu --bits"), "prints nothing");
            }
            ("`run --every`, `--animate`, `--checkpoint`, `--resume`, CUDA graphs", "it has no steps") => {
                assert!(!has_steps);
                for option in ["--every 1", "--checkpoint kept.npz", "--no-graph", "--animate res=way.png"] {
                    refused(&format!("run {what} {place} --draw --device cpu {option}"), "is for programs");
                }
            }
            ("`run --every`, `--animate`, `--checkpoint`, `--resume`, CUDA graphs", "yes") => {
                assert!(has_steps);
                let (output, drawn) = if subject.column == 1 { ("t", "t") } else { ("q", "q.0") };
                let run = format!("run {what} {place} --device emulate");
                folder.done(&format!(
                    "{run} --draw --every 1 --checkpoint kept-{{step}}.npz --animate {drawn}=way.png --out {output}=whole.npy"
                ));
                folder.done(&format!("{run} --resume kept-1.npz --no-graph --out {output}=rest.npy"));
                let [whole, rest] = ["whole.npy", "rest.npy"].map(|name| fs::read(folder.path(name)).unwrap());
                assert_eq!(whole, rest);
                assert!(folder.frames("way.png").0 > 1);
            }
            ("`build` of kernels, `snapshot`", "yes") => {
                folder.done(&format!("build {what} {place} -o built"));
                let texts = fs::read_dir(folder.path("built")).unwrap().map(|file| file.unwrap().path());
                assert!(texts.filter(|path| path.extension().is_some_and(|own| own == "cu")).count() > 0);
                folder.done(&format!("snapshot {what} {place}"));
            }
            ("`build` of launchers for C", said) => {
                let built = fs::read_dir(folder.path("built")).unwrap().map(|file| file.unwrap().path());
                let headers = built.filter(|path| path.extension().is_some_and(|own| own == "h")).count();
                assert_eq!(headers, usize::from(is_stencil_on_grid));
                assert_eq!(said, if is_stencil_on_grid { "yes" } else { "its kernels alone" });
            }
            ("`build --fortran`, `--host`", "yes") => {
                folder.done(&format!("build {what} --fortran --host -o called"));
                let texts = fs::read_dir(folder.path("called")).unwrap();
                assert_eq!(texts.count(), 4);
            }
            ("`build --fortran`, `--host`", "no launcher") => {
                for option in ["--fortran", "--host"] {
                    refused(&format!("build {what} {place} {option}"), "`build` makes no launcher");
                }
            }
            ("`verify`, `bench`, `tune`", "yes") => {
                assert!(folder.done(&format!("verify {what} {place} --device emulate")).contains("equal"));
                folder.done(&format!("bench {what} {place} {measured} {short}"));
                assert!(
                    folder
                        .done(&format!("tune {what} {place} {measured} {short} --budget 1"))
                        .contains("the fastest: ")
                );
                folder.done(&format!("run {what} {place} --draw --device emulate"));
            }
            ("`bench -o`, `--csv`, `report`", "yes") => {
                folder.done(&format!("bench {what} {place} {measured} {short} -o rows.jsonl --csv rows.csv"));
                folder.done("report rows.jsonl -o page.html");
            }
            ("`bench -o`, `--csv`, `report`", "`--json`") => {
                for option in ["-o rows.jsonl", "--csv rows.csv"] {
                    refused(&format!("bench {what} {place} {measured} {short} {option}"), " is for ");
                }
                let said = folder.json(&format!("bench {what} {place} {measured} {short} --json"));
                let rows = if subject.column == 1 { &said["cases"][0]["plans"] } else { &said["rows"] };
                assert!(!rows.as_array().unwrap().is_empty());
            }
            ("`profile`", "yes") => {
                let said = folder.json(&format!("profile {what} {place} {measured} {short} --ncu ./ncu --json"));
                assert!(said["totals"]["counted"].as_u64().unwrap() > 0);
            }
            (row, cell) => panic!("nobody tries whether {row} is `{cell}`"),
        }
    }
}

#[test]
fn every_command_for_stencils_on_grids() {
    every_cell(&STENCIL);
}

#[test]
fn every_command_for_programs_on_grids() {
    every_cell(&PROGRAM);
}

#[test]
fn every_command_for_stencils_over_meshes() {
    every_cell(&STENCIL_OVER_MESH);
}

#[test]
fn every_command_for_programs_over_meshes() {
    every_cell(&PROGRAM_OVER_MESH);
}
