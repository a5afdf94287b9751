//! The kernel of a call on arrays that are lent: which is sought, planned for any grid, and made.

use super::lending::{Apart, Lending};
use crate::build::Build;
use crate::device::Device;
use crate::error::{Error, Result};
use crate::execute::plain_argument;
use crate::machine::{Arg, Launch, Machine};
use crate::memory;
use std::sync::Arc;
use stencilc_compiler::cuda::print;
use stencilc_compiler::grid::{Grid, Region};
use stencilc_compiler::ir::scalar::Value;
use stencilc_compiler::ir::{FieldId, Handle, Stencil};
use stencilc_compiler::kernel::Meaning;
use stencilc_compiler::plan::{Choices, KnownGrid, Plan, plan};
use stencilc_compiler::storage::Layout;
use stencilc_compiler::storage::fastest::Fastest;
use stencilc_compiler::storage::fields::Fields;

/// A kernel, and how it is launched.
pub(super) struct Ready<M: Machine> {
    pub kernel: M::Kernel,
    pub launch: Launch,
    pub arguments: Vec<Arg>,
    /// Which of the arguments are arrays: its place, the field's number, and whether it is written.
    pointers: Vec<(usize, usize, bool)>,
    /// Fields that are changed in place, and room for what they held.
    pub aside: Vec<(usize, M::Buffer)>,
}

impl<M: Machine> Ready<M> {
    /// Takes other arrays.
    pub fn lend(&mut self, machine: &M, lending: &Lending) -> Result<()> {
        for &(place, field, is_written) in &self.pointers {
            let aside = self.aside.iter().find(|(own, _)| *own == field && !is_written);
            let lent = if is_written { &lending.writes[field] } else { &lending.reads[field] };
            let address = match (aside, lent) {
                (Some((_, buffer)), _) => Some(machine.address(buffer, 0)),
                (None, lent) => lent.as_ref().map(|own| own.address),
            };
            let address = address.ok_or_else(|| Error::check("a kernel takes what is not lent"))?;
            self.arguments[place] = Arg::Pointer(address);
        }
        Ok(())
    }
}

/// A kernel for arrays that are lent is sought.
pub struct Sought<'a> {
    /// Of which stencil.
    pub stencil: &'a str,
    /// The usual one.
    pub choices: &'a Choices,
    /// The grid.
    pub grid: Grid,
    /// What it is to run on.
    pub device: Device,
    pub(super) fits: &'a dyn Fn(&Choices) -> Result<()>,
}

impl Sought<'_> {
    /// Whether a kernel computes on these arrays.
    ///
    /// # Errors
    /// It does not.
    pub fn fits(&self, choices: &Choices) -> Result<()> {
        (self.fits)(choices)
    }
}

/// What a kernel is made for.
pub(super) struct Chosen<'a> {
    pub stencil: &'a Stencil,
    pub choices: &'a Choices,
    pub grid: Grid,
    pub region: &'a Region,
    pub apart: Apart,
    pub params: &'a [Value],
}

impl Chosen<'_> {
    /// Plans the kernel, which is one for any grid.
    pub fn plan(&self) -> Result<Plan> {
        let &Self { stencil, choices, grid, region, apart, .. } = self;
        if choices.storage != Choices::default().storage || choices.fields != Fields::Soa || choices.checked {
            return Err(Error::call(
                "arrays that are lent are plain arrays in rows: no other storage computes on them",
            )
            .help("leave storage, fields and checks as they are, or `Job::start`, which packs its arrays"));
        }
        if choices.walks() {
            let access = &choices.access;
            return Err(Error::call(format!(
                "`{access}` access copies rows that are aligned, as those that are lent need not be"
            ))
            .help("give another access, or take `Job::start`, which packs its arrays"));
        }
        let Apart { fastest, outer, row } = apart;
        if fastest != choices.fastest && choices.fastest != Fastest::default() {
            return Err(Error::call("levels of the arrays that are lent do not follow each other")
                .help("leave the fastest axis as it is: a kernel takes that of its arrays"));
        }
        let places = row.saturating_mul(grid.nj);
        let far = |count: usize, apart: usize| (count as u128 + 2).saturating_mul(apart as u128);
        let last = match fastest {
            // Rows may lie farther apart than levels do.
            Fastest::Columns => far(grid.nk, outer).saturating_add(far(grid.nj, row)).saturating_add(far(grid.ni, 1)),
            Fastest::Levels => far(places, outer),
        };
        let choices = Choices { fastest, wide: choices.wide || last > i32::MAX as u128, ..choices.clone() };
        let plan = plan(stencil, &choices, None)?;
        let columns = [region.i.len(), region.j.len()];
        if let Some(axis) = (0..2).find(|&axis| columns[axis] < plan.tile.columns[axis] as usize) {
            let (least, own) = (plan.tile.columns[axis], columns[axis]);
            return Err(Error::call(format!(
                "a thread computes {least} columns along {}, and there are {own}",
                ["i", "j"][axis]
            ))
            .help("give a larger grid, or another strategy"));
        }
        Ok(plan)
    }

    /// Makes the kernel.
    pub fn ready<M: Build>(&self, machine: &M, lending: &Lending) -> Result<Ready<M>> {
        let &Self { stencil, grid, region, apart: Apart { outer, row, .. }, params, .. } = self;
        let mut plan = self.plan()?;
        let known = KnownGrid {
            grid,
            adjacency: None,
            region: region.clone(),
            levels_known: true,
            layout: Arc::new(Layout::of_arrays(plan.storage.strides(), row, outer, grid.nj, region.i.start)),
        };
        // A thread that sweeps keeps values of all levels, and has to know how many there are.
        if !stencil.sweeps.is_empty() {
            plan.known_grid = Some(known.clone());
        }
        let kernel = print(&plan)?;
        let loaded = machine.build(&kernel.name, &kernel.text)?;
        let mut pointers = Vec::new();
        let mut arguments = Vec::new();
        for (place, parameter) in kernel.parameters.iter().enumerate() {
            arguments.push(match parameter.meaning {
                Meaning::Input(field) | Meaning::Output(field) => {
                    pointers.push((place, field.index(), matches!(parameter.meaning, Meaning::Output(_))));
                    // Set below.
                    Arg::Pointer(0)
                }
                _ => plain_argument(&plan, &known, params, &parameter.meaning)
                    .ok_or_else(|| Error::check(format!("kernel {} takes what is not lent", kernel.name)))?,
            });
        }
        let room = |id: &FieldId| {
            let lent = lending.writes[id.index()].as_ref();
            let bytes = lent.and_then(|own| Some(own.extent()? * own.element.bytes())).unwrap_or(0);
            Ok((id.index(), machine.upload(&memory::filled(0, bytes, "what a field held before")?)?))
        };
        let aside = lending.updates.iter().map(room).collect::<Result<Vec<_>>>()?;
        let launch = Launch::of(&plan, &known, machine, &loaded)?;
        let mut ready = Ready { kernel: loaded, launch, arguments, pointers, aside };
        ready.lend(machine, lending)?;
        Ok(ready)
    }
}
