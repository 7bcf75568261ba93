//! Pinned host memory through which host arrays reach the device and come back.

use super::api::{Api, code};
use super::context::{Context, count};
use crate::Result;
use cudarc::driver::sys::{CUdeviceptr, CUevent};

/// Bytes of one half: long enough to hide the start of a transfer, short enough to overlap the two copies.
const HALF: usize = 2 << 20;

/// Two pinned halves; while one is in transfer, the host copies to or from the other.
pub(crate) struct Staging {
    halves: [Half; 2],
    next: usize,
}

struct Half {
    api: &'static Api,
    host: *mut u8,
    done: CUevent,
    busy: bool,
}

impl Half {
    fn new(api: &'static Api) -> Result<Self> {
        const NO_TIMING: u32 = 2;
        let mut half = Self {
            api,
            host: std::ptr::null_mut(),
            done: std::ptr::null_mut(),
            busy: false,
        };
        let mut host = std::ptr::null_mut();
        // SAFETY: every pointer outlives its call; `Drop` frees what was made.
        unsafe {
            api.check("cuMemHostAlloc", (api.cuMemHostAlloc)(&mut host, HALF, 0))?;
            half.host = host.cast();
            api.check(
                "cuEventCreate",
                (api.cuEventCreate)(&mut half.done, NO_TIMING),
            )?;
        }
        Ok(half)
    }

    /// Waits until the transfer from or to this half is done.
    fn wait(&mut self, context: &Context) -> Result<()> {
        if !self.busy {
            return Ok(());
        }
        // SAFETY: the event lives as long as `self`.
        let mut status = unsafe { (self.api.cuEventQuery)(self.done) };
        if status == code::NOT_READY {
            count(&context.counters.synchronizations);
            // SAFETY: as above.
            status = unsafe { (self.api.cuEventSynchronize)(self.done) };
        }
        self.api.check("cuEventSynchronize", status)?;
        self.busy = false;
        Ok(())
    }

    /// Marks the end of a transfer just queued.
    fn record(&mut self, context: &Context) -> Result<()> {
        self.busy = true;
        // SAFETY: event and stream live.
        let status = unsafe { (self.api.cuEventRecord)(self.done, context.main_stream()) };
        self.api.check("cuEventRecord", status)
    }
}

impl Drop for Half {
    fn drop(&mut self) {
        // SAFETY: made in `new`; the context waits for its stream before it drops this.
        unsafe {
            if !self.done.is_null() {
                (self.api.cuEventDestroy_v2)(self.done);
            }
            if !self.host.is_null() {
                (self.api.cuMemFreeHost)(self.host.cast());
            }
        }
    }
}

impl Staging {
    /// Allocates both halves; the context must be current.
    pub(crate) fn new(api: &'static Api) -> Result<Self> {
        Ok(Self {
            halves: [Half::new(api)?, Half::new(api)?],
            next: 0,
        })
    }

    fn take(&mut self) -> usize {
        let taken = self.next;
        self.next ^= 1;
        taken
    }

    /// Queues the copy of `data` to the device; waits only for a half that is still in transfer.
    pub(crate) fn upload(&mut self, context: &Context, to: CUdeviceptr, data: &[u8]) -> Result<()> {
        let mut to = to;
        for chunk in data.chunks(HALF) {
            let taken = self.take();
            let half = &mut self.halves[taken];
            half.wait(context)?;
            // SAFETY: the half has HALF bytes, no transfer reads it, and it is reached through one lock.
            let status = unsafe {
                std::ptr::copy_nonoverlapping(chunk.as_ptr(), half.host, chunk.len());
                (context.api.cuMemcpyHtoDAsync_v2)(
                    to,
                    half.host.cast_const().cast(),
                    chunk.len(),
                    context.main_stream(),
                )
            };
            context.api.check("cuMemcpyHtoDAsync", status)?;
            half.record(context)?;
            to += chunk.len() as u64;
        }
        Ok(())
    }

    /// Copies from the device, after all work queued before.
    pub(crate) fn download(
        &mut self,
        context: &Context,
        from: CUdeviceptr,
        out: &mut [u8],
    ) -> Result<()> {
        let mut from = from;
        let mut previous: Option<(usize, &mut [u8])> = None;
        for chunk in out.chunks_mut(HALF) {
            let taken = self.take();
            let half = &mut self.halves[taken];
            half.wait(context)?;
            // SAFETY: the half has HALF bytes, no transfer touches it, and it is reached through one lock.
            let status = unsafe {
                (context.api.cuMemcpyDtoHAsync_v2)(
                    half.host.cast(),
                    from,
                    chunk.len(),
                    context.main_stream(),
                )
            };
            context.api.check("cuMemcpyDtoHAsync", status)?;
            half.record(context)?;
            from += chunk.len() as u64;
            if let Some((half, out)) = previous.replace((taken, chunk)) {
                self.halves[half].read(context, out)?;
            }
        }
        previous.map_or(Ok(()), |(half, out)| self.halves[half].read(context, out))
    }
}

impl Half {
    /// Waits for the transfer to this half, then copies it out.
    fn read(&mut self, context: &Context, out: &mut [u8]) -> Result<()> {
        self.wait(context)?;
        // SAFETY: the transfer wrote `out.len()` bytes, at most HALF, and is done.
        unsafe { std::ptr::copy_nonoverlapping(self.host, out.as_mut_ptr(), out.len()) };
        Ok(())
    }
}
