//! Operations on whole arrays that no row kernel carries: loops over the element types themselves.
//!
//! A [`Task`] is made once per run, when the extents are known, and then repeated for every step without
//! allocating. Work is cut by sizes alone or into parts that do not meet, so results do not depend on the number of
//! threads.

mod argmax;
mod copy;
mod product;
mod scatter;
mod square;
#[cfg(test)]
mod tests;

use crate::buffer::{Bytes, read_f64, write_f64};
use crate::kernel::Pointers;
use argmax::ArgMax;
use copy::{Permute, clear, copy};
use product::Product;
use rayon::prelude::*;
use rtx_compiler::WholeKernel;
use rtx_ir::eval::{HostArray, eval_op};
use rtx_ir::{DType, Op, RandomKind};
use scatter::{Scatter, row_of};
use std::ops::Range;

/// Element type and extents of an operand or result.
#[derive(Clone)]
pub(crate) struct Layout {
    pub(crate) dtype: DType,
    pub(crate) dims: Vec<usize>,
}

impl Layout {
    fn elements(&self) -> usize {
        self.dims.iter().product()
    }

    fn bytes(&self) -> usize {
        self.elements() * self.dtype.size()
    }
}

/// Row-major strides.
fn strides(dims: &[usize]) -> Vec<usize> {
    let mut s = vec![1; dims.len()];
    for i in (0..dims.len().saturating_sub(1)).rev() {
        s[i] = s[i + 1] * dims[i + 1];
    }
    s
}

/// Bytes that are moved: operand, first byte in it, first byte in the result, number.
pub(crate) struct Move {
    operand: usize,
    from: usize,
    to: usize,
    bytes: usize,
}

/// An operation with its extents.
pub(crate) enum Task {
    /// Ranges of the operands, and zeros at the ranges that none of them fills.
    Moves(Vec<Move>, Vec<Range<usize>>),
    Permute(Permute),
    /// One row of a table, picked by one number.
    Row {
        index: DType,
        rows: usize,
        bytes: usize,
    },
    Scatter(Scatter),
    Product(Product),
    ArgMax(ArgMax),
    /// One random number.
    Random(RandomKind, DType),
    /// The reference rules, through copies in double precision: right for every operation, slow, and allocating.
    Reference(Op, Vec<Layout>, Layout),
}

impl Task {
    pub(crate) fn new(op: &Op, inputs: &[Layout], out: &Layout) -> Task {
        let all = |operand: usize| Move {
            operand,
            from: 0,
            to: 0,
            bytes: inputs[operand].bytes(),
        };
        // Bytes of one step along the leading axis.
        let row = out.dims.iter().skip(1).product::<usize>() * out.dtype.size();
        match op {
            Op::Reshape | Op::Identity { .. } => Task::Moves(vec![all(0)], Vec::new()),
            // Of a scalar; the others are row by row.
            Op::Broadcast(_) if out.dims.is_empty() => Task::Moves(vec![all(0)], Vec::new()),
            Op::Slice { axis: 0, start, .. } => {
                let part = Move {
                    from: start * row,
                    bytes: out.bytes(),
                    ..all(0)
                };
                Task::Moves(vec![part], Vec::new())
            }
            Op::Pad {
                axis: 0, before, ..
            } => {
                let to = before * row;
                let end = to + inputs[0].bytes();
                let zeros = vec![0..to, end..out.bytes()];
                Task::Moves(vec![Move { to, ..all(0) }], zeros)
            }
            Op::Concat(0) => {
                let mut to = 0;
                let parts = (0..inputs.len()).map(|k| {
                    to += inputs[k].bytes();
                    Move {
                        to: to - inputs[k].bytes(),
                        ..all(k)
                    }
                });
                Task::Moves(parts.collect(), Vec::new())
            }
            Op::Permute(order) => {
                Task::Permute(Permute::new(&inputs[0].dims, order, out.dtype.size()))
            }
            Op::Gather if inputs[1].elements() == 1 => Task::Row {
                index: inputs[1].dtype,
                rows: inputs[0].dims[0],
                bytes: out.bytes(),
            },
            Op::ScatterAdd => Task::Scatter(Scatter::new(inputs, out)),
            Op::Dot(d) => Task::Product(Product::new(d, inputs)),
            Op::ArgMax(axis) => Task::ArgMax(ArgMax::new(&inputs[0], *axis)),
            Op::Random(kind) if out.dims.is_empty() => Task::Random(*kind, out.dtype),
            _ => Task::Reference(op.clone(), inputs.to_vec(), out.clone()),
        }
    }

