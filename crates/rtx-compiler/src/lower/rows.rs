//! One row kernel: tiles, steps, accumulators and scratch.

use crate::cluster::{is_read_at_source, is_row_invariant_broadcast, simple_row_broadcast};
use crate::lower::Lowering;
use crate::lower::order::{Unit, order};
use crate::program::{
    Accumulator, Block, DotGroup, Elementwise, Operand, Place, Primitive, Rearrange, RowKernel,
    Source, Step, SumGroup, Tile, TileId,
};
use crate::scratch::Scratch;
use rtx_ir::{Dim, Op, ReduceKind, Shape, ValueId};
use std::collections::{HashMap, HashSet};

/// True if `user` can read a broadcast operand at its source.
pub(crate) fn reads_broadcast_in_place(l: &Lowering<'_>, user: ValueId) -> bool {
    matches!(
        l.graph.instructions[user].op,
        Op::Unary(_) | Op::Binary(_) | Op::Select | Op::Cast
    )
}

/// Extents of one row.
fn row_dims(shape: &Shape) -> Vec<usize> {
    shape
        .dims()
        .iter()
        .skip(1)
        .filter_map(|d| d.fixed())
        .collect()
}

fn strides(dims: &[usize]) -> Vec<usize> {
    let mut s = vec![1; dims.len()];
    for i in (0..dims.len().saturating_sub(1)).rev() {
        s[i] = s[i + 1] * dims[i + 1];
    }
    s
}

struct Builder<'a, 'b> {
    l: &'a Lowering<'b>,
    /// Values read in place by their users.
    skip: HashSet<ValueId>,
    tile_of: HashMap<ValueId, TileId>,
    kernel: RowKernel,
    /// Steps at which each tile is written or read.
    touched: Vec<(usize, usize)>,
    flops: f64,
}

pub(crate) fn lower_rows(
    l: &mut Lowering<'_>,
    domain: Option<Dim>,
    members: &[ValueId],
) -> RowKernel {
    let skip: HashSet<ValueId> = members
        .iter()
        .copied()
        .filter(|&k| read_in_place(l, k))
        .collect();
    let units = order(l, members, &skip);
    let mut b = Builder {
        l,
        skip,
        tile_of: HashMap::new(),
        kernel: RowKernel {
            domain,
            tiles: Vec::new(),
            steps: Vec::new(),
            accumulators: Vec::new(),
            scratch_per_row: 0,
            flops_per_row: 0.0,
        },
        touched: Vec::new(),
        flops: 0.0,
    };
    for unit in &units {
        match unit {
            Unit::Elementwise(block) => b.elementwise(block),
            Unit::Dots(group) => b.dots(group),
            Unit::Single(k) => b.single(*k),
        }
    }
    b.place();
    b.kernel.flops_per_row = b.flops;
    b.kernel
}

/// Broadcasts that every user reads at the source: no tile, no copy.
fn read_in_place(l: &Lowering<'_>, k: ValueId) -> bool {
    let i = &l.graph.instructions[k];
    if !matches!(i.op, Op::Broadcast(_)) || l.buffer[k].is_some() {
        return false;
    }
    if !l.users[k].iter().all(|&u| reads_broadcast_in_place(l, u)) {
        return false;
    }
    if is_row_invariant_broadcast(l.graph, k) {
        return simple_row_broadcast(l.graph, k);
    }
    // One number per row, repeated along the row.
    l.graph.instructions[i.inputs[0]]
        .shape
        .row_elements_after_first()
        == 1
}

trait RowWidth {
    fn row_elements_after_first(&self) -> usize;
}

impl RowWidth for Shape {
    fn row_elements_after_first(&self) -> usize {
        self.dims()
            .iter()
            .skip(1)
            .filter_map(|d| d.fixed())
            .product()
    }
}

impl Builder<'_, '_> {
    fn width(&self, k: ValueId) -> usize {
        self.l.graph.instructions[k]
            .shape
            .row_elements_after_first()
    }

    /// The tile of a row value, made on first sight; values with a buffer live there.
    fn tile(&mut self, k: ValueId) -> TileId {
        let step = self.kernel.steps.len();
        let id = match self.tile_of.get(&k) {
            Some(&t) => t,
            None => {
                let place = self.l.buffer[k].map_or(Place::Registers, Place::Buffer);
                let dtype = self.l.graph.instructions[k].dtype;
                self.kernel.tiles.push(Tile {
                    dtype,
                    columns: self.width(k),
                    place,
                });
                self.touched.push((step, step));
                self.tile_of.insert(k, self.kernel.tiles.len() - 1);
                self.kernel.tiles.len() - 1
            }
        };
        self.touched[id].1 = step;
        id
    }

