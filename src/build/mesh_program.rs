//! `stencilc build --program` over a mesh: the texts of the kernels of all its calls. What launches them is `run`.

use super::Args;
use super::kernels::{self, Several};
use super::mesh::{OnAny, levels_of};
use crate::args::mesh::MeshArgs;
use crate::args::program::PlanArgs;
use crate::args::{self, Pair};
use crate::drawn::refuse_of_grids;
use crate::emit::Emit;
use crate::input::Input;
use crate::kernel::{self, words_over_meshes};
use serde_json::json;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use stencilc_compiler::ir::program::Call;
use stencilc_compiler::ir::{Handle, MeshProgram, MeshStencil, Precision};
use stencilc_compiler::mesh::{Chain, Kernel, Merge, MeshChoices};
use stencilc_runtime::mesh::program::kernels::{Renumbered, Works};
use stencilc_runtime::mesh::program::{MeshProblem, Outline, Request, is_internal};
use stencilc_runtime::program::plan::PlanKind;
use stencilc_runtime::{Cast, Drawing, Error, Result, mesh};

/// Builds the kernels of a program over a mesh.
///
/// # Errors
/// The strategy cannot compute it, or nothing can be written.
pub fn build(args: &Args, input: &Input, program: &MeshProgram, json: bool) -> Result<()> {
    let (own, name) = (&args.kernel, &program.program.name);
    refuse_of_grids(&args.names, &["arch", "output", "emit", "program", "fuse"], name)?;
    let of_code = own.choices();
    if let Some(emit @ (Emit::Ast | Emit::Ir)) = args.emit {
        return kernels::show(args, emit, name, &program.program.to_string(), json);
    }
    kernels::refuse_code(args.emit, name)?;
    if args.emit == Some(Emit::Plan) {
        return Err(Error::call(format!("`{name}` runs over a mesh, and has no plan but its strategy"))
            .help("`stencilc explain --program` says which calls are one kernel; --emit cuda shows the kernels"));
    }
    let wanted = Wanted {
        program,
        precision: of_code.precision,
        contract: of_code.contract,
        over: &args.over,
        levels: own.levels,
        set: &own.set,
        plan: &args.of_program.plan,
    };
    let made = wanted.kernels(input)?;
    let (choices, again) = (made.choices, wanted.words(args.over.words(program.mesh.levels)?));
    let codes = made.calls.into_iter().flat_map(|own| own.kernels).map(|kernel| kernel.code);
    let several = Several::new(args, name, &again, codes.collect());
    match args.emit {
        Some(emit) => several.show(emit, json),
        None => several.write(
            &format!("{}, {} vectors, {}", choices.strategy.name(), choices.layout.name(), wanted.precision.name()),
            json!({
                "program": name,
                "precision": wanted.precision,
                "strategy": choices.strategy.name(),
                "vectors": choices.layout.name(),
                "threads": choices.threads.block,
            }),
            "what launches them is `stencilc run`: the tables that they take are made of a mesh",
            json,
        ),
    }
}

/// Which calls of a program become one kernel, as it is asked for.
///
/// # Errors
/// That is for grids, or the strategy has no thread that could go on.
pub fn merge(plan: &PlanArgs, over: &MeshArgs, name: &str) -> Result<Merge> {
    match plan.fuse {
        None => Ok(Merge::WherePays),
        Some(PlanKind::Separate) => Ok(Merge::Never),
        Some(PlanKind::Merged) => match over.strategy()? {
            own if own.has_a_thread_a_target() => Ok(Merge::Always),
            other => Err(Error::call(format!(
                "--strategy {} has no thread a target, so calls cannot share a kernel",
                other.name()
            ))
            .help("leave out --fuse merged, or take --strategy owner")),
        },
        Some(kind) => Err(Error::call(format!("--fuse {} is for grids, and `{name}` runs over a mesh", kind.name()))
            .help(
                "over a mesh there are merged and separate; if neither is given, calls that save enough share a kernel",
            )),
    }
}

/// What the kernels of a program over a mesh depend on.
pub struct Wanted<'a> {
    /// The program, as it was lowered.
    pub program: &'a MeshProgram,
    /// What `real` is.
    pub precision: Precision,
    /// Whether fused multiply-adds are formed.
    pub contract: bool,
    /// The mesh, if there is one, and what is chosen.
    pub over: &'a MeshArgs,
    /// How many levels there are, if the mesh has any.
    pub levels: Option<usize>,
    /// Parameters that have a value.
    pub set: &'a [Pair],
    /// Which calls become one kernel.
    pub plan: &'a PlanArgs,
}

/// The kernels of a program over a mesh.
pub struct Kernels {
    /// What the program does.
    pub outline: Outline,
    /// What was chosen.
    pub choices: MeshChoices,
    /// Its calls, each but once.
    pub calls: Vec<OfCall>,
    /// The order of elements, where there is a mesh.
    pub order: Option<&'static str>,
    /// The program on the mesh, where there is one.
    pub problem: Option<Arc<MeshProblem>>,
}

