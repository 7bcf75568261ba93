//! Clusters to kernels: buffers for what crosses kernels, tiles and steps for what stays inside.

mod order;
mod rows;

use crate::cluster::{Cluster, Clusters, Role, is_read_at_source, is_row_invariant_broadcast};
use crate::program::{BufferId, BufferInfo, Kernel, Program, WholeKernel};
use rtx_ir::eval::HostArray;
use rtx_ir::{Graph, Op, Value, ValueId};
use std::sync::Arc;

/// What the lowering of one cluster needs to know of the whole.
pub(crate) struct Lowering<'a> {
    pub(crate) graph: &'a Graph,
    pub(crate) clusters: &'a Clusters,
    /// Buffer of each value that crosses kernels.
    pub(crate) buffer: Vec<Option<BufferId>>,
    pub(crate) users: Vec<Vec<ValueId>>,
    pub(crate) program: Program,
}

pub(crate) fn lower(graph: &Graph, clusters: &Clusters) -> Program {
    let mut users = vec![Vec::new(); graph.instructions.len()];
    for (k, i) in graph.instructions.iter().enumerate() {
        i.inputs.iter().for_each(|&x| users[x].push(k));
    }
    let mut l = Lowering {
        graph,
        clusters,
        buffer: vec![None; graph.instructions.len()],
        users,
        program: Program {
            inputs: graph.inputs.len(),
            ..Program::default()
        },
    };
    l.assign_buffers();
    for c in &clusters.order {
        match c {
            Cluster::Rows(domain, members) => {
                let kernel = rows::lower_rows(&mut l, *domain, members);
                l.program.kernels.push(Kernel::Rows(kernel));
            }
            Cluster::Whole(k) => {
                if let Some(output) = l.buffer[*k] {
                    let i = &graph.instructions[*k];
                    let counted = matches!(i.op, Op::RowCount);
                    let rows = counted
                        .then(|| {
                            graph.instructions[i.inputs[0]]
                                .shape
                                .dims()
                                .first()
                                .copied()
                        })
                        .flatten();
                    let inputs = if counted {
                        Vec::new()
                    } else {
                        i.inputs.iter().filter_map(|&x| l.buffer[x]).collect()
                    };
                    l.program.kernels.push(Kernel::Whole(WholeKernel {
                        op: i.op.clone(),
                        inputs,
                        output,
                        rows,
                    }));
                }
            }
            Cluster::View(k) => {
                if let (Some(this), Some(that)) =
                    (l.buffer[*k], l.buffer[graph.instructions[*k].inputs[0]])
                {
                    l.program.views.push((this, that));
                }
            }
        }
    }
    l.program.outputs = graph.outputs.iter().filter_map(|&o| l.buffer[o]).collect();
    l.program
}

impl Lowering<'_> {
    fn new_buffer(&mut self, k: ValueId) -> BufferId {
        let i = &self.graph.instructions[k];
        self.program.buffers.push(BufferInfo {
            dtype: i.dtype,
            shape: i.shape.clone(),
        });
        self.program.buffers.len() - 1
    }

    fn assign_buffers(&mut self) {
        for i in &self.graph.inputs {
            self.program.buffers.push(BufferInfo {
                dtype: i.dtype,
                shape: i.shape.clone(),
            });
        }
        for k in 0..self.graph.instructions.len() {
            let i = &self.graph.instructions[k];
            self.buffer[k] = match (&i.op, self.clusters.roles[k]) {
                (Op::Input(n), _) => Some(*n),
                (Op::Constant(c), _) => {
                    let value: Value = Arc::new(HostArray::new(i.dtype, &[], vec![c.to_f64()]));
                    let b = self.new_buffer(k);
                    self.program.constants.push((b, value));
                    Some(b)
                }
                (_, Role::Row(_)) if !self.crosses(k) => None,
                _ => Some(self.new_buffer(k)),
            };
        }
    }

    /// True if a row value is needed outside its kernel.
    fn crosses(&self, k: ValueId) -> bool {
        let in_place = is_read_at_source(self.graph, k);
        self.graph.outputs.contains(&k)
            || self.users[k].iter().any(|&u| {
                let through = self.clusters.together(k, u) && self.reads_in_kernel(k, u);
                // A broadcast of a row-invariant value is read at its source by elementwise users.
                let elsewhere = in_place && rows::reads_broadcast_in_place(self, u);
                !through && !elsewhere && !matches!(self.graph.instructions[u].op, Op::RowCount)
            })
    }

    /// True if `user` may read `k` as a tile (and not as a whole array).
    fn reads_in_kernel(&self, k: ValueId, user: ValueId) -> bool {
        let i = &self.graph.instructions[user];
        let whole = match (&i.op, self.clusters.roles[user]) {
            (Op::Dot(_), Role::Row(_)) => i.inputs[1] == k,
            (Op::Gather, _) => i.inputs[0] == k,
            (Op::Random(_), _) => true,
            (Op::Broadcast(_), _) => is_row_invariant_broadcast(self.graph, user),
            _ => false,
        };
        !whole
    }
}
