//! Phases: which instructions run together on the rows of one domain, and in which order.

use crate::merge::sums_over_rows;
use rtx_ir::{Dim, Graph, Instruction, Op, ValueId};
use std::collections::BTreeMap;

/// How an instruction takes part in the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// An input or constant: in memory from the start.
    Leaf,
    /// One result row for each row of the domain (`None`: scalars).
    Row(Option<Dim>),
    /// A reduction over the rows of the domain.
    Sink(Option<Dim>),
    /// The same elements under another shape.
    View,
    /// Whole arrays in, whole array out.
    Whole,
}

/// Instructions of one kernel.
pub(crate) enum Cluster {
    /// A row kernel.
    Rows(Option<Dim>, Vec<ValueId>),
    /// A single whole-array operation.
    Whole(ValueId),
    /// A view.
    View(ValueId),
}

/// The phases of a graph in order.
pub(crate) struct Clusters {
    pub(crate) roles: Vec<Role>,
    pub(crate) order: Vec<Cluster>,
    /// Kernel of each instruction, as (level, domain) where it is a row or a sink.
    pub(crate) level: Vec<usize>,
}

impl Clusters {
    /// True if both run in one row kernel.
    pub(crate) fn together(&self, a: ValueId, b: ValueId) -> bool {
        self.level[a] == self.level[b]
            && self.domain(a).is_some()
            && self.domain(a) == self.domain(b)
    }

    /// Domain of a row or sink.
    pub(crate) fn domain(&self, k: ValueId) -> Option<Option<Dim>> {
        domain_of(self.roles[k])
    }
}

fn domain_of(role: Role) -> Option<Option<Dim>> {
    match role {
        Role::Row(d) | Role::Sink(d) => Some(d),
        _ => None,
    }
}

/// Broadcasts of values that do not vary by row are read in place by their users.
pub(crate) fn is_row_invariant_broadcast(graph: &Graph, k: ValueId) -> bool {
    let i = &graph.instructions[k];
    match &i.op {
        Op::Broadcast(axes) => !broadcast_is_by_row(graph, i, axes),
        _ => false,
    }
}

/// Broadcasts that elementwise users read at the source, in whatever kernel they are.
pub(crate) fn is_read_at_source(graph: &Graph, k: ValueId) -> bool {
    is_row_invariant_broadcast(graph, k) && simple_row_broadcast(graph, k)
}

fn broadcast_is_by_row(graph: &Graph, i: &Instruction, axes: &[usize]) -> bool {
    let from = &graph.instructions[i.inputs[0]].shape;
    axes.first() == Some(&0) && from.dims()[0] == i.shape.dims()[0]
}

fn role(graph: &Graph, i: &Instruction) -> Role {
    let first = i.shape.dims().first().copied();
    let shape = |k: usize| &graph.instructions[i.inputs[k]].shape;
    match &i.op {
        Op::Data | Op::Input(_) | Op::Constant(_) => Role::Leaf,
        Op::Unary(_) | Op::Binary(_) | Op::Select | Op::Cast | Op::Identity { .. } => {
            Role::Row(first)
        }
        Op::Broadcast(_) if first.is_some() => Role::Row(first),
        Op::Reshape => {
            let from = shape(0).dims().first().copied();
            if from == first && first.is_some() {
                Role::Row(first)
            } else {
                Role::View
            }
        }
        Op::Reduce(_, axes) => {
            if axes[..] == [0] {
                Role::Sink(shape(0).dims().first().copied())
            } else if axes[0] > 0 {
                Role::Row(first)
            } else {
                Role::Whole
            }
        }
        Op::Dot(d) if i.dtype.is_float() => {
            let rank = shape(0).rank();
            let row_by_matrix = d.lhs_batch.is_empty()
                && rank >= 2
                && d.lhs_contract[..] == [rank - 1]
                && shape(1).rank() == 2
                && shape(1).rows().is_none();
            if row_by_matrix {
                Role::Row(first)
            } else if sums_over_rows(graph, i) {
                Role::Sink(shape(0).dims().first().copied())
            } else {
                Role::Whole
            }
        }
        Op::Permute(perm) if perm.first() == Some(&0) => Role::Row(first),
        Op::Slice { axis, .. } | Op::Pad { axis, .. } | Op::Concat(axis) if *axis > 0 => {
            Role::Row(first)
        }
        Op::Gather if shape(1).rank() > 0 => Role::Row(first),
        Op::Iota(_) | Op::Random(_) if first.is_some() => Role::Row(first),
        _ => Role::Whole,
    }
}

/// True if operand `operand` is read row by row (so that its producer may be in the same kernel).
fn reads_by_row(graph: &Graph, i: &Instruction, operand: usize) -> bool {
    match &i.op {
        Op::Broadcast(axes) => broadcast_is_by_row(graph, i, axes),
        Op::Dot(_) if i.inputs.len() == 2 && !sums_over_rows(graph, i) => operand == 0,
        Op::Dot(_) => true,
        Op::Gather => operand == 1,
        Op::Random(_) => false,
        _ => true,
    }
}

