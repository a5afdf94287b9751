//! A job that several devices compute, each a part: those of one process, or one of each of several processes.

use super::ready::{Checked, Ready};
use super::{How, Run};
use crate::build::Build;
use crate::device::Platform;
use crate::error::{Error, Result};
use crate::mesh::order::Ordering;
use crate::mesh::program::kernels::{self as over_mesh, Reader, Renumbered};
use crate::mesh::program::{self as over, MeshProblem};
use crate::program::kernels::Kernels;
use crate::program::parts::{Cut, Parts, Rank};
use crate::program::plan::ProgramPlan;
use crate::program::planned::Planned;
use crate::program::{ProgramProblem, cpu};
use crate::ranks::{About, Ranks, mpi};
use std::rc::Rc;
use std::sync::Arc;
use stencilc_compiler::mesh::MeshChoices;

impl Ready {
    /// On several devices: the one at hand, and the next ones.
    pub(super) fn start_by_parts(self, platform: Platform) -> Result<Run> {
        let parts = self.how.parts;
        if self.stream.is_some() {
            return Err(Error::call("a stream is of one GPU, and several are asked for").help("leave out one of both"));
        }
        match (self.checked.clone(), platform) {
            (Checked::Grid(problem), Platform::Cpu) => {
                let cut = Cut::new(problem, parts)?;
                let backends = cut.parts().iter().map(|part| cpu::Interpreter::new(Arc::clone(part))).collect();
                self.begun(Parts::new(cut, backends)?)
            }
            (Checked::Mesh(problem), Platform::Cpu) => {
                let owners = over::parts::Owners::new(&problem, parts)?;
                self.begun(over::parts::Parts::interpreted(over::parts::Cut::new(problem, &owners)?)?)
            }
            (checked, Platform::Emulator(emulator)) => self.kernels_of_any_parts(vec![emulator; parts], checked),
            (checked, Platform::Gpu(first)) => {
                let others = first.beside(parts)?;
                let machines = std::iter::once(first).chain(others).collect();
                self.kernels_of_any_parts(machines, checked)
            }
        }
    }

