//! Products with the result in registers: a tile of rows times a packed panel of columns.
//!
//! The right operand is packed into panels a few vectors wide, which stay in the first-level cache while all rows
//! of the left operand pass by; rows of a block of scratch are read as they lie.

use super::simd::Vector;
use super::{Extents, Matrix, Real, Tiled};

/// Longest part of a sum that is worked on at once, so that a panel of `f32` or `f64` takes at most 32 KiB.
const DEPTH: usize = 128;
/// The same where both operands are walked along their rows: their lines share few sets of the cache.
const DEPTH_TRANSPOSED: usize = 64;

/// A panel's product: `to (m x columns) [+]= a (m x k) panel (k x width)`.
struct Tiles<V: Vector> {
    a: Matrix<V::Element>,
    k: usize,
    panel: *const V::Element,
    /// Elements of one row of the panel.
    width: usize,
    to: *mut V::Element,
    to_row: usize,
    /// Columns of the result here, at most `width`.
    columns: usize,
    /// Add to what is there.
    add: bool,
}

/// `R` rows from `row` on.
///
/// # Safety
/// As [`Vector`]; the rows and columns exist.
#[inline(always)]
unsafe fn tile<V: Vector<Element: Real>, const R: usize, const C: usize>(t: &Tiles<V>, row: usize) {
    // SAFETY: by the caller.
    unsafe {
        let mut sums = [[V::zero(); C]; R];
        let mut a = t.a.at.offset(row as isize * t.a.row);
        let mut b = t.panel;
        for _ in 0..t.k {
            let mut columns = [V::zero(); C];
            for (c, x) in columns.iter_mut().enumerate() {
                *x = V::load(b.add(c * V::LANES));
            }
            for (r, sums) in sums.iter_mut().enumerate() {
                let x = V::splat(a.offset(r as isize * t.a.row));
                for (s, y) in sums.iter_mut().zip(columns) {
                    *s = x.fma(y, *s);
                }
            }
            a = a.offset(t.a.column);
            b = b.add(t.width);
        }
        let part = t.columns % V::LANES;
        for (r, sums) in sums.iter().enumerate() {
            let to = t.to.add((row + r) * t.to_row);
            for (c, s) in sums.iter().enumerate() {
                let to = to.add(c * V::LANES);
                if c + 1 == C && part > 0 {
                    let s = if t.add {
                        s.add(V::load_part(to, part))
                    } else {
                        *s
                    };
                    s.store_part(to, part);
                } else {
                    let s = if t.add { s.add(V::load(to)) } else { *s };
                    s.store(to);
                }
            }
        }
    }
}

/// All rows of one panel of `C` vectors.
#[inline(always)]
unsafe fn rows<V: Vector<Element: Real>, const C: usize>(t: &Tiles<V>, m: usize) {
    let mut row = 0;
    // SAFETY: passed on from the caller.
    unsafe {
        while m - row >= 6 {
            tile::<V, 6, C>(t, row);
            row += 6;
        }
        if m - row >= 4 {
            tile::<V, 4, C>(t, row);
            row += 4;
        }
        if m - row >= 2 {
            tile::<V, 2, C>(t, row);
            row += 2;
        }
        if m > row {
            tile::<V, 1, C>(t, row);
        }
    }
}

/// All rows of a panel of any width.
///
/// # Safety
/// As [`Vector`], for `m` rows of `a` and of the result.
#[inline(always)]
unsafe fn panel<V: Vector<Element: Real>, const WIDEST: usize>(t: &Tiles<V>, m: usize) {
    // SAFETY: passed on from the caller.
    unsafe {
        match t.columns.div_ceil(V::LANES) {
            1 => rows::<V, 1>(t, m),
            2 => rows::<V, 2>(t, m),
            3 if WIDEST > 2 => rows::<V, 3>(t, m),
            _ if WIDEST > 2 => rows::<V, 4>(t, m),
            _ => {}
        }
    }
}

/// Copies `columns` columns of a matrix into a panel of whole vectors, zeros after the last column.
///
/// # Safety
/// The matrix has `k` rows of `columns`; the panel holds `k * width` elements.
unsafe fn pack_panel<T: Real>(k: usize, columns: usize, width: usize, from: Matrix<T>, to: *mut T) {
    for p in 0..k {
        // SAFETY: by the caller.
        unsafe {
            let (from, to) = (from.offset(p, 0), to.add(p * width));
            if from.column == 1 {
                std::ptr::copy_nonoverlapping(from.at, to, columns);
            } else {
                for c in 0..columns {
                    *to.add(c) = *from.offset(0, c).at;
                }
            }
            for c in columns..width {
                *to.add(c) = T::ZERO;
            }
        }
    }
}

