//! A stencil that is called on arrays which belong to somebody else: nothing is copied, where kernels compute.

use super::kernel::{Chosen, Ready, Sought};
use super::lending::{Apart, Arrays, Lending};
use super::{Job, Subject};
use crate::array::{Data, Element};
use crate::cuda::Gpu;
use crate::device::{Device, Platform};
use crate::drawing::Drawing;
use crate::emulate::Emulator;
use crate::error::{Error, Result};
use crate::interpreter::{self, interpret};
use crate::lent::{Lent, Memory};
use crate::machine::Machine;
use crate::moving;
use crate::problem::{element_of, extents, params};
use std::collections::BTreeMap;
use std::ffi::c_void;
use std::sync::Arc;
use stencilc_compiler::analysis;
use stencilc_compiler::analysis::moving::{Allowed, Stand};
use stencilc_compiler::grid::{Grid, Region};
use stencilc_compiler::ir::program::{Action, Program};
use stencilc_compiler::ir::scalar::Value;
use stencilc_compiler::ir::{Field, FieldId, Handle, Precision, Stencil};
use stencilc_compiler::plan::{Choices, Open, prepare};

/// A stencil, ready to be computed on arrays, as often as one likes.
pub struct Call<'a> {
    stencil: Stencil,
    precision: Precision,
    device: Device,
    grid: Grid,
    region: Region,
    params: Vec<Value>,
    lending: Lending<'a>,
    apart: Apart,
    /// Where numbers say which levels are read.
    stands: BTreeMap<Stand, Allowed>,
    how: How,
}

/// What computes.
enum How {
    Interpreter,
    Emulator(Arc<Emulator>, Ready<Emulator>),
    Gpu(Arc<Gpu>, Ready<Gpu>),
}

/// How often what was bound is run, as far as that can be said of any.
const CALLS: u64 = 10;

/// An array that a call lacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lacking {
    /// Of which field.
    pub name: String,
    /// The lengths of its axes.
    pub shape: Vec<usize>,
    /// The type of its elements.
    pub element: Element,
}

