//! Matrix products of a block of rows.
//!
//! Products with one short side are plain loops ([`narrow`]); the others hold their result in registers ([`tile`]),
//! for x86 processors with AVX2 or AVX-512. What is left, products of whole arrays and other processors, goes to the
//! `gemm` crates, which serve large matrices well: on blocks of some hundred rows of 128 they reached half of what
//! registers allow, and packed the matrix anew for every block.

mod narrow;
#[cfg(target_arch = "x86_64")]
mod simd;
#[cfg(target_arch = "x86_64")]
mod tile;

use crate::level::{Level, level};
use narrow::Narrow;

/// A matrix in memory: first element and distances of neighbours along rows and columns.
#[derive(Clone, Copy)]
pub(crate) struct Matrix<T> {
    pub(crate) at: *const T,
    pub(crate) row: isize,
    pub(crate) column: isize,
}

impl<T> Matrix<T> {
    /// The part from (row, column) on.
    ///
    /// # Safety
    /// It is inside the matrix.
    #[inline(always)]
    unsafe fn offset(self, row: usize, column: usize) -> Self {
        // SAFETY: by the caller.
        let at = unsafe {
            self.at
                .offset(row as isize * self.row + column as isize * self.column)
        };
        Matrix { at, ..self }
    }
}

/// Extents of a product of m x k and k x n.
#[derive(Clone, Copy)]
pub(crate) struct Extents {
    pub(crate) m: usize,
    pub(crate) k: usize,
    pub(crate) n: usize,
}

/// `to (m x n) += a (m x k) b (k x n)`, with space for a packed piece of b.
type AddTimes<T> = unsafe fn(Extents, *mut T, Matrix<T>, Matrix<T>, &mut Vec<T>);

/// Products with the result in registers, for the processor present.
#[derive(Clone, Copy)]
pub(crate) struct Tiled<T> {
    /// Columns of a packed matrix are rounded up to this.
    pub(crate) lanes: usize,
    /// Packs a matrix of k x n.
    pub(crate) pack: unsafe fn(usize, usize, Matrix<T>, *mut T),
    /// `to (m x n) = a (m x k) packed`.
    pub(crate) times: unsafe fn(Extents, *mut T, Matrix<T>, *const T),
    add_times: AddTimes<T>,
}

/// Element types that have products.
pub(crate) trait Real:
    Copy + std::ops::Mul<Output = Self> + std::ops::AddAssign + 'static
{
    const ZERO: Self;
    /// `to (m x n, row-major) = [to +] a (m x k) b (k x n)`.
    ///
    /// # Safety
    /// All elements are in memory that may be read, and `to` in memory that may be written.
    unsafe fn gemm(
        m: usize,
        n: usize,
        k: usize,
        to: *mut Self,
        add: bool,
        a: Matrix<Self>,
        b: Matrix<Self>,
    );
    /// a b + c
    fn fma(a: Self, b: Self, c: Self) -> Self;
    /// None where only the general product is there.
    fn tiled() -> Option<Tiled<Self>>;
}

macro_rules! real {
    ($t:ty, $module:path, $avx512:ident, $avx2:ident) => {
        impl Real for $t {
            const ZERO: Self = 0.0;
            unsafe fn gemm(
                m: usize,
                n: usize,
                k: usize,
                to: *mut Self,
                add: bool,
                a: Matrix<Self>,
                b: Matrix<Self>,
            ) {
                use $module as backend;
                // SAFETY: passed on from the caller.
                unsafe {
                    (backend::get_gemm_fn())(
                        m,
                        n,
                        k,
                        to,
                        1,
                        n as isize,
                        add,
                        a.at,
                        a.column,
                        a.row,
                        b.at,
                        b.column,
                        b.row,
                        1.0,
                        1.0,
                        false,
                        false,
                        false,
                        gemm_common::Parallelism::None,
                    );
                }
            }
            #[inline(always)]
            fn fma(a: Self, b: Self, c: Self) -> Self {
                a.mul_add(b, c)
            }
            fn tiled() -> Option<Tiled<Self>> {
                match level() {
                    #[cfg(target_arch = "x86_64")]
                    Level::Avx512 => Some(tile::avx512::tiled::<simd::x86::$avx512>()),
                    #[cfg(target_arch = "x86_64")]
                    Level::Avx2 => Some(tile::avx2::tiled::<simd::x86::$avx2>()),
                    _ => None,
                }
            }
        }
    };
}
real!(f32, gemm_f32::gemm::f32, Avx512F32, Avx2F32);
real!(f64, gemm_f64::gemm::f64, Avx512F64, Avx2F64);

