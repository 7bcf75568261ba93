//! All steps of a row kernel on one group of rows, block by block.

use super::block::{self, Rows, tile_at};
use super::{Pointers, Prepared, neutral};
use crate::buffer::write_f64;
use crate::number::{Number, with_numeric};
use crate::product::{Extents, Matrix, Real, add_transposed, times_matrix};
use crate::workspace::{ThreadScratch, Workspace};
use rtx_compiler::{Accumulator, DotGroup, Rearrange, Source, Step, SumGroup};
use rtx_ir::{DType, ReduceKind};

/// # Safety
/// As [`super::run`]; no other thread works on these rows or this group.
pub(crate) unsafe fn run_group(
    p: &Prepared,
    group: usize,
    start: usize,
    end: usize,
    direct: bool,
    pointers: &Pointers,
    w: &Workspace,
) {
    let s = w.threads.get();
    // SAFETY: by the caller; all tiles and accumulators are sized by the program.
    unsafe {
        block::prepare(p, w.run, pointers, s);
        let at = |k: usize| {
            if direct {
                pointers.0[p.kernel.accumulators[k].buffer]
            } else {
                w.accumulators
                    .ptr()
                    .add(group * p.accumulator_bytes + p.accumulator_at[k])
            }
        };
        for (k, a) in p.kernel.accumulators.iter().enumerate() {
            fill(at(k), a.dtype, a.elements, neutral(a.kind));
        }
        let rows = end - start;
        let blocks = rows.div_ceil(p.block_rows);
        for b in 0..blocks {
            let (from, to) = (start + b * rows / blocks, start + (b + 1) * rows / blocks);
            let rows = Rows {
                start: from,
                count: to - from,
            };
            for (n, step) in p.kernel.steps.iter().enumerate() {
                run_step(p, n, step, rows, pointers, w, s, &at);
            }
        }
    }
}

unsafe fn fill(to: *mut u8, dtype: DType, n: usize, v: f64) {
    // SAFETY: `to` holds n elements.
    unsafe {
        if v == 0.0 {
            std::ptr::write_bytes(to, 0, n * dtype.size());
        } else {
            (0..n).for_each(|i| write_f64(to.add(i * dtype.size()), dtype, &[v]));
        }
    }
}