impl Job {
    /// Binds a stencil to arrays that belong to somebody else, and makes its kernel, which works on these where they are: on a GPU
    /// in its memory, on the emulator in that of the host. The interpreter computes on copies of its own.
    ///
    /// Elements along i follow each other, or the levels of a column do; how far rows are apart, and levels, or columns, is the caller's
    /// affair, but the same for all. A field on levels alone is dense.
    ///
    /// ```
    /// use stencilc_compiler::source::Source;
    /// use stencilc_runtime::{Device, Lent, job::{Arrays, Job}};
    ///
    /// let job = Job::new(&Source::new("mean.stn", "stencil mean { in a; out b; b = 0.5 * (a[i-1] + a[i+1]) }"), None)?;
    /// let (a, mut b) = ([1.0, 2.0, 4.0, 8.0], [0.0; 4]);
    /// let arrays = Arrays::default().read("a", Lent::read(&a, &[1, 1, 4])?).write("b", Lent::write(&mut b, &[1, 1, 4])?);
    /// job.device(Device::Cpu).call(arrays)?.run()?;
    /// assert_eq!(b, [0.0, 2.5, 5.0, 0.0]);
    /// # Ok::<(), stencilc_runtime::Error>(())
    /// ```
    ///
    /// # Errors
    /// Names that do not exist, arrays that are missing, have another shape or type than their fields, lie in other memory than the
    /// device's, are not to be written, overlap, or lie in another way than kernels can read; parameters without a value; a device that is
    /// not there. A program, and what runs over a mesh, holds its arrays by itself: [`Job::start`].
    pub fn call<'a>(self, arrays: Arrays<'a>) -> Result<Call<'a>> {
        self.call_by(arrays, |_| None)
    }

    /// The same; where the job leaves it open which kernel computes, it is asked for one that is better than the usual: what it names is
    /// taken if it computes on such arrays.
    ///
    /// # Errors
    /// Those of [`Job::call`].
    pub fn call_by<'a>(
        self,
        arrays: Arrays<'a>,
        choose: impl FnOnce(&Sought<'_>) -> Option<Choices>,
    ) -> Result<Call<'a>> {
        let (stencil, choices, given) = self.called()?;
        let precision = choices.precision;
        let lending = Lending::new(&stencil, arrays)?;
        let grid = extents::find(&stencil, given, &|name| lending.shape(&stencil, name))?;
        let params = params(&stencil, precision, grid, &self.settings, 0, &Drawing::Nothing, &mut Vec::new())?;
        let region = analysis::region(&stencil, precision, grid, None, &params)?;
        let device = Device::choose(self.device).0;
        let apart = lending.check(&stencil, precision, grid, device)?;
        let fits = |own: &Choices| {
            Chosen { stencil: &stencil, choices: own, grid, region: &region, apart, params: &params }.plan().map(drop)
        };
        let sought = Sought { stencil: &stencil.name, choices: &choices, grid, device, fits: &fits };
        let choices = match self.how.open {
            Open::Kernel => choose(&sought).unwrap_or(choices),
            Open::Storage | Open::Nothing => choices,
        };
        let chosen = Chosen { stencil: &stencil, choices: &choices, grid, region: &region, apart, params: &params };
        let cells = grid.count().saturating_mul(CALLS);
        let how = match super::opened(device, cells, self.stream)? {
            Platform::Cpu => How::Interpreter,
            Platform::Emulator(emulator) => {
                let ready = chosen.ready(&*emulator, &lending)?;
                How::Emulator(emulator, ready)
            }
            Platform::Gpu(gpu) => {
                let ready = chosen.ready(&*gpu, &lending)?;
                How::Gpu(gpu, ready)
            }
        };
        let stands = moving::stands(&stencil, precision, grid, &region, &params);
        Ok(Call { stencil, precision, device, grid, region, params, lending, apart, stands, how })
    }

    /// The stencil that is called, the choices that suit it, and the grid if it is given.
    fn called(&self) -> Result<(Stencil, Choices, Option<Grid>)> {
        let stencil = match &self.subject {
            Subject::Grid(program) => only_stencil(program),
            Subject::Mesh(_) => None,
        };
        let stencil = stencil.ok_or_else(|| {
            Error::call(format!("`{}` is no stencil on a grid, and holds its arrays by itself", self.subject.name()))
                .help("start it: `Job::start`")
        })?;
        let choices = match self.device {
            Some(Device::Native) => self.how.choices.clone().on_cpu(self.how.open).0,
            _ => self.how.choices.clone(),
        };
        let choices = choices.suiting(stencil);
        let (precision, contract) = (choices.precision, choices.contract);
        let stencil = prepare(stencil, precision, contract);
        let given = match self.domain {
            None => None,
            Some(super::Domain::Rows(grid)) => Some(grid),
            Some(super::Domain::Cells { .. } | super::Domain::Mesh { .. }) => {
                return Err(Error::call("arrays are lent on grids whose columns stand in rows")
                    .help("on cells and meshes, start the stencil: `Job::start` holds its arrays by itself"));
            }
        };
        Ok((stencil, choices, given))
    }

    /// The arrays that a call lacks of what it writes, and the shape and type of each: as those of its inputs ask for.
    ///
    /// ```
    /// use stencilc_compiler::source::Source;
    /// use stencilc_runtime::{Element, Lent, job::{Arrays, Job}};
    ///
    /// let job = Job::new(&Source::new("mean.stn", "stencil mean { in a; out b; b = 0.5 * (a[i-1] + a[i+1]) }"), None)?;
    /// let a = [1.0, 2.0, 4.0, 8.0];
    /// let lacking = job.lacking(&Arrays::default().read("a", Lent::read(&a, &[1, 1, 4])?))?;
    /// assert_eq!((&*lacking[0].name, &*lacking[0].shape, lacking[0].element), ("b", &[1, 1, 4][..], Element::F64));
    /// # Ok::<(), stencilc_runtime::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Job::call`] that are about names, shapes and parameters.
    pub fn lacking(&self, arrays: &Arrays) -> Result<Vec<Lacking>> {
        let (stencil, choices, given) = self.called()?;
        let known = |name: &str| stencil.field_named(name).is_some_and(|id| stencil.fields[id].role.is_written());
        arrays
            .written()
            .find(|name| !known(name))
            .map_or(Ok(()), |name| Err(Error::call(format!("stencil `{}` has no output `{name}`", stencil.name))))?;
        let grid = extents::find(&stencil, given, &|name| arrays.shape(name))?;
        let params = params(&stencil, choices.precision, grid, &self.settings, 0, &Drawing::Nothing, &mut Vec::new())?;
        analysis::region(&stencil, choices.precision, grid, None, &params)?;
        let lacks = |field: &&Field| field.role.is_written() && arrays.written().all(|own| own != field.name);
        let fields = stencil.fields.iter().map(|(_, field)| field).filter(lacks);
        Ok(fields
            .map(|field| Lacking {
                name: field.name.clone(),
                shape: grid.shape(field.place),
                element: element_of(field.stored, choices.precision),
            })
            .collect())
    }
}

impl<'a> Call<'a> {
    /// Lends other arrays, which lie as those did that it was made for: the kernel is the same.
    ///
    /// # Errors
    /// Those of [`Job::call`] that are about arrays; or they lie in another way.
    pub fn lend(&mut self, arrays: Arrays<'a>) -> Result<()> {
        let lending = Lending::new(&self.stencil, arrays)?;
        let grid = extents::find(&self.stencil, Some(self.grid), &|name| lending.shape(&self.stencil, name))?;
        let apart = lending.check(&self.stencil, self.precision, grid, self.device)?;
        if apart != self.apart || lending.updates != self.lending.updates {
            return Err(Error::call("the arrays lie in another way than those that the call was made for")
                .help("make another one: `Job::call`"));
        }
        match &mut self.how {
            How::Interpreter => {}
            How::Emulator(emulator, ready) => ready.lend(&**emulator, &lending)?,
            How::Gpu(gpu, ready) => ready.lend(&**gpu, &lending)?,
        }
        self.lending = lending;
        Ok(())
    }
}

