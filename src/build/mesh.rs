//! `stencilc build` of a stencil over a mesh: the texts of its kernels. What launches them is `run`, since the tables that they take are
//! made of a mesh.

use super::Args;
use super::kernels::{self, Several};
use crate::args;
use crate::drawn::{DrawnOver, refuse_of_grids};
use crate::emit::Emit;
use crate::kernel;
use crate::terminal;
use serde_json::json;
use std::cell::Cell;
use stencilc_compiler::analysis::levels;
use stencilc_compiler::ir::{MeshStencil, Path as MeshPath};
use stencilc_compiler::kernel::{Meaning, MeshData, MeshTable};
use stencilc_compiler::mesh::{self as over, Counts, Cut, Degrees, Group, Kernel, Largest, MeshChoices, MeshTask};
use stencilc_runtime::mesh::program::kernels::Renumbered;
use stencilc_runtime::mesh::program::{measure, prepared};
use stencilc_runtime::{Error, Result};

/// Builds a stencil over a mesh.
///
/// # Errors
/// The strategy cannot compute it, or nothing can be written.
pub fn build(args: &Args, stencil: &MeshStencil, json: bool) -> Result<()> {
    let own = &args.kernel;
    let name = &stencil.stencil.name;
    refuse_of_grids(&args.names, &["arch", "output", "emit"], name)?;
    let choices = args.over.choices()?;
    let precision = own.choices().precision;
    if let Some(emit @ (Emit::Ast | Emit::Ir)) = args.emit {
        let text = prepared(stencil, precision, own.choices().contract).to_string();
        return kernels::show(args, emit, name, &text, json);
    }
    kernels::refuse_code(args.emit, name)?;
    if args.emit == Some(Emit::Plan) {
        return Err(Error::call(format!("`{name}` runs over a mesh, and has no plan but its strategy"))
            .help("`stencilc explain` says what that does; --emit cuda shows the kernels"));
    }
    let codes = kernels(args, stencil, &choices)?.into_iter().map(|kernel| kernel.code);
    let again = format!("{} {}", own.words_over_meshes(), args.over.words()?);
    let several = Several::new(args, name, &format!("--stencil {name} {again}"), codes.collect());
    match args.emit {
        Some(emit) => several.show(emit, json),
        None => several.write(
            &format!("{}, {} vectors, {}", choices.strategy.name(), choices.layout.name(), precision.name()),
            json!({
                "stencil": name,
                "precision": precision,
                "strategy": choices.strategy.name(),
                "vectors": choices.layout.name(),
                "threads": choices.block,
            }),
            "what launches them is `stencilc run`: the tables that they take are made of a mesh",
            json,
        ),
    }
}

/// The kernels: for a mesh if one is given, else for any.
fn kernels(args: &Args, stencil: &MeshStencil, choices: &MeshChoices) -> Result<Vec<Kernel>> {
    let (own, of_code) = (&args.kernel, args.kernel.choices());
    let (precision, contract) = (of_code.precision, of_code.contract);
    if args.over.mesh.is_some() {
        let (over, levels, set) = (&args.over, own.levels, &own.set);
        let problem =
            DrawnOver { stencil, precision, contract, over, levels, set, seed: 0, from_zero: false }.problem()?;
        let ordering = args.over.one_ordering(&problem)?;
        let renumbered = Renumbered::new(&problem, &ordering.ordering)?;
        return renumbered.kernels(&problem, measure::only_call(&problem)?, choices);
    }
    let kernels = kernels_for_any(stencil, (precision, contract), own.levels, &own.set, choices)?;
    let is_list = |own: &Meaning| matches!(own, Meaning::Mesh(MeshData::Table(_, MeshTable::Offsets)));
    if kernels.iter().flat_map(|kernel| kernel.code.meanings()).any(is_list) {
        terminal::note(
            "targets gather over lists, as suits any mesh: with --mesh FILE, over rows where these are short",
        );
    }
    Ok(kernels)
}

/// A mesh of which nothing is known: lists of any length suit it.
struct AnyMesh {
    /// Whether somebody wanted it in pieces.
    is_cut: Cell<bool>,
    /// Whether it matters if an element leads to one target twice.
    may_repeat: Cell<bool>,
}

impl Counts for AnyMesh {
    fn degrees(&self, _: &Group) -> Degrees {
        Degrees { mean: 0.0, max: 0, share: 1.0 }
    }

    fn largest(&self, _: &Group, _: Cut) -> Option<Largest> {
        self.is_cut.set(true);
        None
    }

    fn repeats(&self, _: &Group) -> bool {
        self.may_repeat.set(true);
        true
    }

    fn distinct_ends(&self, _: &Group, _: &[MeshPath]) -> usize {
        0
    }
}

/// The kernels for a mesh of which nothing is known.
///
/// # Errors
/// The strategy cannot compute it, or it is not known how many levels there are.
pub fn kernels_for_any(
    stencil: &MeshStencil,
    (precision, contract): (stencilc_compiler::ir::Precision, bool),
    given: Option<usize>,
    set: &[args::Pair],
    choices: &MeshChoices,
) -> Result<Vec<Kernel>> {
    let prepared = prepared(stencil, precision, contract);
    let count = match (stencil.mesh.levels, given) {
        (false, Some(_)) => {
            return Err(
                Error::call(format!("the mesh `{}` has no levels", stencil.mesh.name)).help("leave out --levels")
            );
        }
        (false, None) => 1,
        (true, Some(count)) => count,
        (true, None) => {
            return Err(Error::call("how many levels there are is not known").help("give --levels N"));
        }
    };
    let computed = if stencil.mesh.levels {
        let settings = args::by_name(set, "--set")?;
        let (params, _) = kernel::parameters(&prepared.stencil, precision, contract, settings, true)?;
        levels::computed(&prepared.stencil, precision, count, &params)?
    } else {
        0..1
    };
    let any = AnyMesh { is_cut: Cell::new(false), may_repeat: Cell::new(false) };
    let subject = MeshTask {
        stencil: &prepared,
        precision,
        levels: count,
        computed: &computed,
        from_zero: &|_| false,
        counts: &any,
    };
    match over::kernels(&subject, choices) {
        Ok(lowered) => Ok(lowered.kernels),
        Err(_) if any.is_cut.get() => {
            let name = choices.strategy.name();
            Err(Error::input(format!("{name} cuts a mesh into pieces, and none is given")).help("give it: --mesh FILE"))
        }
        Err(_) if any.may_repeat.get() => {
            let (name, own) = (&stencil.stencil.name, choices.strategy.name());
            Err(Error::input(format!(
                "`{name}` adds to its fields in different orders of slots, which {own} can do on meshes whose elements lead nowhere twice"
            ))
            .help("give the mesh: --mesh FILE; or write the increments in one order of slots"))
        }
        Err(refusal) => Err(refusal.into()),
    }
}
