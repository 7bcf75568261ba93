//! Bytes moved: ranges, and permutations of axes.

use super::square::{M, Unit};
use super::{At, in_ranges, strides};
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
        // Some axis is the fastest of the operand: that of the units, or else this one.
        debug_assert!(near.n == 1 || near.from == unit || dims.contains(&0));
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

    /// Short units, of the size of `T`: in tiles of `E` by `E`, or squares where a side is shorter than that.
    unsafe fn units<T: Unit, const E: usize>(&self, to: At, from: At) {
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
                        self.squares::<T>(t, f, height, width - tiled);
                    } else {
                        self.squares::<T>(t, f, height, width);
                    }
                }
            }
        });
    }

    /// By squares, and what is left of them unit by unit.
    unsafe fn squares<T: Unit>(&self, to: At, from: At, height: usize, width: usize) {
        let (near, last) = (self.near, self.last);
        let (high, wide) = (height / M * M, width / M * M);
        // SAFETY: by the caller.
        unsafe {
            for j in (0..high).step_by(M) {
                for l in (0..wide).step_by(M) {
                    let f = from.add(j * near.from + l * last.from);
                    let t = to.add(j * near.to + l * last.to);
                    T::turn(f.0, last.from, t.0, near.to);
                }
            }
            for l in 0..width {
                let left = if l < wide { high } else { 0 };
                for j in left..height {
                    let f = from.add(j * near.from + l * last.from).of::<T>();
                    let t = to.add(j * near.to + l * last.to).of::<T>();
                    t.write_unaligned(f.read_unaligned());
                }
            }
        }
    }

    /// `E` by `E` units, through a copy in the first-level cache: every cache line of both arrays is touched once, also where
    /// rows are a power of two apart.
    #[inline(always)]
    unsafe fn tile<T: Unit, const E: usize>(
        &self,
        to: At,
        from: At,
        tile: &mut [[MaybeUninit<T>; E]; E],
    ) {
        let line = size_of_val(&tile[0]);
        let square = tile.as_mut_ptr().cast::<u8>();
        // SAFETY: by the caller; the tile holds E * E units, and is read where it was written.
        unsafe {
            for l in (0..E).step_by(M) {
                for j in (0..E).step_by(M) {
                    let f = from.add(j * self.near.from + l * self.last.from);
                    let t = square.add(j * line + l * size_of::<T>());
                    T::turn(f.0, self.last.from, t, line);
                }
            }
            for (j, row) in tile.iter().enumerate() {
                let to = to.add(j * self.near.to);
                std::ptr::copy_nonoverlapping(row.as_ptr().cast::<u8>(), to.0, line);
            }
        }
    }
}
