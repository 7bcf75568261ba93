//! Forward and reverse derivative rules, written in the operations themselves so that they nest.

use crate::{BinaryOp, DotDims, Error, Node, Op, ReduceKind, Result, UnaryOp};

fn refuse(node: &Node, transform: &'static str, hint: &str) -> Error {
    Error::NotDifferentiable {
        op: node.op().name(),
        transform,
        location: node.location(),
        hint: hint.into(),
    }
}

/// Partial derivatives of an elementwise operation of two operands.
fn partials(op: BinaryOp, a: &Node, b: &Node, y: &Node) -> (Option<Node>, Option<Node>) {
    let one = |n: &Node| n.scalar_like(1.0);
    match op {
        BinaryOp::Add => (Some(one(a)), Some(one(b))),
        BinaryOp::Sub => (Some(one(a)), Some(a.scalar_like(-1.0))),
        BinaryOp::Mul => (Some(b.clone()), Some(a.clone())),
        BinaryOp::Div => {
            let r = b.unary(UnaryOp::Recip);
            (Some(r.clone()), Some(y.mul(&r).neg()))
        }
        BinaryOp::Pow => (power_slope(a, b), Some(y.mul(&a.unary(UnaryOp::Log)))),
        BinaryOp::Max | BinaryOp::Min => {
            let first = if op == BinaryOp::Max {
                b.binary(BinaryOp::Le, a)
            } else {
                a.binary(BinaryOp::Le, b)
            };
            let (one, zero) = (one(a), a.scalar_like(0.0));
            (
                Some(first.select(&one, &zero)),
                Some(first.select(&zero, &one)),
            )
        }
        BinaryOp::Atan2 => {
            let r2 = a.mul(a).add(&b.mul(b));
            (Some(b.div(&r2)), Some(a.div(&r2).neg()))
        }
        BinaryOp::Eq | BinaryOp::Lt | BinaryOp::Le | BinaryOp::And | BinaryOp::Or => (None, None),
    }
}

/// d a^b / d a. Whole exponents end at a constant, so that no order divides zero by zero at a = 0.
pub(crate) fn power_slope(a: &Node, b: &Node) -> Option<Node> {
    let Some(c) = constant_value(b) else {
        let lower = b.sub(&b.scalar_like(1.0));
        return Some(b.mul(&a.binary(BinaryOp::Pow, &lower)));
    };
    match c {
        0.0 => None,
        1.0 => Some(a.scalar_like(1.0)),
        2.0 => Some(a.scalar_like(2.0).mul(a)),
        _ => {
            let power = a.binary(BinaryOp::Pow, &a.scalar_like(c - 1.0));
            Some(a.scalar_like(c).mul(&power))
        }
    }
}

/// The number that every element is, where the graph shows it.
fn constant_value(n: &Node) -> Option<f64> {
    match n.op() {
        Op::Constant(c) => Some(c.to_f64()),
        Op::Broadcast(_) => constant_value(n.inputs().first()?),
        _ => None,
    }
}

/// Adds two optional terms.
pub(crate) fn plus(a: Option<Node>, b: Option<Node>) -> Option<Node> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.add(&b)),
        (a, b) => a.or(b),
    }
}

/// Multiplies, leaving out factors that are the constants 1 and -1.
pub(crate) fn times(t: &Node, factor: &Node) -> Node {
    if let Op::Constant(c) = factor.op() {
        if c.to_f64() == 1.0 {
            return t.clone();
        }
        if c.to_f64() == -1.0 {
            return t.neg();
        }
    }
    t.mul(factor)
}

/// Applies a linear operation of `node` to other operands of the same types.
pub(crate) fn reapply(node: &Node, inputs: &[&Node]) -> Node {
    Node::new_at(
        node.op().clone(),
        inputs,
        Some((node.dtype(), node.shape().clone())),
        node.location(),
    )
}

