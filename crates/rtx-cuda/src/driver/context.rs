//! One device in use: its context, its stream, its memory pool.

use super::api::{Api, api, code};
use super::memory::{Memory, Place};
use super::module::Function;
use super::probe::{DeviceInfo, info};
use super::staging::Staging;
use crate::{Error, Result};
use cudarc::driver::sys::{
    CUcontext, CUdevice, CUdeviceptr, CUmemAllocationType, CUmemLocationType, CUmemPool_attribute,
    CUmemPoolProps, CUmemoryPool, CUstream,
};
use std::cell::Cell;
use std::ffi::c_void;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How often a context did what a training loop must not do, and what it should do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Allocations of device memory.
    pub allocations: u64,
    /// Waits of the host for the device.
    pub synchronizations: u64,
    /// Kernels launched (recorded ones included, replayed ones not).
    pub launches: u64,
    /// Replays of graphs.
    pub replays: u64,
}

#[derive(Default)]
pub(crate) struct Counters {
    pub allocations: AtomicU64,
    pub synchronizations: AtomicU64,
    pub launches: AtomicU64,
    pub replays: AtomicU64,
}

/// One more of something.
pub(crate) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

/// A device in use: the primary context, one stream on which all work is ordered, and a pool of memory.
///
/// Work of all threads goes to the one stream in the order of the calls; only [`download`](Self::download)
/// and [`synchronize`](Self::synchronize) wait for it. Dropped when the last [`Memory`],
/// [`Module`](super::Module) and [`Graph`](super::Graph) of it are.
pub struct Context {
    pub(crate) api: &'static Api,
    pub(crate) counters: Counters,
    info: DeviceInfo,
    device: CUdevice,
    handle: CUcontext,
    stream: CUstream,
    pool: CUmemoryPool,
    /// The stream of captures; locked while one is under way.
    pub(crate) recorder: Mutex<CUstream>,
    /// Memory dropped by the capturing thread, freed when the capture ends.
    pub(crate) deferred: Mutex<Vec<CUdeviceptr>>,
    staging: Mutex<Option<Staging>>,
}

// SAFETY: the driver's functions on contexts, streams, pools and events may be called from any thread; the
// pinned buffers are reached through a mutex only.
unsafe impl Send for Context {}
// SAFETY: as for Send.
unsafe impl Sync for Context {}

thread_local! {
    /// The context, by address, and the stream to which this thread is recording.
    static RECORDING: Cell<Option<(usize, CUstream)>> = const { Cell::new(None) };
}

/// Keeps a context current on this thread; calls made meanwhile need not look for it.
pub struct Bound<'a> {
    pop: Option<&'static Api>,
    /// Tied to the thread as well as to the context.
    _context: PhantomData<(&'a Context, *const ())>,
}

impl Drop for Bound<'_> {
    fn drop(&mut self) {
        if let Some(api) = self.pop {
            let mut old = std::ptr::null_mut();
            // SAFETY: `bind` pushed a context on this thread, and guards are dropped in reverse order.
            unsafe { (api.cuCtxPopCurrent_v2)(&mut old) };
        }
    }
}