    /// Marks a tile as living in scratch unless it has a buffer.
    fn in_memory(&mut self, k: ValueId) -> TileId {
        let t = self.tile(k);
        if self.kernel.tiles[t].place == Place::Registers {
            self.kernel.tiles[t].place = Place::Scratch(usize::MAX);
        }
        t
    }

    /// How an elementwise operation reads `k`.
    fn operand(&mut self, k: ValueId, registers: &HashMap<ValueId, usize>) -> Operand {
        if let Some(&r) = registers.get(&k) {
            return Operand::Register(r);
        }
        let i = &self.l.graph.instructions[k];
        let read_through = self.skip.contains(&k)
            || (is_read_at_source(self.l.graph, k) && self.l.buffer[k].is_none());
        if read_through {
            let from = i.inputs[0];
            if is_row_invariant_broadcast(self.l.graph, k) {
                let one = self.l.graph.instructions[from].shape.elements() == Some(1);
                return match self.l.buffer[from] {
                    Some(b) if one => Operand::Scalar(b),
                    Some(b) => Operand::Row(b),
                    None => Operand::Tile(self.in_memory(from)),
                };
            }
            return Operand::RowScalar(self.in_memory(from));
        }
        match self.l.buffer[k] {
            Some(b) if i.shape.rank() == 0 && self.kernel.domain.is_some() => Operand::Scalar(b),
            _ => Operand::Tile(self.in_memory(k)),
        }
    }

    fn elementwise(&mut self, block: &[ValueId]) {
        let members: HashSet<ValueId> = block.iter().copied().collect();
        let l = self.l;
        let stays = |k: ValueId| {
            l.buffer[k].is_none()
                && l.users[k].iter().all(|u| members.contains(u))
                && !l.users[k].is_empty()
        };
        let last_use: HashMap<ValueId, usize> = block
            .iter()
            .enumerate()
            .flat_map(|(n, &k)| l.graph.instructions[k].inputs.iter().map(move |&x| (x, n)))
            .collect();
        let mut registers: HashMap<ValueId, usize> = HashMap::new();
        let mut free: Vec<usize> = Vec::new();
        let mut count = 0;
        let mut operations = Vec::new();
        for (n, &k) in block.iter().enumerate() {
            let i = &l.graph.instructions[k];
            let from: Vec<Operand> = i
                .inputs
                .iter()
                .map(|&x| self.operand(x, &registers))
                .collect();
            let to = if stays(k) {
                let r = free.pop().unwrap_or_else(|| {
                    count += 1;
                    count - 1
                });
                registers.insert(k, r);
                Operand::Register(r)
            } else {
                Operand::Tile(self.in_memory(k))
            };
            for &x in &i.inputs {
                if last_use.get(&x) == Some(&n)
                    && let Some(r) = registers.remove(&x)
                {
                    free.push(r);
                }
            }
            let primitive = match &i.op {
                Op::Unary(u) => Primitive::Unary(*u),
                Op::Binary(b) => Primitive::Binary(*b),
                Op::Select => Primitive::Select,
                Op::Cast => Primitive::Cast,
                _ => Primitive::Move,
            };
            let typed = i.inputs[usize::from(matches!(i.op, Op::Select))];
            let dtype = l.graph.instructions[typed].dtype;
            operations.push(Elementwise {
                primitive,
                dtype,
                out_dtype: i.dtype,
                to,
                from,
            });
        }
        let columns = block.first().map_or(1, |&k| self.width(k));
        self.flops += (columns * operations.len()) as f64;
        self.kernel.steps.push(Step::Elementwise(Block {
            columns,
            operations,
            registers: count,
        }));
    }

    fn dots(&mut self, group: &[ValueId]) {
        let l = self.l;
        let i = &l.graph.instructions[group[0]];
        let Op::Dot(d) = &i.op else { return };
        let lhs_shape = &l.graph.instructions[i.inputs[0]].shape;
        let matrix = row_or_matrix_dims(&l.graph.instructions[i.inputs[1]].shape);
        let contract = d.rhs_contract[0];
        let (k, n) = (matrix[contract], matrix[1 - contract]);
        let strides = if contract == 0 {
            (matrix[1], 1)
        } else {
            (1, matrix[1])
        };
        let row = lhs_shape.row_elements_after_first();
        let inner = row.checked_div(k).unwrap_or(0);
        let lhs = group
            .iter()
            .map(|&g| self.in_memory(l.graph.instructions[g].inputs[0]))
            .collect();
        let out = group.iter().map(|&g| self.in_memory(g)).collect();
        self.flops += (2 * inner * k * n * group.len()) as f64;
        let rhs = l.buffer[i.inputs[1]].unwrap_or(0);
        self.kernel.steps.push(Step::Dot(DotGroup {
            lhs,
            out,
            rhs,
            inner,
            k,
            n,
            strides,
        }));
    }

