//! NumPy broadcasting of operands, recorded as explicit broadcast operations.

use crate::{Dim, Error, Node, Op, Shape};
use std::panic::Location;

/// The common shape of two operands (right-aligned, extents of one repeat), if there is one.
pub(crate) fn common_shape(a: &Shape, b: &Shape) -> Option<Shape> {
    let rank = a.rank().max(b.rank());
    let at = |s: &Shape, i: usize| -> Dim {
        if i + s.rank() < rank {
            Dim::Fixed(1)
        } else {
            s.dims()[i + s.rank() - rank]
        }
    };
    (0..rank)
        .map(|i| match (at(a, i), at(b, i)) {
            (x, y) if x == y => Some(x),
            (x, y) if x.is_one() => Some(y),
            (x, y) if y.is_one() => Some(x),
            _ => None,
        })
        .collect()
}

impl Node {
    /// Repeats to `shape` by the rules of NumPy (right-aligned).
    #[track_caller]
    pub fn broadcast_to(&self, shape: &Shape) -> Node {
        if self.shape() == shape || self.error().is_some() {
            return self.clone();
        }
        if self.shape().rank() > shape.rank() {
            return Node::failed(Error::Shape {
                op: "broadcast",
                shapes: vec![self.shape().clone(), shape.clone()],
                location: Location::caller(),
                hint: "the operand has more axes than the shape asked for".into(),
            });
        }
        let shift = shape.rank() - self.shape().rank();
        let axes = (shift..shape.rank()).collect();
        Node::new(
            Op::Broadcast(axes),
            &[self],
            Some((self.dtype(), shape.clone())),
        )
    }

    /// Both operands under their common shape, or an error node naming both shapes.
    #[track_caller]
    pub(crate) fn aligned(
        op: &'static str,
        a: &Node,
        b: &Node,
    ) -> std::result::Result<(Node, Node), Node> {
        if a.shape() == b.shape() {
            return Ok((a.clone(), b.clone()));
        }
        if let Some(bad) = [a, b].into_iter().find(|n| n.error().is_some()) {
            return Err(bad.clone());
        }
        match common_shape(a.shape(), b.shape()) {
            Some(s) => Ok((a.broadcast_to(&s), b.broadcast_to(&s))),
            None => Err(Node::failed(Error::Shape {
                op,
                shapes: vec![a.shape().clone(), b.shape().clone()],
                location: Location::caller(),
                hint: "extents must be equal or one, aligned at the last axis".into(),
            })),
        }
    }

    /// Sums a cotangent of a broadcast result back to the operand's shape.
    #[track_caller]
    pub(crate) fn sum_to(&self, operand: &Shape, axes: &[usize]) -> Node {
        let reduce: Vec<usize> = (0..self.shape().rank())
            .filter(|i| match axes.iter().position(|a| a == i) {
                None => true,
                Some(k) => operand.dims()[k] != self.shape().dims()[*i],
            })
            .collect();
        if reduce.is_empty() {
            return self.clone();
        }
        self.reduce(crate::ReduceKind::Sum, &reduce)
            .reshape(operand)
    }
}
