//! Index of the first largest element along an axis.

use super::{At, Layout, in_ranges};
use crate::number::{Number, with_numeric};
use rtx_ir::DType;

/// Columns searched at once, with their best elements in registers.
const COLUMNS: usize = 16;

/// Extents before, of, and after the axis.
pub(crate) struct ArgMax {
    dtype: DType,
    outer: usize,
    n: usize,
    inner: usize,
}

impl ArgMax {
    pub(super) fn new(x: &Layout, axis: usize) -> Self {
        ArgMax {
            dtype: x.dtype,
            outer: x.dims[..axis].iter().product(),
            n: x.dims[axis],
            inner: x.dims[axis + 1..].iter().product(),
        }
    }

    /// # Safety
    /// The arrays are in memory of their sizes; the result has `i64`.
    pub(super) unsafe fn run(&self, out: At, from: At) {
        let pieces = self.inner.div_ceil(COLUMNS);
        let elements = self.outer * self.n * self.inner;
        in_ranges(self.outer * pieces, elements * self.dtype.size(), |range| {
            for k in range {
                let (o, first) = (k / pieces, k % pieces * COLUMNS);
                let width = COLUMNS.min(self.inner - first);
                // SAFETY: columns first..first + width of block o are inside both arrays.
                unsafe {
                    let to = out.of::<i64>().add(o * self.inner + first);
                    with_numeric!(self.dtype, T => {
                        let x = from.of::<T>().add(o * self.n * self.inner + first);
                        match width {
                            1 => self.columns(to, x, 1),
                            COLUMNS => self.columns(to, x, COLUMNS),
                            _ => self.columns(to, x, width),
                        }
                    });
                }
            }
        });
    }

    /// A NaN exceeds nothing and nothing exceeds it; an empty axis gives 0.
    #[inline(always)]
    unsafe fn columns<T: Number>(&self, to: *mut i64, x: *const T, width: usize) {
        let (mut best, mut at) = ([T::ZERO; COLUMNS], [0; COLUMNS]);
        // SAFETY: by the caller.
        unsafe {
            for k in 0..self.n {
                let row = x.add(k * self.inner);
                for c in 0..width {
                    let v = *row.add(c);
                    let better = k == 0 || v > best[c];
                    best[c] = if better { v } else { best[c] };
                    at[c] = if better { k as i64 } else { at[c] };
                }
            }
            std::ptr::copy_nonoverlapping(at.as_ptr(), to, width);
        }
    }
}