/// Locks, also after a panic of another holder: the guarded values are valid at every step.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Context {
    /// Takes a device into use.
    ///
    /// # Errors
    /// Those of [`probe`](super::probe), [`Error::NoDevice`], [`Error::DeviceTooOld`], and the driver's
    /// refusal (a device that another process holds for itself).
    pub fn new(ordinal: usize) -> Result<Arc<Self>> {
        let api = api()?;
        let (device, info) = info(api, ordinal)?;
        info.check()?;
        let mut handle = std::ptr::null_mut();
        // SAFETY: `handle` outlives the call; `Drop` releases what is retained.
        let status = unsafe { (api.cuDevicePrimaryCtxRetain)(&mut handle, device) };
        api.check("cuDevicePrimaryCtxRetain", status)?;
        let mut context = Self {
            api,
            counters: Counters::default(),
            info,
            device,
            handle,
            stream: std::ptr::null_mut(),
            pool: std::ptr::null_mut(),
            recorder: Mutex::new(std::ptr::null_mut()),
            deferred: Mutex::default(),
            staging: Mutex::new(None),
        };
        // From here on an early return drops `context`, which releases what was made so far.
        let (stream, recorder, pool) = {
            let _bound = context.bind()?;
            (
                create_stream(api)?,
                create_stream(api)?,
                create_pool(api, device)?,
            )
        };
        context.stream = stream;
        context.pool = pool;
        context.recorder = Mutex::new(recorder);
        Ok(Arc::new(context))
    }

    /// What is known of the device: capability, multiprocessors, shared memory, level-2 cache.
    pub fn info(&self) -> &DeviceInfo {
        &self.info
    }

    /// Number of allocations, waits and launches so far.
    pub fn counts(&self) -> Counts {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Counts {
            allocations: read(&self.counters.allocations),
            synchronizations: read(&self.counters.synchronizations),
            launches: read(&self.counters.launches),
            replays: read(&self.counters.replays),
        }
    }

    /// Makes the context current on this thread until the guard is dropped. Every call does so by itself;
    /// a caller that makes many in a row saves the changes between them.
    ///
    /// # Errors
    /// The driver's refusal, after a failed kernel.
    pub fn bind(&self) -> Result<Bound<'_>> {
        let mut current = std::ptr::null_mut();
        // SAFETY: `current` outlives the call; the handle is retained for the life of `self`.
        unsafe {
            if (self.api.cuCtxGetCurrent)(&mut current) == 0 && current == self.handle {
                return Ok(Bound {
                    pop: None,
                    _context: PhantomData,
                });
            }
            self.api.check(
                "cuCtxPushCurrent",
                (self.api.cuCtxPushCurrent_v2)(self.handle),
            )?;
        }
        Ok(Bound {
            pop: Some(self.api),
            _context: PhantomData,
        })
    }

    /// The stream to which this thread's work goes: that of its capture, else the common one.
    pub(crate) fn stream(&self) -> CUstream {
        match RECORDING.get() {
            Some((address, stream)) if address == self.address() => stream,
            _ => self.stream,
        }
    }

    /// The common stream, also while this thread records.
    pub(crate) fn main_stream(&self) -> CUstream {
        self.stream
    }

    /// Whether this thread is recording a graph of this context.
    pub(crate) fn recording(&self) -> bool {
        RECORDING.get().is_some_and(|(a, _)| a == self.address())
    }

    /// Sends this thread's work to a stream under capture, or back to the common one.
    pub(crate) fn record_to(&self, stream: Option<CUstream>) {
        RECORDING.set(stream.map(|s| (self.address(), s)));
    }

    /// Whether this thread is recording a graph of any context.
    pub(crate) fn recording_anywhere() -> bool {
        RECORDING.get().is_some()
    }

    fn address(&self) -> usize {
        std::ptr::from_ref(self) as usize
    }

    fn refuse_in_capture(&self, call: &'static str) -> Result<()> {
        if self.recording() {
            return Err(Error::Misuse {
                call,
                detail: "not possible while a graph is being captured: do it before".into(),
            });
        }
        Ok(())
    }

    /// Allocates device memory, uninitialised, at the place of this call in the stream. Freed memory is
    /// kept by the pool for the next allocation.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], after which everything else goes on working; [`Error::Misuse`] in a capture.
    pub fn alloc(self: &Arc<Self>, bytes: usize) -> Result<Memory> {
        self.refuse_in_capture("alloc")?;
        let _bound = self.bind()?;
        count(&self.counters.allocations);
        let pointer = match self.try_alloc(bytes)? {
            Some(pointer) => pointer,
            None => {
                // The pool may hold freed memory in pieces of other sizes: give it back and try again.
                self.synchronize()?;
                // SAFETY: the pool lives as long as `self`.
                unsafe { (self.api.cuMemPoolTrimTo)(self.pool, 0) };
                match self.try_alloc(bytes)? {
                    Some(pointer) => pointer,
                    None => {
                        let (free, total) = self.memory()?;
                        return Err(Error::OutOfMemory {
                            asked: bytes,
                            free,
                            total,
                        });
                    }
                }
            }
        };
        Ok(Memory::new(self.clone(), pointer, bytes))
    }

    /// `None` where the device has not that much.
    fn try_alloc(&self, bytes: usize) -> Result<Option<CUdeviceptr>> {
        if bytes > self.info.memory {
            return Ok(None);
        }
        let mut pointer: CUdeviceptr = 0;
        // SAFETY: `pointer` outlives the call; pool and stream live as long as `self`. No bytes are
        // refused by the driver, so at least one is asked for.
        let status = unsafe {
            (self.api.cuMemAllocFromPoolAsync)(&mut pointer, bytes.max(1), self.pool, self.stream)
        };
        if status == code::OUT_OF_MEMORY {
            return Ok(None);
        }
        self.api.check("cuMemAllocFromPoolAsync", status)?;
        Ok(Some(pointer))
    }

    /// Bytes free and bytes in all on the device (what the pool keeps counts as taken).
    ///
    /// # Errors
    /// The driver's refusal.
    pub fn memory(&self) -> Result<(usize, usize)> {
        let _bound = self.bind()?;
        let (mut free, mut total) = (0, 0);
        // SAFETY: both outlive the call.
        let status = unsafe { (self.api.cuMemGetInfo_v2)(&mut free, &mut total) };
        self.api.check("cuMemGetInfo", status)?;
        Ok((free, total))
    }

    /// Frees at the end of the work queued so far. Errors have nobody to go to.
    pub(crate) fn free(&self, pointer: CUdeviceptr) {
        if self.recording() {
            // Queued now it would become a node of the graph.
            lock(&self.deferred).push(pointer);
        } else if let Ok(_bound) = self.bind() {
            // SAFETY: the pointer came from this pool and has no other owner; work queued before on the
            // same stream is done before it is freed.
            unsafe { (self.api.cuMemFreeAsync)(pointer, self.stream) };
        }
    }

    /// Copies host memory to the device. Returns when `data` may change; the device copies in its turn.
    ///
    /// # Errors
    /// [`Error::Misuse`] beyond the end of the memory or in a capture; the driver's refusal.
    pub fn upload<'a>(&self, to: impl Into<Place<'a>>, data: &[u8]) -> Result<()> {
        self.refuse_in_capture("upload")?;
        let pointer = to.into().check(self, "upload", data.len())?;
        if data.is_empty() {
            return Ok(());
        }
        let _bound = self.bind()?;
        self.with_staging(|staging| staging.upload(self, pointer, data))
    }

    /// Waits for the work queued so far and copies device memory to the host.
    ///
    /// # Errors
    /// [`Error::Misuse`] beyond the end of the memory or in a capture; the failure of an earlier kernel.
    pub fn download<'a>(&self, from: impl Into<Place<'a>>, out: &mut [u8]) -> Result<()> {
        self.refuse_in_capture("download")?;
        let pointer = from.into().check(self, "download", out.len())?;
        if out.is_empty() {
            return Ok(());
        }
        let _bound = self.bind()?;
        self.with_staging(|staging| staging.download(self, pointer, out))
    }

    fn with_staging(&self, use_it: impl FnOnce(&mut Staging) -> Result<()>) -> Result<()> {
        let mut guard = lock(&self.staging);
        if guard.is_none() {
            *guard = Some(Staging::new(self.api)?);
        }
        guard.as_mut().map_or(Ok(()), use_it)
    }

    /// Copies within the device; recorded in a capture. The two ranges must not overlap, unless they are
    /// the same.
    ///
    /// # Errors
    /// [`Error::Misuse`] beyond the end of either memory or for overlapping ranges.
    pub fn copy<'a>(
        &self,
        to: impl Into<Place<'a>>,
        from: impl Into<Place<'a>>,
        bytes: usize,
    ) -> Result<()> {
        let to = to.into().check(self, "copy", bytes)?;
        let from = from.into().check(self, "copy", bytes)?;
        if bytes == 0 || to == from {
            return Ok(());
        }
        if to.abs_diff(from) < bytes as u64 {
            return Err(Error::Misuse {
                call: "copy",
                detail: format!(
                    "the ranges overlap: {bytes} bytes at a distance of {}",
                    to.abs_diff(from)
                ),
            });
        }
        let _bound = self.bind()?;
        // SAFETY: both ranges lie within their memory, which is freed on this stream later at the soonest.
        let status = unsafe { (self.api.cuMemcpyDtoDAsync_v2)(to, from, bytes, self.stream()) };
        self.api.check("cuMemcpyDtoDAsync", status)
    }

    /// Sets `bytes` bytes to `value`; recorded in a capture.
    ///
    /// # Errors
    /// [`Error::Misuse`] beyond the end of the memory.
    pub fn fill<'a>(&self, to: impl Into<Place<'a>>, bytes: usize, value: u8) -> Result<()> {
        let to = to.into().check(self, "fill", bytes)?;
        if bytes == 0 {
            return Ok(());
        }
        let _bound = self.bind()?;
        // SAFETY: the range lies within the memory, which is freed on this stream later at the soonest.
        let status = unsafe { (self.api.cuMemsetD8Async)(to, value, bytes, self.stream()) };
        self.api.check("cuMemsetD8Async", status)
    }

    /// Launches a kernel on a row of `grid` blocks of `block` threads; recorded in a capture. `shared` is
    /// the dynamic shared memory of a block in bytes; `params` holds the address of each argument's value,
    /// which is read before the call returns.
    ///
    /// # Errors
    /// [`Error::Misuse`] for a wrong number of arguments or an empty grid; the driver's refusal.
    ///
    /// # Safety
    /// Each address must be that of a value of the kernel's argument type. What the kernel reads and writes
    /// must lie in memory of this context that lives until it is done (in a capture: until the graph is
    /// dropped), and in bounds.
    pub unsafe fn launch(
        &self,
        function: &Function,
        grid: u32,
        block: u32,
        shared: u32,
        params: &mut [*mut c_void],
    ) -> Result<()> {
        function.check_call(self, grid, block, params.len())?;
        let _bound = self.bind()?;
        count(&self.counters.launches);
        // SAFETY: the caller vouches for the arguments; their number was checked.
        let status = unsafe {
            (self.api.cuLaunchKernel)(
                function.handle(),
                grid,
                1,
                1,
                block,
                1,
                1,
                shared,
                self.stream(),
                params.as_mut_ptr(),
                std::ptr::null_mut(),
            )
        };
        if status == 0 {
            return Ok(());
        }
        self.api.check(
            &format!(
                "cuLaunchKernel({}, grid {grid}, block {block}, {shared} bytes shared)",
                function.name()
            ),
            status,
        )
    }

    /// Waits until all work queued so far is done.
    ///
    /// # Errors
    /// The failure of an earlier kernel; [`Error::Misuse`] in a capture.
    pub fn synchronize(&self) -> Result<()> {
        self.refuse_in_capture("synchronize")?;
        let _bound = self.bind()?;
        count(&self.counters.synchronizations);
        // SAFETY: the stream lives as long as `self`.
        let status = unsafe { (self.api.cuStreamSynchronize)(self.stream) };
        self.api.check("cuStreamSynchronize", status)
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        let api = self.api;
        if let Ok(_bound) = self.bind() {
            let recorder = *lock(&self.recorder);
            // SAFETY: nothing else refers to these handles any more; those never made are null.
            unsafe {
                if !self.stream.is_null() {
                    (api.cuStreamSynchronize)(self.stream);
                }
                drop(lock(&self.staging).take());
                for stream in [self.stream, recorder] {
                    if !stream.is_null() {
                        (api.cuStreamDestroy_v2)(stream);
                    }
                }
                if !self.pool.is_null() {
                    (api.cuMemPoolDestroy)(self.pool);
                }
            }
        }
        // SAFETY: retained in `new`.
        unsafe { (api.cuDevicePrimaryCtxRelease_v2)(self.device) };
    }
}

