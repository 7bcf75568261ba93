//! General products: many products of matrices side by side.

use super::copy::Permute;
use super::{At, Layout, PARALLEL_WORK, clear, in_ranges, strides};
use crate::number::{Number, with_numeric};
use crate::product::{Extents, Matrix, Real};
use rtx_ir::{DType, DotDims};

/// Products of at most this many multiplications are loops: the general product would spend its time on packing.
const SMALL: usize = 2048;
/// Rows of one product that a thread takes at once.
const ROWS: usize = 64;
/// Largest packed matrix: a part of the second-level cache. Above it the general product is faster.
const PACKED_BYTES: usize = 1 << 19;

/// Products `[batch, m, k] x [batch, k, n]`, whatever the order of the axes in memory.
pub(crate) struct Product {
    dtype: DType,
    batch: usize,
    m: usize,
    k: usize,
    n: usize,
    lhs: Operand,
    rhs: Operand,
    /// Bytes of a packed right matrix, for each thread; 0 where products do without.
    packed: usize,
}

/// Elements of a step along the batch, the free and the contracted axis.
struct Operand {
    batch: usize,
    free: usize,
    contracted: usize,
    /// Where several axes do not lie as one: a copy in the order above, its place in scratch and its bytes.
    copy: Option<(Permute, usize, usize)>,
}

/// Elements of a step along axes that lie in memory as one; `None` where they do not.
fn as_one(dims: &[usize], steps: &[usize], axes: &[usize]) -> Option<usize> {
    let mut last: Option<usize> = None;
    for &a in axes.iter().filter(|&&a| dims[a] != 1) {
        if last.is_some_and(|step| step != dims[a] * steps[a]) {
            return None;
        }
        last = Some(steps[a]);
    }
    Some(last.unwrap_or(1))
}

impl Operand {
    fn new(x: &Layout, batch: &[usize], contracted: &[usize], place: usize) -> Self {
        let free: Vec<usize> = (0..x.dims.len())
            .filter(|a| !batch.contains(a) && !contracted.contains(a))
            .collect();
        let steps = strides(&x.dims);
        let step = |axes: &[usize]| as_one(&x.dims, &steps, axes);
        if let (Some(batch), Some(free), Some(contracted)) =
            (step(batch), step(&free), step(contracted))
        {
            return Operand {
                batch,
                free,
                contracted,
                copy: None,
            };
        }
        let order: Vec<usize> = batch
            .iter()
            .chain(&free)
            .chain(contracted)
            .copied()
            .collect();
        let extent = |axes: &[usize]| axes.iter().map(|&a| x.dims[a]).product::<usize>();
        let permute = Permute::new(&x.dims, &order, x.dtype.size());
        Operand {
            batch: extent(&free) * extent(contracted),
            free: extent(contracted),
            contracted: 1,
            copy: Some((permute, place, x.bytes().next_multiple_of(64))),
        }
    }

    fn scratch(&self) -> usize {
        self.copy.as_ref().map_or(0, |(_, _, bytes)| *bytes)
    }

    /// # Safety
    /// The array and the scratch are in memory of their sizes.
    unsafe fn at(&self, x: At, scratch: At) -> At {
        match &self.copy {
            None => x,
            Some((permute, place, _)) => {
                // SAFETY: by the caller.
                unsafe {
                    let to = scratch.add(*place);
                    permute.run(to, x);
                    to
                }
            }
        }
    }
}

impl Product {
    pub(super) fn new(d: &DotDims, inputs: &[Layout]) -> Self {
        let (a, b) = (&inputs[0], &inputs[1]);
        let extent = |axes: &[usize]| axes.iter().map(|&x| a.dims[x]).product::<usize>();
        let (batch, k) = (extent(&d.lhs_batch), extent(&d.lhs_contract));
        let free = |x: &Layout, batch: &[usize], contracted: &[usize]| {
            let free = (0..x.dims.len()).filter(|i| !batch.contains(i) && !contracted.contains(i));
            free.map(|i| x.dims[i]).product::<usize>()
        };
        let lhs = Operand::new(a, &d.lhs_batch, &d.lhs_contract, 0);
        let rhs = Operand::new(b, &d.rhs_batch, &d.rhs_contract, lhs.scratch());
        let mut product = Product {
            dtype: a.dtype,
            batch,
            m: free(a, &d.lhs_batch, &d.lhs_contract),
            k,
            n: free(b, &d.rhs_batch, &d.rhs_contract),
            lhs,
            rhs,
            packed: 0,
        };
        product.packed = match product.dtype {
            DType::F32 if product.is_large() => product.packed_bytes::<f32>(),
            DType::F64 if product.is_large() => product.packed_bytes::<f64>(),
            _ => 0,
        };
        product
    }

    fn is_large(&self) -> bool {
        self.m * self.k * self.n > SMALL
    }

    fn packed_bytes<T: Real>(&self) -> usize {
        let lanes = T::tiled().map_or(0, |t| t.lanes);
        let bytes = self.k * self.n.next_multiple_of(lanes.max(1)) * size_of::<T>();
        let fits = lanes > 0 && bytes <= PACKED_BYTES;
        if fits { bytes.next_multiple_of(64) } else { 0 }
    }