/// Share of each extreme element in a max or min reduction (ties share equally).
fn extreme_share(node: &Node, x: &Node, axes: &[usize]) -> Node {
    let kept: Vec<usize> = (0..x.shape().rank())
        .filter(|a| !axes.contains(a))
        .collect();
    let spread = |n: &Node| {
        Node::new(
            Op::Broadcast(kept.clone()),
            &[n],
            Some((n.dtype(), x.shape().clone())),
        )
    };
    let hit = x
        .binary(BinaryOp::Eq, &spread(node))
        .cast(x.dtype())
        .stop_gradient();
    let ties = hit.reduce(ReduceKind::Sum, axes);
    hit.div(&spread(&ties))
}

/// Cotangents of the operands of `node`, given its own.
pub(crate) fn vjp_rule(node: &Node, inputs: &[Node], ct: &Node) -> Result<Vec<Option<Node>>> {
    let x = inputs.first();
    let need = |i: usize| {
        inputs
            .get(i)
            .ok_or_else(|| refuse(node, "vjp", "its operands are gone"))
    };
    Ok(match node.op() {
        Op::Data | Op::Input(_) | Op::Constant(_) | Op::Iota(_) => vec![],
        Op::Random(_) | Op::RowCount | Op::ArgMax(_) | Op::Identity { stop: true } => vec![None],
        Op::Identity { stop: false } => vec![Some(ct.clone())],
        Op::Unary(UnaryOp::Neg) => vec![Some(ct.neg())],
        Op::Unary(u) => vec![u.derivative(need(0)?, node).map(|d| times(ct, &d))],
        Op::Binary(b) => {
            let (da, db) = partials(*b, need(0)?, need(1)?, node);
            vec![da.map(|d| times(ct, &d)), db.map(|d| times(ct, &d))]
        }
        Op::Select => {
            let zero = ct.scalar_like(0.0);
            let c = need(0)?;
            vec![None, Some(c.select(ct, &zero)), Some(c.select(&zero, ct))]
        }
        Op::Cast => {
            let x = need(0)?;
            vec![(node.dtype().is_float() && x.dtype().is_float()).then(|| ct.cast(x.dtype()))]
        }
        Op::Reduce(kind, axes) => {
            let x = need(0)?;
            let kept: Vec<usize> = (0..x.shape().rank())
                .filter(|a| !axes.contains(a))
                .collect();
            let spread = Node::new(
                Op::Broadcast(kept),
                &[ct],
                Some((ct.dtype(), x.shape().clone())),
            );
            match kind {
                ReduceKind::Sum => vec![Some(spread)],
                ReduceKind::Max | ReduceKind::Min => {
                    vec![Some(spread.mul(&extreme_share(node, x, axes)))]
                }
                ReduceKind::Prod => {
                    return Err(refuse(
                        node,
                        "vjp",
                        "write the product as exp(sum(log)) of positive factors, or as a chain of mul",
                    ));
                }
            }
        }
        Op::Dot(d) => {
            let (a, b) = (need(0)?, need(1)?);
            vec![
                Some(dot_cotangent_lhs(d, a, b, ct)),
                Some(dot_cotangent_rhs(d, a, b, ct)),
            ]
        }
        Op::Reshape => vec![x.map(|x| ct.reshape(x.shape()))],
        Op::Broadcast(axes) => vec![x.map(|x| ct.sum_to(x.shape(), axes))],
        Op::Permute(perm) => {
            let mut inverse = vec![0; perm.len()];
            for (i, &p) in perm.iter().enumerate() {
                inverse[p] = i;
            }
            vec![Some(ct.permute(&inverse))]
        }
        Op::Slice { axis, start, end } => {
            let n = need(0)?.shape().dims()[*axis].fixed().unwrap_or(*end);
            vec![Some(ct.pad(*axis, *start, n - end))]
        }
        Op::Pad { axis, before, .. } => {
            let n = need(0)?.shape().dims()[*axis].fixed().unwrap_or(0);
            vec![Some(ct.slice(*axis, *before, before + n))]
        }
        Op::Concat(axis) => {
            let mut at = 0;
            inputs
                .iter()
                .map(|x| {
                    let n = x.shape().dims()[*axis].fixed().unwrap_or(0);
                    at += n;
                    Some(ct.slice(*axis, at - n, at))
                })
                .collect()
        }
        Op::Gather => vec![Some(ct.scatter_add(need(1)?, need(0)?.shape())), None],
        Op::ScatterAdd => vec![Some(ct.gather(need(1)?)), None],
        Op::Derivative(_) => return Err(refuse(node, "vjp", "an unresolved derivative request")),
        Op::Error(e) => return Err((**e).clone()),
    })
}