/// A product with a matrix counts as row-wise first; `sums_over_rows` alone cannot tell it from a sum.
fn operand_by_row(graph: &Graph, roles: &[Role], k: ValueId, operand: usize) -> bool {
    let i = &graph.instructions[k];
    match (roles[k], &i.op) {
        (Role::Row(_), Op::Dot(_)) => operand == 0,
        _ => reads_by_row(graph, i, operand),
    }
}

pub(crate) fn cluster(graph: &Graph) -> Clusters {
    let n = graph.instructions.len();
    let roles: Vec<Role> = graph.instructions.iter().map(|i| role(graph, i)).collect();
    let fused = |p: ValueId, k: ValueId, operand: usize| {
        matches!(roles[p], Role::Row(_))
            && domain_of(roles[p]) == domain_of(roles[k])
            && operand_by_row(graph, &roles, k, operand)
    };
    let mut level = vec![0usize; n];
    for (k, i) in graph.instructions.iter().enumerate() {
        if matches!(i.op, Op::RowCount) {
            continue;
        }
        for (operand, &p) in i.inputs.iter().enumerate() {
            let needed = match roles[p] {
                Role::Leaf => 0,
                _ if fused(p, k, operand) => level[p],
                _ => level[p] + 1,
            };
            level[k] = level[k].max(needed);
        }
    }
    let deepest = level.iter().copied().max().unwrap_or(0);
    let mut latest = vec![deepest; n];
    for k in (0..n)
        .rev()
        .filter(|&k| !matches!(graph.instructions[k].op, Op::RowCount))
    {
        for (operand, &p) in graph.instructions[k].inputs.iter().enumerate() {
            let bound = if fused(p, k, operand) {
                latest[k]
            } else {
                latest[k].saturating_sub(1)
            };
            latest[p] = latest[p].min(bound);
        }
    }
    // Where a computation on rows starts, it waits as long as its users allow; the rest follows as early
    // as it can. The rows of one computation then meet in one kernel.
    for (k, i) in graph.instructions.iter().enumerate() {
        let mut earliest = 0;
        let mut starts = true;
        for (operand, &p) in i
            .inputs
            .iter()
            .enumerate()
            .filter(|_| !matches!(i.op, Op::RowCount))
        {
            let joined = fused(p, k, operand);
            starts &= !joined;
            earliest = earliest.max(match roles[p] {
                Role::Leaf => 0,
                _ if joined => level[p],
                _ => level[p] + 1,
            });
        }
        let waits = starts && matches!(roles[k], Role::Row(_));
        level[k] = if waits {
            earliest.max(latest[k])
        } else {
            earliest
        };
    }
    let mut rows: BTreeMap<(usize, String), (Option<Dim>, Vec<ValueId>)> = BTreeMap::new();
    let mut others: BTreeMap<usize, Vec<Cluster>> = BTreeMap::new();
    for k in 0..n {
        match roles[k] {
            Role::Leaf => {}
            Role::Row(_) if is_row_invariant_broadcast(graph, k) && !needs_memory(graph, k) => {}
            Role::Row(d) | Role::Sink(d) => {
                rows.entry((level[k], format!("{d:?}")))
                    .or_insert((d, Vec::new()))
                    .1
                    .push(k);
            }
            Role::View => others.entry(level[k]).or_default().push(Cluster::View(k)),
            Role::Whole => others.entry(level[k]).or_default().push(Cluster::Whole(k)),
        }
    }
    let last = level.iter().copied().max().unwrap_or(0);
    let mut order = Vec::new();
    for l in 0..=last {
        order.extend(others.remove(&l).unwrap_or_default());
        let keys: Vec<_> = rows.keys().filter(|(x, _)| *x == l).cloned().collect();
        for key in keys {
            if let Some((d, members)) = rows.remove(&key) {
                order.push(Cluster::Rows(d, members));
            }
        }
    }
    Clusters {
        roles,
        order,
        level,
    }
}

/// True if a broadcast is read by something else than an elementwise operation.
fn needs_memory(graph: &Graph, k: ValueId) -> bool {
    let elementwise =
        |i: &Instruction| matches!(i.op, Op::Unary(_) | Op::Binary(_) | Op::Select | Op::Cast);
    graph.outputs.contains(&k)
        || graph
            .instructions
            .iter()
            .any(|i| i.inputs.contains(&k) && !elementwise(i))
        || !simple_row_broadcast(graph, k)
}

/// True if the operand is one number, or exactly one row of the result.
pub(crate) fn simple_row_broadcast(graph: &Graph, k: ValueId) -> bool {
    let i = &graph.instructions[k];
    let from = &graph.instructions[i.inputs[0]].shape;
    let Op::Broadcast(axes) = &i.op else {
        return false;
    };
    if from.elements() == Some(1) {
        return true;
    }
    // Leading unit axes of the operand do not matter.
    let skip = from.dims().iter().take_while(|d| d.is_one()).count();
    let row = &i.shape.dims()[1..];
    let kept = &from.dims()[skip..];
    let lead = row.iter().take_while(|d| d.is_one()).count();
    kept == &row[lead.min(row.len())..]
        && axes.last() == Some(&(i.shape.rank() - 1))
        && axes[skip..].windows(2).all(|w| w[1] == w[0] + 1)
}
