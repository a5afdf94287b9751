//! Programs, and what runs over meshes: they hold their fields by themselves, into which the caller's numbers are copied, and out of them.

use crate::array::{self, StencilcArray};
use crate::handles::{self, Held};
use crate::mesh::StencilcMesh;
use crate::status::{StencilcStatus, begin, guarded};
use crate::stencil::{Stencil, StencilcStencil};
use crate::text::text;
use std::ffi::c_char;
use std::path::Path;
use std::sync::Arc;
use stencilc_compiler::ir::Role;
use stencilc_runtime::job::{Domain, Elsewhere, Job};
use stencilc_runtime::{Device, Error, checkpoint, mesh};

/// A program that was begun, or a stencil as one, with its fields.
pub struct StencilcRun {
    _nobody_looks_inside: (),
}

impl Held for Elsewhere {
    const WHAT: &'static str = "a run";
}

/// The run of a handle.
///
/// # Errors
/// It is none; or this process was forked from the one that has the run's thread.
fn begun(run: *const StencilcRun) -> Result<Arc<Elsewhere>, Error> {
    begin()?;
    handles::held(run)
}

/// What is to be computed, where, and by what.
fn job(stencil: &Stencil, mesh: *const StencilcMesh) -> Result<Job, Error> {
    begin()?;
    let (job, how) = stencil.job();
    let job = job.device(Device::choose(how.device).0);
    if mesh.is_null() {
        return Ok(job);
    }
    let mesh: Arc<mesh::Mesh> = handles::held(mesh)?;
    Ok(job.on(Domain::Mesh { mesh: mesh::Mesh::clone(&mesh), levels: how.levels }))
}

/// Begins a program, or a stencil as one: checks all that is said, makes the kernels, and copies the arrays of its inputs to its fields. What
/// is on a grid has no mesh, and null is given; its extents are those of the arrays. Numbers may be of another type than their field's, if each can
/// be held; what else is said of arrays, as their roles, makes no difference.
///
/// # Safety
/// There are as many arrays, of the host's memory, and room for a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stencilc_run_begin(
    stencil: *const StencilcStencil,
    mesh: *const StencilcMesh,
    arrays: *const StencilcArray,
    count: usize,
    out: *mut *mut StencilcRun,
) -> StencilcStatus {
    // SAFETY: the caller's.
    unsafe {
        handles::made(out, || {
            let stencil: Arc<Stencil> = handles::held(stencil)?;
            let mut job = job(&stencil, mesh)?;
            for (name, array) in array::copied(arrays, count)? {
                if matches!(stencil.role(&name)?, Role::Out | Role::Reduce) {
                    return Err(Error::call(format!("`{name}` is an output, and takes no numbers"))
                        .help("leave it out: stencilc_run_get copies it once it is computed"));
                }
                job = job.array(&name, array);
            }
            job.start_elsewhere()
        })
    }
}

/// Goes on from a file that stencilc_run_save() or `stencilc run --checkpoint` has written, of the same text and mesh. Fields are in it; parameters
/// are set again.
///
/// # Safety
/// The text ends with a zero byte, and there is room for a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stencilc_run_resume(
    stencil: *const StencilcStencil,
    mesh: *const StencilcMesh,
    file: *const c_char,
    out: *mut *mut StencilcRun,
) -> StencilcStatus {
    // SAFETY: the caller's.
    unsafe {
        handles::made(out, || {
            let stencil: Arc<Stencil> = handles::held(stencil)?;
            let job = job(&stencil, mesh)?;
            let from = checkpoint::load(Path::new(text(file, "the name of the file")?))?;
            job.resume(from).start_elsewhere()
        })
    }
}

