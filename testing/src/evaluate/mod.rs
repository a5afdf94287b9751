//! A second meaning of the language, written from `docs/language.md` alone: the syntax tree over whole arrays.
//!
//! A name is an array with a number for every cell, an offset is a shifted array, and beside each array stands where it may
//! be looked at. Nothing is shared with the compiler but its parser: not the IR, not the fused multiply-adds, not the
//! levels. So a fault in any of these shows as a difference.

mod arithmetic;
mod expression;
mod order;
mod real;
mod value;

use arithmetic::{everywhere, truths, wholes, widened};
use real::Real;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use stencilc_compiler::ast::{
    Constant, ExprId, Fields, File, Function, Item, Params, PlaceOn, Statement, Typed, Within,
};
use stencilc_compiler::grid::{Adjacency, Grid, Region};
use stencilc_compiler::ir::program::GridAxis;
use stencilc_compiler::ir::{Precision, Stored, scalar};
use stencilc_runtime::Data;
use value::{Cells, Domain, Parts, Rounding, Value};

/// What an evaluation starts from.
#[derive(Clone, Copy, Debug)]
pub struct Given<'a> {
    /// What `real` is.
    pub precision: Precision,
    /// Whether products and sums are fused.
    pub contract: bool,
    /// The grid.
    pub grid: Grid,
    /// Which of its cells are neighbours, if they stand in no rows.
    pub adjacency: Option<&'a Adjacency>,
    /// The values of parameters, by name; others have their default.
    pub params: &'a BTreeMap<String, scalar::Value>,
    /// What is read, by name.
    pub inputs: &'a BTreeMap<String, Data>,
    /// What outputs hold before, by name.
    pub outputs: &'a BTreeMap<String, Data>,
    /// For tests of the tests: `ceil` rounds down.
    pub faulty: bool,
}

/// What came out.
#[derive(Debug)]
pub enum Evaluated {
    /// Values of the outputs, by name.
    Computed {
        /// The cells that are computed.
        region: Region,
        /// Whole arrays, what is not computed as it was before.
        outputs: BTreeMap<String, Data>,
    },
    /// No cell can be computed, or the levels have a gap.
    Nothing,
}

/// Something that the checker should have refused.
type Result<T> = std::result::Result<T, String>;

/// The first stencil of a file, computed.
///
/// # Errors
/// The file is not a correct one.
pub fn evaluate(file: &File, given: Given) -> Result<Evaluated> {
    match given.precision {
        Precision::F32 => evaluate_in::<f32>(file, given),
        Precision::F64 => evaluate_in::<f64>(file, given),
    }
}

fn evaluate_in<R: Real>(file: &File, given: Given) -> Result<Evaluated> {
    // Of cells that stand in no rows none is beyond an edge.
    let around = if given.adjacency.is_some() { 0 } else { 2 };
    let mut margin = [around, around, 2];
    loop {
        let domain = Domain { grid: given.grid, adjacency: given.adjacency, margin };
        let evaluator = Evaluator::<R> {
            file,
            given,
            domain,
            locals: Vec::new(),
            own: Vec::new(),
            constants: BTreeMap::new(),
            by_level: false,
        };
        let (reach, evaluated) = evaluator.run()?;
        let reach = if given.adjacency.is_some() { [0, 0, reach[2]] } else { reach };
        if (0..3).all(|axis| reach[axis] <= margin[axis] as i64) {
            return Ok(evaluated);
        }
        // It looked beyond the cells that there were.
        margin = [0, 1, 2].map(|axis| margin[axis].max(reach[axis] as usize));
    }
}

