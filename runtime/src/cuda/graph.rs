//! Graphs: launches that are recorded once, and then started all at once, as often as one likes.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use cudarc::driver::sys::{CUgraphExec, CUstreamCaptureMode};

use super::Gpu;
use super::context::{Context, Event};
use super::driver::{
    cuGraphDestroy, cuGraphExecDestroy, cuGraphInstantiateWithFlags, cuGraphLaunch, cuStreamBeginCapture_v2,
    cuStreamEndCapture,
};
use super::stream::Stream;
use crate::Result;

/// Recorded launches and copies. What they read and write has to outlive it.
pub struct Graph {
    context: Arc<Context>,
    handle: CUgraphExec,
    /// The kernels in it, by the GPU that they run on.
    kernels: Vec<(Arc<Context>, Vec<Arc<str>>)>,
}

impl Drop for Graph {
    fn drop(&mut self) {
        // SAFETY: it is not launched again, and launches that are under way keep what they need. A failure to free has no
        // remedy.
        let _ = unsafe { cuGraphExecDestroy(self.handle) };
    }
}

/// Launches are recorded in a stream, instead of being started.
struct Recorder<'a> {
    context: &'a Arc<Context>,
    stream: Stream,
}

impl<'a> Recorder<'a> {
    fn begin(context: &'a Arc<Context>) -> Result<Self> {
        let own = Self { context, stream: Stream::new(context)? };
        let stream = own.stream.handle().cast();
        let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
        // SAFETY: the stream was made above.
        context.succeed(unsafe { cuStreamBeginCapture_v2(stream, mode) }, "record launches")?;
        context.stream.store(stream, Ordering::Relaxed);
        Ok(own)
    }

    /// Another GPU whose launches are recorded among those of this one.
    fn joined(&self, context: &'a Arc<Context>) -> Result<Self> {
        let own = Self { context, stream: Stream::new(context)? };
        context.stream.store(own.stream.handle().cast(), Ordering::Relaxed);
        let event = Event::mark(self.context)?;
        event.record_among_launches()?;
        event.hold_back(context)?;
        Ok(own)
    }

    /// What is recorded ends after what another GPU is asked.
    fn ends_after(&self, other: &Self) -> Result<()> {
        let event = Event::mark(other.context)?;
        event.record_among_launches()?;
        event.hold_back(self.context)
    }

    /// What was recorded.
    fn end(self, kernels: Vec<(Arc<Context>, Vec<Arc<str>>)>) -> Result<Graph> {
        let (mut graph, mut handle) = (std::ptr::null_mut(), std::ptr::null_mut());
        // SAFETY: the stream records, and the graph goes into a pointer that is there.
        self.context
            .succeed(unsafe { cuStreamEndCapture(self.stream.handle().cast(), &mut graph) }, "record these launches")?;
        // SAFETY: the graph was made above, and what can be launched goes into a pointer that is there.
        let answer = unsafe { cuGraphInstantiateWithFlags(&mut handle, graph, 0) };
        // SAFETY: what can be launched has all that it needs of the graph. A failure to free has no remedy.
        let _ = unsafe { cuGraphDestroy(graph) };
        self.context.succeed(answer, "make a graph of launches")?;
        Ok(Graph { context: Arc::clone(self.context), handle, kernels })
    }
}

impl Drop for Recorder<'_> {
    fn drop(&mut self) {
        self.context.stream.store(self.context.own(), Ordering::Relaxed);
    }
}

impl Gpu {
    /// Records the launches and copies of a closure, which are not done: [`Gpu::replay`] does them.
    ///
    /// # Errors
    /// Those of the closure, and when it does what cannot be recorded, such as reserving memory.
    pub fn record(&self, work: &mut dyn FnMut() -> Result<()>) -> Result<Graph> {
        Self::record_on(self, &[], work)
    }

    /// The same of several GPUs that wait for each other, the first of which starts it. One that is there several times is recorded once.
    ///
    /// # Errors
    /// As [`Gpu::record`].
    pub fn record_on(first: &Gpu, others: &[&Gpu], work: &mut dyn FnMut() -> Result<()>) -> Result<Graph> {
        let mut all = vec![first];
        for other in others {
            // What goes into another stream of a GPU that records already would be done at once, and be in no recording.
            if all.iter().all(|own| !Arc::ptr_eq(&own.context, &other.context)) {
                all.push(other);
            }
        }
        let others = &all[1..];
        let recorder = Recorder::begin(&first.context)?;
        let joined = others.iter().map(|other| recorder.joined(&other.context)).collect::<Result<Vec<_>>>()?;
        let contexts: Vec<&Arc<Context>> =
            std::iter::once(first).chain(others.iter().copied()).map(|gpu| &gpu.context).collect();
        let before: Vec<_> = contexts.iter().map(|context| std::mem::take(&mut *context.running())).collect();
        let done = work();
        let kernels = contexts
            .iter()
            .zip(before)
            .map(|(context, before)| (Arc::clone(context), std::mem::replace(&mut *context.running(), before)));
        let kernels = kernels.collect();
        done?;
        joined.iter().try_for_each(|other| recorder.ends_after(other))?;
        recorder.end(kernels)
    }

    /// Starts what was recorded, and returns at once.
    ///
    /// # Errors
    /// When a kernel launched before has failed.
    pub fn replay(&self, graph: &Graph) -> Result<()> {
        let context = &graph.context;
        context.bind()?;
        for (own, kernels) in &graph.kernels {
            kernels.iter().for_each(|kernel| own.started(kernel));
        }
        // SAFETY: the context is current, and the stream the one that work goes into.
        context.succeed(unsafe { cuGraphLaunch(graph.handle, context.own()) }, "start a graph of launches")
    }
}
