//! What somebody wrote as they liked, in documentation and in the names of files, reaches generated code in comments alone: a
//! compiler sees the same whatever it says.

use crate::common::over_mesh::Quadrilaterals;
use crate::common::{lowered, problem};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::process::Command;
use std::sync::Arc;
use stencilc_compiler::cuda;
use stencilc_compiler::grid::Grid;
use stencilc_compiler::ir::{Precision, Stencil};
use stencilc_compiler::mesh::{self, MeshChoices, STRATEGIES};
use stencilc_compiler::plan::{self, Choices};
use stencilc_compiler::source::Source;
use stencilc_compiler::step::resident::{self, resident};
use stencilc_compiler::step::stream::{self, persistent, stream};
use stencilc_compiler::step::tiled::{self, tiled};
use stencilc_compiler::step::{Edge, Rows, StepTask};
use stencilc_compiler::text::FreeText;
use stencilc_runtime::emulate::Compiler;
use stencilc_runtime::grid::{Quadtree, Refinement};
use stencilc_runtime::mesh::program::prepared;
use stencilc_runtime::problem::{Problem, Request};
use stencilc_runtime::verify::plan_for;

/// What texts are drawn from: what opens and closes comments and strings, joins and ends lines, and words that code has.
const ALPHABET: [&str; 34] = [
    "*",
    "/",
    "\\",
    "\"",
    "'",
    "?",
    "<",
    ">",
    "&",
    "\u{1b}",
    "\n",
    "\r",
    "\t",
    "\u{b}",
    "\u{85}",
    "\u{2028}",
    "\u{202e}",
    " ",
    "*/",
    "/*",
    "//",
    "*\\",
    "??/",
    "??",
    "#",
    "}",
    ";",
    "\\\n",
    "nk",
    "plane",
    "copy_async",
    "grid_barrier",
    "code();",
    "é",
];

/// Random numbers, the same every time.
struct Draw(u64);

impl Draw {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % limit
    }

    fn text(&mut self) -> FreeText {
        let length = self.below(12);
        FreeText::new((0..length).map(|_| ALPHABET[self.below(ALPHABET.len())]).collect::<String>())
    }

    /// The stencil with other texts.
    fn stencil(&mut self, stencil: &Stencil) -> Stencil {
        let mut stencil = stencil.clone();
        (stencil.doc, stencil.file) = (self.text(), self.text());
        stencil.fields.values_mut().for_each(|field| field.doc = self.text());
        stencil.params.values_mut().for_each(|param| param.doc = self.text());
        stencil
    }
}

/// What is left of a C++ text without its comments, word by word, where trigraphs mean something or nothing.
fn code(text: &str, has_trigraphs: bool) -> String {
    let mut text = text.replace("\r\n", "\n");
    if has_trigraphs {
        let marks = [
            ("=", "#"),
            ("/", "\\"),
            ("'", "^"),
            ("(", "["),
            (")", "]"),
            ("!", "|"),
            ("<", "{"),
            (">", "}"),
            ("-", "~"),
        ];
        for (mark, meaning) in marks {
            text = text.replace(&format!("??{mark}"), meaning);
        }
    }
    // A backslash joins lines, as compilers see it even with blanks behind it.
    let mut whole = String::new();
    for line in text.split(['\n', '\r']) {
        match line.trim_end().strip_suffix('\\') {
            Some(joined) => whole.push_str(joined),
            None => whole.push_str(&format!("{line}\n")),
        }
    }
    let (mut rest, mut code) = (whole.as_str(), String::new());
    while let Some(character) = rest.chars().next() {
        let length = match character {
            '/' if rest.starts_with("/*") => {
                code.push(' ');
                2 + rest[2..].find("*/").expect("a comment ends") + 2
            }
            '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            '"' => {
                let length = 2 + rest[1..].find('"').expect("a string ends");
                code.push_str(&rest[..length]);
                length
            }
            _ => {
                code.push(character);
                character.len_utf8()
            }
        };
        rest = &rest[length..];
    }
    code.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// What the machine's compiler leaves of a text without its comments.
