//! Sums of products over rows become one product: the weight gradient of a layer is the sum over the
//! channels of its jet, accumulated in one place.

use crate::simplify::remove_dead;
use rtx_ir::{BinaryOp, Graph, Instruction, Op, ValueId};

/// True for a product that sums over all axes of both operands but the last (or all) of each, rows first.
pub(crate) fn sums_over_rows(graph: &Graph, i: &Instruction) -> bool {
    let Op::Dot(d) = &i.op else { return false };
    let n = d.lhs_contract.len();
    let leading = |axes: &[usize]| axes.iter().enumerate().all(|(k, &a)| k == a);
    let rank = |k: usize| graph.instructions[i.inputs[k]].shape.rank();
    n > 0
        && d.lhs_batch.is_empty()
        && leading(&d.lhs_contract)
        && leading(&d.rhs_contract)
        && rank(0) <= n + 1
        && rank(1) <= n + 1
}

/// Rewrites sums of such products into one `Dot` with operands `x1, y1, x2, y2, ...`. After this pass a
/// `Dot` may have more than two operands; only the lowering of this crate sees that.
pub(crate) fn merge_sums(graph: Graph) -> Graph {
    let mut uses = vec![0; graph.instructions.len()];
    for i in &graph.instructions {
        i.inputs.iter().for_each(|&x| uses[x] += 1);
    }
    graph.outputs.iter().for_each(|&o| uses[o] += 1);
    let is_add = |k: ValueId| matches!(graph.instructions[k].op, Op::Binary(BinaryOp::Add));
    let mut inner = vec![false; graph.instructions.len()];
    for i in graph
        .instructions
        .iter()
        .filter(|i| matches!(i.op, Op::Binary(BinaryOp::Add)))
    {
        for &x in i.inputs.iter().filter(|&&x| is_add(x) && uses[x] == 1) {
            inner[x] = true;
        }
    }
    let mut out = Graph {
        inputs: graph.inputs.clone(),
        ..Graph::default()
    };
    let mut map = Vec::with_capacity(graph.instructions.len());
    for (k, i) in graph.instructions.iter().enumerate() {
        let id = (is_add(k) && !inner[k])
            .then(|| merge_tree(&graph, k, &inner, &uses, &map, &mut out))
            .flatten();
        map.push(id.unwrap_or_else(|| {
            let inputs = i.inputs.iter().map(|&x| map[x]).collect();
            out.instructions.push(Instruction {
                inputs,
                ..i.clone()
            });
            out.instructions.len() - 1
        }));
    }
    out.outputs = graph.outputs.iter().map(|&o| map[o]).collect();
    remove_dead(out)
}

/// Merges the products of one tree of additions; `None` if it has fewer than two that fit together.
fn merge_tree(
    graph: &Graph,
    root: ValueId,
    inner: &[bool],
    uses: &[usize],
    map: &[ValueId],
    out: &mut Graph,
) -> Option<ValueId> {
    let mut leaves = Vec::new();
    let mut stack = vec![root];
    while let Some(k) = stack.pop() {
        for &x in graph.instructions[k].inputs.iter().rev() {
            if inner[x] && uses[x] == 1 {
                stack.push(x);
            } else {
                leaves.push(x);
            }
        }
    }
    leaves.sort_unstable();
    let mut groups: Vec<(String, Vec<ValueId>)> = Vec::new();
    let mut rest = Vec::new();
    for &k in &leaves {
        let i = &graph.instructions[k];
        if uses[k] == 1 && sums_over_rows(graph, i) {
            let shapes: Vec<_> = i
                .inputs
                .iter()
                .map(|&x| &graph.instructions[x].shape)
                .collect();
            let key = format!("{:?}{shapes:?}", i.op);
            match groups.iter_mut().find(|(g, _)| *g == key) {
                Some((_, members)) => members.push(k),
                None => groups.push((key, vec![k])),
            }
        } else {
            rest.push(map[k]);
        }
    }
    if groups.iter().all(|(_, m)| m.len() < 2) {
        return None;
    }
    let mut terms: Vec<ValueId> = Vec::new();
    for (_, members) in groups {
        let inputs = members
            .iter()
            .flat_map(|&m| graph.instructions[m].inputs.iter().map(|&x| map[x]))
            .collect();
        out.instructions.push(Instruction {
            inputs,
            ..graph.instructions[members[0]].clone()
        });
        terms.push(out.instructions.len() - 1);
    }
    terms.extend(rest);
    let mut sum = terms[0];
    for &t in &terms[1..] {
        let inputs = [sum, t].into_iter().collect();
        out.instructions.push(Instruction {
            inputs,
            ..graph.instructions[root].clone()
        });
        sum = out.instructions.len() - 1;
    }
    Some(sum)
}