    /// Bytes of scratch for that many threads.
    pub(crate) fn scratch(&self, threads: usize) -> usize {
        match self {
            Task::Scatter(s) => s.scratch(),
            Task::Product(p) => p.scratch(threads),
            _ => 0,
        }
    }

    /// Runs the operation of `kernel`.
    ///
    /// # Safety
    /// The pointers lead to the arrays that the task was made for, and the scratch has room for [`Task::scratch`].
    pub(crate) unsafe fn run(&self, kernel: &WholeKernel, pointers: &Pointers, scratch: &Bytes) {
        let from = |k: usize| At(pointers.0[kernel.inputs[k]]);
        let out = At(pointers.0[kernel.output]);
        let scratch = At(scratch.ptr());
        // SAFETY: by the caller.
        unsafe {
            match self {
                Task::Moves(parts, zeros) => {
                    for z in zeros {
                        clear(out.add(z.start), z.len());
                    }
                    for p in parts {
                        copy(out.add(p.to), from(p.operand).add(p.from), p.bytes);
                    }
                }
                Task::Permute(p) => p.run(out, from(0)),
                Task::Row { index, rows, bytes } => {
                    let row = match index {
                        DType::I32 => row_of(*from(1).of::<i32>(), *rows),
                        _ => row_of(*from(1).of::<i64>(), *rows),
                    };
                    copy(out, from(0).add(row * bytes), *bytes);
                }
                Task::Scatter(s) => s.run(out, from(0), from(1), scratch),
                Task::Product(p) => p.run(out, from(0), from(1), scratch),
                Task::ArgMax(a) => a.run(out, from(0)),
                Task::Random(kind, dtype) => {
                    let key = *from(0).of::<i64>() as u64;
                    let v = rtx_ir::random::sample(*kind, key, 0, *dtype == DType::F32);
                    write_f64(out.0, *dtype, &[v]);
                }
                Task::Reference(op, inputs, layout) => {
                    let host = |(k, a): (usize, &Layout)| HostArray {
                        dtype: a.dtype,
                        dims: a.dims.clone(),
                        data: read_f64(from(k).0, a.dtype, a.elements()),
                    };
                    let host: Vec<HostArray> = inputs.iter().enumerate().map(host).collect();
                    let refs: Vec<&HostArray> = host.iter().collect();
                    let value = eval_op(op, &refs, layout.dtype, &layout.dims);
                    write_f64(out.0, layout.dtype, &value.data);
                }
            }
        }
    }
}

/// An address that threads share; each writes its own part.
#[derive(Clone, Copy)]
struct At(*mut u8);

// SAFETY: the loops of this module write disjoint parts from different threads.
unsafe impl Send for At {}
unsafe impl Sync for At {}

impl At {
    /// # Safety
    /// Stays inside the array.
    unsafe fn add(self, bytes: usize) -> At {
        // SAFETY: by the caller.
        At(unsafe { self.0.add(bytes) })
    }

    /// As elements.
    fn of<T>(self) -> *mut T {
        self.0.cast()
    }
}

/// Work (bytes moved, or multiplications) below this stays on one thread.
const PARALLEL_WORK: usize = 1 << 17;

/// Calls `f` with ranges that make up `0..n`, in parallel where the work is worth it.
fn in_ranges(n: usize, work: usize, f: impl Fn(Range<usize>) + Sync) {
    let threads = rayon::current_num_threads();
    if threads == 1 || work < PARALLEL_WORK || n < 2 {
        f(0..n);
        return;
    }
    // More parts than threads, for threads that are held up.
    let parts = n.min(4 * threads);
    (0..parts)
        .into_par_iter()
        .with_max_len(1)
        .for_each(|p| f(p * n / parts..(p + 1) * n / parts));
}
