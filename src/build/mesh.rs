//! `stencilc build` of a stencil over a mesh: the texts of its kernels. What launches them is `run`, since the tables that they take are
//! made of a mesh.

use super::Args;
use super::kernels::{self, Several};
use crate::args;
use crate::args::mesh::MeshArgs;
use crate::drawn::{DrawnOver, refuse_of_grids};
use crate::emit::Emit;
use crate::kernel::{self, Wanted, words_over_meshes};
use crate::terminal;
use serde_json::json;
use std::cell::Cell;
use std::ops::Range;
use stencilc_compiler::analysis::levels;
use stencilc_compiler::ir::{FieldId, Mesh, MeshStencil, Path as MeshPath, Precision, SetId};
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
    let choices = args.over.choices(stencil.mesh.levels)?;
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
    let codes = kernels(own, &args.over, stencil, &choices)?.into_iter().map(|kernel| kernel.code);
    let words = words_over_meshes(precision, own.choices().contract, own.levels, &own.set);
    let again = format!("{words} {}", args.over.words(stencil.mesh.levels)?);
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
                "threads": choices.threads.block,
            }),
            "what launches them is `stencilc run`: the tables that they take are made of a mesh",
            json,
        ),
    }
}

/// The kernels: for a mesh if one is given, else for any.
///
/// # Errors
/// The mesh is not the stencil's, or the strategy cannot compute it.
pub fn kernels(own: &Wanted, over: &MeshArgs, stencil: &MeshStencil, choices: &MeshChoices) -> Result<Vec<Kernel>> {
    let of_code = own.choices();
    let (precision, contract) = (of_code.precision, of_code.contract);
    if over.mesh.is_some() {
        let (levels, set) = (own.levels, &own.set);
        let program = &measure::program(stencil, false);
        let problem = DrawnOver { program, precision, contract, over, levels, set, seed: 0 }.problem()?;
        let ordering = over.one_ordering(&problem, &[choices.layout])?;
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
    /// What suits any mesh is made for a large one.
    fn elements(&self, _: SetId) -> usize {
        1 << 20
    }

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

/// What one call computes, on a mesh of which nothing is known.
pub struct OnAny<'a> {
    /// Its stencils, prepared: one, or those of a chain.
    pub stages: &'a [MeshStencil],
    /// What `real` is.
    pub precision: Precision,
    /// How many levels there are.
    pub levels: usize,
    /// Those that are computed.
    pub computed: &'a Range<usize>,
    /// Fields that are incremented and start from 0.
    pub from_zero: &'a dyn Fn(FieldId) -> bool,
    /// Fields that go from one stencil to another, and have no array.
    pub is_internal: &'a dyn Fn(FieldId) -> bool,
}

impl OnAny<'_> {
    /// The kernels.
    ///
    /// # Errors
    /// The strategy cannot compute it without a mesh, or not at all.
    pub fn kernels(&self, choices: &MeshChoices) -> Result<Vec<Kernel>> {
        let any = AnyMesh { is_cut: Cell::new(false), may_repeat: Cell::new(false) };
        let Self { precision, levels, computed, from_zero, .. } = *self;
        let task = |stencil| MeshTask { stencil, precision, levels, computed, from_zero, counts: &any };
        let lowered = match self.stages {
            [stencil] => over::kernels(&task(stencil), choices),
            stages => over::kernels_of_chain(&stages.iter().map(task).collect::<Vec<_>>(), self.is_internal, choices),
        };
        let strategy = choices.strategy.name();
        match lowered {
            Ok(lowered) => Ok(lowered.kernels),
            Err(_) if any.is_cut.get() => {
                let message = format!("{strategy} cuts a mesh into pieces, and none is given");
                Err(Error::input(message).help("give it: --mesh FILE"))
            }
            Err(_) if any.may_repeat.get() => {
                let names: Vec<_> = self.stages.iter().map(|own| format!("`{}`", own.stencil.name)).collect();
                Err(Error::input(format!(
                    "{} adds to its fields in different orders of slots, which {strategy} can do on meshes whose elements lead nowhere twice",
                    names.join(" with ")
                ))
                .help("give the mesh: --mesh FILE; or write the increments in one order of slots"))
            }
            Err(refusal) => Err(refusal.into()),
        }
    }
}

/// How many levels a mesh that is not given has; 1 if it has none.
///
/// # Errors
/// That is not known.
pub fn levels_of(mesh: &Mesh, given: Option<usize>) -> Result<usize> {
    match (mesh.levels, given) {
        (false, Some(_)) => {
            Err(Error::call(format!("the mesh `{}` has no levels", mesh.name)).help("leave out --levels"))
        }
        (false, None) => Ok(1),
        (true, Some(count)) => Ok(count),
        (true, None) => Err(Error::call("how many levels there are is not known").help("give --levels N")),
    }
}

/// The kernels for a mesh of which nothing is known.
///
/// # Errors
/// The strategy cannot compute it, or it is not known how many levels there are.
pub fn kernels_for_any(
    stencil: &MeshStencil,
    (precision, contract): (Precision, bool),
    given: Option<usize>,
    set: &[args::Pair],
    choices: &MeshChoices,
) -> Result<Vec<Kernel>> {
    let prepared = prepared(stencil, precision, contract);
    let count = levels_of(&stencil.mesh, given)?;
    let computed = if stencil.mesh.levels {
        let settings = args::by_name(set, "--set")?;
        let (params, _) = kernel::parameters(&prepared.stencil, precision, contract, settings, true)?;
        levels::computed(&prepared.stencil, precision, count, &params)?
    } else {
        0..1
    };
    let any = OnAny {
        stages: std::slice::from_ref(&prepared),
        precision,
        levels: count,
        computed: &computed,
        from_zero: &|_| false,
        is_internal: &|_| false,
    };
    any.kernels(choices)
}
