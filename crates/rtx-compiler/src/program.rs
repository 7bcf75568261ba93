//! The compiled program that every backend executes or translates.

use crate::Precision;
use rtx_ir::{BinaryOp, DType, Dim, Op, RandomKind, ReduceKind, Shape, UnaryOp, Value};

/// Number of a buffer of a [`Program`]. The program's inputs come first.
pub type BufferId = usize;
/// Number of a tile of a [`RowKernel`].
pub type TileId = usize;

/// An array in memory.
#[derive(Clone, Debug)]
pub struct BufferInfo {
    /// Element type.
    pub dtype: DType,
    /// Shape; a leading extent may be a run-time row count.
    pub shape: Shape,
}

/// A compiled program.
#[derive(Clone, Default)]
pub struct Program {
    /// Number of inputs, which are buffers `0..inputs`.
    pub inputs: usize,
    /// All buffers.
    pub buffers: Vec<BufferInfo>,
    /// Buffers whose contents are known at compilation.
    pub constants: Vec<(BufferId, Value)>,
    /// Buffers that share the elements of another one under another shape: (this, that).
    pub views: Vec<(BufferId, BufferId)>,
    /// Kernels in order.
    pub kernels: Vec<Kernel>,
    /// Buffers that the caller gets.
    pub outputs: Vec<BufferId>,
    /// State from step to step: pairs of an input and the output (position in `outputs`) that it becomes.
    pub carry: Vec<(usize, usize)>,
    /// Least exact arithmetic allowed for products of `f32` arrays and tiles.
    pub precision: Precision,
}

/// One kernel.
#[derive(Clone)]
pub enum Kernel {
    /// Work on blocks of rows.
    Rows(RowKernel),
    /// One operation on whole arrays.
    Whole(WholeKernel),
}

/// One operation on whole arrays.
#[derive(Clone, Debug)]
pub struct WholeKernel {
    /// The operation.
    pub op: Op,
    /// Operands.
    pub inputs: Vec<BufferId>,
    /// Result.
    pub output: BufferId,
    /// For a row count: the extent that is counted.
    pub rows: Option<Dim>,
}

/// Work on blocks of rows of one domain.
#[derive(Clone)]
pub struct RowKernel {
    /// Extent that is cut into blocks; `None` for work on scalars (one row).
    pub domain: Option<Dim>,
    /// Row values.
    pub tiles: Vec<Tile>,
    /// What is done for every block of rows.
    pub steps: Vec<Step>,
    /// Sums over rows.
    pub accumulators: Vec<Accumulator>,
    /// Scratch bytes for each row of a block.
    pub scratch_per_row: usize,
    /// Floating-point operations for each row.
    pub flops_per_row: f64,
}

/// A value with one entry per row, `columns` elements each, row-major.
#[derive(Clone, Copy, Debug)]
pub struct Tile {
    /// Element type.
    pub dtype: DType,
    /// Elements per row.
    pub columns: usize,
    /// Where its elements are.
    pub place: Place,
}

/// Where the elements of a tile are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Rows of an array in memory.
    Buffer(BufferId),
    /// Scratch of the block, at this many bytes per row of the block.
    Scratch(usize),
    /// Nowhere: the value lives in registers of one elementwise block.
    Registers,
}

/// A sum (or maximum, ...) over rows.
#[derive(Clone, Copy, Debug)]
pub struct Accumulator {
    /// Element type.
    pub dtype: DType,
    /// Number of elements.
    pub elements: usize,
    /// How rows are combined.
    pub kind: ReduceKind,
    /// Where the result goes.
    pub buffer: BufferId,
}

