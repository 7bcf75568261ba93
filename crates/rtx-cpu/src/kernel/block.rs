//! Fused elementwise operations on a block of rows, a chunk of registers at a time.

use super::{CHUNK, Pointers, Prepared};
use crate::workspace::ThreadScratch;
use rtx_compiler::{Block, Operand, Place};

/// The rows at hand.
#[derive(Clone, Copy)]
pub(crate) struct Rows {
    /// First row in the domain.
    pub(crate) start: usize,
    /// Number of rows.
    pub(crate) count: usize,
}

/// First byte of a tile for the rows at hand.
///
/// # Safety
/// The tile's place is valid for these rows.
pub(crate) unsafe fn tile_at(
    p: &Prepared,
    t: usize,
    rows: Rows,
    pointers: &Pointers,
    scratch: *mut u8,
) -> *mut u8 {
    let tile = &p.kernel.tiles[t];
    // SAFETY: by the caller.
    unsafe {
        match tile.place {
            Place::Buffer(b) => pointers.0[b].add(rows.start * tile.columns * tile.dtype.size()),
            Place::Scratch(at) => scratch.add(at * rows.count),
            Place::Registers => scratch,
        }
    }
}

/// Repeats `size`-byte elements: a row of `columns`, or one element where `columns` is 0, to a chunk.
unsafe fn repeat(to: *mut u8, from: *const u8, columns: usize, size: usize) {
    // SAFETY: `to` holds CHUNK elements, `from` holds max(columns, 1).
    unsafe {
        let Some(rows) = CHUNK.checked_div(columns) else {
            match size {
                1 => std::slice::from_raw_parts_mut(to, CHUNK).fill(*from),
                4 => std::slice::from_raw_parts_mut(to.cast::<u32>(), CHUNK)
                    .fill(*from.cast::<u32>()),
                _ => std::slice::from_raw_parts_mut(to.cast::<u64>(), CHUNK)
                    .fill(*from.cast::<u64>()),
            }
            return;
        };
        for r in 0..rows {
            std::ptr::copy_nonoverlapping(from, to.add(r * columns * size), columns * size);
        }
    }
}

/// Element sizes of the repeated operands.
fn size_of_operand(p: &Prepared, o: Operand) -> usize {
    for s in &p.kernel.steps {
        if let rtx_compiler::Step::Elementwise(b) = s {
            for op in &b.operations {
                if let Some(k) = op.from.iter().position(|x| *x == o) {
                    let condition =
                        matches!(op.primitive, rtx_compiler::Primitive::Select) && k == 0;
                    return if condition { 1 } else { op.dtype.size() };
                }
            }
        }
    }
    8
}

/// Fills the repeated operands of a kernel, once per thread and run.
///
/// # Safety
/// The pointers are valid for this kernel.
pub(crate) unsafe fn prepare(p: &Prepared, run: u64, pointers: &Pointers, s: &mut ThreadScratch) {
    if s.repeated_for == (run, p.number) {
        return;
    }
    for (k, (o, columns)) in p.repeated.iter().enumerate() {
        if let Operand::Scalar(b) | Operand::Row(b) = o {
            // SAFETY: the scratch was sized for this kernel.
            unsafe {
                repeat(
                    s.repeated.ptr().add(k * CHUNK * 8),
                    pointers.0[*b],
                    *columns,
                    size_of_operand(p, *o),
                )
            };
        }
    }
    s.repeated_for = (run, p.number);
}

/// Runs one elementwise step.
///
/// # Safety
/// As [`tile_at`], and `prepare` was called.
pub(crate) unsafe fn run(
    p: &Prepared,
    step: usize,
    b: &Block,
    rows: Rows,
    pointers: &Pointers,
    s: &mut ThreadScratch,
) {
    if b.columns == 0 || rows.count == 0 {
        return;
    }
    let scratch = s.tiles.ptr();
    let registers = s.registers.ptr();
    let (rows_at_once, columns_at_once) = if b.columns <= CHUNK {
        (CHUNK / b.columns, b.columns)
    } else {
        (1, CHUNK)
    };
    let mut row = 0;
    while row < rows.count {
        let height = rows_at_once.min(rows.count - row);
        let mut column = 0;
        while column < b.columns {
            let width = columns_at_once.min(b.columns - column);
            let n = height * width;
            for (k, o) in b.operations.iter().enumerate() {
                let mut from = [std::ptr::null::<u8>(); 3];
                // SAFETY: all pointers stay inside their tiles, registers and arrays for n elements.
                unsafe {
                    for (i, x) in o.from.iter().enumerate() {
                        from[i] = match x {
                            Operand::Register(r) => registers.add(r * CHUNK * 8),
                            Operand::Tile(t) => {
                                let size = p.kernel.tiles[*t].dtype.size();
                                tile_at(p, *t, rows, pointers, scratch)
                                    .add((row * b.columns + column) * size)
                            }
                            Operand::RowScalar(t) => {
                                let to = registers.add((p.registers + i) * CHUNK * 8);
                                let size = p.kernel.tiles[*t].dtype.size();
                                let at = tile_at(p, *t, rows, pointers, scratch);
                                for r in 0..height {
                                    spread(
                                        to.add(r * width * size),
                                        at.add((row + r) * size),
                                        width,
                                        size,
                                    );
                                }
                                to
                            }
                            Operand::Row(buffer) if b.columns > CHUNK => {
                                let size = if matches!(o.primitive, rtx_compiler::Primitive::Select)
                                    && i == 0
                                {
                                    1
                                } else {
                                    o.dtype.size()
                                };
                                pointers.0[*buffer].add(column * size)
                            }
                            Operand::Row(_) => {
                                s.repeated.ptr().add(slot(p, *x, b.columns) * CHUNK * 8)
                            }
                            Operand::Scalar(_) => s.repeated.ptr().add(slot(p, *x, 0) * CHUNK * 8),
                        };
                    }
                    let to = match o.to {
                        Operand::Register(r) => registers.add(r * CHUNK * 8),
                        Operand::Tile(t) => tile_at(p, t, rows, pointers, scratch)
                            .add((row * b.columns + column) * o.out_dtype.size()),
                        _ => continue,
                    };
                    p.loops[step][k](to, from[0], from[1], from[2], n);
                }
            }
            column += width;
        }
        row += height;
    }
}

fn slot(p: &Prepared, o: Operand, columns: usize) -> usize {
    p.repeated
        .iter()
        .position(|x| *x == (o, columns))
        .unwrap_or(0)
}

unsafe fn spread(to: *mut u8, from: *const u8, n: usize, size: usize) {
    // SAFETY: `to` holds n elements.
    unsafe {
        match size {
            1 => std::slice::from_raw_parts_mut(to, n).fill(*from),
            4 => std::slice::from_raw_parts_mut(to.cast::<u32>(), n).fill(*from.cast::<u32>()),
            _ => std::slice::from_raw_parts_mut(to.cast::<u64>(), n).fill(*from.cast::<u64>()),
        }
    }
}
