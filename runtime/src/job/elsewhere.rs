//! A run on a thread of its own. What a run holds belongs to one thread; whoever has several threads asks it from any of them.

use super::{Job, Ready, Run};
use crate::device::Platform;
use crate::error::{Error, Result};
use crate::threads;
use std::sync::mpsc::{Receiver, Sender, channel, sync_channel};
use std::sync::{Mutex, PoisonError};

/// The stack of the thread, as large as that of a program's first.
const STACK: usize = 8 << 20;

/// What a run is asked for.
type Request = Box<dyn FnOnce(&mut Run) + Send>;

/// A run on a thread of its own. It ends with this: once this is gone, so is what the run held.
pub struct Elsewhere {
    /// There until the end.
    requests: Option<Sender<Request>>,
    ended: Mutex<Receiver<()>>,
    /// The process that has the thread.
    process: u32,
}

impl Drop for Elsewhere {
    fn drop(&mut self) {
        self.requests = None;
        // A process that was forked from it has no thread to wait for.
        if self.process == std::process::id() {
            // Nothing is ever sent: this ends when the other side is gone.
            let _ = self.ended.lock().unwrap_or_else(PoisonError::into_inner).recv();
        }
    }
}

impl Job {
    /// As [`Job::start`], on a thread of its own.
    ///
    /// ```
    /// use stencilc_compiler::{grid::Grid, source::Source};
    /// use stencilc_runtime::{Device, Drawing, job::{Domain, Job}};
    ///
    /// let text = "program cool { inout heat; repeat 3 { heat = halve(heat) } }\nstencil halve { in a; out b; b = 0.5 * a }";
    /// let job = Job::new(&Source::new("cool.stn", text), Some("cool"))?.on(Domain::Rows(Grid::rows(4, 1, 1)));
    /// let run = job.drawing(Drawing::Inputs).device(Device::Cpu).start_elsewhere()?;
    /// let steps = std::thread::scope(|scope| scope.spawn(|| run.ask(|run| run.step(2))).join().unwrap())?;
    /// assert_eq!((steps, run.ask(|run| run.step(9))?), (2, 1));
    /// # Ok::<(), stencilc_runtime::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Job::start`]; or there can be no further thread.
    pub fn start_elsewhere(self) -> Result<Elsewhere> {
        self.start_elsewhere_by(|_, _| Ok(()))
    }

    /// The same; which kernels compute it on the device is chosen there, before they are made.
    ///
    /// # Errors
    /// Those of [`Job::start_elsewhere`], and of what chooses.
    pub fn start_elsewhere_by(
        self,
        choose: impl FnOnce(&mut Ready, &Platform) -> Result<()> + Send + 'static,
    ) -> Result<Elsewhere> {
        let (requests, received) = channel::<Request>();
        let (started, is_started) = sync_channel(1);
        let (end, ended) = channel();
        let work = move || {
            let run = self.ready().and_then(|mut ready| {
                let platform = ready.open()?;
                choose(&mut ready, &platform)?;
                ready.start_on(platform)
            });
            let (told, run) = match run {
                Ok(run) => (Ok(()), Some(run)),
                Err(error) => (Err(error), None),
            };
            // Whoever started it waits for this.
            let _ = started.send(told);
            let Some(mut run) = run else { return };
            while let Ok(request) = received.recv() {
                request(&mut run);
            }
            drop(run);
            drop(end);
        };
        threads::spawn("run", STACK, work)
            .map_err(|error| Error::machine(format!("no thread can be started for a run: {error}")))?;
        is_started.recv().map_err(|_| has_ended())??;
        Ok(Elsewhere { requests: Some(requests), ended: Mutex::new(ended), process: std::process::id() })
    }
}

impl Elsewhere {
    /// Lets the run do something, and waits for it. What several threads ask for is done one after the other.
    ///
    /// # Errors
    /// Those of what is asked for; or a mistake of this crate has ended the run before.
    pub fn ask<T: Send + 'static>(&self, work: impl FnOnce(&mut Run) -> Result<T> + Send + 'static) -> Result<T> {
        let (send, receive) = sync_channel(1);
        let request = move |run: &mut Run| {
            // Whoever asked waits for it.
            let _ = send.send(work(run));
        };
        let requests = self.requests.as_ref().ok_or_else(has_ended)?;
        requests.send(Box::new(request)).map_err(|_| has_ended())?;
        receive.recv().map_err(|_| has_ended())?
    }
}

fn has_ended() -> Error {
    Error::check("a mistake in stencilc has ended this run: a thread panicked, and has said why on stderr")
        .help("go on from the last checkpoint; the mistake is worth a report")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Device, Drawing, job::Domain};
    use stencilc_compiler::grid::Grid;
    use stencilc_compiler::source::Source;

    fn job() -> Job {
        let source = Source::new("cool.stn", "stencil halve { in a; out b; b = 0.5 * a }");
        Job::new(&source, None).unwrap().on(Domain::Rows(Grid::rows(4, 1, 1))).device(Device::Cpu)
    }

    #[test]
    fn what_is_wrong_is_told_to_whoever_asks() {
        let error = job().start_elsewhere().err().unwrap();
        assert!(error.message.contains("`a`"), "{error}");
        let run = job().drawing(Drawing::Inputs).start_elsewhere().unwrap();
        assert!(run.ask(|run| run.get("c")).is_err());
        let broken: Result<()> = run.ask(|_| panic!("a test panics"));
        assert!(broken.unwrap_err().message.starts_with("a mistake in stencilc has ended this run"));
        assert!(
            run.ask(|run| run.step(1)).unwrap_err().message.starts_with("a mistake in stencilc has ended this run")
        );
    }
}