/// Goes on by so many steps, or fewer at the end: how often the loops of the program are gone through that stand in no other. With the last
/// of them, what stands behind is done, too; UINT64_MAX goes on to the end. `done` says how many there were, and may be null. A GPU may
/// still compute when this returns.
///
/// # Safety
/// There is room for a number, unless it is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stencilc_run_step(run: *mut StencilcRun, times: u64, done: *mut u64) -> StencilcStatus {
    guarded(|| {
        let own = begun(run)?;
        let steps = own.ask(move |run| {
            let steps = run.step(times)?;
            run.settle()?;
            Ok(steps)
        })?;
        if !done.is_null() {
            // SAFETY: the caller's.
            unsafe { done.write(steps) };
        }
        Ok(())
    })
}

/// Says how many steps were done, those before a file was written included, and how many there are in all, as far as that is known.
///
/// # Safety
/// There is room for two numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stencilc_run_progress(
    run: *const StencilcRun,
    done: *mut u64,
    total: *mut u64,
) -> StencilcStatus {
    guarded(|| {
        let own = begun(run)?;
        if done.is_null() || total.is_null() {
            return Err(
                Error::call("the place for the steps is a null pointer").help("give the addresses of two numbers")
            );
        }
        let (steps, all) = own.ask(|run| Ok((run.done(), run.total()?)))?;
        // SAFETY: the caller's.
        unsafe { (done.write(steps), total.write(all)) };
        Ok(())
    })
}

/// Waits until all is computed.
#[unsafe(no_mangle)]
pub extern "C" fn stencilc_run_wait(run: *mut StencilcRun) -> StencilcStatus {
    guarded(|| begun(run)?.ask(|run| run.wait()))
}

/// Copies what a field holds into an array of its shape and type.
///
/// # Safety
/// There is an array, of the host's memory, that nobody else looks at meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stencilc_run_get(run: *const StencilcRun, array: *const StencilcArray) -> StencilcStatus {
    guarded(|| {
        let own = begun(run)?;
        // SAFETY: the caller's.
        let (name, mut lent) = unsafe { array::one(array, true) }?;
        let asked = name.clone();
        let held = own.ask(move |run| run.get(&asked))?;
        lent.take(&format!("`{name}`"), &held)
    })
}

/// Gives a field other numbers, which are copied.
///
/// # Safety
/// There is an array, of the host's memory.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stencilc_run_put(run: *mut StencilcRun, array: *const StencilcArray) -> StencilcStatus {
    guarded(|| {
        let own = begun(run)?;
        // SAFETY: the caller's.
        for (name, array) in unsafe { array::copied(array, 1) }? {
            own.ask(move |run| run.put(&name, &array))?;
        }
        Ok(())
    })
}

/// Says what a number of a program is now, such as what a reduction came to.
///
/// # Safety
/// The text ends with a zero byte, and there is room for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stencilc_run_number(
    run: *const StencilcRun,
    name: *const c_char,
    value: *mut f64,
) -> StencilcStatus {
    guarded(|| {
        let own = begun(run)?;
        // SAFETY: the caller's.
        let name = unsafe { text(name, "the name of the number") }?.to_owned();
        if value.is_null() {
            return Err(Error::call("the place for the number is a null pointer"));
        }
        let number = own.ask(move |run| run.number(&name))?;
        // SAFETY: the caller's.
        unsafe { value.write(number) };
        Ok(())
    })
}

/// Keeps all that a run holds in a file, from which stencilc_run_resume() goes on, on any device.
///
/// # Safety
/// The text ends with a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stencilc_run_save(run: *const StencilcRun, file: *const c_char) -> StencilcStatus {
    guarded(|| {
        let own = begun(run)?;
        // SAFETY: the caller's.
        let path = Path::new(unsafe { text(file, "the name of the file") }?).to_owned();
        own.ask(move |run| run.save(&path))
    })
}

/// Frees a run, with all that it holds; null is none.
#[unsafe(no_mangle)]
pub extern "C" fn stencilc_run_free(run: *mut StencilcRun) -> StencilcStatus {
    handles::free::<Elsewhere, _>(run)
}
