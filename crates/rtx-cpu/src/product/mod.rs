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

/// Products with the result in registers, for the processor present.
#[derive(Clone, Copy)]
pub(crate) struct Tiled<T> {
    /// Columns of a packed matrix are rounded up to this.
    pub(crate) lanes: usize,
    /// Packs a matrix of k x n.
    pub(crate) pack: unsafe fn(usize, usize, Matrix<T>, *mut T),
    /// `to (m x n) = a (m x k) packed`.
    pub(crate) times: unsafe fn((usize, usize, usize), *mut T, Matrix<T>, *const T),
    /// `to (m x n) += a (m x k) b (k x n)`.
    add_times: unsafe fn((usize, usize, usize), *mut T, Matrix<T>, Matrix<T>, &mut Vec<T>),
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
            for j in 0..n {
                for i in 0..k {
                    space.push(
                        *matrix
                            .at
                            .offset(i as isize * matrix.row + j as isize * matrix.column),
                    );
                }
            }
            narrow::run(Narrow::Dots, rows, k, n, out, x, space.as_ptr());
        } else if k <= NARROW && k * n <= NARROW_ELEMENTS {
            space.clear();
            for i in 0..k {
                for j in 0..n {
                    space.push(
                        *matrix
                            .at
                            .offset(i as isize * matrix.row + j as isize * matrix.column),
                    );
                }
            }
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
                Some(tiled) => (tiled.add_times)((m, rows, n), acc, a, b, space),
                None => T::gemm(m, n, rows, acc, true, a, b),
            }
        }
    }
}