    /// A machine for each part, on a grid or over a mesh.
    fn kernels_of_any_parts<M: Build + 'static>(self, machines: Vec<Arc<M>>, checked: Checked) -> Result<Run> {
        match checked {
            Checked::Grid(problem) => self.kernels_of_parts(machines, &problem),
            Checked::Mesh(problem) => self.kernels_of_parts_over_mesh(machines, problem),
        }
    }

    /// A machine for each part of a mesh.
    fn kernels_of_parts_over_mesh<M: Build + 'static>(
        self,
        machines: Vec<Arc<M>>,
        problem: Arc<MeshProblem>,
    ) -> Result<Run> {
        let (own, cut) = self.cut_mesh(problem, machines.len(), &|_| Ok(()))?;
        let machines = machines.into_iter().enumerate();
        let backends = machines.map(|(number, machine)| own.backend(&cut, number, machine)).collect::<Result<_>>()?;
        let (choices, merged, merges) = (own.choices, cut.merged(own.choices), cut.clone());
        let parts = over::parts::Parts::new(cut, backends, &|chain| merges.merges(chain, choices))?;
        let mut run = self.begun(parts)?;
        run.merged = merged;
        Ok(run)
    }

    /// A mesh in parts, whose owners somebody checks, and how kernels compute each of them.
    pub(super) fn cut_mesh(
        &self,
        problem: Arc<MeshProblem>,
        parts: usize,
        check: &dyn Fn(&over::parts::Owners) -> Result<()>,
    ) -> Result<(OverPart, over::parts::Cut)> {
        let How { over_mesh, ordering, is_unrecorded, .. } = self.how.clone();
        let ordering = ordering.unwrap_or_else(|| Ordering::kept(&problem.mesh));
        let choices = over_mesh.unwrap_or_else(|| MeshChoices::usual(problem.program.mesh.levels));
        let owners = over::parts::Owners::new(&problem, parts)?;
        check(&owners)?;
        let (cut, choices) = over::parts::Cut::new(problem, &owners)?.chosen(choices);
        Ok((OverPart { choices, ordering, is_unrecorded, reader: self.reader.clone() }, cut))
    }

    /// A machine for each part.
    fn kernels_of_parts<M: Build + 'static>(self, machines: Vec<Arc<M>>, problem: &ProgramProblem) -> Result<Run> {
        let is_cpu = machines.iter().all(|machine| machine.is_cpu());
        let (cut, plan) = Cut::fused(problem, &self.plan_of_parts(problem, is_cpu), machines.len())?;
        let parts = machines.into_iter().zip(cut.parts());
        let backends = parts.map(|(machine, part)| Kernels::built(machine, Planned::new(part, &plan)?));
        let backends = backends.collect::<Result<_>>()?;
        self.begun(Parts::new(cut, backends)?)
    }

    /// How kernels compute each part of a grid.
    pub(super) fn plan_of_parts(&self, problem: &ProgramProblem, is_cpu: bool) -> ProgramPlan {
        let How { choices, open, plan, is_unrecorded, .. } = self.how.clone();
        let (choices, open) = if is_cpu { choices.on_cpu(open) } else { (choices, open) };
        let mut plan = plan.unwrap_or_else(|| ProgramPlan::of_parts(problem.on_cells(choices, open)));
        plan.graph &= !is_unrecorded;
        plan
    }

    /// The part of this process, on one device.
    pub(super) fn start_as_rank(self, ranks: Arc<Ranks>, platform: Platform) -> Result<Run> {
        if self.how.parts > 1 {
            return Err(Error::call(format!(
                "{} devices are asked for, and {} processes compute it, each on one",
                self.how.parts,
                ranks.ranks()
            ))
            .help("leave out --gpus, or start one process"));
        }
        let device = match &platform {
            Platform::Cpu => "cpu",
            Platform::Emulator(emulator) if emulator.is_native() => "native",
            Platform::Emulator(_) => "emulate",
            Platform::Gpu(_) => "cuda",
        };
        self.compare(&ranks, device)?;
        self.started_as_rank(ranks, platform).map_err(of_processes)
    }

    fn started_as_rank(self, ranks: Arc<Ranks>, platform: Platform) -> Result<Run> {
        let own = ranks.rank();
        match (self.checked.clone(), platform) {
            (Checked::Grid(problem), Platform::Cpu) => {
                let cut = Cut::new(problem, ranks.ranks())?;
                let backend = cpu::Interpreter::new(Arc::clone(&cut.parts()[own]));
                self.begun(Rank::new(cut, backend, ranks)?)
            }
            (Checked::Mesh(problem), Platform::Cpu) => {
                let owners = over::parts::Owners::new(&problem, ranks.ranks())?;
                same_owners(&ranks, &owners)?;
                let cut = over::parts::Cut::new(problem, &owners)?;
                let backend = over::cpu::Interpreter::new(Arc::clone(&cut.parts()[own].problem)).leaving();
                self.begun(over::parts::Rank::new(cut, backend, ranks, &|_| false)?)
            }
            (checked, Platform::Emulator(emulator)) => self.kernels_as_rank(ranks, emulator, checked),
            (checked, Platform::Gpu(gpu)) => self.kernels_as_rank(ranks, gpu, checked),
        }
    }

    /// The same by kernels.
    fn kernels_as_rank<M: Build + 'static>(self, ranks: Arc<Ranks>, machine: Arc<M>, checked: Checked) -> Result<Run> {
        let own = ranks.rank();
        match checked {
            Checked::Grid(problem) => {
                let plan = self.plan_of_parts(&problem, machine.is_cpu());
                let (cut, plan) = Cut::fused(&problem, &plan, ranks.ranks())?;
                let backend = Kernels::built(machine, Planned::new(&cut.parts()[own], &plan)?)?;
                self.begun(Rank::new(cut, backend, ranks)?)
            }
            Checked::Mesh(problem) => {
                let (kernels, cut) = self.cut_mesh(problem, ranks.ranks(), &|owners| same_owners(&ranks, owners))?;
                let backend = kernels.backend(&cut, own, machine)?;
                let (choices, merged, merges) = (kernels.choices, cut.merged(kernels.choices), cut.clone());
                let rank = over::parts::Rank::new(cut, backend, ranks, &|chain| merges.merges(chain, choices))?;
                let mut run = self.begun(rank)?;
                run.merged = merged;
                Ok(run)
            }
        }
    }

    /// Sees to it that all processes compute the same of the same.
    fn compare(&self, ranks: &Ranks, device: &str) -> Result<()> {
        let hash = |bytes: &[u8]| *blake3::hash(bytes).as_bytes();
        let about = serde_json::to_vec(&self.about).map_err(|error| Error::check(error.to_string()))?;
        let resumed = match &self.resumed {
            Some(checkpoint) => {
                serde_json::to_vec(&checkpoint.about).map_err(|error| Error::check(error.to_string()))?
            }
            None => Vec::new(),
        };
        let mut parts = vec![
            ("another version of stencilc".to_owned(), hash(env!("CARGO_PKG_VERSION").as_bytes())),
            ("another text, another grid or mesh, or other parameters".to_owned(), hash(&about)),
            ("another kind of device".to_owned(), hash(device.as_bytes())),
            ("other choices of kernels".to_owned(), hash(format!("{:?}", self.how).as_bytes())),
            ("other outputs, pictures or checkpoints to write".to_owned(), hash(self.asked.as_bytes())),
            ("another checkpoint, or none, to go on from".to_owned(), hash(&resumed)),
        ];
        let script = self.checked.script();
        let given = script.initial()?.into_iter();
        let given = given.map(|(variable, data)| (&script.program().variables[variable], data));
        let outer = if let Checked::Grid(problem) = &self.checked { Some(&problem.outer) } else { None };
        // Of fields with rows each has its own: of these it is compared how others see them.
        let (rows, given): (Vec<_>, Vec<_>) =
            given.partition(|(own, _)| outer.is_some_and(|outer| outer.slab(own.place).is_some()));
        let given = given.into_iter().map(|(own, data)| (&own.name, data));
        parts.extend(given.map(|(name, data)| (format!("other numbers in `{name}`"), hash(data.bytes()))));
        if let Some(checkpoint) = &self.resumed {
            parts.extend(checkpoint.hashes().map(|(name, hash)| (format!("other numbers in `{name}`"), hash)));
        }
        ranks.compare(&parts)?;
        let seen = rows.into_iter().filter_map(|(own, data)| {
            let seen = outer.and_then(|outer| outer.seen.get(&own.name))?;
            Some((own.name.as_str(), [hash(data.bytes()), *seen]))
        });
        same_rows(ranks, &seen.collect::<Vec<_>>())
    }
}

