//! Kernels of cells: a plan as a kernel. A thread finds its column, by the storage; looks up its neighbours, by the access strategy; and
//! computes one level of the column, a few, or all.

mod body;
pub mod carried;
pub mod checked;
mod index;
mod levels;
pub mod lookups;
mod patches;
mod rows;

use crate::access::{Addresses, Elements, LevelsPerThread, Neighbourhood};
use crate::diagnostic::Refusal;
use crate::ir::{FieldId, ParamId, Path, Role};
use crate::kernel::build::Builder;
use crate::kernel::simplify::simplify;
use crate::kernel::{Array, ArrayId, Kernel, Meaning, Size, Space, Type, ValueId, Watched};
use crate::names::{Identifier, Names};
use crate::plan::{KnownGrid, Plan};
use crate::storage::{Coordinates, Sizes};
use crate::text::Comment;
use carried::Carried;
use checked::Site;
use std::collections::{BTreeMap, BTreeSet};

/// The kernel of a plan.
#[derive(Clone, Debug)]
pub struct Cells {
    /// The kernel.
    pub kernel: Kernel,
    /// Of a checked kernel: where it touches fields, by the numbers that it reports.
    pub sites: Vec<Site>,
}

/// What a kernel is given: its arguments.
#[derive(Clone)]
struct Given {
    inputs: BTreeMap<FieldId, ArrayId>,
    outputs: BTreeMap<FieldId, ArrayId>,
    params: BTreeMap<ParamId, ValueId>,
    sizes: Sizes,
}

/// What everything in a kernel can use: what it is given, and where its thread is.
struct Frame<'a> {
    plan: &'a Plan,
    inputs: BTreeMap<FieldId, ArrayId>,
    outputs: BTreeMap<FieldId, ArrayId>,
    params: BTreeMap<ParamId, ValueId>,
    sizes: Sizes,
    coordinates: Coordinates,
    addresses: Addresses,
    /// Where the values of sweeps are kept.
    carried: Carried,
}

/// Elements of fields that a sweep knows early enough.
type Ahead = BTreeSet<(FieldId, Path)>;

impl<'a> Frame<'a> {
    /// Of a kernel that keeps nothing of sweeps yet.
    fn of(plan: &'a Plan, given: &Given, coordinates: Coordinates) -> Self {
        let Given { inputs, outputs, params, sizes } = given.clone();
        let carried = Carried::default();
        Self { plan, inputs, outputs, params, sizes, coordinates, addresses: Addresses::Anew, carried }
    }

    /// Of one that takes no fields and parameters.
    fn new(plan: &'a Plan, sizes: Sizes, coordinates: Coordinates) -> Self {
        let (inputs, outputs, params) = Default::default();
        Self::of(plan, &Given { inputs, outputs, params, sizes }, coordinates)
    }

    /// What the strategy has to reach.
    fn neighbourhood(&self) -> Neighbourhood<'_> {
        self.plan.neighbourhood(&self.coordinates, &self.sizes)
    }
}

