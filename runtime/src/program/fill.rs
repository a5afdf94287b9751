//! The kernel that fills halos.
//!
//! What a cell of a halo holds is found out on the host, once: columns and levels are given as pairs of where a value goes
//! and where it comes from. So one text serves every storage.

use super::ProgramProblem;
use crate::array::Element;
use crate::error::Result;
use crate::machine::{Arg, Launch, Machine};
use crate::pack::Packing;
use crate::problem::element_of;
use stencilc_compiler::grid::Form;
use stencilc_compiler::ir::program::{GridAxis, Side};
use stencilc_compiler::ir::scalar::Value;
use stencilc_compiler::ir::{Handle, Levels, Precision, VariableId};
use stencilc_compiler::kernel;
use stencilc_compiler::program::{Beyond, Source, Staged};
use stencilc_compiler::storage::Layout;

/// Threads of a block.
pub const THREADS: u32 = 128;

/// The most blocks along y.
pub const BLOCKS: usize = 65_535;

/// Numbers that may lie beyond an edge: of each axis those of both sides.
const VALUES: [(GridAxis, Side); 6] = [
    (GridAxis::I, Side::Low),
    (GridAxis::I, Side::High),
    (GridAxis::J, Side::Low),
    (GridAxis::J, Side::High),
    (GridAxis::K, Side::Low),
    (GridAxis::K, Side::High),
];

/// What distinguishes the kernels that fill halos.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fill {
    /// The type of the elements.
    pub element: Element,
    /// Whether some values change their sign.
    pub signed: bool,
}

impl Fill {
    /// The kernel that a variable needs.
    pub fn of(staged: &Staged, variable: VariableId) -> Self {
        let element = element_of(staged.program.variables[variable].stored, staged.precision);
        Self { element, signed: staged.edges[variable.index()].has_odd() }
    }
}

/// The name of a kernel.
pub fn name(Fill { element, signed }: Fill) -> String {
    format!("fill_{}halo_{}", if signed { "signed_" } else { "" }, element.name())
}

/// Whether neighbours have what lies beyond some edge of a variable: then a kernel that exchanges rows with them fills its halo, but for
/// the levels beyond the edges of cells that are no halo's.
pub fn is_exchanged(staged: &Staged, variable: VariableId) -> bool {
    let edges = &staged.edges[variable.index()];
    Side::BOTH.iter().any(|&side| edges.beyond(GridAxis::J, side) == Some(Beyond::Neighbour))
}

/// A kernel. A source less than 0 is a number: -1 the first of them, -2 the second.
pub fn code(fill: Fill) -> kernel::Kernel {
    kernel::machine::fill_halo(&name(fill), THREADS, element_in_kernels(fill.element), fill.signed)
}

/// An element as kernels know it.
pub fn element_in_kernels(element: Element) -> kernel::Element {
    match element {
        Element::F32 => kernel::Element::F32,
        Element::F64 => kernel::Element::F64,
        Element::I32 => kernel::Element::I32,
        Element::Bool => kernel::Element::U8,
    }
}

/// How the halo of one variable is filled: tables on a machine, and what is launched with them.
pub struct Filling<M: Machine> {
    /// The distance from a level to the next.
    apart: i64,
    parts: Vec<Part<M>>,
    values: [Arg; 6],
    /// The kernel.
    pub fill: Fill,
}

/// Columns and levels that are filled in one launch.
struct Part<M: Machine> {
    columns: M::Buffer,
    column_count: usize,
    levels: M::Buffer,
    level_count: usize,
}

/// Pairs of where a value goes and where it comes from.
pub type Pairs = Vec<[i32; 2]>;

/// Where a value comes from, and whether it changes its sign on the way.
pub type Origin = (i32, bool);

impl<M: Machine> Filling<M> {
    /// For a variable in a layout; nothing if it has no halo to fill.
    ///
    /// # Errors
    /// The machine has too little memory.
    pub fn new(machine: &M, problem: &ProgramProblem, layout: &Layout, variable: VariableId) -> Result<Option<Self>> {
        let staged = &problem.staged;
        if !staged.needs_halo(variable) {
            return Ok(None);
        }
        let own = &staged.program.variables[variable];
        let fill = Fill::of(staged, variable);
        let (inner_columns, outer_columns) = columns(problem, layout, variable);
        let (inner_levels, outer_levels) = levels(problem, variable);
        let all_levels = [inner_levels, outer_levels.clone()].concat();
        let mut parts = Vec::new();
        let around = (!is_exchanged(staged, variable)).then_some((outer_columns, all_levels));
        for (columns, levels) in around.into_iter().chain([(inner_columns, outer_levels)]) {
            if !columns.is_empty() && !levels.is_empty() {
                parts.push(Part {
                    columns: machine.upload(bytemuck::cast_slice(&columns))?,
                    column_count: columns.len(),
                    levels: machine.upload(bytemuck::cast_slice(&levels))?,
                    level_count: levels.len(),
                });
            }
        }
        let apart = if own.place.horizontal { layout.stride(layout.strides.level) as i64 } else { 1 };
        Ok(Some(Self { apart, parts, values: values(staged, variable), fill }))
    }