/// Sees to it that all processes have the same numbers, of which each has some rows: by field, a hash of its own, and one of those of the next
/// process as they are here.
fn same_rows(ranks: &Ranks, own: &[(&str, [[u8; 32]; 2])]) -> Result<()> {
    let bytes: Vec<u8> = own.iter().flat_map(|(_, [rows, next])| [*rows, *next].concat()).collect();
    let all = ranks.gather(About::Agreement, &bytes)?;
    let hash = |rank: usize, place: usize| all[rank].chunks(32).nth(place);
    for rank in 0..all.len() {
        let next = (rank + 1) % all.len();
        let differs = |field: &usize| next != rank && hash(rank, 2 * field + 1) != hash(next, 2 * field);
        if let Some(field) = (0..own.len()).find(differs) {
            let (one, other) = (rank.max(next), rank.min(next));
            return Err(Error::call(format!(
                "rank {one} has other numbers in `{}` than rank {other}, and all compute one program",
                own[field].0
            ))
            .help(format!("{}=off lets each process compute by itself", mpi::VARIABLE)));
        }
    }
    Ok(())
}

/// Sees to it that all processes cut a mesh alike: METIS draws numbers, and each host has its own library.
fn same_owners(ranks: &Ranks, owners: &over::parts::Owners) -> Result<()> {
    ranks.compare(&[("other parts of the mesh".to_owned(), owners.hash())])
}

/// What is said of parts, where they are those of processes.
fn of_processes(error: Error) -> Error {
    let said = |help: String| match help.split_once("at most --gpus ") {
        Some((_, most)) => format!("start fewer processes: at most {most}"),
        None => help,
    };
    Error { help: error.help.map(said), ..error }
}

/// How kernels compute a part of a mesh.
pub(super) struct OverPart {
    pub(super) choices: MeshChoices,
    ordering: Ordering,
    is_unrecorded: bool,
    reader: Option<Rc<Reader>>,
}

impl OverPart {
    /// Those of a part, on a machine.
    fn backend<M: Build>(
        &self,
        cut: &over::parts::Cut,
        number: usize,
        machine: Arc<M>,
    ) -> Result<over_mesh::Kernels<M>> {
        let problem = &cut.parts()[number].problem;
        let renumbered = Rc::new(Renumbered::new(problem, &cut.ordering(number, &self.ordering))?);
        let mut kernels = over_mesh::Kernels::new(Arc::clone(problem), machine, self.choices, renumbered).leaving();
        if let Some(reader) = &self.reader {
            kernels = kernels.read_by(Rc::clone(reader));
        }
        Ok(if self.is_unrecorded { kernels.unrecorded() } else { kernels })
    }
}