unsafe fn run_step(
    p: &Prepared,
    number: usize,
    step: &Step,
    rows: Rows,
    pointers: &Pointers,
    w: &Workspace,
    s: &mut ThreadScratch,
    accumulator: &dyn Fn(usize) -> *mut u8,
) {
    let scratch = s.tiles.ptr();
    let tile = |t: usize| unsafe { tile_at(p, t, rows, pointers, scratch) };
    let dtype = |t: usize| p.kernel.tiles[t].dtype;
    // SAFETY: by the caller.
    unsafe {
        match step {
            Step::Elementwise(b) => block::run(p, number, b, rows, pointers, s),
            Step::Dot(d) => {
                let packed = p.packed.of_step(number).map(|at| w.packed.ptr().add(at));
                match dtype(d.lhs[0]) {
                    DType::F64 => {
                        dot::<f64>(d, rows.count, &tile, pointers, packed, &mut s.narrow64)
                    }
                    _ => dot::<f32>(d, rows.count, &tile, pointers, packed, &mut s.narrow32),
                }
            }
            Step::SumDot(d) => match dtype(d.x[0]) {
                DType::F64 => {
                    sum_dot::<f64>(d, rows.count, &tile, accumulator(d.into), &mut s.narrow64)
                }
                _ => sum_dot::<f32>(d, rows.count, &tile, accumulator(d.into), &mut s.narrow32),
            },
            Step::SumRows { tile: t, into } => {
                let a = &p.kernel.accumulators[*into];
                sum_rows(a, accumulator(*into), tile(*t), rows.count);
            }
            Step::Reduce {
                kind,
                from,
                to,
                dims,
                axes,
            } => {
                reduce(
                    *kind,
                    dtype(*from),
                    tile(*from),
                    tile(*to),
                    rows.count,
                    dims,
                    axes,
                );
            }
            Step::Copy(c) => copy(p, c, rows.count, &tile, pointers),
            Step::Gather {
                table,
                index,
                to,
                width,
            } => {
                let size = dtype(*to).size() * width;
                let n = rows.count * p.kernel.tiles[*index].columns;
                let limit = table_rows(p, *table);
                let (ix, out) = (tile(*index), tile(*to));
                for k in 0..n {
                    let i = match dtype(*index) {
                        DType::I32 => i64::from(*ix.cast::<i32>().add(k)),
                        _ => *ix.cast::<i64>().add(k),
                    };
                    let row = i.clamp(0, limit.saturating_sub(1) as i64) as usize;
                    std::ptr::copy_nonoverlapping(
                        pointers.0[*table].add(row * size),
                        out.add(k * size),
                        size,
                    );
                }
            }
            Step::Iota { to, inner } => {
                let columns = p.kernel.tiles[*to].columns;
                let size = dtype(*to).size();
                for r in 0..rows.count {
                    for c in 0..columns {
                        let v = match inner {
                            None => rows.start + r,
                            Some((step, period)) => c / step % period,
                        };
                        write_f64(
                            tile(*to).add((r * columns + c) * size),
                            dtype(*to),
                            &[v as f64],
                        );
                    }
                }
            }
            Step::Random { kind, key, to } => {
                let columns = p.kernel.tiles[*to].columns;
                let (size, single) = (dtype(*to).size(), dtype(*to) == DType::F32);
                let key = *pointers.0[*key].cast::<i64>() as u64;
                for k in 0..rows.count * columns {
                    let index = (rows.start * columns + k) as u64;
                    let v = rtx_ir::random::sample(*kind, key, index, single);
                    write_f64(tile(*to).add(k * size), dtype(*to), &[v]);
                }
            }
        }
    }
}

fn table_rows(p: &Prepared, table: usize) -> usize {
    p.tables
        .iter()
        .find(|(b, _)| *b == table)
        .map_or(0, |(_, n)| *n)
}

/// Lengths of runs of operands that stand side by side in memory.
fn runs(count: usize, adjacent: impl Fn(usize) -> bool) -> impl Iterator<Item = (usize, usize)> {
    let mut start = 0;
    std::iter::from_fn(move || {
        if start >= count {
            return None;
        }
        let mut end = start + 1;
        while end < count && adjacent(end) {
            end += 1;
        }
        let run = (start, end);
        start = end;
        Some(run)
    })
}

unsafe fn dot<T: Real>(
    d: &DotGroup,
    rows: usize,
    tile: &dyn Fn(usize) -> *mut u8,
    pointers: &Pointers,
    packed: Option<*mut u8>,
    narrow: &mut Vec<T>,
) {
    let height = rows * d.inner;
    let size = std::mem::size_of::<T>();
    let matrix = Matrix {
        at: pointers.0[d.rhs].cast::<T>(),
        row: d.strides.0 as isize,
        column: d.strides.1 as isize,
    };
    let adjacent = |k: usize| {
        tile(d.lhs[k]) as usize == tile(d.lhs[k - 1]) as usize + height * d.k * size
            && tile(d.out[k]) as usize == tile(d.out[k - 1]) as usize + height * d.n * size
    };
    for (start, end) in runs(d.lhs.len(), adjacent) {
        // SAFETY: by the caller.
        unsafe {
            let (out, lhs) = (
                tile(d.out[start]).cast::<T>(),
                tile(d.lhs[start]).cast::<T>(),
            );
            let m = (end - start) * height;
            match (packed, T::tiled()) {
                (Some(packed), Some(tiled)) => {
                    let a = Matrix {
                        at: lhs.cast_const(),
                        row: d.k as isize,
                        column: 1,
                    };
                    let extents = Extents { m, k: d.k, n: d.n };
                    (tiled.times)(extents, out, a, packed.cast::<T>());
                }
                _ => times_matrix(m, d.k, d.n, out, lhs, matrix, narrow),
            }
        }
    }
}

