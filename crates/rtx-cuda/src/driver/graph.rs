//! A sequence of launches, recorded once and replayed with one call.

use super::context::{Context, count, lock};
use crate::{Error, Result};
use cudarc::driver::sys::{CUgraph, CUgraphExec, CUstream, CUstreamCaptureMode};
use std::sync::{Arc, Mutex};

/// A recorded sequence of launches, copies and fills. Argument values are frozen; what changes between
/// replays lies in device memory.
#[derive(Debug)]
pub struct Graph {
    context: Arc<Context>,
    nodes: usize,
    /// The driver allows one thread at a time on an executable graph.
    exec: Mutex<CUgraphExec>,
}

// SAFETY: the handle is used under its mutex only, and belongs to no thread.
unsafe impl Send for Graph {}
// SAFETY: as for Send.
unsafe impl Sync for Graph {}

impl Graph {
    /// Records what `work` launches, copies and fills on this thread; nothing of it runs yet. Work of other
    /// threads goes on meanwhile and is not recorded. Memory that `work` drops is freed after the capture.
    ///
    /// # Errors
    /// Those of `work`; [`Error::Misuse`] for a capture within a capture; the driver's refusal.
    ///
    /// # Safety
    /// All memory that the recorded work touches, and the modules of its kernels, must outlive the graph.
    pub unsafe fn capture(
        context: &Arc<Context>,
        work: impl FnOnce() -> Result<()>,
    ) -> Result<Self> {
        if Context::recording_anywhere() {
            return Err(Error::Misuse {
                call: "Graph::capture",
                detail: "this thread is capturing already".into(),
            });
        }
        let _bound = context.bind()?;
        let api = context.api;
        let graph = {
            let stream = lock(&context.recorder);
            let recording = Recording::begin(context, *stream)?;
            work()?;
            recording.end()?
        };
        let mut nodes = 0;
        let mut exec = std::ptr::null_mut();
        // SAFETY: every pointer outlives its call; the graph is destroyed by its owner below.
        unsafe {
            api.check(
                "cuGraphGetNodes",
                (api.cuGraphGetNodes)(graph.handle, std::ptr::null_mut(), &mut nodes),
            )?;
            api.check(
                "cuGraphInstantiate",
                (api.cuGraphInstantiateWithFlags)(&mut exec, graph.handle, 0),
            )?;
        }
        let graph = Self {
            context: context.clone(),
            nodes,
            exec: Mutex::new(exec),
        };
        // SAFETY: the first replay is then as quick as the others.
        let status = unsafe { (api.cuGraphUpload)(exec, context.main_stream()) };
        api.check("cuGraphUpload", status)?;
        Ok(graph)
    }

    /// Number of recorded operations.
    pub fn nodes(&self) -> usize {
        self.nodes
    }

    /// Queues one replay.
    ///
    /// # Errors
    /// The driver's refusal; [`Error::Misuse`] in a capture.
    pub fn launch(&self) -> Result<()> {
        if self.context.recording() {
            return Err(Error::Misuse {
                call: "Graph::launch",
                detail: "not possible while a graph is being captured".into(),
            });
        }
        let api = self.context.api;
        let _bound = self.context.bind()?;
        count(&self.context.counters.replays);
        let exec = lock(&self.exec);
        // SAFETY: one thread at a time, on a live graph and stream.
        let status = unsafe { (api.cuGraphLaunch)(*exec, self.context.main_stream()) };
        api.check("cuGraphLaunch", status)
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        if let Ok(_bound) = self.context.bind() {
            // SAFETY: no other user is left; the driver lets a replay under way finish.
            unsafe { (self.context.api.cuGraphExecDestroy)(*lock(&self.exec)) };
        }
    }
}

/// A capture under way on this thread; ended when dropped, also by an error or a panic of the work.
struct Recording<'a> {
    context: &'a Context,
    stream: CUstream,
    ended: bool,
}

/// A graph as recorded.
struct Template<'a> {
    context: &'a Context,
    handle: CUgraph,
}

impl Drop for Template<'_> {
    fn drop(&mut self) {
        if !self.handle.is_null() {
            // SAFETY: owned here; an executable graph does not refer to it.
            unsafe { (self.context.api.cuGraphDestroy)(self.handle) };
        }
    }
}

impl<'a> Recording<'a> {
    fn begin(context: &'a Context, stream: CUstream) -> Result<Self> {
        // SAFETY: the stream lives as long as the context, and its lock is held.
        let status = unsafe {
            (context.api.cuStreamBeginCapture_v2)(
                stream,
                CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
            )
        };
        context.api.check("cuStreamBeginCapture", status)?;
        context.record_to(Some(stream));
        Ok(Self {
            context,
            stream,
            ended: false,
        })
    }

    fn end(mut self) -> Result<Template<'a>> {
        let (status, template) = self.finish();
        self.context.api.check("cuStreamEndCapture", status)?;
        Ok(template)
    }

    fn finish(&mut self) -> (u32, Template<'a>) {
        self.ended = true;
        let mut handle = std::ptr::null_mut();
        // SAFETY: begun by `begin` on this thread.
        let status = unsafe { (self.context.api.cuStreamEndCapture)(self.stream, &mut handle) };
        self.context.record_to(None);
        let dropped = std::mem::take(&mut *lock(&self.context.deferred));
        for pointer in dropped {
            self.context.free(pointer);
        }
        let template = Template {
            context: self.context,
            handle,
        };
        (status, template)
    }
}

impl Drop for Recording<'_> {
    fn drop(&mut self) {
        if !self.ended {
            drop(self.finish());
        }
    }
}
