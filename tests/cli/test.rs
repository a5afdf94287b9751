//! `stencilc test`.

use crate::common::folder::{Folder, text};
use serde_json::Value;
use std::fs;

/// Two stencils, a parameter of the file, fields on fewer axes, interfaces, an `inout`.
const STENCILS: &str = "
param dx: real = 2
fn gradient(a) = (a[i+1] - a[i-1]) / (2*dx)
stencil slope { in phi; out res; res = gradient(phi) }
stencil column {
    in w on (k)
    in h on (i, j, k+1)
    in area: f32 on (i, j)
    inout t
    param n: int
    param heat: real = 1/4
    out level: int
    t = if k < n { t } else { t[k-1] + heat * w * area + h[k+1] - h }
    level = k
}
";

impl Folder {
    /// A folder with a file of stencils and a test with this title and these braces.
    fn with_test(title: &str, body: &str) -> Self {
        let folder = Self::new();
        fs::write(folder.path("file.stn"), format!("{STENCILS}test \"{title}\" {{\n{body}\n}}\n")).unwrap();
        folder
    }
}

#[test]
fn the_stencils_that_come_along_pass_their_tests() {
    let folder = Folder::new();
    let stencils = folder.json("list stencils --json");
    for stencil in stencils.as_array().unwrap() {
        let name = stencil["name"].as_str().unwrap();
        let checked = folder.json(&format!("check {name} --json"));
        // Tests in the source run on grids.
        if !checked[0]["meshes"].is_null() {
            continue;
        }
        let report = folder.json(&format!("test {name} --json"));
        assert!(report["totals"]["passed"].as_u64().unwrap() > 0, "{name}: {report:#}");
        assert_eq!(report["totals"]["failed"], 0, "{name}: {report:#}");
    }
}

#[test]
fn what_holds_passes() {
    for body in [
        // Coordinates and extents are numbers, functions and parameters those of the file.
        "slope { phi = 4*i + j*k }\n expect res == 2 && i < ni - 1 && j < nj && k < nk && ni == 12 && nj == 10 && nk == 6",
        "grid(7, 5)\n slope { phi = i**2 - nk; dx = 1/2 }\n expect res == 4*i && dx == 0.5 && nk == 1 && ni == 7",
        // A let before the stencil is one of the inputs, and stays visible; coordinates go on beyond the grid.
        "let wave = if (i + j) % 2 == 0 { 1 } else { -1 }\n slope { phi = wave[i+1000, j-3] }\n \
         let half = res / 2\n expect half == 0 && phi == -wave && wave[i+1] == -wave && gradient(i) == 1/2",
        // Fewer axes, interfaces, storage in single precision, parameters, what was before.
        "let before = 10*k\n \
         column { w = k + 1; h = k**2 + i + nk; area = 0.1; t = before; n = 2 + 1; heat = 1/2 }\n \
         expect if k < n { t == before } else { abs(t - (10*(k-1) + 0.05*(k+1) + 2*k + 1)) < 1e-6 }\n \
         expect w[k+1] == w + 1 && h[k+1] - h == 2*k + 1 && level[k-1] == k - 1\n \
         expect area != 0.1 && abs(area - 0.1) < 1e-8 && heat == 0.5",
    ] {
        let folder = Folder::with_test("it holds", body);
        assert_eq!(folder.done("test file.stn"), format!("passed  {}: it holds\nin all: 1 passed\n", subject(body)));
        folder.done("check file.stn --strict");
    }
}

fn subject(body: &str) -> &str {
    if body.contains("column {") { "column" } else { "slope" }
}

#[test]
fn offsets_of_outputs_count_where_they_were_computed() {
    let cells = |expect: &str| {
        let folder = Folder::with_test("false", &format!("slope {{ phi = i }}\n expect {expect}"));
        let output = folder.run("test file.stn --json");
        assert_eq!(output.status.code(), Some(3), "{expect}");
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        report["tests"][0]["failures"][0]["cells"].as_u64().unwrap()
    };
    // 12 x 10 x 6 with a halo of one cell on two sides.
    assert_eq!(cells("res > 1"), 10 * 10 * 6);
    // An input has its numbers in the halo, too, but none beyond the grid.
    assert_eq!(cells("phi[i-1] > 12"), 10 * 10 * 6);
    assert_eq!(cells("phi[i-2] > 12"), 9 * 10 * 6);
    assert_eq!(cells("res[i+1, j-1] > 1"), 9 * 9 * 6);
    assert_eq!(cells("res[k-2] > 1"), 10 * 10 * 4);
    assert_eq!(cells("if k > 1 { res[k-2] > 1 } else { res > 1 }"), 10 * 10 * 6);
    // Nothing looked at is no success.
    assert_eq!(cells("res[i+10] < 1"), 0);
}

#[test]
fn precision_and_titles_choose() {
    let body = "let x = 0.1 * i\n slope { phi = x; dx = 0.5 }\n expect phi == x && abs(res - 0.2) < 1e-12";
    let folder = Folder::with_test("Tenths", body);
    folder.done("test file.stn --filter tenth");
    let output = folder.run("test file.stn --filter tenth --precision f32");
    assert_eq!(output.status.code(), Some(3));
    assert!(text(&output.stderr).contains("abs(res - 0.2) = "), "{}", text(&output.stderr));
    assert_eq!(folder.json("check file.stn --json")[0]["tests"], serde_json::json!(["Tenths"]));
}