unsafe fn sum_dot<T: Real>(
    d: &SumGroup,
    rows: usize,
    tile: &dyn Fn(usize) -> *mut u8,
    to: *mut u8,
    narrow: &mut Vec<T>,
) {
    let height = rows * d.inner;
    let size = std::mem::size_of::<T>();
    let adjacent = |k: usize| {
        tile(d.x[k]) as usize == tile(d.x[k - 1]) as usize + height * d.m * size
            && tile(d.y[k]) as usize == tile(d.y[k - 1]) as usize + height * d.n * size
    };
    for (start, end) in runs(d.x.len(), adjacent) {
        // SAFETY: by the caller.
        unsafe {
            let (x, y) = (tile(d.x[start]).cast::<T>(), tile(d.y[start]).cast::<T>());
            add_transposed(
                (end - start) * height,
                d.m,
                d.n,
                to.cast::<T>(),
                x,
                y,
                narrow,
            );
        }
    }
}

#[inline(always)]
fn combined<T: Number>(kind: ReduceKind, a: T, b: T) -> T {
    match kind {
        ReduceKind::Sum => a.sum(b),
        ReduceKind::Prod => a.product(b),
        ReduceKind::Max => {
            if b > a || b.nan() {
                b
            } else {
                a
            }
        }
        ReduceKind::Min => {
            if b < a || b.nan() {
                b
            } else {
                a
            }
        }
    }
}

/// Adds the rows of a tile to an accumulator, by a tree within the tile so that long sums stay exact.
unsafe fn sum_rows(a: &Accumulator, to: *mut u8, from: *const u8, rows: usize) {
    let n = a.elements;
    with_numeric!(a.dtype, T => {
        let (to, from) = (to.cast::<T>(), from.cast::<T>());
        // SAFETY: the accumulator holds n elements, the tile rows * n.
        unsafe {
            if n == 1 {
                *to = combined(a.kind, *to, tree(a.kind, std::slice::from_raw_parts(from, rows)));
            } else {
                for r in 0..rows {
                    for c in 0..n {
                        *to.add(c) = combined(a.kind, *to.add(c), *from.add(r * n + c));
                    }
                }
            }
        }
    });
}

/// Pairwise combination.
fn tree<T: Number + Neutral>(kind: ReduceKind, x: &[T]) -> T {
    if x.len() <= 8 {
        return x
            .iter()
            .fold(T::neutral(kind), |a, &b| combined(kind, a, b));
    }
    let (l, r) = x.split_at(x.len() / 2);
    combined(kind, tree(kind, l), tree(kind, r))
}

trait Neutral {
    fn neutral(kind: ReduceKind) -> Self;
}
macro_rules! neutral_of {
    ($($t:ty),*) => {$( impl Neutral for $t { fn neutral(kind: ReduceKind) -> Self { neutral(kind) as $t } } )*};
}
neutral_of!(f32, f64, i32, i64, u8);

/// Combines the groups' accumulators in order into the result.
///
/// # Safety
/// `to` holds the accumulator's elements, `from` one set per group, `stride` bytes apart.
pub(crate) unsafe fn combine(
    a: &Accumulator,
    to: *mut u8,
    from: *const u8,
    groups: usize,
    stride: usize,
) {
    let n = a.elements;
    with_numeric!(a.dtype, T => {
        // SAFETY: by the caller.
        unsafe {
            std::ptr::copy_nonoverlapping(from.cast::<T>(), to.cast::<T>(), n);
            let to = std::slice::from_raw_parts_mut(to.cast::<T>(), n);
            for g in 1..groups {
                let x = std::slice::from_raw_parts(from.add(g * stride).cast::<T>(), n);
                match a.kind {
                    ReduceKind::Sum => to.iter_mut().zip(x).for_each(|(t, v)| *t = t.sum(*v)),
                    kind => to.iter_mut().zip(x).for_each(|(t, v)| *t = combined(kind, *t, *v)),
                }
            }
        }
    });
}