/// Tangent of `node`, given those of its operands (`None` is zero; at least one is given).
pub(crate) fn jvp_rule(
    node: &Node,
    inputs: &[Node],
    tangents: &[Option<Node>],
) -> Result<Option<Node>> {
    let t = tangents.first().and_then(Option::as_ref);
    Ok(match node.op() {
        Op::Data | Op::Input(_) | Op::Constant(_) | Op::Iota(_) => None,
        Op::Random(_) | Op::RowCount | Op::ArgMax(_) | Op::Identity { stop: true } => None,
        Op::Unary(UnaryOp::Neg) => t.map(Node::neg),
        Op::Unary(u) => match t {
            Some(t) => u.derivative(&inputs[0], node).map(|d| times(t, &d)),
            None => None,
        },
        Op::Binary(BinaryOp::Add) => plus(tangents[0].clone(), tangents[1].clone()),
        Op::Binary(b) => {
            let (da, db) = partials(*b, &inputs[0], &inputs[1], node);
            let term =
                |t: &Option<Node>, d: Option<Node>| t.as_ref().zip(d).map(|(t, d)| times(t, &d));
            plus(term(&tangents[0], da), term(&tangents[1], db))
        }
        Op::Select => {
            if tangents[1].is_none() && tangents[2].is_none() {
                return Ok(None);
            }
            let zero = node.scalar_like(0.0);
            let branch = |i: usize| tangents[i].clone().unwrap_or_else(|| zero.clone());
            Some(
                inputs[0]
                    .select(&branch(1), &branch(2))
                    .broadcast_to(node.shape()),
            )
        }
        Op::Cast => t
            .filter(|t| node.dtype().is_float() && t.dtype().is_float())
            .map(|t| t.cast(node.dtype())),
        Op::Reduce(ReduceKind::Max | ReduceKind::Min, axes) => t.map(|t| {
            t.mul(&extreme_share(node, &inputs[0], axes))
                .reduce(ReduceKind::Sum, axes)
        }),
        Op::Reduce(ReduceKind::Prod, _) => {
            return Err(refuse(
                node,
                "jvp",
                "write the product as exp(sum(log)) of positive factors, or as a chain of mul",
            ));
        }
        Op::Dot(d) => {
            let left = tangents[0].as_ref().map(|t| t.dot(&inputs[1], d.clone()));
            let right = tangents[1].as_ref().map(|t| inputs[0].dot(t, d.clone()));
            plus(left, right)
        }
        Op::Concat(_) => Some(reapply_concat(node, inputs, tangents)),
        Op::Gather | Op::ScatterAdd => t.map(|t| reapply(node, &[t, &inputs[1]])),
        Op::Identity { stop: false } => t.cloned(),
        Op::Reduce(ReduceKind::Sum, _)
        | Op::Reshape
        | Op::Broadcast(_)
        | Op::Permute(_)
        | Op::Slice { .. }
        | Op::Pad { .. } => t.map(|t| reapply(node, &[t])),
        Op::Derivative(_) => return Err(refuse(node, "jvp", "an unresolved derivative request")),
        Op::Error(e) => return Err((**e).clone()),
    })
}

