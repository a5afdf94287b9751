//! `stencilc explain --program` over a mesh: the kernels of each call, and of calls that are one kernel.

use super::kernels::KernelFacts;
use super::parts::PartFacts;
use super::{Args, Told};
use crate::build::mesh_program::{Kernels, OfCall, Wanted};
use crate::drawn::refuse_of_grids;
use crate::input::Input;
use serde::Serialize;
use stencilc_compiler::cuda;
use stencilc_compiler::ir::{FieldId, Handle, MeshProgram, MeshStencil, Precision, Stencil, VariableId};
use stencilc_compiler::kernel::{Meaning, MeshData, MeshTable, PieceTable};
use stencilc_compiler::text::ShellWord;
use stencilc_runtime::mesh::program::is_internal;
use stencilc_runtime::{Error, Result};

/// What is known of a program over a mesh.
#[derive(Serialize)]
struct Explanation {
    program: String,
    doc: String,
    precision: Precision,
    over: String,
    strategy: &'static str,
    vectors: &'static str,
    /// The file of the mesh, and its order, if one is given.
    mesh: Option<String>,
    order: Option<&'static str>,
    /// How it is cut, if it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    parts: Option<PartFacts>,
    /// The call that makes the kernels again.
    made: String,
    calls: Vec<CallFacts>,
}

/// A call, or several that are one kernel.
#[derive(Serialize)]
struct CallFacts {
    /// The stencils that are called.
    stencils: Vec<String>,
    /// Whether they are one kernel.
    is_chain: bool,
    /// What goes from one to another and has no array.
    internal: Vec<String>,
    kernels: Vec<KernelFacts>,
}

/// Explains the kernels of a program over a mesh.
///
/// # Errors
/// Something is wrong with the call, or with the mesh if one is given; or the strategy cannot compute a call.
pub fn explain(args: &Args, input: &Input, program: &MeshProgram, json: bool) -> Result<Told> {
    let name = &program.program.name;
    refuse_of_grids(&args.names, &["program", "fuse", "registers", "arch", "gpus"], name)?;
    let (precision, contract) = (args.precision, args.launch.code.contract);
    let (over, levels, set, plan) = (&args.over, args.levels, &args.set[..], &args.of_program.plan);
    let wanted = Wanted { program, precision, contract, over, levels, set, plan };
    let made = wanted.kernels(input)?;
    let again = wanted.words(over.words(program.mesh.levels)?);
    let explanation = Explanation {
        program: name.clone(),
        doc: program.program.doc.as_told().to_owned(),
        precision,
        over: program.mesh.name.clone(),
        strategy: made.choices.strategy.name(),
        vectors: made.choices.layout.name(),
        mesh: over.mesh.as_ref().map(|file| file.display().to_string()),
        order: made.order,
        parts: parts(args, &made)?,
        made: cuda::made(&format!("{} {again}", ShellWord::path(&args.file))).to_string(),
        calls: made.calls.iter().map(|call| CallFacts::new(args, input, &made, call)).collect::<Result<_>>()?,
    };
    Told::new(&explanation, json, || explanation.text())
}

/// How it is cut, if somebody asks.
fn parts(args: &Args, made: &Kernels) -> Result<Option<PartFacts>> {
    let Some(number) = args.gpus else { return Ok(None) };
    match &made.problem {
        Some(problem) => PartFacts::over_mesh(problem, made.choices, number.into()).map(Some),
        None => Err(Error::call("parts are those of a mesh, and none is given")
            .help("add --mesh FILE.npz, or leave out --gpus")),
    }
}

impl CallFacts {
    fn new(args: &Args, input: &Input, made: &Kernels, own: &OfCall) -> Result<Self> {
        let chain = made.outline.chain(own.call.stencil);
        let stencils: Vec<&Stencil> = own.stages.iter().map(|stage| &stage.stencil).collect();
        let fields = || own.stages[0].stencil.fields.iter();
        let means = |meaning: &Meaning| means(made, own, meaning);
        let mut kernels = Vec::new();
        for (number, kernel) in own.kernels.iter().enumerate() {
            let mut facts = KernelFacts::new(args, (&input.source, &stencils), &kernel.code, &means)?;
            facts.on_mesh = own.works.as_ref().and_then(|works| works.kernels.get(number)).cloned();
            kernels.push(facts);
        }
        let internal = fields().filter(|(field, _)| is_internal(chain, *field));
        Ok(Self {
            stencils: stencils.iter().map(|own| own.told()).collect(),
            is_chain: chain.is_some(),
            internal: internal.map(|(_, own)| own.name.clone()).collect(),
            kernels,
        })
    }
}