/// Most axes of one row.
const MAX_AXES: usize = 8;

unsafe fn reduce(
    kind: ReduceKind,
    dtype: DType,
    from: *const u8,
    to: *mut u8,
    rows: usize,
    dims: &[usize],
    axes: &[usize],
) {
    let columns: usize = dims.iter().product();
    let out: usize = dims
        .iter()
        .enumerate()
        .filter(|(k, _)| !axes.contains(k))
        .map(|(_, n)| n)
        .product();
    // Offset of each element's result within the row.
    let mut step = [0; MAX_AXES];
    let mut s = 1;
    for k in (0..dims.len()).rev().filter(|k| !axes.contains(k)) {
        step[k] = s;
        s *= dims[k];
    }
    let trailing = axes.len() == 1 && axes[0] + 1 == dims.len();
    with_numeric!(dtype, T => {
        let (from, to) = (from.cast::<T>(), to.cast::<T>());
        for r in 0..rows {
            // SAFETY: the tiles hold rows * columns and rows * out elements.
            unsafe {
                let x = std::slice::from_raw_parts(from.add(r * columns), columns);
                let y = std::slice::from_raw_parts_mut(to.add(r * out), out);
                if trailing {
                    let n = dims[axes[0]];
                    for (k, y) in y.iter_mut().enumerate() {
                        *y = tree(kind, &x[k * n..(k + 1) * n]);
                    }
                } else {
                    y.fill(<T as Neutral>::neutral(kind));
                    for (p, &v) in x.iter().enumerate() {
                        let (mut rest, mut o) = (p, 0);
                        for k in (0..dims.len()).rev() {
                            o += rest % dims[k] * step[k];
                            rest /= dims[k];
                        }
                        y[o] = combined(kind, y[o], v);
                    }
                }
            }
        }
    });
}

unsafe fn copy(
    p: &Prepared,
    c: &Rearrange,
    rows: usize,
    tile: &dyn Fn(usize) -> *mut u8,
    pointers: &Pointers,
) {
    let to = &p.kernel.tiles[c.to];
    let size = to.dtype.size();
    let (from, from_row) = match c.from {
        Source::Tile(t) => (tile(t).cast_const(), p.kernel.tiles[t].columns * size),
        Source::Array(b) => (pointers.0[b].cast_const(), 0),
    };
    let out = tile(c.to);
    // The innermost extent moves as bytes where both sides are contiguous.
    let last = c.dims.len().checked_sub(1);
    let contiguous = last.is_some_and(|l| c.step_from[l] == 1 && c.step_to[l] == 1);
    let (dims, run) = if contiguous {
        (&c.dims[..c.dims.len() - 1], c.dims[c.dims.len() - 1])
    } else {
        (&c.dims[..], 1)
    };
    for r in 0..rows {
        // SAFETY: indices stay inside one row of each side.
        unsafe {
            let (source, target) = (from.add(r * from_row), out.add(r * to.columns * size));
            if c.clear {
                std::ptr::write_bytes(target, 0, to.columns * size);
            }
            if c.dims.contains(&0) {
                continue;
            }
            let mut index = [0usize; MAX_AXES];
            let (mut i, mut o) = (c.base_from, c.base_to);
            'all: loop {
                std::ptr::copy_nonoverlapping(
                    source.add(i * size),
                    target.add(o * size),
                    run * size,
                );
                let mut axis = dims.len();
                loop {
                    if axis == 0 {
                        break 'all;
                    }
                    axis -= 1;
                    index[axis] += 1;
                    i += c.step_from[axis];
                    o += c.step_to[axis];
                    if index[axis] < dims[axis] {
                        break;
                    }
                    i -= c.step_from[axis] * dims[axis];
                    o -= c.step_to[axis] * dims[axis];
                    index[axis] = 0;
                }
            }
        }
    }
}
