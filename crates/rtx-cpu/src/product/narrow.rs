//! Products with one short side, by plain loops.

use super::Real;
use crate::level::{Level, level};

/// Loops for products with one short side.
#[derive(Clone, Copy)]
pub(super) enum Narrow {
    /// n short: `out[r, j] = x[r, ..] . w[j, ..]`
    Dots,
    /// k short: `out[r, ..] = sum_i x[r, i] w[i, ..]`
    Axpy,
    /// `out[j, ..] += sum_r y[r, j] x[r, ..]` with x of k columns and y of n
    Outer,
}

#[inline(always)]
unsafe fn narrow_body<T: Real>(
    kind: Narrow,
    rows: usize,
    k: usize,
    n: usize,
    out: *mut T,
    x: *const T,
    w: *const T,
) {
    const LANES: usize = 16;
    // SAFETY: passed on from the caller.
    unsafe {
        match kind {
            Narrow::Dots => {
                for r in 0..rows {
                    let row = x.add(r * k);
                    for j in 0..n {
                        let w = w.add(j * k);
                        let mut lanes = [T::ZERO; LANES];
                        let whole = k / LANES * LANES;
                        for i in (0..whole).step_by(LANES) {
                            for l in 0..LANES {
                                lanes[l] = T::fma(*row.add(i + l), *w.add(i + l), lanes[l]);
                            }
                        }
                        let mut sum = T::ZERO;
                        for l in lanes {
                            sum += l;
                        }
                        for i in whole..k {
                            sum = T::fma(*row.add(i), *w.add(i), sum);
                        }
                        *out.add(r * n + j) = sum;
                    }
                }
            }
            Narrow::Axpy => {
                for r in 0..rows {
                    let to = out.add(r * n);
                    for c in 0..n {
                        *to.add(c) = T::ZERO;
                    }
                    for i in 0..k {
                        let a = *x.add(r * k + i);
                        let w = w.add(i * n);
                        for c in 0..n {
                            *to.add(c) = T::fma(a, *w.add(c), *to.add(c));
                        }
                    }
                }
            }
            Narrow::Outer => {
                for j in 0..n {
                    let to = out.add(j * k);
                    for r in 0..rows {
                        let a = *w.add(r * n + j);
                        let row = x.add(r * k);
                        for c in 0..k {
                            *to.add(c) = T::fma(a, *row.add(c), *to.add(c));
                        }
                    }
                }
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512vl,fma")]
unsafe fn narrow_avx512<T: Real>(
    kind: Narrow,
    rows: usize,
    k: usize,
    n: usize,
    out: *mut T,
    x: *const T,
    w: *const T,
) {
    // SAFETY: passed on from the caller.
    unsafe { narrow_body(kind, rows, k, n, out, x, w) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
unsafe fn narrow_avx2<T: Real>(
    kind: Narrow,
    rows: usize,
    k: usize,
    n: usize,
    out: *mut T,
    x: *const T,
    w: *const T,
) {
    // SAFETY: passed on from the caller.
    unsafe { narrow_body(kind, rows, k, n, out, x, w) }
}

/// `out` by the loop `kind`; see [`Narrow`] for the extents.
///
/// # Safety
/// As [`Real::gemm`].
pub(super) unsafe fn run<T: Real>(
    kind: Narrow,
    rows: usize,
    k: usize,
    n: usize,
    out: *mut T,
    x: *const T,
    w: *const T,
) {
    // SAFETY: passed on from the caller; the instruction set was detected.
    unsafe {
        match level() {
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => narrow_avx512(kind, rows, k, n, out, x, w),
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => narrow_avx2(kind, rows, k, n, out, x, w),
            _ => narrow_body(kind, rows, k, n, out, x, w),
        }
    }
}
