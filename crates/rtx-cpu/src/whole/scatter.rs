//! Sums of updates into rows of a table: the gradient of a gather.
//!
//! Each row sums its updates in the order of the indices. Where the table is small beside the updates, groups of updates
//! (a number that follows from the sizes alone) have tables of their own, which are added in order.

use super::{At, Layout, PARALLEL_WORK, clear, in_ranges};
use crate::number::{Number, with_numeric};
use rayon::prelude::*;
use rtx_ir::DType;
use std::ops::Range;

/// Most groups of updates.
const GROUPS: usize = 16;
/// Elements of the tables that are added up at once.
const PIECE: usize = 2048;
/// Elements of a row from which on it is worth looking through all indices in every thread.
const WIDE: usize = 8;
/// Updates that a thread lists at once.
const LISTED: usize = 512;

/// A sum into rows.
pub(crate) struct Scatter {
    dtype: DType,
    index: DType,
    updates: usize,
    rows: usize,
    /// Elements of a row.
    width: usize,
    groups: usize,
}

/// An integer that names a row.
pub(super) trait Index: Copy + Send + Sync {
    fn to_i64(self) -> i64;
}
impl Index for i32 {
    fn to_i64(self) -> i64 {
        i64::from(self)
    }
}
impl Index for i64 {
    fn to_i64(self) -> i64 {
        self
    }
}

/// The row that an index names; those outside name the first or last.
#[inline(always)]
pub(super) fn row_of<I: Index>(i: I, rows: usize) -> usize {
    i.to_i64().clamp(0, rows.saturating_sub(1) as i64) as usize
}

impl Scatter {
    pub(super) fn new(inputs: &[Layout], out: &Layout) -> Self {
        let (updates, rows) = (inputs[1].elements(), out.dims[0]);
        let width: usize = out.dims[1..].iter().product();
        let groups = if updates * width < PARALLEL_WORK {
            1
        } else {
            // Adding the tables up costs a quarter of the updates at most.
            (updates / (4 * rows.max(1))).clamp(1, GROUPS)
        };
        Scatter {
            dtype: out.dtype,
            index: inputs[1].dtype,
            updates,
            rows,
            width,
            groups,
        }
    }

    /// Bytes of the tables of all groups but the first, which has the result's.
    pub(super) fn scratch(&self) -> usize {
        (self.groups - 1) * self.table()
    }

    fn table(&self) -> usize {
        self.rows * self.width * self.dtype.size()
    }

    /// # Safety
    /// The arrays are in memory of their sizes.
    pub(super) unsafe fn run(&self, out: At, values: At, index: At, scratch: At) {
        if self.table() == 0 {
            return;
        }
        // SAFETY: by the caller.
        unsafe {
            with_numeric!(self.dtype, T => match self.index {
                DType::I32 => self.typed::<T, i32>(out, values, index, scratch),
                _ => self.typed::<T, i64>(out, values, index, scratch),
            });
        }
    }

    unsafe fn typed<T: Number, I: Index>(&self, out: At, values: At, index: At, scratch: At) {
        let (updates, groups) = (self.updates, self.groups);
        // SAFETY: groups and ranges of rows are disjoint parts of tables of `rows * width` elements.
        unsafe {
            if groups > 1 {
                let table = |g: usize| match g {
                    0 => out,
                    _ => scratch.add((g - 1) * self.table()),
                };
                (0..groups).into_par_iter().with_max_len(1).for_each(|g| {
                    let of = g * updates / groups..(g + 1) * updates / groups;
                    std::ptr::write_bytes(table(g).0, 0, self.table());
                    self.add::<T, I>(table(g), values, index, of);
                });
                let elements = self.rows * self.width;
                in_ranges(elements.div_ceil(PIECE), elements * groups, |r| {
                    for start in r.map(|p| p * PIECE) {
                        let n = PIECE.min(elements - start);
                        let to = out.of::<T>().add(start);
                        for g in 1..groups {
                            add_row(to, table(g).of::<T>().add(start), n);
                        }
                    }
                });
                return;
            }
            let threads = rayon::current_num_threads().min(GROUPS);
            if threads > 1 && self.width >= WIDE && updates * self.width >= PARALLEL_WORK {
                (0..threads).into_par_iter().with_max_len(1).for_each(|p| {
                    let rows = p * self.rows / threads..(p + 1) * self.rows / threads;
                    let first = out.add(rows.start * self.width * size_of::<T>());
                    std::ptr::write_bytes(first.0, 0, rows.len() * self.width * size_of::<T>());
                    self.add_some::<T, I>(out, values, index, rows);
                });
                return;
            }
            clear(out, self.table());
            self.add::<T, I>(out, values, index, 0..updates);
        }
    }

    /// Adds a range of updates.
    unsafe fn add<T: Number, I: Index>(&self, to: At, values: At, index: At, of: Range<usize>) {
        let (rows, width) = (self.rows, self.width);
        let (to, values, index) = (to.of::<T>(), values.of::<T>(), index.of::<I>());
        // SAFETY: by the caller; rows are clamped to the table.
        unsafe {
            if width == 1 {
                for k in of {
                    let sum = to.add(row_of(*index.add(k), rows));
                    *sum = (*sum).sum(*values.add(k));
                }
            } else {
                for k in of {
                    let row = row_of(*index.add(k), rows);
                    add_row(to.add(row * width), values.add(k * width), width);
                }
            }
        }
    }

    /// Adds all updates of a range of rows. They are listed first, as whether an index is in the range is hard to predict.
    unsafe fn add_some<T: Number, I: Index>(
        &self,
        to: At,
        values: At,
        index: At,
        of: Range<usize>,
    ) {
        let width = self.width;
        let (to, values, index) = (to.of::<T>(), values.of::<T>(), index.of::<I>());
        let mut list = [0u32; LISTED];
        for start in (0..self.updates).step_by(LISTED) {
            let mut listed = 0;
            for k in 0..LISTED.min(self.updates - start) {
                // SAFETY: by the caller.
                let row = row_of(unsafe { *index.add(start + k) }, self.rows);
                // `listed` is at most k.
                list[listed % LISTED] = k as u32;
                listed += usize::from(row.wrapping_sub(of.start) < of.len());
            }
            for k in list[..listed].iter().map(|&k| start + k as usize) {
                // SAFETY: by the caller; rows are clamped to the table.
                unsafe {
                    let row = row_of(*index.add(k), self.rows);
                    if width == 1 {
                        let sum = to.add(row);
                        *sum = (*sum).sum(*values.add(k));
                    } else {
                        add_row(to.add(row * width), values.add(k * width), width);
                    }
                }
            }
        }
    }
}

#[inline(always)]
unsafe fn add_row<T: Number>(to: *mut T, values: *const T, width: usize) {
    // SAFETY: by the caller: both have `width` elements.
    let (to, values) = unsafe {
        (
            std::slice::from_raw_parts_mut(to, width),
            std::slice::from_raw_parts(values, width),
        )
    };
    for (t, v) in to.iter_mut().zip(values) {
        *t = t.sum(*v);
    }
}