/// The panels of a `k x n` matrix: first row and extent, first column and extent, and where the panel is packed.
fn panels<V: Vector>(
    (k, n): (usize, usize),
    depth: usize,
    vectors: usize,
) -> impl Iterator<Item = (usize, usize, usize, usize, usize)> {
    let (all, step) = (n.next_multiple_of(V::LANES), vectors * V::LANES);
    (0..k).step_by(depth).flat_map(move |p| {
        let depth = depth.min(k - p);
        (0..n)
            .step_by(step)
            .map(move |j| (p, depth, j, step.min(n - j), p * all + depth * j))
    })
}

/// Packs a `k x n` matrix for [`times`].
///
/// # Safety
/// `to` holds k rows of n elements, n rounded up to whole vectors.
unsafe fn pack<V: Vector<Element: Real>, const WIDEST: usize>(
    k: usize,
    n: usize,
    from: Matrix<V::Element>,
    to: *mut V::Element,
) {
    for (p, depth, j, columns, at) in panels::<V>((k, n), DEPTH, WIDEST) {
        let width = columns.next_multiple_of(V::LANES);
        // SAFETY: the panels tile the packed elements.
        unsafe { pack_panel(depth, columns, width, from.offset(p, j), to.add(at)) };
    }
}

/// `to (m x n) = a (m x k) b`, b packed.
#[inline(always)]
unsafe fn times<V: Vector<Element: Real>, const WIDEST: usize>(
    Extents { m, k, n }: Extents,
    to: *mut V::Element,
    a: Matrix<V::Element>,
    packed: *const V::Element,
) {
    for (p, depth, j, columns, at) in panels::<V>((k, n), DEPTH, WIDEST) {
        // SAFETY: passed on from the caller.
        unsafe {
            let t = Tiles::<V> {
                a: a.offset(0, p),
                k: depth,
                panel: packed.add(at),
                width: columns.next_multiple_of(V::LANES),
                to: to.add(j),
                to_row: n,
                columns,
                add: p > 0,
            };
            panel::<V, WIDEST>(&t, m);
        }
    }
}

/// `to (m x n) += a (m x k) b (k x n)`, b packed piece by piece into `space`.
#[inline(always)]
unsafe fn add_times<V: Vector<Element: Real>, const WIDEST: usize>(
    Extents { m, k, n }: Extents,
    to: *mut V::Element,
    a: Matrix<V::Element>,
    b: Matrix<V::Element>,
    space: &mut Vec<V::Element>,
) {
    space.resize(DEPTH_TRANSPOSED * WIDEST * V::LANES, V::Element::ZERO);
    for (p, depth, j, columns, _) in panels::<V>((k, n), DEPTH_TRANSPOSED, WIDEST) {
        let width = columns.next_multiple_of(V::LANES);
        // SAFETY: passed on from the caller.
        unsafe {
            pack_panel(depth, columns, width, b.offset(p, j), space.as_mut_ptr());
            let t = Tiles::<V> {
                a: a.offset(0, p),
                k: depth,
                panel: space.as_ptr(),
                width,
                to: to.add(j),
                to_row: n,
                columns,
                add: true,
            };
            panel::<V, WIDEST>(&t, m);
        }
    }
}

macro_rules! entries {
    ($name:ident, $features:literal, $widest:literal) => {
        /// The products compiled for one instruction set.
        pub(super) mod $name {
            use super::{Extents, Matrix, Real, Tiled, Vector};

            #[target_feature(enable = $features)]
            unsafe fn times<V: Vector<Element: Real>>(
                extents: Extents,
                to: *mut V::Element,
                a: Matrix<V::Element>,
                packed: *const V::Element,
            ) {
                // SAFETY: passed on from the caller.
                unsafe { super::times::<V, $widest>(extents, to, a, packed) }
            }

            #[target_feature(enable = $features)]
            unsafe fn add_times<V: Vector<Element: Real>>(
                extents: Extents,
                to: *mut V::Element,
                a: Matrix<V::Element>,
                b: Matrix<V::Element>,
                space: &mut Vec<V::Element>,
            ) {
                // SAFETY: passed on from the caller.
                unsafe { super::add_times::<V, $widest>(extents, to, a, b, space) }
            }

            pub(in super::super) fn tiled<V: Vector<Element: Real>>() -> Tiled<V::Element> {
                Tiled {
                    lanes: V::LANES,
                    pack: super::pack::<V, $widest>,
                    times: times::<V>,
                    add_times: add_times::<V>,
                }
            }
        }
    };
}
// 32 registers: 24 sums, 4 columns, 1 element of the row. 16 registers: 12, 2 and 1.
entries!(avx512, "avx512f,avx512vl,fma", 4);
entries!(avx2, "avx2,fma", 2);