/// What an argument means.
fn means(made: &Kernels, own: &OfCall, meaning: &Meaning) -> String {
    let stage: &MeshStencil = &own.stages[0];
    let (mesh, stencil) = (&stage.mesh, &stage.stencil);
    let variable = |id: Option<VariableId>, field: FieldId| match id {
        Some(id) => made.outline.program.program.variables[id].name.clone(),
        None => stencil.fields[field].name.clone(),
    };
    let binding = |field: FieldId| own.call.fields[field.index()];
    let data = match meaning {
        Meaning::Input(field) => return format!("`{}`, which is read", variable(binding(*field).read, *field)),
        Meaning::Output(field) => return format!("`{}`, which is written", variable(binding(*field).written, *field)),
        Meaning::Param(param) => return format!("the parameter `{}`", stencil.params[*param].name),
        Meaning::Mesh(data) => data,
        Meaning::Documented | Meaning::Table(_) | Meaning::Report | Meaning::Columns => {
            return "as the first line says".to_owned();
        }
        Meaning::Size(_) | Meaning::Step(_) => return "as the first line says".to_owned(),
    };
    match data {
        MeshData::Map(map) => format!("the map `{}`", mesh.maps[*map].name),
        MeshData::Zone(set, zone) => {
            let own = &mesh.sets[*set];
            format!("the first element of the zone `{}` of `{}`", own.zones[usize::from(*zone)].name, own.name)
        }
        MeshData::Size(set) => format!("how many elements `{}` has", mesh.sets[*set].name),
        MeshData::Items => "how many items there are".to_owned(),
        MeshData::First => "the first item of the launch".to_owned(),
        MeshData::Table(_, table) => match table {
            MeshTable::Entries => "for each target, who adds to it along which path".to_owned(),
            MeshTable::Others => "for each target, who adds to it, and where the other path leads".to_owned(),
            MeshTable::Leaf(path) => format!("where `{}` leads from who adds", mesh.written(path)),
            MeshTable::Dictionary(_) => "for each target, the elements that those who add lead to".to_owned(),
            MeshTable::Codes(_) => "which of these they are".to_owned(),
            MeshTable::Targets => "the targets to which any element leads".to_owned(),
            MeshTable::Offsets => "where the row of each target begins".to_owned(),
            MeshTable::Coloured => "the elements, colour after colour".to_owned(),
        },
        MeshData::Piece(table) => match table {
            PieceTable::Ranges => "where the rows and elements of each piece begin and end".to_owned(),
            PieceTable::Elements => "the elements of each piece".to_owned(),
            PieceTable::Rows(map) => {
                format!("the rows of the map `{}`, in the order of the pieces", mesh.maps[*map].name)
            }
            PieceTable::Entries => "for each target of a piece, who adds to it".to_owned(),
            PieceTable::Targets => "the targets of each piece".to_owned(),
            PieceTable::Places => "for each element of a piece its colour, and where it adds".to_owned(),
        },
        MeshData::Leaves(field) => format!("the numbers that are folded into `{}`", variable(None, *field)),
        MeshData::Users(set, _) => format!("the mesh's own numbers of the elements of `{}`", mesh.sets[*set].name),
        MeshData::Between(_) => "what elements add, from one kernel to the next".to_owned(),
    }
}

impl Explanation {
    /// The same, to be read.
    fn text(&self) -> String {
        let title = match self.doc.lines().next() {
            Some(line) => format!("{}: {line}", self.program),
            None => self.program.clone(),
        };
        let on = match (&self.mesh, self.order) {
            (Some(file), Some(order)) => format!("on {file}, order {order}"),
            _ => "on any mesh".to_owned(),
        };
        let head = format!(
            "{title}\nin {}, over {}, {on}, by {} with {} vectors\n",
            self.precision.name(),
            self.over,
            self.strategy,
            self.vectors
        );
        let parts = self.parts.as_ref().map_or_else(String::new, PartFacts::text);
        let calls = self.calls.iter().map(CallFacts::text).collect::<String>();
        let more = if self.mesh.is_none() { "with --mesh FILE, what they move on a mesh, too\n" } else { "" };
        format!("{head}{parts}{calls}\n{}\n{more}", self.made)
    }
}

impl CallFacts {
    fn text(&self) -> String {
        let mut text = format!("\n-- {}", self.stencils.join(", then "));
        if self.is_chain {
            text.push_str(": one kernel");
            if !self.internal.is_empty() {
                text.push_str(&format!(", in which {} stay in registers", self.internal.join(", ")));
            }
        }
        text.push('\n');
        text + &self.kernels.iter().map(KernelFacts::text).collect::<String>()
    }
}
