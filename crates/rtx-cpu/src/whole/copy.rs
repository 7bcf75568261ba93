//! Bytes moved: ranges, and permutations of axes.

use super::{At, in_ranges, strides};
use std::array::from_fn;
use std::mem::MaybeUninit;

/// Bytes of a piece of a range.
const PIECE: usize = 4096;

/// # Safety
/// Both ranges are in memory and do not meet.
pub(super) unsafe fn copy(to: At, from: At, bytes: usize) {
    in_ranges(bytes.div_ceil(PIECE), bytes, |r| {
        let (start, end) = (r.start * PIECE, (r.end * PIECE).min(bytes));
        // SAFETY: inside the ranges.
        unsafe {
            std::ptr::copy_nonoverlapping(from.add(start).0, to.add(start).0, end - start);
        }
    });
}

/// # Safety
/// The range is in memory.
pub(super) unsafe fn clear(to: At, bytes: usize) {
    in_ranges(bytes.div_ceil(PIECE), bytes, |r| {
        let (start, end) = (r.start * PIECE, (r.end * PIECE).min(bytes));
        // SAFETY: inside the range.
        unsafe { std::ptr::write_bytes(to.add(start).0, 0, end - start) };
    });
}

/// An axis of the result: extent, bytes of a step in the operand and in the result.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Axis {
    n: usize,
    from: usize,
    to: usize,
}

/// A permutation of axes: units of bytes that stay together, and the axes between them.
pub(crate) struct Permute {
    /// Bytes that stay together.
    unit: usize,
    /// Axes outside of the tiles.
    outer: Vec<Axis>,
    /// The axis along which the units are closest in the operand.
    near: Axis,
    /// The axis along which they are closest in the result.
    last: Axis,
}

/// Tiles side by side that one thread takes at once.
const STRIP: usize = 64;

impl Permute {
    /// Of an operand of `dims`, with elements of `size` bytes.
    pub(super) fn new(dims: &[usize], order: &[usize], size: usize) -> Self {
        let steps = strides(dims);
        // Axes of the result without those of one element; neighbours that stay neighbours are one.
        let mut axes: Vec<Axis> = Vec::new();
        for &p in order.iter().filter(|&&p| dims[p] != 1) {
            let (n, from) = (dims[p], steps[p] * size);
            match axes.last_mut() {
                Some(a) if a.from == n * from => {
                    a.n *= n;
                    a.from = from;
                }
                _ => axes.push(Axis { n, from, to: 0 }),
            }
        }
        let mut to = size;
        for a in axes.iter_mut().rev() {
            a.to = to;
            to *= a.n;
        }
        let mut unit = size;
        let together = axes.last().filter(|a| a.from == size).copied();
        if let Some(a) = together {
            unit *= a.n;
            axes.pop();
        }
        let one = Axis {
            n: 1,
            from: 0,
            to: 0,
        };
        let last = axes.pop().unwrap_or(one);
        let nearest = (0..axes.len()).min_by_key(|&k| axes[k].from);
        let near = nearest.map_or(one, |k| axes.remove(k));
        Permute {
            unit,
            outer: axes,
            near,
            last,
        }
    }

    /// # Safety
    /// The arrays are in memory and do not meet.
    pub(super) unsafe fn run(&self, to: At, from: At) {
        let units = self.outer.iter().map(|a| a.n).product::<usize>() * self.near.n * self.last.n;
        if units * self.unit == 0 {
            return;
        }
        // SAFETY: by the caller.
        unsafe {
            match self.unit {
                _ if units == 1 => super::copy(to, from, self.unit),
                1 => self.units::<u8, 64>(to, from),
                2 => self.units::<u16, 32>(to, from),
                4 => self.units::<u32, 16>(to, from),
                8 => self.units::<u64, 8>(to, from),
                12 => self.units::<[u32; 3], 8>(to, from),
                16 => self.units::<u128, 8>(to, from),
                32 => self.units::<[u128; 2], 4>(to, from),
                _ => self.runs(to, from),
            }
        }
    }

    /// Byte offsets in operand and result of a number of the outer axes.
    fn outer_at(&self, mut k: usize) -> (usize, usize) {
        let (mut from, mut to) = (0, 0);
        for a in self.outer.iter().rev() {
            from += k % a.n * a.from;
            to += k % a.n * a.to;
            k /= a.n;
        }
        (from, to)
    }