    fn accumulator(&mut self, k: ValueId, kind: ReduceKind) -> usize {
        let i = &self.l.graph.instructions[k];
        let elements = i.shape.elements().unwrap_or(0);
        let buffer = self.l.buffer[k].unwrap_or(0);
        self.kernel.accumulators.push(Accumulator {
            dtype: i.dtype,
            elements,
            kind,
            buffer,
        });
        self.kernel.accumulators.len() - 1
    }

    fn single(&mut self, k: ValueId) {
        let l = self.l;
        let i = &l.graph.instructions[k];
        let out_row = row_dims(&i.shape);
        let from_row = i
            .inputs
            .first()
            .map(|&x| row_dims(&l.graph.instructions[x].shape))
            .unwrap_or_default();
        match &i.op {
            Op::Dot(d) => {
                let kept = |x: ValueId| {
                    let s = &l.graph.instructions[x].shape;
                    if s.rank() > d.lhs_contract.len() {
                        s.dims().last().and_then(|d| d.fixed()).unwrap_or(1)
                    } else {
                        1
                    }
                };
                let (m, n) = (kept(i.inputs[0]), kept(i.inputs[1]));
                let inner = from_row
                    .iter()
                    .product::<usize>()
                    .checked_div(m)
                    .unwrap_or(0);
                // A vector operand has no column axis of its own.
                let inner = if from_row.is_empty() { 1 } else { inner };
                let pairs: Vec<_> = i
                    .inputs
                    .chunks(2)
                    .map(|p| (self.in_memory(p[0]), self.in_memory(p[1])))
                    .collect();
                let into = self.accumulator(k, ReduceKind::Sum);
                self.flops += (2 * inner * m * n * pairs.len()) as f64;
                let (x, y) = pairs.into_iter().unzip();
                self.kernel.steps.push(Step::SumDot(SumGroup {
                    x,
                    y,
                    into,
                    inner,
                    m,
                    n,
                }));
            }
            Op::Reduce(kind, axes) if axes[..] == [0] => {
                let tile = self.in_memory(i.inputs[0]);
                let into = self.accumulator(k, *kind);
                self.flops += self.width(i.inputs[0]) as f64;
                self.kernel.steps.push(Step::SumRows { tile, into });
            }
            Op::Reduce(kind, axes) => {
                let from = self.in_memory(i.inputs[0]);
                let to = self.in_memory(k);
                let axes = axes.iter().map(|a| a - 1).collect();
                self.flops += self.width(i.inputs[0]) as f64;
                self.kernel.steps.push(Step::Reduce {
                    kind: *kind,
                    from,
                    to,
                    dims: from_row,
                    axes,
                });
            }
            Op::Reshape => self.copy(
                k,
                i.inputs[0],
                &[self.width(k)],
                vec![1],
                vec![1],
                0,
                0,
                false,
            ),
            Op::Permute(perm) => {
                let s = strides(&from_row);
                let step = perm[1..].iter().map(|&p| s[p - 1]).collect();
                self.copy(
                    k,
                    i.inputs[0],
                    &out_row,
                    step,
                    strides(&out_row),
                    0,
                    0,
                    false,
                );
            }
            Op::Slice { axis, start, .. } => {
                let s = strides(&from_row);
                let base = start * s[axis - 1];
                self.copy(
                    k,
                    i.inputs[0],
                    &out_row,
                    s,
                    strides(&out_row),
                    base,
                    0,
                    false,
                );
            }
            Op::Pad { axis, before, .. } => {
                let to = strides(&out_row);
                let base = before * to[axis - 1];
                self.copy(
                    k,
                    i.inputs[0],
                    &from_row,
                    strides(&from_row),
                    to,
                    0,
                    base,
                    true,
                );
            }
            Op::Concat(axis) => {
                let to = strides(&out_row);
                let mut at = 0;
                for &x in &i.inputs {
                    let part = row_dims(&l.graph.instructions[x].shape);
                    self.copy(
                        k,
                        x,
                        &part,
                        strides(&part),
                        to.clone(),
                        0,
                        at * to[axis - 1],
                        false,
                    );
                    at += part[axis - 1];
                }
            }
            Op::Broadcast(axes) => {
                let from = &l.graph.instructions[i.inputs[0]].shape;
                let by_row = !is_row_invariant_broadcast(l.graph, k);
                let dims: Vec<usize> = from.dims().iter().map(|d| d.fixed().unwrap_or(1)).collect();
                let mut s = strides(&dims);
                if by_row {
                    s[0] = 0;
                }
                let mut step = vec![0; out_row.len()];
                for (n, &a) in axes.iter().enumerate().filter(|(_, a)| **a > 0) {
                    step[a - 1] = if dims[n] == 1 { 0 } else { s[n] };
                }
                self.copy(
                    k,
                    i.inputs[0],
                    &out_row,
                    step,
                    strides(&out_row),
                    0,
                    0,
                    false,
                );
            }
            Op::Gather => {
                let width = l.graph.instructions[i.inputs[0]]
                    .shape
                    .row_elements_after_first();
                let index = self.in_memory(i.inputs[1]);
                let to = self.in_memory(k);
                let table = l.buffer[i.inputs[0]].unwrap_or(0);
                self.kernel.steps.push(Step::Gather {
                    table,
                    index,
                    to,
                    width,
                });
            }
            Op::Iota(axis) => {
                let to = self.in_memory(k);
                let inner = (*axis > 0).then(|| (strides(&out_row)[axis - 1], out_row[axis - 1]));
                self.kernel.steps.push(Step::Iota { to, inner });
            }
            Op::Random(kind) => {
                let to = self.in_memory(k);
                let key = l.buffer[i.inputs[0]].unwrap_or(0);
                self.kernel.steps.push(Step::Random {
                    kind: *kind,
                    key,
                    to,
                });
            }
            _ => {}
        }
    }

