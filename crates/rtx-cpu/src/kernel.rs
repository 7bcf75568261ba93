//! Execution of row kernels.

mod block;
mod packed;
mod rows;

use crate::elementwise::loop_of;
use crate::workspace::{Loops, Workspace, no_loop, repeated_operands};
use packed::Packed;
use rayon::prelude::*;
use rtx_compiler::{Operand, Program, RowKernel, Step};
use rtx_ir::ReduceKind;

/// Elements of an elementwise register: a few kilobytes, so that a block's registers stay in the first-level cache.
pub(crate) const CHUNK: usize = 512;
/// Bytes of scratch for one block of rows: most of a second-level cache of 2 MiB, beside the packed matrix at hand.
/// Between 0.8 and 5 MiB the step of workload B took the same time within the noise of the machine.
const SCRATCH_BUDGET: usize = 3 << 19;
/// Work below this many operations stays on one thread.
const PARALLEL_WORK: f64 = 60_000.0;

/// Pointers to the buffers of a run.
#[derive(Clone)]
pub(crate) struct Pointers(pub(crate) Vec<*mut u8>);

// SAFETY: kernels write disjoint rows or accumulators of a buffer from different threads.
unsafe impl Send for Pointers {}
unsafe impl Sync for Pointers {}

/// A row kernel with its loops chosen and its sizes fixed.
pub(crate) struct Prepared {
    pub(crate) kernel: RowKernel,
    /// Loops of each elementwise step.
    pub(crate) loops: Vec<Loops>,
    /// Most rows of a block.
    pub(crate) block_rows: usize,
    /// Registers of the largest elementwise step.
    pub(crate) registers: usize,
    /// Operands repeated to a chunk, with the width of their rows.
    pub(crate) repeated: Vec<(Operand, usize)>,
    /// Offset of each accumulator in the memory of a group.
    pub(crate) accumulator_at: Vec<usize>,
    pub(crate) accumulator_bytes: usize,
    /// Matrices of the products.
    pub(crate) packed: Packed,
    /// Rows of each table that a gather reads.
    pub(crate) tables: Vec<(usize, usize)>,
    /// Number of the kernel in its program.
    pub(crate) number: usize,
}

impl Prepared {
    pub(crate) fn new(kernel: RowKernel, number: usize, program: &Program) -> Self {
        let loops = kernel
            .steps
            .iter()
            .map(|s| match s {
                Step::Elementwise(b) => b
                    .operations
                    .iter()
                    .map(|o| loop_of(o.primitive, o.dtype, o.out_dtype).unwrap_or(no_loop))
                    .collect(),
                _ => Vec::new(),
            })
            .collect();
        let registers = kernel
            .steps
            .iter()
            .map(|s| {
                if let Step::Elementwise(b) = s {
                    b.registers
                } else {
                    0
                }
            })
            .max()
            .unwrap_or(0);
        let block_rows = match kernel.scratch_per_row {
            0 => 1 << 14,
            n => (SCRATCH_BUDGET / n).clamp(8, 4096) / 8 * 8,
        };
        let mut accumulator_at = Vec::new();
        let mut at = 0;
        for a in &kernel.accumulators {
            accumulator_at.push(at);
            at += (a.elements * a.dtype.size()).next_multiple_of(64);
        }
        let repeated = repeated_operands(&kernel.steps);
        let packed = Packed::new(&kernel);
        let tables = kernel
            .steps
            .iter()
            .filter_map(|s| match s {
                Step::Gather { table, .. } => Some((
                    *table,
                    program.buffers[*table]
                        .shape
                        .dims()
                        .first()
                        .and_then(|d| d.fixed())
                        .unwrap_or(0),
                )),
                _ => None,
            })
            .collect();
        Prepared {
            kernel,
            loops,
            block_rows,
            registers,
            repeated,
            accumulator_at,
            accumulator_bytes: at,
            packed,
            tables,
            number,
        }
    }

    /// Groups of rows: a function of the kernel and the number of rows, never of the machine's threads.
    pub(crate) fn groups(&self, rows: usize) -> usize {
        let work = rows as f64 * self.kernel.flops_per_row.max(1.0);
        if work < PARALLEL_WORK {
            return 1;
        }
        let most = match rows {
            0..=512 => 4,
            513..=4096 => 8,
            _ => 16,
        };
        most.min(rows.div_ceil(8)).max(1)
    }
}

/// Runs a row kernel on all rows.
///
/// # Safety
/// The pointers lead to buffers of the sizes that the program states for this number of rows.
pub(crate) unsafe fn run(p: &Prepared, rows: usize, pointers: &Pointers, w: &Workspace) {
    let groups = p.groups(rows);
    // SAFETY: the workspace was sized for this kernel.
    unsafe { p.packed.pack(pointers, w.packed.ptr(), groups > 1) };
    let direct = groups == 1;
    let group = |g: usize| {
        let (start, end) = (g * rows / groups, (g + 1) * rows / groups);
        // SAFETY: groups are disjoint ranges of rows with their own accumulators.
        unsafe { rows::run_group(p, g, start, end, direct, pointers, w) };
    };
    if groups == 1 {
        group(0);
        return;
    }
    (0..groups).into_par_iter().with_max_len(1).for_each(group);
    let total = p.accumulator_bytes;
    let base = w.accumulators.ptr() as usize;
    p.kernel
        .accumulators
        .par_iter()
        .zip(&p.accumulator_at)
        .with_max_len(1)
        .for_each(|(a, at)| {
            // SAFETY: each accumulator has its own buffer and its own part of the groups' memory.
            unsafe {
                rows::combine(
                    a,
                    pointers.0[a.buffer],
                    (base + at) as *const u8,
                    groups,
                    total,
                )
            };
        });
}

/// Neutral element of a reduction.
pub(crate) fn neutral(kind: ReduceKind) -> f64 {
    match kind {
        ReduceKind::Sum => 0.0,
        ReduceKind::Prod => 1.0,
        ReduceKind::Max => f64::NEG_INFINITY,
        ReduceKind::Min => f64::INFINITY,
    }
}