    /// Long units, one by one.
    unsafe fn runs(&self, to: At, from: At) {
        let rows = self.outer.iter().map(|a| a.n).product::<usize>() * self.near.n;
        let work = rows * self.last.n * self.unit;
        // Units are dealt out one by one, as there may be one row only.
        in_ranges(rows * self.last.n, work, |range| {
            for k in range {
                let (row, l) = (k / self.last.n, k % self.last.n);
                let (f, t) = self.outer_at(row / self.near.n);
                let j = row % self.near.n;
                // SAFETY: inside both arrays.
                unsafe {
                    std::ptr::copy_nonoverlapping(
                        from.add(f + j * self.near.from + l * self.last.from).0,
                        to.add(t + j * self.near.to + l * self.last.to).0,
                        self.unit,
                    );
                }
            }
        });
    }

    /// Short units, of the size of `T`: in tiles of `E` by `E`, or one side at a time where one is shorter than that.
    unsafe fn units<T: Copy, const E: usize>(&self, to: At, from: At) {
        let (near, last) = (self.near, self.last);
        let outer: usize = self.outer.iter().map(|a| a.n).product();
        let short = near.n < E || last.n < E;
        let (high, wide) = match (short, near.n < last.n) {
            (false, _) => (E, STRIP * E),
            (true, true) => (near.n, STRIP * E),
            (true, false) => (STRIP * E, last.n),
        };
        let (down, across) = (near.n.div_ceil(high), last.n.div_ceil(wide));
        let work = outer * near.n * last.n * size_of::<T>();
        in_ranges(outer * down * across, work, |range| {
            let mut tile = [[MaybeUninit::uninit(); E]; E];
            for k in range {
                let (f, t) = self.outer_at(k / across / down);
                let (j, l) = (k / across % down * high, k % across * wide);
                let (height, width) = (high.min(near.n - j), wide.min(last.n - l));
                // SAFETY: height by width units from (j, l) on are inside both arrays.
                unsafe {
                    let f = from.add(f + j * near.from + l * last.from);
                    let t = to.add(t + j * near.to + l * last.to);
                    if !short && height == E {
                        let tiled = width / E * E;
                        for l in (0..tiled).step_by(E) {
                            let (f, t) = (f.add(l * last.from), t.add(l * last.to));
                            self.tile::<T, E>(t, f, &mut tile);
                        }
                        let (f, t) = (f.add(tiled * last.from), t.add(tiled * last.to));
                        self.strided::<T>(t, f, height, width - tiled);
                    } else {
                        self.strided::<T>(t, f, height, width);
                    }
                }
            }
        });
    }

    /// One unit after the other, along the longer side.
    unsafe fn strided<T: Copy>(&self, to: At, from: At, height: usize, width: usize) {
        let line = |to: At, from: At, along: Axis, n: usize| {
            for k in 0..n {
                // SAFETY: by the caller.
                unsafe {
                    let v = from.add(k * along.from).of::<T>().read_unaligned();
                    to.add(k * along.to).of::<T>().write_unaligned(v);
                }
            }
        };
        let (near, last) = (self.near, self.last);
        // SAFETY: by the caller.
        unsafe {
            if height < width {
                for j in 0..height {
                    line(to.add(j * near.to), from.add(j * near.from), last, width);
                }
            } else {
                for l in 0..width {
                    line(to.add(l * last.to), from.add(l * last.from), near, height);
                }
            }
        }
    }

    /// `E` by `E` units, turned on the way into a copy in the first-level cache: every cache line of both arrays is touched
    /// once, also where rows are a power of two apart.
    #[inline(always)]
    unsafe fn tile<T: Copy, const E: usize>(
        &self,
        to: At,
        from: At,
        tile: &mut [[MaybeUninit<T>; E]; E],
    ) {
        // Small squares, which the compiler turns in registers.
        const M: usize = 4;
        // SAFETY: by the caller; the tile holds E * E units, and is read where it was written.
        unsafe {
            let lines = tile.as_mut_ptr().cast::<T>();
            for l in (0..E).step_by(M) {
                for j in (0..E).step_by(M) {
                    let square: [[T; M]; M] = from_fn(|a| {
                        let at = from.add((l + a) * self.last.from + j * self.near.from);
                        at.of::<[T; M]>().read_unaligned()
                    });
                    let turned: [[T; M]; M] = from_fn(|b| from_fn(|a| square[a][b]));
                    for (b, line) in turned.iter().enumerate() {
                        *lines.add((j + b) * E + l).cast::<[T; M]>() = *line;
                    }
                }
            }
            for (j, row) in tile.iter().enumerate() {
                let to = to.add(j * self.near.to);
                std::ptr::copy_nonoverlapping(row.as_ptr().cast::<u8>(), to.0, size_of_val(row));
            }
        }
    }
}