/// Makes the kernel of a plan, with a comment at its head.
///
/// # Errors
/// It keeps values of sweeps on every level, and how many there are is not known.
pub fn kernel(plan: &Plan, doc: Vec<Comment>) -> Result<Cells, Refusal> {
    if plan.known_grid.is_none() && plan.kept_bytes(1) > 0 {
        let name = &plan.stencil.name;
        return Err(Refusal::new(format!("how many levels a thread keeps of the sweeps of `{name}` is not known"))
            .help("give the grid: --grid 512x512x64"));
    }
    if plan.walk.is_none() && plan.access.queue().is_some() {
        return Err(Refusal::new("which planes a block walks through depends on the grid, and that is not known")
            .help("give the grid: --grid 512x512x64"));
    }
    if let Some(walk) = &plan.walk {
        let how = walk.code.doc.first().cloned();
        let doc = doc.into_iter().chain(how).collect();
        return Ok(Cells { kernel: Kernel { doc, ..walk.code.clone() }, sites: Vec::new() });
    }
    // The user's names first, so that they stay as they are.
    let mut names = Names::default();
    let (fields, params) = declared(plan, &mut names);
    let name = names.declared(&format!("{}_kernel", plan.stencil.name));
    let mut builder = Builder::with_names(names, name, plan.choices.block.iter().product(), doc);
    let own = &mut builder;
    let (mut inputs, mut outputs) = (BTreeMap::new(), BTreeMap::new());
    for (id, field) in plan.stencil.own_fields() {
        let element = Type::stored(field.stored, plan.choices.precision);
        for (is_written, arrays) in [(false, &mut inputs), (true, &mut outputs)] {
            if let Some(name) = fields.get(&(id, is_written)) {
                let space = Space::Global { aliased: false };
                let array = Array { name: name.clone(), element, space, is_written, watched: None };
                let meaning = if is_written { Meaning::Output(id) } else { Meaning::Input(id) };
                arrays.insert(id, own.add_array(array, meaning));
            }
        }
    }
    let params = plan.stencil.params.iter().map(|(id, param)| {
        let kind = Type::computing(param.kind, plan.choices.precision);
        (id, own.argument(params[&id].clone(), kind, Meaning::Param(id)))
    });
    let params: BTreeMap<ParamId, ValueId> = params.collect();
    let tables = tables(plan, own);
    let report = checked::arguments(plan, own);
    let sizes = sizes(plan, own, tables);
    if let Some(report) = report {
        let plane = plan.storage.levels_apart(own, &sizes, 1);
        checked::watch(own, report, plane);
    }
    let given = Given { inputs, outputs, params, sizes };
    let mut sites = Vec::new();
    if let Some(own_patches) = &plan.patches {
        patches::each_patch(&given, own, &mut sites, plan, own_patches);
        return Ok(Cells { kernel: simplify(builder.finish()), sites });
    }
    if plan.access.row().is_some() {
        match plan.levels_per_thread() {
            LevelsPerThread::All => rows::through_levels(&given, own, &mut sites, plan),
            LevelsPerThread::One | LevelsPerThread::Slice(_) => rows::on_one_level(&given, own, &mut sites, plan),
        }
        return Ok(Cells { kernel: simplify(builder.finish()), sites });
    }
    let coordinates = plan.coordinates(own, &given.sizes);
    let mut frame = Frame::of(plan, &given, coordinates);
    match plan.levels_per_thread() {
        LevelsPerThread::One => levels::one_level(&mut frame, own, &mut sites),
        LevelsPerThread::Slice(slice) => levels::slice_of_levels(&mut frame, own, &mut sites, slice),
        LevelsPerThread::All => levels::all_levels(&mut frame, own, &mut sites),
    }
    Ok(Cells { kernel: simplify(builder.finish()), sites })
}

/// What fields, those that are read and those that are written, and parameters are called.
type Declared = (BTreeMap<(FieldId, bool), Identifier>, BTreeMap<ParamId, Identifier>);

/// What the kernel of a plan calls fields and parameters.
pub fn declared(plan: &Plan, names: &mut Names) -> Declared {
    let mut fields = BTreeMap::new();
    for (id, field) in plan.stencil.own_fields() {
        fields.insert((id, !field.role.is_read()), names.declared(&field.name));
    }
    let params = plan.stencil.params.iter().map(|(id, param)| (id, names.declared(&param.name))).collect();
    for (id, field) in plan.stencil.own_fields() {
        if field.role == Role::InOut {
            fields.insert((id, true), names.declared(&format!("{}_new", field.name)));
        }
    }
    (fields, params)
}

/// The tables of the storage: arguments, one of them in constant memory where that is chosen.
fn tables(plan: &Plan, own: &mut Builder) -> Vec<ArrayId> {
    let mut tables = Vec::new();
    for (number, (table, _)) in plan.tables().iter().enumerate() {
        let name = own.declared(table);
        let known_grid = plan.known_grid.as_ref();
        let space = match known_grid {
            Some(known_grid) if plan.choices.constant && plan.storage.constant() == Some(number) => {
                Space::Constant(known_grid.layout.tables[number].clone())
            }
            _ => Space::Global { aliased: false },
        };
        let watched = known_grid.filter(|_| plan.choices.checked).map(|known_grid| Watched {
            entries: own.declared(&format!("{name}_entries")),
            length: known_grid.layout.tables[number].len(),
            site: checked::TABLES + number,
        });
        let array = Array { name, element: Type::I32, space, is_written: false, watched };
        tables.push(own.add_array(array, Meaning::Table(number)));
    }
    tables
}

