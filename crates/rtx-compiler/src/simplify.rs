//! Folding, identities, common subexpressions and dead code, in one forward pass and one backward.

use rtx_ir::eval::{HostArray, eval_op};
use rtx_ir::{BinaryOp, Graph, Instruction, Literal, Op, UnaryOp, ValueId};
use std::collections::HashMap;

/// Scalars are folded; larger constants are left to the program, which computes them once per run.
pub(crate) fn simplify(graph: &Graph) -> Graph {
    let mut s = Simplifier {
        out: Graph {
            inputs: graph.inputs.clone(),
            ..Graph::default()
        },
        seen: HashMap::new(),
    };
    let mut map: Vec<ValueId> = Vec::with_capacity(graph.instructions.len());
    for i in &graph.instructions {
        let inputs = i.inputs.iter().map(|&x| map[x]).collect();
        let id = s.add(Instruction {
            inputs,
            ..i.clone()
        });
        map.push(id);
    }
    s.out.outputs = graph.outputs.iter().map(|&o| map[o]).collect();
    remove_dead(s.out)
}

struct Simplifier {
    out: Graph,
    seen: HashMap<String, ValueId>,
}

impl Simplifier {
    fn op(&self, id: ValueId) -> &Op {
        &self.out.instructions[id].op
    }

    /// The scalar that every element of `id` has, looking through broadcasts and reshapes.
    fn constant(&self, id: ValueId) -> Option<f64> {
        let i = &self.out.instructions[id];
        match &i.op {
            Op::Constant(c) => Some(i.dtype.round(c.to_f64())),
            Op::Broadcast(_) | Op::Reshape => self.constant(i.inputs[0]),
            _ => None,
        }
    }

    fn add(&mut self, i: Instruction) -> ValueId {
        if let Some(same) = self.identity(&i) {
            return same;
        }
        if let Some(folded) = self.fold(&i) {
            return self.insert(folded);
        }
        if let Some(split) = self.split_reduction(&i) {
            return split;
        }
        self.insert(i)
    }

    fn insert(&mut self, i: Instruction) -> ValueId {
        let key = format!("{}:{:?}:{}{:?}", i.op.key(), i.inputs, i.dtype, i.shape);
        if let Some(&id) = self.seen.get(&key) {
            return id;
        }
        self.out.instructions.push(i);
        let id = self.out.instructions.len() - 1;
        self.seen.insert(key, id);
        id
    }

    /// Operations that return one of their operands.
    fn identity(&self, i: &Instruction) -> Option<ValueId> {
        let same_type = |id: ValueId| {
            let x = &self.out.instructions[id];
            x.dtype == i.dtype && x.shape == i.shape
        };
        let x = *i.inputs.first()?;
        let candidate = match &i.op {
            Op::Identity { .. } => Some(x),
            Op::Cast | Op::Reshape | Op::Broadcast(_) if same_type(x) => Some(x),
            Op::Unary(UnaryOp::Neg) if matches!(self.op(x), Op::Unary(UnaryOp::Neg)) => {
                Some(self.out.instructions[x].inputs[0])
            }
            Op::Binary(BinaryOp::Mul) => match (self.constant(x), self.constant(i.inputs[1])) {
                (_, Some(1.0)) => Some(x),
                (Some(1.0), _) => Some(i.inputs[1]),
                _ => None,
            },
            Op::Binary(BinaryOp::Div) if self.constant(i.inputs[1]) == Some(1.0) => Some(x),
            // x + 0 changes -0 to 0 only; x - 0 is exact.
            Op::Binary(BinaryOp::Add) => match (self.constant(x), self.constant(i.inputs[1])) {
                (_, Some(0.0)) => Some(x),
                (Some(0.0), _) => Some(i.inputs[1]),
                _ => None,
            },
            Op::Binary(BinaryOp::Sub) if self.constant(i.inputs[1]) == Some(0.0) => Some(x),
            _ => None,
        };
        candidate.filter(|&c| same_type(c))
    }

    /// Scalar operations on constants.
    fn fold(&self, i: &Instruction) -> Option<Instruction> {
        let elementwise = matches!(i.op, Op::Unary(_) | Op::Binary(_) | Op::Select | Op::Cast);
        if !elementwise || i.shape.rank() != 0 {
            return None;
        }
        let x: Option<Vec<HostArray>> = i
            .inputs
            .iter()
            .map(|&k| match self.op(k) {
                Op::Constant(c) => Some(HostArray::new(
                    self.out.instructions[k].dtype,
                    &[],
                    vec![c.to_f64()],
                )),
                _ => None,
            })
            .collect();
        let x = x?;
        let refs: Vec<&HostArray> = x.iter().collect();
        let v = eval_op(&i.op, &refs, i.dtype, &[]).data[0];
        let literal = if i.dtype.is_float() {
            Literal::Float(v)
        } else {
            Literal::Int(v as i64)
        };
        Some(Instruction {
            op: Op::Constant(literal),
            inputs: Default::default(),
            ..i.clone()
        })
    }

    /// A reduction over rows and other axes becomes one within rows and one over rows.
    fn split_reduction(&mut self, i: &Instruction) -> Option<ValueId> {
        let Op::Reduce(kind, axes) = &i.op else {
            return None;
        };
        if axes.len() < 2 || axes[0] != 0 {
            return None;
        }
        let inner: Vec<usize> = axes[1..].to_vec();
        let from = &self.out.instructions[i.inputs[0]];
        let shape = from.shape.without(&inner);
        let first = Instruction {
            op: Op::Reduce(*kind, inner),
            shape,
            ..i.clone()
        };
        let first = self.insert(first);
        let second = Instruction {
            op: Op::Reduce(*kind, vec![0]),
            inputs: std::iter::once(first).collect(),
            ..i.clone()
        };
        Some(self.insert(second))
    }
}

/// Keeps what the outputs need, in order.
pub(crate) fn remove_dead(graph: Graph) -> Graph {
    let mut live = vec![false; graph.instructions.len()];
    for &o in &graph.outputs {
        live[o] = true;
    }
    for k in (0..graph.instructions.len()).rev() {
        if live[k] {
            for &x in &graph.instructions[k].inputs {
                live[x] = true;
            }
        }
    }
    let mut map = vec![0; graph.instructions.len()];
    let mut out = Graph {
        inputs: graph.inputs,
        ..Graph::default()
    };
    for (k, mut i) in graph.instructions.into_iter().enumerate() {
        if live[k] {
            i.inputs.iter_mut().for_each(|x| *x = map[*x]);
            map[k] = out.instructions.len();
            out.instructions.push(i);
        }
    }
    out.outputs = graph.outputs.iter().map(|&o| map[o]).collect();
    out
}