impl Call<'_> {
    /// Computes the stencil, and waits for it.
    ///
    /// # Errors
    /// There is not enough memory, or the kernel has failed; or a number that says which level is read leads to none. In a GPU's memory nobody
    /// looks at such numbers: of what lies beyond the levels, the nearest is read.
    pub fn run(&mut self) -> Result<()> {
        self.look_at_levels()?;
        match &self.how {
            How::Interpreter => self.interpreted(),
            How::Emulator(emulator, ready) => {
                for (number, aside) in &ready.aside {
                    if let Some(lent) = &self.lending.writes[*number] {
                        emulator.copy_lent(lent, aside)?;
                    }
                }
                emulator.launch(&ready.kernel, &ready.launch, &ready.arguments)
            }
            How::Gpu(gpu, _) => {
                let gpu = Arc::clone(gpu);
                // SAFETY: the stream is the one that its work goes into, and what is lent is there until all is done.
                unsafe { self.run_in(gpu.used_stream()) }?;
                gpu.synchronize()
            }
        }
    }

    /// Starts the stencil in a stream of the caller's (`CUstream`, which is `cudaStream_t`; the null pointer is the default one), and
    /// returns at once. On the CPU it is computed when this returns.
    ///
    /// # Safety
    /// The stream is one of the primary context of this GPU. Nobody reads what is written, or writes what is read, before the work
    /// in it is done; and the arrays are there as long. Where one is changed in place, work in another stream before is done, too.
    ///
    /// # Errors
    /// There is not enough memory, or the kernel cannot be started. What fails later is told by later calls.
    pub unsafe fn run_in(&mut self, stream: *mut c_void) -> Result<()> {
        match &self.how {
            How::Gpu(gpu, ready) => {
                for (number, aside) in &ready.aside {
                    if let Some(lent) = &self.lending.writes[*number] {
                        // SAFETY: the caller's.
                        unsafe { gpu.copy_lent(stream, lent, aside) }?;
                    }
                }
                // SAFETY: the caller's.
                unsafe { gpu.launch_in(stream, &ready.kernel, &ready.launch, &ready.arguments) }
            }
            How::Interpreter | How::Emulator(..) => self.run(),
        }
    }

    /// Whether something is changed in place, for which what it held is copied aside.
    pub fn updates(&self) -> bool {
        !self.lending.updates.is_empty()
    }

    /// Waits until all that was started is done.
    ///
    /// # Errors
    /// The kernel has failed.
    pub fn wait(&self) -> Result<()> {
        match &self.how {
            How::Gpu(gpu, _) => gpu.synchronize(),
            How::Interpreter | How::Emulator(..) => Ok(()),
        }
    }

    /// The cells that are computed.
    pub fn region(&self) -> &Region {
        &self.region
    }

    /// Whether numbers that say which levels are read lead to levels that there are, where the host can look at them.
    fn look_at_levels(&self) -> Result<()> {
        let data = |field: FieldId| {
            let lent = self.lending.read(field.index()).filter(|lent| lent.memory == Memory::Host);
            lent.map(Lent::copied)
        };
        moving::check(&self.stencil, &self.stands, (self.grid, None, &self.region), data)
    }

    fn interpreted(&self) -> Result<()> {
        let copied = |lent: Option<&Lent>| lent.map(Lent::copied);
        let fields = 0..self.lending.writes.len();
        let inputs: Vec<Option<Data>> = fields.map(|field| copied(self.lending.read(field))).collect();
        // What is not computed is not written back, whatever it holds.
        let room = |lent: &Lent| Data::zeros(lent.element, lent.shape.iter().product());
        let mut outputs: Vec<Option<Data>> = self.lending.writes.iter().map(|own| own.as_ref().map(room)).collect();
        let inputs: Vec<Option<&Data>> = inputs.iter().map(Option::as_ref).collect();
        let job = interpreter::Job {
            stencil: &self.stencil,
            precision: self.precision,
            grid: self.grid,
            adjacency: None,
            region: &self.region,
            params: &self.params,
            inputs: &inputs,
        };
        interpret(&job, &mut outputs, &|_| {})?;
        for (((_, field), lent), data) in self.stencil.fields.iter().zip(&self.lending.writes).zip(&outputs) {
            if let (Some(lent), Some(data)) = (lent, data) {
                lent.put(data, self.region.numbers(self.grid, field.place));
            }
        }
        Ok(())
    }
}

/// The stencil that a program calls, if that is all that it does.
fn only_stencil(program: &Program) -> Option<&Stencil> {
    match program.actions.as_slice() {
        [Action::Call(call)] => program.stencils.get(call.stencil),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Any thread may have a call, as that of a library whose users have several does.
    #[test]
    fn calls_go_from_thread_to_thread() {
        fn is_sent<T: Send>() {}
        is_sent::<Call>();
        is_sent::<Job>();
    }
}