/// The kernels of a call, or of several that are one kernel.
pub struct OfCall {
    /// The call, or the one that stands for all of them.
    pub call: Call,
    /// Their stencils.
    pub stages: Vec<MeshStencil>,
    /// The kernels, in the order of their launches.
    pub kernels: Vec<Kernel>,
    /// What they come to on the mesh, if there is one and they are of one stencil.
    pub works: Option<Works>,
}

impl Wanted<'_> {
    /// The options of `build` that make the kernels again; `over` are those about meshes.
    pub fn words(&self, over: String) -> String {
        let own = words_over_meshes(self.precision, self.contract, self.levels, self.set);
        format!("--program {} {own}{} {over}", self.program.program.name, self.plan.words())
    }

    /// The kernels: for a mesh if one is given, else for any. A call that is like one before is left out.
    ///
    /// # Errors
    /// The mesh is not the program's, or the strategy cannot compute a call.
    pub fn kernels(&self, input: &Input) -> Result<Kernels> {
        let name = &self.program.program.name;
        let choices =
            MeshChoices { merge: merge(self.plan, self.over, name)?, ..self.over.choices(self.program.mesh.levels)? };
        input.warn_of_program(&self.program.program, self.precision);
        match self.over.mesh {
            Some(_) => self.on_mesh(choices),
            None => self.on_any(choices),
        }
    }

    fn on_mesh(&self, choices: MeshChoices) -> Result<Kernels> {
        let problem = MeshProblem::new(Request {
            program: self.program,
            precision: self.precision,
            contract: self.contract,
            mesh: mesh::load(self.over.file(&self.program.program.name, &self.program.mesh.name)?)?,
            levels: self.levels,
            arrays: BTreeMap::new(),
            settings: args::by_name(self.set, "--set")?,
            seed: 0,
            cast: Cast::Rounded,
            drawing: Drawing::Everything,
        })?;
        let order = self.over.one_ordering(&problem, &[choices.layout])?;
        let renumbered = Rc::new(Renumbered::new(&problem, &order.ordering)?);
        let merges = |chain: &Chain| renumbered.merges(&problem, chain, choices);
        let of_call = |outline: &Outline, call: &Call| {
            let works = match outline.chain(call.stencil) {
                Some(_) => None,
                None => Some(renumbered.works(&problem, call, &choices)?),
            };
            Ok((renumbered.kernels(&problem, call, &choices)?, works))
        };
        let outline = problem.outline();
        let calls = each(&outline, &merges, (problem.levels, &problem.params), &of_call)?;
        Ok(Kernels { calls, outline, choices, order: Some(order.name), problem: Some(Arc::new(problem)) })
    }

    fn on_any(&self, choices: MeshChoices) -> Result<Kernels> {
        let outline = Outline::new(self.program, self.precision, self.contract);
        let levels = levels_of(&self.program.mesh, self.levels)?;
        let numbers = &outline.program.program.numbers;
        let settings = args::by_name(self.set, "--set")?;
        let (params, _) = kernel::parameters(numbers, self.precision, self.contract, settings, true)?;
        // Over many elements, so that launches do not count.
        let merges = |chain: &Chain| choices.merges(chain, self.precision, usize::MAX);
        let of_call = |outline: &Outline, call: &Call| {
            let from_zero = outline.from_zero(call);
            let any = OnAny {
                stages: outline.stages(call),
                precision: self.precision,
                levels,
                computed: &outline.computed(call, levels, &params)?,
                from_zero: &|field| from_zero[field.index()],
                is_internal: &|field| is_internal(outline.chain(call.stencil), field),
            };
            Ok((any.kernels(&choices)?, None))
        };
        let calls = each(&outline, &merges, (levels, &params), &of_call)?;
        Ok(Kernels { calls, outline, choices, order: None, problem: None })
    }
}

/// What makes the kernels of a call.
type Make<'a> = dyn Fn(&Outline, &Call) -> Result<(Vec<Kernel>, Option<Works>)> + 'a;

/// The kernels of each call that is not like one before.
fn each(
    outline: &Outline,
    merges: &dyn Fn(&Chain) -> bool,
    (levels, params): (usize, &[stencilc_compiler::ir::scalar::Value]),
    make: &Make,
) -> Result<Vec<OfCall>> {
    let (mut seen, mut all) = (Vec::new(), Vec::new());
    for call in outline.calls(merges) {
        let key = (call.stencil, outline.computed(call, levels, params)?, outline.from_zero(call));
        if !seen.contains(&key) {
            seen.push(key);
            let (kernels, works) = make(outline, call)?;
            all.push(OfCall { call: call.clone(), stages: outline.stages(call).to_vec(), kernels, works });
        }
    }
    Ok(all)
}