    /// Fills the halo of a buffer.
    ///
    /// # Errors
    /// The launch fails.
    pub fn fill(&self, machine: &M, kernel: &M::Kernel, buffer: &M::Buffer, packing: &Packing) -> Result<()> {
        for Part { columns, column_count, levels, level_count } in &self.parts {
            let mut arguments = vec![
                Arg::Pointer(machine.address(buffer, packing.pointer())),
                Arg::I64(self.apart),
                Arg::Pointer(machine.address(columns, 0)),
                Arg::I32(*column_count as i32),
                Arg::Pointer(machine.address(levels, 0)),
                Arg::I32(*level_count as i32),
            ];
            arguments.extend(self.values);
            let blocks = [column_count.div_ceil(THREADS as usize) as u32, (*level_count).min(BLOCKS) as u32, 1];
            machine.launch(kernel, &Launch::new(blocks, [THREADS, 1, 1]), &arguments)?;
        }
        Ok(())
    }
}

/// The numbers that may lie beyond the edges of a variable.
pub fn values(staged: &Staged, variable: VariableId) -> [Arg; 6] {
    let (Fill { element, .. }, edges) = (Fill::of(staged, variable), &staged.edges[variable.index()]);
    VALUES.map(|(axis, side)| match edges.beyond(axis, side) {
        Some(Beyond::Value(value)) => argument(value, element, staged.precision),
        _ => argument(Value::Int(0), element, staged.precision),
    })
}

/// The argument that is 0.
pub fn nought(element: Element) -> Arg {
    argument(Value::Int(0), element, Precision::F64)
}

/// A number as an argument that is one of the field's elements.
fn argument(value: Value, element: Element, precision: Precision) -> Arg {
    let real = || match value {
        Value::Int(x) => f64::from(x),
        Value::Real(_) | Value::Bool(_) => value.rounded(precision).real(),
    };
    match element {
        Element::F32 => Arg::F32(real() as f32),
        Element::F64 => Arg::F64(real()),
        Element::I32 => Arg::I32(if let Value::Int(x) = value { x } else { 0 }),
        Element::Bool => Arg::U8(u8::from(value == Value::Bool(true))),
    }
}

/// How a table says that a value is a number: of which axis and side.
fn number(axis: GridAxis, side: Side) -> i32 {
    let place = VALUES.iter().position(|own| *own == (axis, side)).unwrap_or(0);
    -1 - place as i32
}

/// How a table says where a value goes that may change its sign.
pub fn signed(to: i32, is_negated: bool) -> i32 {
    if is_negated { -1 - to } else { to }
}

/// Where a value comes from that lies at an index along an axis; nothing if nobody says.
pub fn source(problem: &ProgramProblem, variable: VariableId, axis: GridAxis, index: usize) -> Option<Origin> {
    let staged = &problem.staged;
    let own = staged.inner_of(staged.program.variables[variable].place)[axis as usize].clone();
    let index = index as i64 - own.start as i64;
    match staged.edges[variable.index()].source(axis, index, own.len()) {
        Source::Cell(cell) => Some(((own.start + cell) as i32, false)),
        Source::Negated(cell) => Some(((own.start + cell) as i32, true)),
        Source::Value(_) => Some((number(axis, if index < 0 { Side::Low } else { Side::High }), false)),
        Source::Nothing => None,
    }
}

/// Where the first level of a variable's column is.
pub fn column_at<'a>(
    problem: &'a ProgramProblem,
    layout: &'a Layout,
    variable: VariableId,
) -> impl Fn(usize, usize) -> i32 + use<'a> {
    let staged = &problem.staged;
    let has_levels = staged.program.variables[variable].place.levels != Levels::None;
    move |i, j| {
        let column = layout.place(staged.grid, i, j);
        if has_levels { layout.index(column, 0) as i32 } else { column as i32 }
    }
}

/// Columns of the arrays, which stay where they are, and those around them.
pub fn columns(problem: &ProgramProblem, layout: &Layout, variable: VariableId) -> (Pairs, Pairs) {
    let staged = &problem.staged;
    let place = staged.program.variables[variable].place;
    if !place.horizontal {
        return (vec![[0, 0]], Vec::new());
    }
    let (grid, at) = (staged.grid, column_at(problem, layout, variable));
    let [inner_i, inner_j, _] = staged.inner_of(place);
    let (mut inner, mut outer) = (Vec::new(), Vec::new());
    for j in 0..grid.nj {
        for i in 0..grid.ni {
            let to = at(i, j);
            if grid.form == Form::Cells || inner_i.contains(&i) && inner_j.contains(&j) {
                inner.push([to, to]);
                continue;
            }
            let sources = [(GridAxis::I, i), (GridAxis::J, j)].map(|(axis, n)| source(problem, variable, axis, n));
            // Where both say a number, i comes before j; what i says of the sign holds for the number that j says.
            let [Some((i, i_negated)), Some((j, j_negated))] = sources else { continue };
            outer.push(match (i, j) {
                (..0, _) => [to, i],
                (_, ..0) => [signed(to, i_negated), j],
                _ => [signed(to, i_negated != j_negated), at(i as usize, j as usize)],
            });
        }
    }
    (inner, outer)
}

/// The same of levels.
pub fn levels(problem: &ProgramProblem, variable: VariableId) -> (Pairs, Pairs) {
    let staged = &problem.staged;
    let place = staged.program.variables[variable].place;
    let own = staged.inner_of(place)[2].clone();
    if !GridAxis::K.is_of(place) {
        return (vec![[0, 0]], Vec::new());
    }
    let all = 0..place.levels.count(staged.grid.nk);
    let inner = own.clone().map(|level| [level as i32; 2]).collect();
    let outer = all.filter(|level| !own.contains(level)).filter_map(|level| {
        let (source, is_negated) = source(problem, variable, GridAxis::K, level)?;
        Some([signed(level as i32, is_negated), source])
    });
    (inner, outer.collect())
}
