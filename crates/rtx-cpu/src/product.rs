//! Matrix products of a block of rows.

/// A matrix in memory: first element and distances of neighbours along rows and columns.
#[derive(Clone, Copy)]
pub(crate) struct Matrix<T> {
    pub(crate) at: *const T,
    pub(crate) row: isize,
    pub(crate) column: isize,
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
}

macro_rules! real {
    ($t:ty, $module:path) => {
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
        }
    };
}
real!(f32, gemm_f32::gemm::f32);
real!(f64, gemm_f64::gemm::f64);

/// Widest side that the loops below beat the general product on.
const NARROW: usize = 8;
/// Elements of the stack copy of a narrow matrix.
const NARROW_ELEMENTS: usize = 4096;

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
    narrow: &mut Vec<T>,
) {
    // SAFETY: passed on from the caller; the narrow copies hold k * n elements.
    unsafe {
        if n <= NARROW && k * n <= NARROW_ELEMENTS {
            // Columns of the matrix side by side, then one dot product per row and column.
            narrow.clear();
            for j in 0..n {
                for i in 0..k {
                    narrow.push(
                        *matrix
                            .at
                            .offset(i as isize * matrix.row + j as isize * matrix.column),
                    );
                }
            }
            run(Narrow::Dots, rows, k, n, out, x, narrow.as_ptr());
        } else if k <= NARROW && k * n <= NARROW_ELEMENTS {
            narrow.clear();
            for i in 0..k {
                for j in 0..n {
                    narrow.push(
                        *matrix
                            .at
                            .offset(i as isize * matrix.row + j as isize * matrix.column),
                    );
                }
            }
            run(Narrow::Axpy, rows, k, n, out, x, narrow.as_ptr());
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
    narrow: &mut Vec<T>,
) {
    // SAFETY: passed on from the caller; the narrow copy holds m * n elements.
    unsafe {
        if n <= NARROW && m * n <= NARROW_ELEMENTS {
            // The sum is kept transposed (n x m), so that the long side is contiguous.
            narrow.clear();
            narrow.resize(m * n, T::ZERO);
            run(Narrow::Outer, rows, m, n, narrow.as_mut_ptr(), x, y);
            for j in 0..n {
                for i in 0..m {
                    *acc.add(i * n + j) += narrow[j * m + i];
                }
            }
        } else if m <= NARROW && m * n <= NARROW_ELEMENTS {
            run(Narrow::Outer, rows, n, m, acc, y, x);
        } else {
            let a = Matrix {
                at: x,
                row: 1,
                column: m as isize,
            };
            T::gemm(
                m,
                n,
                rows,
                acc,
                true,
                a,
                Matrix {
                    at: y,
                    row: n as isize,
                    column: 1,
                },
            );
        }
    }
}

/// Loops for products with one short side.
#[derive(Clone, Copy)]
enum Narrow {
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

unsafe fn run<T: Real>(
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
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512vl") {
                return narrow_avx512(kind, rows, k, n, out, x, w);
            }
            if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
                return narrow_avx2(kind, rows, k, n, out, x, w);
            }
        }
        narrow_body(kind, rows, k, n, out, x, w);
    }
}
