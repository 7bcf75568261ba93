//! Memory that a run needs beside its inputs and outputs, kept between runs.

use crate::buffer::Bytes;
use crate::elementwise::Loop;
use crate::kernel::{CHUNK, Prepared};
use rtx_compiler::{Operand, Step};
use rtx_ir::Value;
use std::cell::UnsafeCell;

/// Scratch of one thread.
pub(crate) struct ThreadScratch {
    /// Tiles of the block at hand.
    pub(crate) tiles: Bytes,
    /// Registers of the elementwise block at hand.
    pub(crate) registers: Bytes,
    /// Rows and scalars repeated to a whole chunk.
    pub(crate) repeated: Bytes,
    /// Run and kernel that `repeated` belongs to.
    pub(crate) repeated_for: (u64, usize),
    pub(crate) narrow32: Vec<f32>,
    pub(crate) narrow64: Vec<f64>,
}

impl ThreadScratch {
    fn new() -> Self {
        ThreadScratch {
            tiles: Bytes::new(0),
            registers: Bytes::new(0),
            repeated: Bytes::new(0),
            repeated_for: (0, usize::MAX),
            narrow32: Vec::with_capacity(4096),
            narrow64: Vec::with_capacity(4096),
        }
    }
}

/// One scratch per thread of the pool; a thread only touches its own.
pub(crate) struct PerThread(Vec<UnsafeCell<ThreadScratch>>);

// SAFETY: `get` hands out the cell of the calling thread alone.
unsafe impl Sync for PerThread {}
unsafe impl Send for PerThread {}

impl PerThread {
    pub(crate) fn new(threads: usize) -> Self {
        PerThread(
            (0..threads.max(1))
                .map(|_| UnsafeCell::new(ThreadScratch::new()))
                .collect(),
        )
    }

    /// Scratch of the calling thread of the pool.
    #[allow(clippy::mut_from_ref)]
    pub(crate) fn get(&self) -> &mut ThreadScratch {
        let k = rayon::current_thread_index()
            .unwrap_or(0)
            .min(self.0.len() - 1);
        // SAFETY: the workspace serves one run, and each pool thread has its own index.
        unsafe { &mut *self.0[k].get() }
    }

    fn ensure(&mut self, kernel: &Prepared) {
        for cell in &mut self.0 {
            let s = cell.get_mut();
            s.tiles
                .ensure(kernel.block_rows * kernel.kernel.scratch_per_row + 64);
            s.registers.ensure((kernel.registers + 3) * CHUNK * 8);
            s.repeated.ensure(kernel.repeated.len() * CHUNK * 8);
        }
    }
}

/// Memory of one run at a time.
pub(crate) struct Workspace {
    /// One entry per buffer; empty for inputs, outputs and views.
    pub(crate) buffers: Vec<Bytes>,
    /// Accumulators of the groups of the kernel at hand.
    pub(crate) accumulators: Bytes,
    /// Packed matrices of the kernel at hand.
    pub(crate) packed: Bytes,
    /// Scratch of the operation on whole arrays at hand.
    pub(crate) whole: Bytes,
    pub(crate) threads: PerThread,
    pub(crate) run: u64,
    /// Arrays of the state that the last run left.
    pub(crate) spare: Vec<Value>,
}

impl Workspace {
    pub(crate) fn new(buffers: usize, threads: usize) -> Self {
        Workspace {
            buffers: (0..buffers).map(|_| Bytes::new(0)).collect(),
            accumulators: Bytes::new(0),
            packed: Bytes::new(0),
            whole: Bytes::new(0),
            threads: PerThread::new(threads),
            run: 0,
            spare: Vec::new(),
        }
    }

    /// Makes room for a kernel on that many groups of rows.
    pub(crate) fn ensure(&mut self, kernel: &Prepared, groups: usize) {
        self.threads.ensure(kernel);
        self.accumulators.ensure(groups * kernel.accumulator_bytes);
        self.packed.ensure(kernel.packed.bytes);
    }
}

/// Operands of a kernel that are repeated to a chunk: rows with their width, scalars.
pub(crate) fn repeated_operands(steps: &[Step]) -> Vec<(Operand, usize)> {
    let mut all: Vec<(Operand, usize)> = Vec::new();
    for s in steps {
        let Step::Elementwise(b) = s else { continue };
        for o in b.operations.iter().flat_map(|o| &o.from) {
            let key = match o {
                Operand::Scalar(_) => (*o, 0),
                Operand::Row(_) if b.columns <= CHUNK => (*o, b.columns),
                _ => continue,
            };
            if !all.contains(&key) {
                all.push(key);
            }
        }
    }
    all
}

/// A loop that does nothing, for combinations that the verifier has excluded.
pub(crate) unsafe fn no_loop(_: *mut u8, _: *const u8, _: *const u8, _: *const u8, _: usize) {}

/// Keeps the type visible to the prepared kernels.
pub(crate) type Loops = Vec<Loop>;