/// What a name stands for.
#[derive(Clone)]
enum Binding<'a, R> {
    Value(Parts<R>),
    Constant(&'a Constant),
    Function(&'a Function),
}

struct Evaluator<'a, R> {
    file: &'a File,
    given: Given<'a>,
    domain: Domain<'a>,
    /// Names of the stencil.
    own: Vec<(String, Binding<'a, R>)>,
    /// Names of blocks and functions.
    locals: Vec<(String, Binding<'a, R>)>,
    /// Constants of the file.
    constants: BTreeMap<String, Parts<R>>,
    /// Whether the stencil says so of its sums.
    by_level: bool,
}

impl<'a, R: Real> Evaluator<'a, R> {
    fn find(&mut self, name: &str) -> Option<Binding<'a, R>> {
        let named = |(own, _): &&(String, Binding<'a, R>)| own == name;
        if let Some((_, binding)) = self.locals.iter().rev().find(named).or_else(|| self.own.iter().rev().find(named)) {
            return Some(binding.clone());
        }
        let file = self.file;
        file.items.iter().find_map(|item| match item {
            Item::Constant(constant) if constant.name.text == name => Some(Binding::Constant(constant)),
            Item::Function(function) if function.name.text == name => Some(Binding::Function(function)),
            Item::Param(params) if params.names.iter().any(|own| own.text == name) => {
                self.param(params, name).ok().map(Binding::Value)
            }
            Item::Constant(_)
            | Item::Function(_)
            | Item::Param(_)
            | Item::Stencil(_)
            | Item::Program(_)
            | Item::Test(_)
            | Item::Import(_)
            | Item::Type(_)
            | Item::Mesh(_) => None,
        })
    }

    /// The value of a parameter.
    fn param(&mut self, params: &'a Params, name: &str) -> Result<Parts<R>> {
        let kind = params.typed.as_ref().map_or("real", |typed| typed.stored.name());
        let domain = self.domain;
        let value = match (self.given.params.get(name), params.default) {
            (Some(scalar::Value::Real(x)), _) => Value::plain(Cells::Real(domain.all(R::of(*x))), false),
            (Some(scalar::Value::Int(x)), _) => Value::plain(Cells::Int(domain.all(*x)), false),
            (Some(scalar::Value::Bool(x)), _) => Value::plain(Cells::Bool(domain.all(*x)), false),
            (None, Some(default)) => {
                let locals = std::mem::take(&mut self.locals);
                let value = self.one(default)?;
                self.locals = locals;
                Value { constant: false, factors: None, decided: None, ..value }
            }
            (None, None) => return Err(format!("the parameter `{name}` has no value")),
        };
        let value = self.typed(value, kind);
        let rounding = if kind == "f32" { Rounding::Single } else { Rounding::Real };
        Ok(Parts::One(Value { rounding, ..value }))
    }

    /// The value of a constant.
    fn constant(&mut self, constant: &'a Constant) -> Result<Parts<R>> {
        if let Some(value) = self.constants.get(&constant.name.text) {
            return Ok(value.clone());
        }
        let locals = std::mem::take(&mut self.locals);
        let value = self.value(constant.value)?.named(self.arithmetic());
        self.locals = locals;
        let value = match &constant.typed {
            Some(Typed { stored, .. }) => value.map(|value| self.typed(value, stored.name())),
            None => value,
        };
        // It is as if it were written.
        let value = value.map(|value| Value { rounding: Rounding::Any, ..value });
        self.constants.insert(constant.name.text.clone(), value.clone());
        Ok(value)
    }

    /// How far the outputs look around, and what they are.
    fn run(mut self) -> Result<([i64; 3], Evaluated)> {
        let file = self.file;
        let stencil = file.items.iter().find_map(|item| match item {
            Item::Stencil(stencil) => Some(stencil),
            Item::Constant(_) | Item::Function(_) | Item::Param(_) => None,
            Item::Program(_) | Item::Test(_) | Item::Mesh(_) | Item::Import(_) | Item::Type(_) => None,
        });
        let mut assigned: Vec<(&str, Value<R>)> = Vec::new();
        let mut fields: Vec<(&str, &Fields)> = Vec::new();
        let mut said: Vec<&Within> = Vec::new();
        let statements = &stencil.ok_or("a file without a stencil")?.statements;
        self.by_level = statements.iter().any(|statement| matches!(statement, Statement::SumsByLevel(_)));
        for statement in statements {
            match statement {
                Statement::Field(declared) => {
                    for name in &declared.names {
                        fields.push((&name.text, declared));
                        if declared.role.text != "out" {
                            let value = self.field(declared, &name.text)?;
                            self.own.push((name.text.clone(), Binding::Value(Parts::One(value))));
                        }
                    }
                }
                Statement::Param(params) => {
                    for name in &params.names {
                        let value = self.param(params, &name.text)?;
                        self.own.push((name.text.clone(), Binding::Value(value)));
                    }
                }
                Statement::Constant(constant) => {
                    self.own.push((constant.name.text.clone(), Binding::Constant(constant)));
                }
                Statement::Function(function) => {
                    self.own.push((function.name.text.clone(), Binding::Function(function)));
                }
                Statement::Let(binding) => {
                    let value = self.bound(binding)?;
                    let name = binding.names.first().ok_or("a let without a name")?;
                    self.own.push((name.text.clone(), Binding::Value(value)));
                }
                Statement::Assign(assign) => {
                    let target = assign.targets.first().ok_or("an assignment to nothing")?;
                    let value = self.one(assign.value)?;
                    assigned.push((&target.name.text, self.arithmetic().settled(value)));
                }
                // What is shown takes no part in what is computed.
                Statement::Print(_) | Statement::SumsByLevel(_) => {}
                Statement::Zones(_) => return Err("zones are parts of a mesh".into()),
                Statement::Within(own) => said.push(own),
                Statement::Sweep(_) => return Err("a construct of a later version".into()),
                Statement::Repeat(_) | Statement::Boundary(_) | Statement::Reduce(_) => {
                    return Err("a construct that belongs in no stencil".into());
                }
            }
        }
        let reach = [0, 1, 2].map(|axis| assigned.iter().map(|(_, value)| value.reach[axis]).max().unwrap_or(0));
        // Who writes at interfaces alone may say that it goes on to the last one.
        let mut written = fields.iter().filter(|(_, own)| own.role.text != "in");
        let Grid { ni, nj, nk, .. } = self.domain.grid;
        let goes_on = said.iter().any(|own| own.axis == GridAxis::K)
            && written.try_fold(true, |all, (_, own)| Ok::<_, String>(all && place(own, nk)?.1 == Some(nk + 1)))?;
        let mut wanted = [ni, nj, nk + usize::from(goes_on)].map(|count| 0..count as i64);
        let says = GridAxis::ALL.map(|axis| said.iter().any(|own| own.axis == axis));
        for own in said {
            let first = self.place(own.first)?;
            let end = own.end.map_or(Ok(first + 1), |end| self.place(end))?;
            let all = &mut wanted[own.axis as usize];
            let is_there = (all.start..=all.end).contains(&first) && (all.start..=all.end).contains(&end);
            // Cells that stand in no rows have no i and no j.
            if !is_there || first >= end || own.axis != GridAxis::K && self.domain.adjacency.is_some() {
                return Ok((reach, Evaluated::Nothing));
            }
            *all = first..end;
        }
        let Some(region) = self.region(&assigned, wanted, says)? else { return Ok((reach, Evaluated::Nothing)) };
        let mut outputs = self.given.outputs.clone();
        for (name, value) in &assigned {
            let (_, declared) = fields.iter().find(|(own, _)| own == name).ok_or("an output that is not declared")?;
            let output = outputs.get_mut(*name).ok_or("an output without an array")?;
            self.store(value, declared, &region, output)?;
        }
        Ok((reach, Evaluated::Computed { region, outputs }))
    }

    /// A place along an axis, which is the same in every cell.
    fn place(&mut self, expr: ExprId) -> Result<i64> {
        let value = self.one(expr)?;
        Ok(i64::from(wholes(&value)[self.domain.index(0, 0, 0)]))
    }

    /// The cells where all outputs can be computed.
    fn region(
        &self,
        assigned: &[(&str, Value<R>)],
        wanted: [Range<i64>; 3],
        says: [bool; 3],
    ) -> Result<Option<Region>> {
        let Grid { ni, nj, .. } = self.domain.grid;
        let (columns, levels) = everywhere(assigned.iter().map(|(_, value)| value));
        let [across, down, up] = wanted.map(|own| own.start as usize..own.end as usize);
        let wanted = [across.len(), down.len(), up.len()];
        let levels: Vec<usize> =
            up.filter(|&level| levels.as_ref().is_none_or(|levels| levels[level + self.domain.margin[2]])).collect();
        // Who says where means all of it.
        let is_less = |axis: GridAxis, found: &[usize]| says[axis as usize] && found.len() < wanted[axis as usize];
        if is_less(GridAxis::K, &levels) {
            return Ok(None);
        }
        let inside = |j: usize, i: usize| {
            columns.as_ref().is_none_or(|columns| columns[self.domain.index(i, j, 0) % self.domain.columns()])
        };
        let is_without_gap = |k: &Range<usize>| k.len() == levels.len();
        let span = |found: &[usize]| found.first().zip(found.last()).map(|(&first, &last)| first..last + 1);
        if self.domain.adjacency.is_some() {
            let cells: Arc<[u32]> = (0..ni as u32).filter(|&cell| inside(0, cell as usize)).collect();
            let k = span(&levels).filter(|k| is_without_gap(k) && !cells.is_empty());
            return Ok(k.map(|k| Region { i: 0..ni, j: 0..nj, k, cells: Some(cells) }));
        }
        let rows: Vec<usize> = down.filter(|&j| (0..ni).any(|i| inside(j, i))).collect();
        let across: Vec<usize> = across.filter(|&i| (0..nj).any(|j| inside(j, i))).collect();
        if is_less(GridAxis::I, &across) || is_less(GridAxis::J, &rows) {
            return Ok(None);
        }
        let (Some(i), Some(j), Some(k)) = (span(&across), span(&rows), span(&levels)) else { return Ok(None) };
        if !is_without_gap(&k) {
            return Ok(None);
        }
        if i.clone().any(|i| j.clone().any(|j| !inside(j, i))) {
            return Err("the columns are no rectangle".into());
        }
        Ok(Some(Region::rows(i, j, k)))
    }

    /// What a field holds, at every cell.
    fn field(&self, declared: &Fields, name: &str) -> Result<Value<R>> {
        let (horizontal, levels) = place(declared, self.domain.grid.nk)?;
        let data = self.given.inputs.get(name).ok_or("a field without an array")?;
        let Grid { ni, nj, .. } = self.domain.grid;
        let within = |at: i64, count: usize| at.clamp(0, count as i64 - 1) as usize;
        let index = |i: i64, j: i64, level: i64| {
            let level = levels.map_or(0, |levels| within(level, levels));
            if horizontal { (level * nj + within(j, nj)) * ni + within(i, ni) } else { level }
        };
        let domain = self.domain;
        let cells = match data {
            Data::F32(v) => Cells::Real(domain.cells(|i, j, level| R::of(f64::from(v[index(i, j, level)])))),
            Data::F64(v) => Cells::Real(domain.cells(|i, j, level| R::of(v[index(i, j, level)]))),
            Data::I32(v) => Cells::Int(domain.cells(|i, j, level| v[index(i, j, level)])),
            Data::Bool(v) => Cells::Bool(domain.cells(|i, j, level| v[index(i, j, level)] != 0)),
        };
        let exists = |at: i64, count: usize| (0..count as i64).contains(&at);
        let [mi, mj, mk] = domain.margin;
        let columns = Domain { grid: Grid { nk: 1, ..domain.grid }, margin: [mi, mj, 0], ..domain };
        let line = Domain { grid: Grid { ni: 1, nj: 1, ..domain.grid }, margin: [0, 0, mk], ..domain };
        Ok(Value {
            columns: horizontal.then(|| columns.cells(|i, j, _| exists(i, ni) && exists(j, nj))),
            levels: levels.map(|levels| line.cells(|_, _, level| exists(level, levels))),
            range: levels.map(|_| [0, 0]),
            known: false,
            rounding: match &declared.typed {
                Some(Typed { stored: Stored::F32, is_named: true, .. }) => Rounding::Single,
                _ => Rounding::Real,
            },
            ..Value::plain(cells, false)
        })
    }

    /// Writes what is computed into an array.
    fn store(&self, value: &Value<R>, declared: &Fields, region: &Region, output: &mut Data) -> Result<()> {
        let (horizontal, levels) = place(declared, self.domain.grid.nk)?;
        let Grid { ni, nj, .. } = self.domain.grid;
        let reals = match output {
            Data::F32(_) | Data::F64(_) => Some(widened(value)),
            Data::I32(_) | Data::Bool(_) => None,
        };
        let is_there = |i: usize| region.cells.as_ref().is_none_or(|cells| cells.contains(&(i as u32)));
        for k in region.k.clone() {
            for j in region.j.clone() {
                for i in region.i.clone().filter(|&i| is_there(i)) {
                    let from = self.domain.index(i, j, k);
                    let level = if levels.is_some() { k } else { 0 };
                    let to = if horizontal { (level * nj + j) * ni + i } else { level };
                    match (&mut *output, reals.as_ref().map(|value| &value.cells)) {
                        (Data::F32(v), Some(Cells::Real(cells))) => v[to] = cells[from].double() as f32,
                        (Data::F64(v), Some(Cells::Real(cells))) => v[to] = cells[from].double(),
                        (Data::I32(v), _) => v[to] = wholes(value)[from],
                        (Data::Bool(v), _) => v[to] = u8::from(truths(value)[from]),
                        _ => return Err("an output of another kind".into()),
                    }
                }
            }
        }
        Ok(())
    }
}

/// Whether a field has horizontal axes, and how many levels it has, if any.
fn place(declared: &Fields, nk: usize) -> Result<(bool, Option<usize>)> {
    let axes = match &declared.place {
        None => return Ok((true, Some(nk))),
        Some(PlaceOn::Axes(axes, _)) => axes.iter().map(|axis| axis.text.as_str()).collect::<Vec<_>>(),
        Some(PlaceOn::Mesh(..)) => return Err("a field on a mesh".into()),
    };
    let levels = match axes.last() {
        Some(&"k") => Some(nk),
        Some(&"k+1") => Some(nk + 1),
        _ => None,
    };
    Ok((axes.first() == Some(&"i"), levels))
}