#[test]
fn failures_are_shown_with_their_numbers() {
    let folder = Folder::with_test(
        "gentle",
        "    let steep = 5*i\n    slope { phi = steep * i }\n    let error = res - 5*i\n    \
         expect abs(error) < 1e-12\n    expect res < 40 && phi[i-1] >= 0 || phi < phi[k-1]\n    \
         expect if k > 0 { phi[k-1] == i } else { k == 0 }",
    );
    insta::assert_snapshot!(folder.transcript(&["test file.stn", "check file.stn"]));
    let report: Value = serde_json::from_slice(&folder.run("test file.stn --json").stdout).unwrap();
    let failure = &report["tests"][0]["failures"][0];
    assert_eq!(failure["expectation"], "res < 40 && phi[i-1] >= 0 || phi < phi[k-1]");
    assert_eq!(failure["first"], serde_json::json!({ "i": 8, "j": 0, "k": 1 }));
}

#[test]
fn what_cannot_be_run_fails() {
    let folder = Folder::with_test("too small", "grid(2, 5, 1)\n slope { phi = i }\n expect res == 1");
    let broken = Folder::with_test("too far", "slope { phi = gradient(i)[i+900000, j+900000] }\n expect res == 0");
    let none = Folder::new();
    insta::assert_snapshot!(
        [
            folder.transcript(&["test file.stn"]),
            broken.transcript(&["test file.stn"]),
            none.transcript(&["test two.stn", "test two.stn laplap", "test laplap --filter nonsense", "test"]),
        ]
        .concat()
    );
}

/// What a test says that is none.
const WRONG: &[&str] = &[
    "",
    "slope { phi = i }",
    "expect true",
    "expect res == 1; slope { phi = i }",
    "slope { phi = i }; slope { phi = j }; expect res == 1",
    "slop { phi = i }; expect res == 1",
    "gradient { phi = i }; expect res == 1",
    "later { phi = i }; expect res == 1",
    "slope { }; expect res == 1",
    "column { w = 1; area = 1; h = 1 }; expect t == 1",
    "slope { phy = i }; expect res == 1",
    "slope { velocity = 1; phi = i }; expect res == 1",
    "slope { phi = i; res = 1 }; expect res == 1",
    "slope { phi = i; phi = j }; expect res == 1",
    "slope { phi[i+1] = i }; expect res == 1",
    "slope { phi += i }; expect res == 1",
    "slope { phi = i > 3 }; expect res == 1",
    "slope { phi = phi }; expect res == 1",
    "let before = res + 1; slope { phi = before }; expect res == 1",
    "slope { phi = i; dx = i }; expect res == 1",
    "column { w = i; area = k; h = 1; t = 1; n = 0.5 }; expect t == 1",
    "slope { phi = i }; expect res",
    "slope { phi = i }; expect abs(rez) < 1",
    "slope { phi = i }; expect res = 1",
    "slope { phi = i }; let unused = res; expect res == 1",
    "let phi = i; slope { phi = phi }; expect res == 1",
    "slope { phi = i }; expect inner(phi) == i",
    "slope { phi = i }; expect scaled(phi) == i",
    "grid(12, 10); grid(12, 10, 6); slope { phi = i }; expect res == 1",
    "grid(12); slope { phi = i }; expect res == 1",
    "grid(12, 10, 0.5); slope { phi = i }; expect res == 1",
    "grid(12, 0, 5); slope { phi = i }; expect res == 1",
    "grid(2000, 2000, 2000); slope { phi = i }; expect res == 1",
    "slope { phi = i }; assert res == 1",
    "out res; slope { phi = i }; expect res == 1",
];

#[test]
fn wrong_tests_are_answered() {
    // Not there where they are not used, so that nothing is said of them.
    let others = [
        ("inner", "fn inner(a) = i * a\n"),
        ("scaled", "param scale: real\nfn scaled(a) = scale * a\n"),
        ("later", "program later { inout a; a = s(a) }\n"),
    ];
    let mut review = String::new();
    for body in WRONG {
        let folder = Folder::new();
        let others: String = others.iter().filter(|(name, _)| body.contains(name)).map(|(_, text)| *text).collect();
        let file = format!("{STENCILS}{others}test \"t\" {{ {body} }}\n");
        fs::write(folder.path("file.stn"), file).unwrap();
        let output = folder.run("check file.stn --strict");
        assert_eq!(output.status.code(), Some(1), "accepted: {body}");
        review += &format!("{body}\n\n{}\n{}\n\n", text(&output.stderr), "=".repeat(60));
    }
    insta::assert_snapshot!(review);
}

#[test]
fn a_test_has_at_most_a_hundred_expectations() {
    let body = |times: usize| format!("slope {{ phi = i }}\n{}", "expect res == 0.5\n".repeat(times));
    Folder::with_test("many", &body(100)).done("test file.stn");
    let output = Folder::with_test("many", &body(101)).run("check file.stn");
    assert!(text(&output.stderr).contains("this test has more than 100 expectations"), "{}", text(&output.stderr));
}

#[test]
fn two_tests_of_one_title() {
    let folder = Folder::new();
    let test = "test \"t\" { one { a = 1 }; expect b == 1 }\n";
    fs::write(folder.path("file.stn"), format!("stencil one {{ in a; out b; b = a }}\n{test}{test}test \" \" {{ }}\n"))
        .unwrap();
    insta::assert_snapshot!(folder.transcript(&["test file.stn"]));
}

#[test]
fn what_a_test_sets_is_finite_in_the_precision() {
    let folder = Folder::new();
    let far = "stencil far { in a; param p: real; param q = 1/0; out b; b = if p > 1 { a } else { q } }\n\
               test \"far\" { far { a = i; p = 1e39 }; expect b == a }\n";
    fs::write(folder.path("far.stn"), far).unwrap();
    folder.done("test far.stn");
    let told = folder.refused("test far.stn --precision f32");
    assert!(told.contains("what the test sets the parameter `p` to is not finite in single precision"), "{told}");
}