fn preprocessed(text: &str, option: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("kernel.cpp");
    // What a launcher includes is not here.
    let lines = text.lines().map(|line| if line.starts_with("#include") { "" } else { line });
    std::fs::write(&file, lines.collect::<Vec<_>>().join("\n")).unwrap();
    let mut command = Command::new(Compiler::find().unwrap().program);
    let output = command.args(["-E", "-P", "-w", option, "-x", "c++"]).arg(&file).output().unwrap();
    assert!(output.status.success(), "{}\n{text}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Texts of one subject with as many other documentations: what they come to must be the same.
fn compare(name: &str, count: u64, make: impl Fn(Option<&mut Draw>) -> Vec<String>) {
    let plain = make(None);
    assert!(!plain.is_empty());
    let mut all = [String::new(), String::new()];
    for seed in 0..count {
        let texts = make(Some(&mut Draw(seed)));
        assert_eq!(texts.len(), plain.len());
        for (text, plain) in texts.iter().zip(&plain) {
            for has_trigraphs in [false, true] {
                assert_eq!(code(text, has_trigraphs), code(plain, has_trigraphs), "{name}, seed {seed}:\n{text}");
            }
            let bad = |c: char| c.is_control() && !matches!(c, '\n' | '\t') || "\u{202e}\u{2028}".contains(c);
            assert!(!text.contains(bad), "{name}, seed {seed}:\n{text}");
            writeln!(all[0], "{text}").unwrap();
            writeln!(all[1], "{plain}").unwrap();
        }
    }
    for option in ["-trigraphs", "-std=gnu++17"] {
        let [found, expected] = all.each_ref().map(|text| preprocessed(text, option));
        assert!(found == expected, "{name}: the compiler sees other code with {option}");
    }
}

const TEXT: &str = "stencil documented {
    in a, b; in w on (k); param factor: real = 2; param first: int = 0; out r, s
    r = if k > first { factor * (a[i+1] - a[i-1]) + b[k-1] * w } else { b }
    s = a + b[j-1]
}";

fn built(problem: &Problem, choices: &Choices) -> Vec<String> {
    let built = cuda::build(&plan_for(problem, choices).unwrap()).unwrap();
    vec![built.source, built.header]
}

#[test]
fn documentation_of_stencils_is_no_code() {
    let stencil = lowered("documented", TEXT).remove(0);
    for choices in crate::common::combinations_for(&stencil).filter(|choices| !choices.walks()) {
        compare(&choices.words(), 12, |draw| {
            let mut stencil = plan::prepare(&stencil, choices.precision, true);
            if let Some(draw) = draw {
                stencil = draw.stencil(&stencil);
            }
            let built = cuda::build(&plan::plan(&stencil, &choices, None).unwrap()).unwrap();
            vec![built.source, built.header]
        });
    }
    let choices = Choices::default();
    compare("usual", 300, |draw| {
        let mut problem = problem(&stencil, Precision::F64, Grid::rows(8, 6, 4), &[]);
        if let Some(draw) = draw {
            problem.stencil = draw.stencil(&problem.stencil);
        }
        built(&problem, &choices)
    });
}

#[test]
fn names_of_grids_and_files_are_no_code() {
    let stencil = lowered("documented", TEXT).remove(0);
    let quadtree = Quadtree { ni: 5, nj: 4, depth: 2, refinement: Refinement::Noise { seed: 2 } };
    let (adjacency, _) = quadtree.adjacency("any").unwrap();
    for storage in ["compressed", "uncompressed"] {
        compare(storage, 60, |draw| {
            let mut problem = Problem::new(Request {
                stencil: &stencil,
                precision: Precision::F64,
                contract: true,
                grid: Some(Grid::cells(adjacency.cells(), 3)),
                adjacency: Some(Arc::new(adjacency.clone())),
                arrays: BTreeMap::new(),
                settings: BTreeMap::new(),
                seed: 3,
                cast: stencilc_runtime::Cast::Exact,
                drawing: stencilc_runtime::Drawing::Everything,
            })
            .unwrap();
            let mut choices = Choices { storage: storage.into(), ..Choices::default() };
            if let Some(draw) = draw {
                problem.stencil.file = draw.text();
                let mut named = adjacency.clone();
                named.name = draw.text();
                problem.adjacency = Some(Arc::new(named));
                choices.share = vec![draw.text().as_told().to_owned()];
            }
            built(&problem, &choices)
        });
    }
}

#[test]
fn documentation_of_repeated_stencils_is_no_code() {
    let text = "stencil repeated { in a; param c: real = 0.5; out r; r = a + c * (a[i+1] + a[i-1] + a[j+1] + a[j-1]) }";
    let stencil = plan::prepare(&lowered("repeated", text)[0], Precision::F64, true);
    let carry = [(stencil.field_named("r").unwrap(), stencil.field_named("a").unwrap())];
    compare("step kernels", 60, |draw| {
        let stencil = draw.map_or_else(|| stencil.clone(), |draw| draw.stencil(&stencil));
        let subject = StepTask {
            stencil: &stencil,
            precision: Precision::F64,
            extents: [128, 16, 2],
            rows: Rows { first: 0, row: 128, plane: 128 * 16 },
            edges: [Edge::Periodic; 2],
        };
        let shape = resident::Shape { rows: 8, warps: 2, blocks: 1, early: true };
        let kernels = [
            stream(&subject, &stream::Shape::default()),
            persistent(&subject, &carry, &stream::Shape::default()),
            tiled(&subject, &tiled::Shape::default()),
            resident(&subject, &carry, shape),
        ];
        kernels.into_iter().map(|kernel| kernel.unwrap().text).collect()
    });
}

#[test]
fn documentation_over_meshes_is_no_code() {
    let text = include_str!("../stencils/airfoil.stn");
    let lowered = stencilc_compiler::check(&Source::new("airfoil", text));
    for stencil in &lowered.mesh_stencils {
        let stencil = prepared(stencil, Precision::F64, true);
        for &strategy in STRATEGIES {
            let choices = MeshChoices { strategy, ..MeshChoices::default() };
            compare(&format!("{} {}", stencil.stencil.name, strategy.name()), 4, |draw| {
                let mut stencil = stencil.clone();
                if let Some(draw) = draw {
                    stencil.stencil = draw.stencil(&stencil.stencil);
                    stencil.mesh.doc = draw.text();
                    stencil.mesh.maps.values_mut().for_each(|map| map.doc = draw.text());
                }
                let subject = mesh::MeshTask {
                    stencil: &stencil,
                    precision: Precision::F64,
                    levels: 1,
                    computed: &(0..1),
                    from_zero: &|_| false,
                    counts: &Quadrilaterals,
                };
                mesh::kernels(&subject, &choices)
                    .unwrap()
                    .kernels
                    .into_iter()
                    .map(|kernel| cuda::text(&kernel.code).unwrap())
                    .collect()
            });
        }
    }
}