    pub(super) fn scratch(&self, threads: usize) -> usize {
        self.lhs.scratch() + self.rhs.scratch() + threads * self.packed
    }

    /// # Safety
    /// The arrays and the scratch are in memory of their sizes.
    pub(super) unsafe fn run(&self, out: At, a: At, b: At, scratch: At) {
        let elements = self.batch * self.m * self.n;
        // SAFETY: by the caller.
        unsafe {
            if elements == 0 || self.k == 0 {
                clear(out, elements * self.dtype.size());
                return;
            }
            let (a, b) = (self.lhs.at(a, scratch), self.rhs.at(b, scratch));
            let space = scratch.add(self.lhs.scratch() + self.rhs.scratch());
            match self.dtype {
                DType::F32 if self.is_large() => self.large::<f32>(out, a, b, space),
                DType::F64 if self.is_large() => self.large::<f64>(out, a, b, space),
                dtype => with_numeric!(dtype, T => {
                    self.each::<T>(out, a, b, |m, k, n, to, x, y| loops(m, k, n, to, x, y))
                }),
            }
        }
    }

    unsafe fn large<T: Real>(&self, out: At, a: At, b: At, space: At) {
        // SAFETY: by the caller; each thread packs into a part of its own.
        unsafe {
            match T::tiled() {
                Some(tiled) if self.packed > 0 => {
                    self.each::<T>(out, a, b, |m, k, n, to, x, y| {
                        let thread = rayon::current_thread_index().unwrap_or(0);
                        let packed = space.add(thread * self.packed).of::<T>();
                        (tiled.pack)(k, n, y, packed);
                        (tiled.times)(Extents { m, k, n }, to, x, packed);
                    });
                }
                _ => self.each::<T>(out, a, b, |m, k, n, to, x, y| {
                    T::gemm(m, n, k, to, false, x, y);
                }),
            }
        }
    }

    /// All products, in pieces whose number follows from the sizes alone.
    /// `one(m, k, n, to, x, y)` is to compute `to (m x n) = x (m x k) y (k x n)`.
    unsafe fn each<T: Copy>(
        &self,
        out: At,
        a: At,
        b: At,
        one: impl Fn(usize, usize, usize, *mut T, Matrix<T>, Matrix<T>) + Sync,
    ) {
        let (m, k, n) = (self.m, self.k, self.n);
        let rows = if self.batch >= 16 { m } else { ROWS.min(m) };
        let pieces = m.div_ceil(rows);
        let work = self.batch * m * k * n;
        in_ranges(self.batch * pieces, work.max(PARALLEL_WORK / 2), |range| {
            for p in range {
                let (item, start) = (p / pieces, p % pieces * rows);
                let height = rows.min(m - start);
                // SAFETY: rows start..start + height of one product are inside the arrays.
                unsafe {
                    let to = out.of::<T>().add((item * m + start) * n);
                    let x = Matrix {
                        at: a
                            .of::<T>()
                            .add(item * self.lhs.batch + start * self.lhs.free)
                            .cast_const(),
                        row: self.lhs.free as isize,
                        column: self.lhs.contracted as isize,
                    };
                    let y = Matrix {
                        at: b.of::<T>().add(item * self.rhs.batch).cast_const(),
                        row: self.rhs.contracted as isize,
                        column: self.rhs.free as isize,
                    };
                    one(height, k, n, to, x, y);
                }
            }
        });
    }
}

/// `to (m x n) = a (m x k) b (k x n)`.
unsafe fn loops<T: Number>(m: usize, k: usize, n: usize, to: *mut T, a: Matrix<T>, b: Matrix<T>) {
    let mut j = 0;
    while j < n {
        // SAFETY: by the caller; columns j..j + width are inside the result and b.
        unsafe {
            let (to, b) = (
                to.add(j),
                Matrix {
                    at: b.at.offset(j as isize * b.column),
                    ..b
                },
            );
            match n - j {
                1 => columns::<T, 1>(m, k, n, to, a, b),
                2 => columns::<T, 2>(m, k, n, to, a, b),
                3 => columns::<T, 3>(m, k, n, to, a, b),
                4..8 => columns::<T, 4>(m, k, n, to, a, b),
                _ => columns::<T, 8>(m, k, n, to, a, b),
            }
        }
        j += match n - j {
            w @ 1..4 => w,
            4..8 => 4,
            _ => 8,
        };
    }
}

/// `N` columns of the result, whose rows are `width` apart, with their sums in registers.
#[inline(always)]
unsafe fn columns<T: Number, const N: usize>(
    m: usize,
    k: usize,
    width: usize,
    to: *mut T,
    a: Matrix<T>,
    b: Matrix<T>,
) {
    for i in 0..m {
        let mut sums = [T::ZERO; N];
        // SAFETY: by the caller.
        unsafe {
            let row = a.at.offset(i as isize * a.row);
            for p in 0..k as isize {
                let x = *row.offset(p * a.column);
                let y = b.at.offset(p * b.row);
                for (j, s) in sums.iter_mut().enumerate() {
                    *s = s.sum(x.product(*y.offset(j as isize * b.column)));
                }
            }
            *to.add(i * width).cast::<[T; N]>() = sums;
        }
    }
}