    #[allow(clippy::too_many_arguments)]
    fn copy(
        &mut self,
        k: ValueId,
        from: ValueId,
        dims: &[usize],
        step_from: Vec<usize>,
        step_to: Vec<usize>,
        base_from: usize,
        base_to: usize,
        clear: bool,
    ) {
        let i = &self.l.graph.instructions[k];
        let invariant =
            matches!(i.op, Op::Broadcast(_)) && is_row_invariant_broadcast(self.l.graph, k);
        let from = match self.l.buffer[from] {
            Some(b) if invariant => Source::Array(b),
            _ => Source::Tile(self.in_memory(from)),
        };
        let to = self.in_memory(k);
        self.kernel.steps.push(Step::Copy(Rearrange {
            from,
            to,
            dims: dims.to_vec(),
            step_from,
            step_to,
            base_from,
            base_to,
            clear,
        }));
    }

    /// Gives scratch to the tiles that need it; operands of one product stand side by side.
    fn place(&mut self) {
        let mut scratch = Scratch::default();
        let mut done = vec![false; self.kernel.tiles.len()];
        let groups: Vec<Vec<TileId>> = self
            .kernel
            .steps
            .iter()
            .flat_map(|s| match s {
                Step::Dot(d) => vec![d.lhs.clone(), d.out.clone()],
                Step::SumDot(d) => vec![d.x.clone(), d.y.clone()],
                _ => vec![],
            })
            .filter(|g| g.len() > 1)
            .collect();
        for group in groups {
            let fresh = group
                .iter()
                .all(|&t| matches!(self.kernel.tiles[t].place, Place::Scratch(_)) && !done[t]);
            let distinct: HashSet<TileId> = group.iter().copied().collect();
            if !fresh || distinct.len() != group.len() {
                continue;
            }
            let first = group.iter().map(|&t| self.touched[t].0).min().unwrap_or(0);
            let last = group.iter().map(|&t| self.touched[t].1).max().unwrap_or(0);
            let size: usize = group.iter().map(|&t| self.bytes(t)).sum();
            let mut at = scratch.place(size, first, last);
            for &t in &group {
                self.kernel.tiles[t].place = Place::Scratch(at);
                at += self.bytes(t);
                done[t] = true;
            }
        }
        for t in 0..self.kernel.tiles.len() {
            if matches!(self.kernel.tiles[t].place, Place::Scratch(_)) && !done[t] {
                let (first, last) = self.touched[t];
                self.kernel.tiles[t].place =
                    Place::Scratch(scratch.place(self.bytes(t), first, last));
            }
        }
        self.kernel.scratch_per_row = scratch.size;
    }

    fn bytes(&self, t: TileId) -> usize {
        let tile = &self.kernel.tiles[t];
        (tile.columns * tile.dtype.size()).next_multiple_of(8)
    }
}

fn row_or_matrix_dims(shape: &Shape) -> Vec<usize> {
    shape
        .dims()
        .iter()
        .map(|d| d.fixed().unwrap_or(1))
        .collect()
}