/// Widest side that the loops below beat the general product on.
const NARROW: usize = 8;
/// Elements of the stack copy of a narrow matrix.
const NARROW_ELEMENTS: usize = 4096;

/// True if products of tiles with a `k x n` matrix take it packed.
pub(crate) fn takes_packed<T: Real>(k: usize, n: usize) -> bool {
    let short = k.min(n) <= NARROW && k * n <= NARROW_ELEMENTS;
    !short && T::tiled().is_some()
}

/// `out (rows x n) = x (rows x k) * matrix (k x n)`.
///
/// # Safety
/// As [`Real::gemm`].
pub(crate) unsafe fn times_matrix<T: Real>(
    rows: usize,
    k: usize,
    n: usize,
    out: *mut T,
    x: *const T,
    matrix: Matrix<T>,
    space: &mut Vec<T>,
) {
    // SAFETY: passed on from the caller; the narrow copies hold k * n elements.
    unsafe {
        if n <= NARROW && k * n <= NARROW_ELEMENTS {
            // Columns of the matrix side by side, then one dot product per row and column.
            space.clear();
            space.extend((0..k * n).map(|e| *matrix.offset(e % k, e / k).at));
            narrow::run(Narrow::Dots, rows, k, n, out, x, space.as_ptr());
        } else if k <= NARROW && k * n <= NARROW_ELEMENTS {
            space.clear();
            space.extend((0..k * n).map(|e| *matrix.offset(e / n, e % n).at));
            narrow::run(Narrow::Axpy, rows, k, n, out, x, space.as_ptr());
        } else {
            T::gemm(
                rows,
                n,
                k,
                out,
                false,
                Matrix {
                    at: x,
                    row: k as isize,
                    column: 1,
                },
                matrix,
            );
        }
    }
}