/// Concatenation of tangents, zeros where an operand has none.
pub(crate) fn reapply_concat(node: &Node, inputs: &[Node], parts: &[Option<Node>]) -> Node {
    let full: Vec<Node> = inputs
        .iter()
        .zip(parts)
        .map(|(x, t)| t.clone().unwrap_or_else(|| x.zeros_like()))
        .collect();
    let refs: Vec<&Node> = full.iter().collect();
    reapply(node, &refs)
}

fn free_axes(rank: usize, batch: &[usize], contract: &[usize]) -> Vec<usize> {
    (0..rank)
        .filter(|i| !batch.contains(i) && !contract.contains(i))
        .collect()
}

/// Order that brings axes listed in `from` (as axes of the target) into target order.
fn into_order(from: &[usize]) -> Vec<usize> {
    let mut perm = vec![0; from.len()];
    for (i, &a) in from.iter().enumerate() {
        perm[a] = i;
    }
    perm
}

/// The product of `a` and `b` with its axes brought into the order of the cotangent: the batch axes become
/// the axes `batch` of the result, the free axes of `a` become `left`, those of `b` become `right`. Where
/// `b` brings run-time rows, it goes first, because they must lead.
fn joined(
    a: &Node,
    b: &Node,
    dims: DotDims,
    batch: Vec<usize>,
    left: Vec<usize>,
    right: Vec<usize>,
) -> Node {
    let rows_on_the_right = b.shape().rows().is_some()
        && !dims.rhs_batch.contains(&0)
        && !dims.rhs_contract.contains(&0);
    let (product, free) = if rows_on_the_right {
        let swapped = DotDims {
            lhs_batch: dims.rhs_batch,
            rhs_batch: dims.lhs_batch,
            lhs_contract: dims.rhs_contract,
            rhs_contract: dims.lhs_contract,
        };
        (b.dot(a, swapped), [right, left])
    } else {
        (a.dot(b, dims), [left, right])
    };
    let order: Vec<usize> = batch.into_iter().chain(free.concat()).collect();
    if order.len() != product.shape().rank() {
        return product;
    }
    product.permute(&into_order(&order))
}

fn dot_cotangent_lhs(d: &DotDims, a: &Node, b: &Node, ct: &Node) -> Node {
    let nb = d.lhs_batch.len();
    let (lf, rf) = (
        free_axes(a.shape().rank(), &d.lhs_batch, &d.lhs_contract),
        free_axes(b.shape().rank(), &d.rhs_batch, &d.rhs_contract),
    );
    let dims = DotDims {
        lhs_batch: (0..nb).collect(),
        rhs_batch: d.rhs_batch.clone(),
        lhs_contract: (nb + lf.len()..nb + lf.len() + rf.len()).collect(),
        rhs_contract: rf,
    };
    let mut pairs: Vec<(usize, usize)> = d
        .rhs_contract
        .iter()
        .copied()
        .zip(d.lhs_contract.iter().copied())
        .collect();
    pairs.sort_unstable();
    let contracted = pairs.into_iter().map(|(_, l)| l).collect();
    joined(ct, b, dims, d.lhs_batch.clone(), lf, contracted)
}

fn dot_cotangent_rhs(d: &DotDims, a: &Node, b: &Node, ct: &Node) -> Node {
    let nb = d.lhs_batch.len();
    let (lf, rf) = (
        free_axes(a.shape().rank(), &d.lhs_batch, &d.lhs_contract),
        free_axes(b.shape().rank(), &d.rhs_batch, &d.rhs_contract),
    );
    let dims = DotDims {
        lhs_batch: d.lhs_batch.clone(),
        rhs_batch: (0..nb).collect(),
        lhs_contract: lf.clone(),
        rhs_contract: (nb..nb + lf.len()).collect(),
    };
    let mut pairs: Vec<(usize, usize)> = d
        .lhs_contract
        .iter()
        .copied()
        .zip(d.rhs_contract.iter().copied())
        .collect();
    pairs.sort_unstable();
    let contracted = pairs.into_iter().map(|(_, r)| r).collect();
    joined(a, ct, dims, d.rhs_batch.clone(), contracted, rf)
}