/// One step of a row kernel.
#[derive(Clone, Debug)]
pub enum Step {
    /// Fused elementwise operations.
    Elementwise(Block),
    /// Products of tiles with one matrix.
    Dot(DotGroup),
    /// Products of tiles summed over rows into an accumulator.
    SumDot(SumGroup),
    /// Sum of a tile's rows into an accumulator.
    SumRows {
        /// Tile.
        tile: TileId,
        /// Accumulator.
        into: usize,
    },
    /// Reduction over axes within each row. `dims` are the extents of the operand's row.
    Reduce {
        /// How elements are combined.
        kind: ReduceKind,
        /// Operand.
        from: TileId,
        /// Result.
        to: TileId,
        /// Extents of one row of the operand.
        dims: Vec<usize>,
        /// Which of them are reduced.
        axes: Vec<usize>,
    },
    /// Rearrangement within each row.
    Copy(Rearrange),
    /// Rows of a table picked by an index tile.
    Gather {
        /// Table.
        table: BufferId,
        /// Indices, one row of `columns` per row.
        index: TileId,
        /// Result.
        to: TileId,
        /// Elements of one row of the table.
        width: usize,
    },
    /// 0, 1, 2, ... along an axis; `None` counts rows.
    Iota {
        /// Result.
        to: TileId,
        /// Elements that share one number, and how many numbers there are before they repeat; `None` for the row number.
        inner: Option<(usize, usize)>,
    },
    /// Random numbers by element index.
    Random {
        /// Distribution.
        kind: RandomKind,
        /// Scalar key.
        key: BufferId,
        /// Result.
        to: TileId,
    },
}

/// Tiles times one matrix: `out[i] = lhs[i] * rhs` for each `i`, in one product where the tiles are adjacent.
#[derive(Clone, Debug)]
pub struct DotGroup {
    /// Left operands, `[rows * inner, k]` each.
    pub lhs: Vec<TileId>,
    /// Results, `[rows * inner, n]` each.
    pub out: Vec<TileId>,
    /// The matrix.
    pub rhs: BufferId,
    /// Rows of the product for each row of the block.
    pub inner: usize,
    /// Length of the sum.
    pub k: usize,
    /// Columns of the result.
    pub n: usize,
    /// Distance of neighbours along k and along n in the matrix.
    pub strides: (usize, usize),
}

/// `accumulator += sum_i x[i]^T y[i]`.
#[derive(Clone, Debug)]
pub struct SumGroup {
    /// Left operands, `[rows * inner, m]` each.
    pub x: Vec<TileId>,
    /// Right operands, `[rows * inner, n]` each.
    pub y: Vec<TileId>,
    /// Accumulator of `[m, n]`.
    pub into: usize,
    /// Rows of the product for each row of the block.
    pub inner: usize,
    /// Columns of the left operands.
    pub m: usize,
    /// Columns of the right operands.
    pub n: usize,
}

/// Elements moved within each row: for every index of `dims`, `to[base_to + i . step_to] = from[base_from + i . step_from]`.
#[derive(Clone, Debug)]
pub struct Rearrange {
    /// Source: a tile, or an array that is the same for all rows.
    pub from: Source,
    /// Result.
    pub to: TileId,
    /// Extents of the region moved.
    pub dims: Vec<usize>,
    /// Steps in a row of the source.
    pub step_from: Vec<usize>,
    /// Steps in a row of the result.
    pub step_to: Vec<usize>,
    /// First element in a row of the source.
    pub base_from: usize,
    /// First element in a row of the result.
    pub base_to: usize,
    /// Set the whole row of the result to zero first.
    pub clear: bool,
}

/// Source of a [`Rearrange`].
#[derive(Clone, Copy, Debug)]
pub enum Source {
    /// A row value.
    Tile(TileId),
    /// An array that is the same for all rows.
    Array(BufferId),
}

/// Fused elementwise operations on tiles of `columns` elements per row.
#[derive(Clone, Debug)]
pub struct Block {
    /// Elements per row.
    pub columns: usize,
    /// Operations in order.
    pub operations: Vec<Elementwise>,
    /// Number of registers needed at once.
    pub registers: usize,
}

/// One elementwise operation.
#[derive(Clone, Debug)]
pub struct Elementwise {
    /// What is done.
    pub primitive: Primitive,
    /// Element type of the operands (of the branches for a select).
    pub dtype: DType,
    /// Element type of the result.
    pub out_dtype: DType,
    /// Where the result goes.
    pub to: Operand,
    /// Operands.
    pub from: Vec<Operand>,
}

/// What an elementwise operation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Primitive {
    /// One operand.
    Unary(UnaryOp),
    /// Two operands.
    Binary(BinaryOp),
    /// Condition and two branches.
    Select,
    /// Conversion.
    Cast,
    /// The operand itself.
    Move,
}

/// Operand of an elementwise operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operand {
    /// A value inside the block.
    Register(usize),
    /// The same element of a tile.
    Tile(TileId),
    /// The first element of a tile's row, for the whole row.
    RowScalar(TileId),
    /// An array of one row, the same for all rows.
    Row(BufferId),
    /// One number.
    Scalar(BufferId),
}