/// `acc (m x n) += x^T (m x rows) * y (rows x n)`.
///
/// # Safety
/// As [`Real::gemm`].
pub(crate) unsafe fn add_transposed<T: Real>(
    rows: usize,
    m: usize,
    n: usize,
    acc: *mut T,
    x: *const T,
    y: *const T,
    space: &mut Vec<T>,
) {
    // SAFETY: passed on from the caller; the narrow copy holds m * n elements.
    unsafe {
        if n <= NARROW && m * n <= NARROW_ELEMENTS {
            // The sum is kept transposed (n x m), so that the long side is contiguous.
            space.clear();
            space.resize(m * n, T::ZERO);
            narrow::run(Narrow::Outer, rows, m, n, space.as_mut_ptr(), x, y);
            for j in 0..n {
                for i in 0..m {
                    *acc.add(i * n + j) += space[j * m + i];
                }
            }
        } else if m <= NARROW && m * n <= NARROW_ELEMENTS {
            narrow::run(Narrow::Outer, rows, n, m, acc, y, x);
        } else {
            let a = Matrix {
                at: x,
                row: 1,
                column: m as isize,
            };
            let b = Matrix {
                at: y,
                row: n as isize,
                column: 1,
            };
            match T::tiled() {
                Some(tiled) => {
                    let extents = Extents { m, k: rows, n };
                    (tiled.add_times)(extents, acc, a, b, space)
                }
                None => T::gemm(m, n, rows, acc, true, a, b),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers in -1..1 without a pattern that a wrong index could hide in.
    fn numbers(n: usize, seed: u64) -> Vec<f64> {
        (0..n as u64)
            .map(|k| {
                let x = (k + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15)
                    ^ seed.wrapping_mul(0xD1B5_4A32_D192_ED03);
                (x.wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 11) as f64 / (1u64 << 52) as f64 - 1.0
            })
            .collect()
    }

    fn product(
        m: usize,
        k: usize,
        n: usize,
        a: impl Fn(usize, usize) -> f64,
        b: impl Fn(usize, usize) -> f64,
    ) -> Vec<f64> {
        let sum = |i: usize, j: usize| (0..k).map(|p| a(i, p) * b(p, j)).sum();
        (0..m * n).map(|e| sum(e / n, e % n)).collect()
    }

    fn check<T: Real + Into<f64>>(tiled: Tiled<T>, of: fn(f64) -> T, tolerance: f64) {
        let sizes = [
            (1, 9, 9),
            (7, 128, 128),
            (50, 130, 70),
            (13, 257, 100),
            (6, 64, 64),
            (23, 33, 15),
            (5, 20, 300),
        ];
        for (m, k, n) in sizes {
            let (a, b) = (numbers(m * k, 1), numbers(k * n, 2));
            let (x, y): (Vec<T>, Vec<T>) = (
                a.iter().map(|&v| of(v)).collect(),
                b.iter().map(|&v| of(v)).collect(),
            );
            let close = |what: &str, found: &[T], wanted: &[f64]| {
                for (e, (&f, w)) in found.iter().zip(wanted).enumerate() {
                    let f: f64 = f.into();
                    assert!(
                        (f - w).abs() <= tolerance * k as f64,
                        "{what} {m} x {k} x {n}, element {e}: {f}, not {w}"
                    );
                }
            };
            // The matrix as it lies, and transposed.
            for transposed in [false, true] {
                let at = |p: usize, j: usize| if transposed { j * k + p } else { p * n + j };
                let (row, column) = if transposed {
                    (1, k as isize)
                } else {
                    (n as isize, 1)
                };
                let mut packed = vec![of(f64::NAN); k * n.next_multiple_of(tiled.lanes)];
                let mut out = vec![of(f64::NAN); m * n];
                // SAFETY: the sizes are those of the arrays.
                unsafe {
                    (tiled.pack)(
                        k,
                        n,
                        Matrix {
                            at: y.as_ptr(),
                            row,
                            column,
                        },
                        packed.as_mut_ptr(),
                    );
                    let a = Matrix {
                        at: x.as_ptr(),
                        row: k as isize,
                        column: 1,
                    };
                    (tiled.times)(Extents { m, k, n }, out.as_mut_ptr(), a, packed.as_ptr());
                }
                close(
                    "times",
                    &out,
                    &product(m, k, n, |i, p| a[i * k + p], |p, j| b[at(p, j)]),
                );
            }
            // x^T y on top of what is there; x is (k x m) here.
            let start = numbers(m * n, 3);
            let mut out: Vec<T> = start.iter().map(|&v| of(v)).collect();
            // SAFETY: as above.
            unsafe {
                let a = Matrix {
                    at: x.as_ptr(),
                    row: 1,
                    column: m as isize,
                };
                let b = Matrix {
                    at: y.as_ptr(),
                    row: n as isize,
                    column: 1,
                };
                (tiled.add_times)(Extents { m, k, n }, out.as_mut_ptr(), a, b, &mut Vec::new());
            }
            let mut wanted = product(m, k, n, |i, p| a[p * m + i], |p, j| b[p * n + j]);
            wanted.iter_mut().zip(&start).for_each(|(w, s)| *w += s);
            close("add_times", &out, &wanted);
        }
    }

    #[test]
    fn tiles_match_sums_in_double_precision_on_every_instruction_set() {
        #[cfg(target_arch = "x86_64")]
        {
            use simd::x86::{Avx2F32, Avx2F64, Avx512F32, Avx512F64};
            if matches!(level(), Level::Avx512) {
                check(tile::avx512::tiled::<Avx512F32>(), |v| v as f32, 3e-7);
                check(tile::avx512::tiled::<Avx512F64>(), |v| v, 1e-15);
            }
            if matches!(level(), Level::Avx512 | Level::Avx2) {
                check(tile::avx2::tiled::<Avx2F32>(), |v| v as f32, 3e-7);
                check(tile::avx2::tiled::<Avx2F64>(), |v| v, 1e-15);
            }
        }
    }
}