/// The sizes: constants where the grid is known, arguments else.
fn sizes(plan: &Plan, own: &mut Builder, tables: Vec<ArrayId>) -> Sizes {
    let index = if plan.wide { Type::I64 } else { Type::I32 };
    let known_grid = plan.known_grid.as_ref();
    let value = |get: &dyn Fn(&KnownGrid) -> usize| known_grid.map(get);
    let mut size = |name: &str, known: Option<usize>, kind: Type, size: Size| {
        let name = own.declared(name);
        own.size(name, known, kind, Meaning::Size(size))
    };
    let bounds = plan.bounds().iter().enumerate().map(|(axis, (first, end))| {
        let bounds =
            |known_grid: &KnownGrid| plan.storage.columns(&known_grid.region, &known_grid.layout)[axis].clone();
        let first = size(first, value(&|known_grid| bounds(known_grid).start), Type::I32, Size::ColumnFirst(axis));
        [first, size(end, value(&|known_grid| bounds(known_grid).end), Type::I32, Size::ColumnEnd(axis))]
    });
    let bounds = bounds.collect();
    // The bounds of a loop over all levels are parameters even then: where NVRTC 13.0 unrolls such a loop and knows how
    // often it runs, it can lose the loop's end (`docs/trust.md`).
    let is_loop = plan.levels_per_thread() == LevelsPerThread::All;
    let levels_known = !is_loop && known_grid.is_some_and(|known_grid| known_grid.levels_known);
    let level = |get: &dyn Fn(&KnownGrid) -> usize| value(get).filter(|_| levels_known);
    let first = size("k_first", level(&|known_grid| known_grid.region.k.start), Type::I32, Size::LevelFirst);
    let end = size("k_end", level(&|known_grid| known_grid.region.k.end), Type::I32, Size::LevelEnd);
    let level_count = size("nk", value(&|known_grid| known_grid.grid.nk), Type::I32, Size::Levels);
    let sizes = plan.sizes().iter().enumerate().map(|(number, (name, _))| {
        size(name, value(&|known_grid| known_grid.layout.sizes[number]), index, Size::Own(number))
    });
    let sizes = sizes.collect();
    Sizes { bounds, levels: [first, end], level_count, own: sizes, tables, index }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::Precision;
    use crate::kernel::verify::verify;
    use crate::plan::{self, Choices};
    use crate::source::Source;

    fn shown(text: &str, choices: &Choices) -> String {
        let lowered = crate::check(&Source::new("s.stn", text));
        let stencil = plan::prepare(&lowered.stencils[0], Precision::F64, true);
        let Cells { kernel, .. } = super::kernel(&plan::plan(&stencil, choices, None).unwrap(), Vec::new()).unwrap();
        verify(&kernel).unwrap_or_else(|refusal| panic!("{}\n{kernel}", refusal.message));
        kernel.to_string()
    }

    #[test]
    fn a_kernel_reads_as_what_it_does() {
        let expected = "\
kernel mean_kernel of 128 threads
    input a: f64
    output b: f64
    input table: i32
    number cell_first: i32
    number cell_end: i32
    number k_first: i32
    number k_end: i32
    number plane: i32
    number entries: i32
    let cell: i32 = add(add(cell_first, mul(add(mul(block.x, 2), thread.y), 64)), thread.x)
    let k: i32 = add(k_first, block.z)
    if or(ge(cell, cell_end), ge(k, k_end))
        return
    let c: i32 = add(cell, mul(k, plane))
    let left: i32 = add(c, table[cell])
    let right: i32 = add(c, table[add(entries, cell)])

    b[c] = mul(0.5, add(a[left], a[right]))
";
        let choices = Choices { storage: "uncompressed".into(), ..Choices::default() };
        assert_eq!(shown("stencil mean { in a; out b; b = 0.5 * (a[i-1] + a[i+1]) }", &choices), expected);
    }

    /// What both branches need has one name before them; what one needs is in it alone, by a name that the other may have, too.
    #[test]
    fn values_stand_where_they_are_needed() {
        let text = "stencil s { in a; in c; out b
            let x = exp(a) * a[i+1] / (a[i-1] + a[i+2] + a[i-2])
            let y = exp(a) / a[i-1] * (a[i+1] + a[i+2] + a[i-2])
            b = if c > 0 { x * x } else { y * y }
        }";
        let shown = shown(text, &Choices::default());
        let at = |what: &str| shown.find(what).unwrap_or_else(|| panic!("{what} in\n{shown}"));
        let (branch, other) = (at("    if gt(c[c_2], 0.0)\n"), at("    else\n"));
        assert!(
            branch < at("        let x: f64") && at("        let x: f64") < other && other < at("        let y: f64")
        );
        assert!(shown.contains("chosen = mul(x, x)\n"), "{shown}");
    }

    /// What is called so in a branch is not called so where it was made.
    #[test]
    fn a_name_in_a_branch_is_known_there_alone() {
        let shown = shown(include_str!("../../../testing/found/a_name_in_a_branch.stn"), &Choices::default());
        assert!(shown.contains("let g: f64 = d\n") && shown.contains("q[c] = add(d, 1.0)\n"), "{shown}");
    }

    /// A distance that has a name is a number all the same.
    #[test]
    fn numbers_stay_numbers() {
        let choices = Choices { access: "zloop-sliced".into(), ..Choices::default() }.with("slice", [2]);
        let shown =
            shown("stencil s { in a; in q: int; out n: int; n = if a[i+2] > a[i-1] { 2 * q } else { q } }", &choices);
        assert!(shown.contains("let to_right2: i32 = 2\n") && shown.contains("wrapping_mul(2, q[c])"), "{shown}");
        assert!(shown.contains("let k_start: i32 = add(k_first, mul(block.z, 2))\n"), "{shown}");
    }
}