impl std::fmt::Debug for Context {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Context")
            .field("info", &self.info)
            .field("counts", &self.counts())
            .finish_non_exhaustive()
    }
}

/// A stream that does not wait for the default stream.
fn create_stream(api: &Api) -> Result<CUstream> {
    const NON_BLOCKING: u32 = 1;
    let mut stream = std::ptr::null_mut();
    // SAFETY: `stream` outlives the call.
    let status = unsafe { (api.cuStreamCreate)(&mut stream, NON_BLOCKING) };
    api.check("cuStreamCreate", status)?;
    Ok(stream)
}

/// A pool that keeps what is freed, so that allocating again costs no call to the operating system.
fn create_pool(api: &Api, device: CUdevice) -> Result<CUmemoryPool> {
    // SAFETY: the structure is plain data; zero is its documented default.
    let mut props: CUmemPoolProps = unsafe { std::mem::zeroed() };
    props.allocType = CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED;
    props.location.type_ = CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE;
    props.location.id = device;
    let mut pool = std::ptr::null_mut();
    let mut keep = u64::MAX;
    // SAFETY: every pointer outlives its call; the attribute's value is a 64-bit number.
    unsafe {
        api.check("cuMemPoolCreate", (api.cuMemPoolCreate)(&mut pool, &props))?;
        api.check(
            "cuMemPoolSetAttribute",
            (api.cuMemPoolSetAttribute)(
                pool,
                CUmemPool_attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD,
                std::ptr::from_mut(&mut keep).cast(),
            ),
        )?;
    }
    Ok(pool)
}
