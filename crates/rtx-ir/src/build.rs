//! Infallible builders: formulas read as formulas, mistakes travel as error nodes.

use crate::{
    BinaryOp, DType, Dim, DotDims, Error, Literal, Node, Op, RandomKind, ReduceKind, Shape, UnaryOp,
};
use std::panic::Location;

macro_rules! binary_builders {
    ($($(#[$doc:meta])* $name:ident $op:ident;)*) => {
        impl Node { $(
            $(#[$doc])*
            #[track_caller]
            pub fn $name(&self, other: &Node) -> Node { self.binary(BinaryOp::$op, other) }
        )* }
    };
}

binary_builders! {
    /// Sum, with broadcasting.
    add Add;
    /// Difference, with broadcasting.
    sub Sub;
    /// Product, with broadcasting.
    mul Mul;
    /// Quotient, with broadcasting.
    div Div;
}

impl Node {
    /// Elementwise operation of two operands, with broadcasting.
    #[track_caller]
    pub fn binary(&self, op: BinaryOp, other: &Node) -> Node {
        match Node::aligned(op.name(), self, other) {
            Ok((a, b)) => Node::new(Op::Binary(op), &[&a, &b], None),
            Err(e) => e,
        }
    }

    /// Elementwise operation of one operand.
    #[track_caller]
    pub fn unary(&self, op: UnaryOp) -> Node {
        Node::new(Op::Unary(op), &[self], None)
    }

    /// -x
    #[track_caller]
    pub fn neg(&self) -> Node {
        self.unary(UnaryOp::Neg)
    }

    /// A scalar of this node's element type.
    #[track_caller]
    pub fn scalar_like(&self, value: f64) -> Node {
        let literal = if self.dtype().is_float() {
            Literal::Float(value)
        } else {
            Literal::Int(value as i64)
        };
        Node::constant(literal, self.dtype())
    }

    /// Zeros of this node's type.
    #[track_caller]
    pub fn zeros_like(&self) -> Node {
        self.scalar_like(0.0).broadcast_to(self.shape())
    }

    /// Zeros of this node's type that, unlike [`zeros_like`](Self::zeros_like), still know the number of
    /// run-time rows when they are all that is left of a program.
    #[track_caller]
    pub(crate) fn counted_zeros(&self) -> Node {
        if self.shape().rows().is_none() {
            return self.zeros_like();
        }
        let declared = Some((self.dtype(), Shape::scalar()));
        let rows = Node::new(Op::RowCount, &[self], declared);
        rows.mul(&self.scalar_like(0.0)).broadcast_to(self.shape())
    }

    /// `self ? yes : no`, with broadcasting.
    #[track_caller]
    pub fn select(&self, yes: &Node, no: &Node) -> Node {
        let (yes, no) = match Node::aligned("select", yes, no) {
            Ok(p) => p,
            Err(e) => return e,
        };
        let (cond, yes) = match Node::aligned("select", self, &yes) {
            Ok(p) => p,
            Err(e) => return e,
        };
        let no = no.broadcast_to(yes.shape());
        Node::new(Op::Select, &[&cond, &yes, &no], None)
    }

    /// Converts the element type.
    #[track_caller]
    pub fn cast(&self, dtype: DType) -> Node {
        if self.dtype() == dtype {
            return self.clone();
        }
        Node::new(Op::Cast, &[self], Some((dtype, self.shape().clone())))
    }

    /// Reduces over `axes`, which vanish.
    #[track_caller]
    pub fn reduce(&self, kind: ReduceKind, axes: &[usize]) -> Node {
        if axes.is_empty() {
            return self.clone();
        }
        let mut axes = axes.to_vec();
        axes.sort_unstable();
        Node::new(Op::Reduce(kind, axes), &[self], None)
    }

    /// Sum of all elements.
    #[track_caller]
    pub fn sum_all(&self) -> Node {
        let axes: Vec<usize> = (0..self.shape().rank()).collect();
        self.reduce(ReduceKind::Sum, &axes)
    }

    /// Number of elements along `axes` as a scalar of this element type (a program input for run-time rows).
    #[track_caller]
    pub fn count(&self, axes: &[usize]) -> Node {
        let fixed: usize = axes
            .iter()
            .filter_map(|&a| self.shape().dims().get(a)?.fixed())
            .product();
        let fixed = self.scalar_like(fixed as f64);
        let runtime = axes
            .iter()
            .any(|&a| matches!(self.shape().dims().get(a), Some(Dim::Rows(_))));
        if runtime {
            let rows = Node::new(Op::RowCount, &[self], Some((self.dtype(), Shape::scalar())));
            rows.mul(&fixed)
        } else {
            fixed
        }
    }

    /// Index of the first largest element along an axis.
    #[track_caller]
    pub fn argmax(&self, axis: usize) -> Node {
        Node::new(Op::ArgMax(axis), &[self], None)
    }

    /// General product. A left operand that is the same for all rows is multiplied once.
    #[track_caller]
    pub fn dot(&self, other: &Node, dims: DotDims) -> Node {
        if dims == DotDims::default() && self.error().is_none() && other.error().is_none() {
            return self.outer(other);
        }
        if let Some(hoisted) = self.dot_of_row_broadcast(other, &dims) {
            return hoisted;
        }
        Node::new(Op::Dot(dims), &[self, other], None)
    }

    /// Outer product, as an elementwise product of both operands repeated.
    #[track_caller]
    fn outer(&self, other: &Node) -> Node {
        let (left, right) = (self.shape().dims(), other.shape().dims());
        let shape: Shape = left.iter().chain(right).copied().collect();
        let spread = |n: &Node, first: usize| {
            let axes = (first..first + n.shape().rank()).collect();
            Node::new(Op::Broadcast(axes), &[n], Some((n.dtype(), shape.clone())))
        };
        spread(self, 0).mul(&spread(other, left.len()))
    }

    fn dot_of_row_broadcast(&self, other: &Node, dims: &DotDims) -> Option<Node> {
        let Op::Broadcast(axes) = self.op() else {
            return None;
        };
        let source = self.inputs().first().cloned()?;
        let plain = dims.lhs_batch.is_empty() && dims.lhs_contract == [self.shape().rank() - 1];
        let repeated_rows = axes.len() + 1 == self.shape().rank()
            && axes.iter().enumerate().all(|(i, &a)| a == i + 1)
            && source.shape().dims() == &self.shape().dims()[1..];
        if source.shape().rank() == 0 || !plain || !repeated_rows || other.shape().rows().is_some()
        {
            return None;
        }
        let inner = DotDims {
            lhs_contract: vec![source.shape().rank() - 1],
            ..dims.clone()
        };
        let small = Node::new(Op::Dot(inner), &[&source, other], None);
        let shape: Shape = std::iter::once(self.shape().dims()[0])
            .chain(small.shape().dims().iter().copied())
            .collect();
        Some(small.broadcast_to(&shape))
    }

    /// Matrix product over the last axis of `self` and the first of `other` (`[.., k] x [k, n]`).
    #[track_caller]
    pub fn matmul(&self, other: &Node) -> Node {
        if self.shape().rank() == 0 || other.shape().rank() == 0 {
            if let Some(bad) = [self, other].into_iter().find(|n| n.error().is_some()) {
                return bad.clone();
            }
            return Node::failed(Error::Shape {
                op: "matmul",
                shapes: vec![self.shape().clone(), other.shape().clone()],
                location: Location::caller(),
                hint: "both operands need at least one axis".into(),
            });
        }
        let dims = DotDims {
            lhs_contract: vec![self.shape().rank() - 1],
            rhs_contract: vec![0],
            ..DotDims::default()
        };
        self.dot(other, dims)
    }

    /// Same elements in row-major order under another shape.
    #[track_caller]
    pub fn reshape(&self, shape: &Shape) -> Node {
        if self.shape() == shape {
            return self.clone();
        }
        Node::new(Op::Reshape, &[self], Some((self.dtype(), shape.clone())))
    }

    /// Axis `i` of the result is axis `perm[i]` of the operand.
    #[track_caller]
    pub fn permute(&self, perm: &[usize]) -> Node {
        if perm.len() == self.shape().rank() && perm.iter().enumerate().all(|(i, &p)| i == p) {
            return self.clone();
        }
        Node::new(Op::Permute(perm.to_vec()), &[self], None)
    }

    /// Elements `start..end` along an axis.
    #[track_caller]
    pub fn slice(&self, axis: usize, start: usize, end: usize) -> Node {
        if start == 0 && self.shape().dims().get(axis) == Some(&Dim::Fixed(end)) {
            return self.clone();
        }
        Node::new(Op::Slice { axis, start, end }, &[self], None)
    }

    /// Zeros before and after along an axis.
    #[track_caller]
    pub fn pad(&self, axis: usize, before: usize, after: usize) -> Node {
        if before == 0 && after == 0 {
            return self.clone();
        }
        Node::new(
            Op::Pad {
                axis,
                before,
                after,
            },
            &[self],
            None,
        )
    }

    /// Joins operands along an axis.
    #[track_caller]
    pub fn concat(parts: &[&Node], axis: usize) -> Node {
        match parts {
            [one] => (*one).clone(),
            _ => Node::new(Op::Concat(axis), parts, None),
        }
    }

    /// Rows `index` of this table (leading axis); indices outside are clamped.
    #[track_caller]
    pub fn gather(&self, index: &Node) -> Node {
        Node::new(Op::Gather, &[self, index], None)
    }

    /// Adds slices of `self` into a zero table of `shape` at rows `index`.
    #[track_caller]
    pub fn scatter_add(&self, index: &Node, shape: &Shape) -> Node {
        Node::new(
            Op::ScatterAdd,
            &[self, index],
            Some((self.dtype(), shape.clone())),
        )
    }

    /// 0, 1, 2, ... along an axis.
    #[track_caller]
    pub fn iota(shape: &Shape, axis: usize, dtype: DType) -> Node {
        Node::new(Op::Iota(axis), &[], Some((dtype, shape.clone())))
    }

    /// Random numbers of a counter-based generator: element `i` depends on the key and `i` alone.
    #[track_caller]
    pub fn random(kind: RandomKind, key: &Node, shape: &Shape, dtype: DType) -> Node {
        Node::new(Op::Random(kind), &[key], Some((dtype, shape.clone())))
    }

    /// The same value, through which no derivative passes.
    #[track_caller]
    pub fn stop_gradient(&self) -> Node {
        Node::new(Op::Identity { stop: true }, &[self], None)
    }

    /// A derivative request: `sum weight * d^index self / d coordinates^index`.
    #[track_caller]
    pub fn derivative(
        &self,
        coordinates: &Node,
        terms: Vec<(crate::jet::MultiIndex, f64)>,
    ) -> Node {
        // A derivative of a derivative is one request, so that both are served by one jet.
        if let Op::Derivative(inner) = self.op() {
            let inputs = self.inputs();
            if inputs.len() == 2 && inputs[1].is(coordinates) {
                let terms = inner
                    .iter()
                    .flat_map(|(a, v)| terms.iter().map(move |(b, w)| (a.plus(b), v * w)))
                    .collect();
                return inputs[0].derivative(coordinates, terms);
            }
        }
        Node::new(Op::Derivative(terms), &[self, coordinates], None)
    }
}
