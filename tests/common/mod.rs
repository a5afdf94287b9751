//! What several test suites share.
pub mod device;
pub mod folder;
pub mod over_mesh;
pub mod process;
pub mod simulation;
pub mod step;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use stencilc_compiler::cuda;
use stencilc_compiler::diagnostic::Refusal;
use stencilc_compiler::grid::Grid;
use stencilc_compiler::import::{self, Text};
use stencilc_compiler::ir::{Precision, Stencil};
use stencilc_compiler::plan::{Choices, variants};
use stencilc_compiler::source::Source;
use stencilc_compiler::storage::fastest::Fastest;
use stencilc_compiler::storage::neighbors::Neighbors;
use stencilc_runtime::emulate::{Compiler, Settings};
use stencilc_runtime::problem::{Problem, Request};
use stencilc_runtime::verify::{Expected, OfStencil, Tools, Verdict, expect, plan_for, verify};

/// Every stencil file of the project that is about grids: its name without its ending, and its text.
pub fn stencils() -> Vec<(String, String)> {
    let over_meshes = |text: &str| {
        let lowered = stencilc_compiler::check(&with_imports("", text));
        // One may have a mesh alone, for others.
        lowered.is_ok() && lowered.stencils.is_empty()
    };
    all_files().into_iter().filter(|(_, text)| !over_meshes(text)).collect()
}

/// A stencil file of the project with those that it imports.
pub fn with_imports(name: &str, text: &str) -> Source {
    let file = |name: &str, text: String| Text { key: name.to_owned(), name: name.to_owned(), text };
    import::joined(file(name, text.to_owned()), &mut |_, path| {
        let found = all_files().into_iter().find(|(own, _)| own == path);
        found.map(|(name, text)| file(&name, text)).ok_or_else(|| Refusal::new(format!("there is no `{path}`")))
    })
}

/// Every stencil file of the project.
pub fn all_files() -> Vec<(String, String)> {
    // The folder of the sources, or, where a test was carried to another machine, the one it runs in.
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("stencils");
    let folder = if sources.exists() { sources } else { PathBuf::from("stencils") };
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let name = |path: &Path| path.file_stem().unwrap().to_string_lossy().into_owned();
    files.iter().map(|path| (name(path), std::fs::read_to_string(path).unwrap())).collect()
}

/// Stencils that differ from another one of their file in how far they reach alone: what takes minutes for one looks at that.
const ALIKE: [&str; 2] = ["grad_div4", "grad_div2"];

/// The stencils of a text that must be right.
pub fn lowered(name: &str, text: &str) -> Vec<Stencil> {
    let source = Source::new(name, text);
    let lowered = stencilc_compiler::check(&source);
    assert!(lowered.is_ok(), "{}", stencilc_compiler::diagnostic::render(&lowered.diagnostics, &source, false));
    lowered.stencils.into_iter().filter(|own| !ALIKE.contains(&own.name.as_str())).collect()
}

/// A problem with everything drawn at random.
pub fn problem(stencil: &Stencil, precision: Precision, grid: Grid, settings: &[(&str, &str)]) -> Problem {
    let settings: BTreeMap<String, String> =
        settings.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
    Problem::new(Request {
        stencil,
        precision,
        contract: true,
        grid: Some(grid),
        adjacency: None,
        arrays: BTreeMap::new(),
        settings,
        seed: 1,
        cast: stencilc_runtime::Cast::Exact,
        drawing: stencilc_runtime::Drawing::Everything,
    })
    .unwrap()
}

/// What comes of kernels on the emulator, in every order of threads.
pub fn verify_emulated(
    problem: &Problem,
    expected: &Expected,
    choices: &[Choices],
    compiler: &Compiler,
    settings: &Settings,
) -> stencilc_runtime::Result<Vec<Verdict>> {
    let tools = Tools { keeps: true, ..Tools::emulated(compiler, settings.clone()) };
    verify(&OfStencil { problem, expected }, choices, &tools, &|_| {})
}

/// Every combination of storage and access strategy, all else as usual.
pub fn combinations() -> impl Iterator<Item = Choices> {
    variants().filter(Choices::is_plain)
}

/// Those that can compute a stencil.
pub fn combinations_for(stencil: &Stencil) -> impl Iterator<Item = Choices> {
    combinations().filter(|choices| choices.suits(stencil))
}

/// Executes those variants of a kernel, of all that can compute it, whose number is chosen, each with one of two blocks, and compares with the
/// interpreter; those with other axes fastest are counted by themselves. Returns how many were equal; the others there was a reason to refuse.
pub fn check_variants(problem: &Problem, is_chosen: impl Fn(usize) -> bool) -> usize {
    let name = &problem.stencil.name;
    let expected = expect(problem, &|_| {}).unwrap_or_else(|error| panic!("{name}: {error}"));
    let of = |fastest| variants().filter(move |own| own.fastest == fastest && own.suits(&problem.stencil)).enumerate();
    let by_plane = of(Fastest::Columns).filter(|(number, _)| is_chosen(*number));
    // Columns lie in the same ways, so of these fewer will do: another third for each length of a name.
    let by_column = of(Fastest::Levels).filter(|(number, _)| number % 3 == name.len() % 3 && is_chosen(number / 3));
    let choices = by_plane.chain(by_column).map(|(number, choices)| {
        let block = match number % 3 {
            _ if choices.walks() => [32, 2, 1],
            0 => [6, 2, 3],
            _ => choices.block,
        };
        let constant = number % 5 == 0 && choices.storage == "compressed";
        let short_last = number % 4 == 0 && choices.storage != "regular";
        let tile = [[2, 2], [4, 3], [1, 2]][number % 3];
        let choices = choices.with("tile", tile).with("slice", [4]);
        let choices =
            choices.with("patch", [[2, 2], [4, 1], [1, 2]][number % 3]).with("lane", [[2], [1], [4]][number % 3]);
        Choices { precision: problem.precision, block, run_width: 8, short_last, constant, ..choices }
    });
    let choices: Vec<Choices> = choices.collect();
    let how = Settings { strict: true, ..Settings::default() };
    let verdicts = verify_emulated(problem, &expected, &choices, &Compiler::find().unwrap(), &how);
    let verdicts = verdicts.unwrap_or_else(|error| panic!("{name}: {error}"));
    let mut equal = 0;
    for (choices, verdict) in choices.iter().zip(verdicts) {
        match verdict {
            Verdict::Equal { cells: 1.. } => equal += 1,
            Verdict::Refused { .. } if choices.neighbors == Neighbors::Chasing => {}
            Verdict::Refused { .. } if choices.storage == "regular" && problem.adjacency.is_some() => {}
            // Of stencils that look up very many neighbours.
            Verdict::Refused { reason } if choices.constant && reason.contains(", and constant memory ") => {}
            verdict => panic!("{name} {} on {}: {verdict:?}", choices.words(), problem.grid),
        }
    }
    equal
}

/// All combinations in one C++ text, each kernel under its own name, and how many there are.
pub fn translation_unit(problem: &Problem, choices: impl Iterator<Item = Choices>) -> (String, usize) {
    let (mut text, mut kernels) = (String::new(), 0);
    for (number, choices) in choices.enumerate() {
        let choices = Choices { precision: problem.precision, ..choices };
        let plan = plan_for(problem, &choices).unwrap();
        let kernel = cuda::print(&plan).unwrap();
        let own = format!("kernel_{number}");
        text +=
            &format!("#define {0} {own}\nnamespace space_{number} {{\n{1}}}\n#undef {0}\n", kernel.name, kernel.text);
        kernels += 1;
    }
    (text, kernels)
}
