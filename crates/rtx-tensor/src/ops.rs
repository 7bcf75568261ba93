//! Operations as methods.

use crate::{DType, MultiIndex, Tensor};
use rtx_ir::{BinaryOp, Node, ReduceKind, Shape, UnaryOp};

macro_rules! unary_methods {
    ($($(#[$doc:meta])* $name:ident $op:ident;)*) => {
        impl Tensor { $(
            $(#[$doc])*
            #[track_caller]
            pub fn $name(&self) -> Tensor { self.wrap(self.node.unary(UnaryOp::$op)) }
        )* }
    };
}

unary_methods! {
    /// |x|
    abs Abs;
    /// -1, 0 or 1
    sign Sign;
    /// 1/x
    recip Recip;
    /// Square root
    sqrt Sqrt;
    /// 1/sqrt(x)
    rsqrt Rsqrt;
    /// e^x
    exp Exp;
    /// e^x - 1, exact near 0
    expm1 Expm1;
    /// Natural logarithm
    log Log;
    /// ln(1 + x), exact near 0
    log1p Log1p;
    /// Sine
    sin Sin;
    /// Cosine
    cos Cos;
    /// Tangent
    tan Tan;
    /// Arc tangent
    atan Atan;
    /// Hyperbolic sine
    sinh Sinh;
    /// Hyperbolic cosine
    cosh Cosh;
    /// Hyperbolic tangent
    tanh Tanh;
    /// Largest integer not above x
    floor Floor;
    /// Smallest integer not below x
    ceil Ceil;
    /// Logical not of truth values
    logical_not Not;
}

macro_rules! binary_methods {
    ($($(#[$doc:meta])* $name:ident $op:ident;)*) => {
        impl Tensor { $(
            $(#[$doc])*
            #[track_caller]
            pub fn $name(&self, other: &Tensor) -> Tensor { self.wrap(self.node.binary(BinaryOp::$op, &other.node)) }
        )* }
    };
}

binary_methods! {
    /// `self` to the power `other`, with broadcasting
    pow Pow;
    /// Larger of the two, with broadcasting
    maximum Max;
    /// Smaller of the two, with broadcasting
    minimum Min;
    /// Angle of the point (`other`, `self`)
    atan2 Atan2;
    /// `self == other`
    eq Eq;
    /// `self < other`
    lt Lt;
    /// `self <= other`
    le Le;
    /// Logical and of truth values
    logical_and And;
    /// Logical or of truth values
    logical_or Or;
}

impl Tensor {
    /// x x
    #[track_caller]
    pub fn square(&self) -> Tensor {
        self.wrap(self.node.mul(&self.node))
    }

    /// x to a constant power.
    #[track_caller]
    pub fn powf(&self, exponent: f64) -> Tensor {
        self.wrap(
            self.node
                .binary(BinaryOp::Pow, &self.node.scalar_like(exponent)),
        )
    }

    /// x to a small whole power, by multiplication.
    #[track_caller]
    pub fn powi(&self, exponent: u32) -> Tensor {
        let mut y = self.wrap(self.node.scalar_like(1.0).broadcast_to(self.node.shape()));
        for _ in 0..exponent {
            y = self.wrap(y.node.mul(&self.node));
        }
        y
    }

    /// Logistic function 1 / (1 + e^-x).
    #[track_caller]
    pub fn sigmoid(&self) -> Tensor {
        (self * 0.5).tanh() * 0.5 + 0.5
    }

    /// ln(1 + e^x), without overflow, and smooth at 0 (unlike the form with |x|).
    #[track_caller]
    pub fn softplus(&self) -> Tensor {
        // Above this bound e^-x is below the resolution of double precision.
        const LARGE: f64 = 40.0;
        let bound = self.wrap(self.node.scalar_like(LARGE));
        let curve = self.minimum(&bound).exp().log1p();
        bound.lt(self).select(self, &curve)
    }

    /// Larger of x and 0.
    #[track_caller]
    pub fn relu(&self) -> Tensor {
        self.wrap(self.node.binary(BinaryOp::Max, &self.node.scalar_like(0.0)))
    }

    /// Limits to `low..=high`.
    #[track_caller]
    pub fn clamp(&self, low: f64, high: f64) -> Tensor {
        let n = self.node.binary(BinaryOp::Max, &self.node.scalar_like(low));
        self.wrap(n.binary(BinaryOp::Min, &self.node.scalar_like(high)))
    }

    /// `self ? yes : no` for truth values, with broadcasting.
    #[track_caller]
    pub fn select(&self, yes: &Tensor, no: &Tensor) -> Tensor {
        self.wrap(self.node.select(&yes.node, &no.node))
    }

    /// Converts the element type.
    #[track_caller]
    pub fn cast(&self, dtype: DType) -> Tensor {
        self.wrap(self.node.cast(dtype))
    }

    /// Sum of all elements.
    #[track_caller]
    pub fn sum_all(&self) -> Tensor {
        self.wrap(self.node.sum_all())
    }

    /// Mean of all elements.
    #[track_caller]
    pub fn mean_all(&self) -> Tensor {
        let axes: Vec<usize> = (0..self.rank()).collect();
        self.mean(&axes)
    }

    /// Sum over axes, which vanish.
    #[track_caller]
    pub fn sum(&self, axes: &[usize]) -> Tensor {
        self.wrap(self.node.reduce(ReduceKind::Sum, axes))
    }

    /// Mean over axes, which vanish.
    #[track_caller]
    pub fn mean(&self, axes: &[usize]) -> Tensor {
        let n = self.node.count(axes);
        self.wrap(self.node.reduce(ReduceKind::Sum, axes).div(&n))
    }

    /// Largest element over axes, which vanish.
    #[track_caller]
    pub fn max(&self, axes: &[usize]) -> Tensor {
        self.wrap(self.node.reduce(ReduceKind::Max, axes))
    }

    /// Smallest element over axes, which vanish.
    #[track_caller]
    pub fn min(&self, axes: &[usize]) -> Tensor {
        self.wrap(self.node.reduce(ReduceKind::Min, axes))
    }

    /// Product over axes, which vanish.
    #[track_caller]
    pub fn prod(&self, axes: &[usize]) -> Tensor {
        self.wrap(self.node.reduce(ReduceKind::Prod, axes))
    }

    /// Index (i64) of the first largest element along an axis.
    #[track_caller]
    pub fn argmax(&self, axis: usize) -> Tensor {
        self.wrap(self.node.argmax(axis))
    }

    /// Matrix product over the last axis of `self` and the first of `other`: `[.., k] x [k, n] -> [.., n]`.
    #[track_caller]
    pub fn matmul(&self, other: &Tensor) -> Tensor {
        self.wrap(self.node.matmul(&other.node))
    }

    /// General product; see [`rtx_ir::DotDims`].
    #[track_caller]
    pub fn dot_general(&self, other: &Tensor, dims: rtx_ir::DotDims) -> Tensor {
        self.wrap(self.node.dot(&other.node, dims))
    }

    /// Same elements in row-major order under another shape.
    #[track_caller]
    pub fn reshape(&self, shape: impl Into<Shape>) -> Tensor {
        self.wrap(self.node.reshape(&shape.into()))
    }

    /// Axis `i` of the result is axis `order[i]`.
    #[track_caller]
    pub fn permute(&self, order: &[usize]) -> Tensor {
        self.wrap(self.node.permute(order))
    }

    /// Transpose of a matrix.
    #[track_caller]
    pub fn t(&self) -> Tensor {
        self.permute(&[1, 0])
    }

    /// Repeats to a shape by the rules of NumPy.
    #[track_caller]
    pub fn broadcast_to(&self, shape: impl Into<Shape>) -> Tensor {
        self.wrap(self.node.broadcast_to(&shape.into()))
    }

    /// Elements `start..end` along an axis.
    #[track_caller]
    pub fn slice(&self, axis: usize, start: usize, end: usize) -> Tensor {
        self.wrap(self.node.slice(axis, start, end))
    }

    /// Zeros before and after along an axis.
    #[track_caller]
    pub fn pad(&self, axis: usize, before: usize, after: usize) -> Tensor {
        self.wrap(self.node.pad(axis, before, after))
    }

    /// Joins tensors along an axis. An empty list gives an error tensor on the CPU.
    #[track_caller]
    pub fn concat(parts: &[&Tensor], axis: usize) -> Tensor {
        let nodes: Vec<&Node> = parts.iter().map(|t| &t.node).collect();
        let node = Node::concat(&nodes, axis);
        parts.first().map_or_else(
            || Tensor::from_node(node.clone(), &crate::Device::cpu()),
            |t| t.wrap(node.clone()),
        )
    }

    /// Rows `index` (integers) of this table.
    #[track_caller]
    pub fn gather(&self, index: &Tensor) -> Tensor {
        self.wrap(self.node.gather(&index.node))
    }

    /// Adds slices of `self` into a zero table of `shape` at rows `index`.
    #[track_caller]
    pub fn scatter_add(&self, index: &Tensor, shape: impl Into<Shape>) -> Tensor {
        self.wrap(self.node.scatter_add(&index.node, &shape.into()))
    }

    /// Partial derivative point by point: `orders[i]` times by column `i` of `coordinates` ([points, dimensions]).
    /// All requests of a program are gathered and propagated together.
    #[track_caller]
    pub fn partial(&self, coordinates: &Tensor, orders: &[u8]) -> Tensor {
        self.wrap(
            self.node
                .derivative(&coordinates.node, vec![(MultiIndex::new(orders), 1.0)]),
        )
    }

    /// First derivative by column `i` of `coordinates`.
    #[track_caller]
    pub fn dx(&self, coordinates: &Tensor, i: usize) -> Tensor {
        self.wrap(
            self.node
                .derivative(&coordinates.node, vec![(MultiIndex::unit(i), 1.0)]),
        )
    }

    /// A linear operator with constant coefficients: the sum of weight times partial derivative. Sums of one
    /// order above the first are propagated as a single channel.
    #[track_caller]
    pub fn operator(&self, coordinates: &Tensor, terms: &[(&[u8], f64)]) -> Tensor {
        let terms = terms
            .iter()
            .map(|(o, w)| (MultiIndex::new(o), *w))
            .collect();
        self.wrap(self.node.derivative(&coordinates.node, terms))
    }

    /// Laplacian over the first `dims` columns of `coordinates`.
    #[track_caller]
    pub fn laplacian(&self, coordinates: &Tensor, dims: usize) -> Tensor {
        let second = |i| MultiIndex::unit(i).plus(&MultiIndex::unit(i));
        self.wrap(self.node.derivative(
            &coordinates.node,
            (0..dims).map(|i| (second(i), 1.0)).collect(),
        ))
    }
}
