//! The operation set. Elementwise operations live in one table row each.

use crate::{DType, Error, Literal, Node, Shape};
use std::fmt;

/// Declares the unary table: variant, name, reference evaluation in double precision and the
/// derivative as a graph, given the input `x` and the output `y` (`None`: the derivative is zero
/// wherever it exists).
macro_rules! unary_table {
    ($($(#[$doc:meta])* $variant:ident $name:literal, $eval:expr, $deriv:expr;)*) => {
        /// Elementwise operations of one operand.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum UnaryOp { $($(#[$doc])* $variant,)* }

        impl UnaryOp {
            /// Every row of the table.
            pub const ALL: &'static [UnaryOp] = &[$(UnaryOp::$variant,)*];

            /// Name in dumps and messages.
            pub fn name(self) -> &'static str {
                match self { $(UnaryOp::$variant => $name,)* }
            }

            /// Reference evaluation.
            pub fn eval(self, x: f64) -> f64 {
                match self { $(UnaryOp::$variant => { let f: fn(f64) -> f64 = $eval; f(x) })* }
            }

            /// d y / d x as a graph.
            pub fn derivative(self, x: &Node, y: &Node) -> Option<Node> {
                match self { $(UnaryOp::$variant => {
                    let f: fn(&Node, &Node) -> Option<Node> = $deriv; f(x, y)
                })* }
            }
        }
    };
}

unary_table! {
    /// -x
    Neg "neg", |x| -x, |x, _| Some(x.scalar_like(-1.0));
    /// |x|; its derivative at 0 is taken as 0.
    Abs "abs", f64::abs, |x, _| Some(x.unary(UnaryOp::Sign));
    /// -1, 0 or 1
    Sign "sign", |x| if x > 0.0 { 1.0 } else if x < 0.0 { -1.0 } else { x }, |_, _| None;
    /// 1/x
    Recip "recip", |x| 1.0 / x, |_, y| Some(y.mul(y).neg());
    /// Square root
    Sqrt "sqrt", f64::sqrt, |x, y| Some(x.scalar_like(0.5).div(y));
    /// 1/sqrt(x)
    Rsqrt "rsqrt", |x| 1.0 / x.sqrt(), |x, y| Some(x.scalar_like(-0.5).mul(y).mul(&y.mul(y)));
    /// e^x
    Exp "exp", f64::exp, |_, y| Some(y.clone());
    /// e^x - 1, exact near 0
    Expm1 "expm1", f64::exp_m1, |x, y| Some(y.add(&x.scalar_like(1.0)));
    /// Natural logarithm
    Log "log", f64::ln, |x, _| Some(x.unary(UnaryOp::Recip));
    /// ln(1 + x), exact near 0
    Log1p "log1p", f64::ln_1p, |x, _| Some(x.add(&x.scalar_like(1.0)).unary(UnaryOp::Recip));
    /// Sine
    Sin "sin", f64::sin, |x, _| Some(x.unary(UnaryOp::Cos));
    /// Cosine
    Cos "cos", f64::cos, |x, _| Some(x.unary(UnaryOp::Sin).neg());
    /// Tangent
    Tan "tan", f64::tan, |x, y| Some(x.scalar_like(1.0).add(&y.mul(y)));
    /// Arc tangent
    Atan "atan", f64::atan, |x, _| Some(x.mul(x).add(&x.scalar_like(1.0)).unary(UnaryOp::Recip));
    /// Hyperbolic sine
    Sinh "sinh", f64::sinh, |x, _| Some(x.unary(UnaryOp::Cosh));
    /// Hyperbolic cosine
    Cosh "cosh", f64::cosh, |x, _| Some(x.unary(UnaryOp::Sinh));
    /// Hyperbolic tangent
    Tanh "tanh", f64::tanh, |x, y| Some(x.scalar_like(1.0).sub(&y.mul(y)));
    /// Largest integer not above x
    Floor "floor", f64::floor, |_, _| None;
    /// Smallest integer not below x
    Ceil "ceil", f64::ceil, |_, _| None;
    /// Logical not
    Not "not", |x| f64::from(u8::from(x == 0.0)), |_, _| None;
}

/// Elementwise operations of two operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BinaryOp {
    /// a + b
    Add,
    /// a - b
    Sub,
    /// a b
    Mul,
    /// a / b
    Div,
    /// a to the power b, a > 0 where b is not constant
    Pow,
    /// Larger of the two; the first where equal
    Max,
    /// Smaller of the two; the first where equal
    Min,
    /// Angle of the point (b, a)
    Atan2,
    /// a == b
    Eq,
    /// a < b
    Lt,
    /// a <= b
    Le,
    /// Logical and
    And,
    /// Logical or
    Or,
}

impl BinaryOp {
    /// Every row of the table.
    pub const ALL: &'static [BinaryOp] = &[
        BinaryOp::Add,
        BinaryOp::Sub,
        BinaryOp::Mul,
        BinaryOp::Div,
        BinaryOp::Pow,
        BinaryOp::Max,
        BinaryOp::Min,
        BinaryOp::Atan2,
        BinaryOp::Eq,
        BinaryOp::Lt,
        BinaryOp::Le,
        BinaryOp::And,
        BinaryOp::Or,
    ];

    /// Name in dumps and messages.
    pub fn name(self) -> &'static str {
        match self {
            BinaryOp::Add => "add",
            BinaryOp::Sub => "sub",
            BinaryOp::Mul => "mul",
            BinaryOp::Div => "div",
            BinaryOp::Pow => "pow",
            BinaryOp::Max => "max",
            BinaryOp::Min => "min",
            BinaryOp::Atan2 => "atan2",
            BinaryOp::Eq => "eq",
            BinaryOp::Lt => "lt",
            BinaryOp::Le => "le",
            BinaryOp::And => "and",
            BinaryOp::Or => "or",
        }
    }

    /// True where the result is a truth value.
    pub fn is_predicate(self) -> bool {
        matches!(
            self,
            BinaryOp::Eq | BinaryOp::Lt | BinaryOp::Le | BinaryOp::And | BinaryOp::Or
        )
    }

    /// Reference evaluation.
    pub fn eval(self, a: f64, b: f64) -> f64 {
        let truth = |c: bool| f64::from(u8::from(c));
        match self {
            BinaryOp::Add => a + b,
            BinaryOp::Sub => a - b,
            BinaryOp::Mul => a * b,
            BinaryOp::Div => a / b,
            BinaryOp::Pow => a.powf(b),
            BinaryOp::Max => {
                if a >= b || a.is_nan() {
                    a
                } else {
                    b
                }
            }
            BinaryOp::Min => {
                if a <= b || a.is_nan() {
                    a
                } else {
                    b
                }
            }
            BinaryOp::Atan2 => a.atan2(b),
            BinaryOp::Eq => truth(a == b),
            BinaryOp::Lt => truth(a < b),
            BinaryOp::Le => truth(a <= b),
            BinaryOp::And => truth(a != 0.0 && b != 0.0),
            BinaryOp::Or => truth(a != 0.0 || b != 0.0),
        }
    }
}

/// How a reduction combines elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ReduceKind {
    /// Sum
    Sum,
    /// Largest
    Max,
    /// Smallest
    Min,
    /// Product
    Prod,
}

/// Axes of a general product: `contract` pairs are summed over, `batch` pairs are kept side by side.
/// The result has the batch axes, then the free axes of the left, then those of the right operand.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct DotDims {
    /// Batch axes of the left operand.
    pub lhs_batch: Vec<usize>,
    /// Batch axes of the right operand, paired with those of the left.
    pub rhs_batch: Vec<usize>,
    /// Axes of the left operand that are summed over.
    pub lhs_contract: Vec<usize>,
    /// Axes of the right operand that are summed over, paired with those of the left.
    pub rhs_contract: Vec<usize>,
}

/// Distribution of random numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RandomKind {
    /// Uniform on [0, 1)
    Uniform,
    /// Standard normal
    Normal,
}

/// One operation of a graph.
#[derive(Clone, Debug)]
pub enum Op {
    /// An array that exists already (its buffer is the value of the node).
    Data,
    /// An input of a program, by number.
    Input(usize),
    /// A scalar constant.
    Constant(Literal),
    /// 0, 1, 2, ... along one axis.
    Iota(usize),
    /// Counter-based random numbers (Philox 4x32-10); the operand is the integer key.
    Random(RandomKind),
    /// The number of rows of the node's operand, as a scalar of the node's dtype.
    RowCount,
    /// The operand itself. `stop` ends differentiation here.
    Identity {
        /// True where no derivative passes.
        stop: bool,
    },
    /// Elementwise, one operand.
    Unary(UnaryOp),
    /// Elementwise, two operands of one shape.
    Binary(BinaryOp),
    /// `inputs[0] ? inputs[1] : inputs[2]`, elementwise.
    Select,
    /// Conversion to the node's dtype.
    Cast,
    /// Reduction over axes, which vanish.
    Reduce(ReduceKind, Vec<usize>),
    /// Index of the first largest element along an axis, which vanishes.
    ArgMax(usize),
    /// General product.
    Dot(DotDims),
    /// Same elements in row-major order under another shape.
    Reshape,
    /// Repeats along new or unit axes; `axes[i]` is the axis of the result that operand axis `i` becomes.
    Broadcast(Vec<usize>),
    /// Axis `i` of the result is axis `perm[i]` of the operand.
    Permute(Vec<usize>),
    /// A contiguous range along one axis.
    Slice {
        /// Axis that is cut.
        axis: usize,
        /// First index kept.
        start: usize,
        /// First index not kept.
        end: usize,
    },
    /// Zeros before and after along one axis.
    Pad {
        /// Axis that grows.
        axis: usize,
        /// Zeros before.
        before: usize,
        /// Zeros after.
        after: usize,
    },
    /// Joins operands along one axis.
    Concat(usize),
    /// Rows `inputs[1]` (integers, any shape) of the table `inputs[0]` (leading axis).
    Gather,
    /// Adds the slices of `inputs[0]` into a zero table of the node's shape at rows `inputs[1]`.
    ScatterAdd,
    /// A derivative of the field `inputs[0]` by the columns of the coordinates `inputs[1]`
    /// (shape [rows, dimensions]): the sum of weight times mixed partial derivative. Resolved by
    /// [`resolve_requests`](crate::resolve_requests).
    Derivative(Vec<(crate::jet::MultiIndex, f64)>),
    /// A mistake met while the graph was built.
    Error(Box<Error>),
}

impl Op {
    /// Name in dumps and messages.
    pub fn name(&self) -> &'static str {
        match self {
            Op::Data => "data",
            Op::Input(_) => "input",
            Op::Constant(_) => "constant",
            Op::Iota(_) => "iota",
            Op::Random(RandomKind::Uniform) => "random_uniform",
            Op::Random(RandomKind::Normal) => "random_normal",
            Op::RowCount => "row_count",
            Op::Identity { stop: false } => "identity",
            Op::Identity { stop: true } => "stop_gradient",
            Op::Unary(u) => u.name(),
            Op::Binary(b) => b.name(),
            Op::Select => "select",
            Op::Cast => "cast",
            Op::Reduce(ReduceKind::Sum, _) => "reduce_sum",
            Op::Reduce(ReduceKind::Max, _) => "reduce_max",
            Op::Reduce(ReduceKind::Min, _) => "reduce_min",
            Op::Reduce(ReduceKind::Prod, _) => "reduce_prod",
            Op::ArgMax(_) => "argmax",
            Op::Dot(_) => "dot_general",
            Op::Reshape => "reshape",
            Op::Broadcast(_) => "broadcast",
            Op::Permute(_) => "permute",
            Op::Slice { .. } => "slice",
            Op::Pad { .. } => "pad",
            Op::Concat(_) => "concat",
            Op::Gather => "gather",
            Op::ScatterAdd => "scatter_add",
            Op::Derivative(_) => "derivative",
            Op::Error(_) => "error",
        }
    }

    /// A key under which equal operations compare equal (constants by bits).
    pub fn key(&self) -> String {
        match self {
            Op::Constant(Literal::Float(v)) => format!("c{:016x}", v.to_bits()),
            other => format!("{other:?}"),
        }
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Op::Input(i) => write!(f, "input {i}"),
            Op::Constant(Literal::Float(v)) => write!(f, "{v:?}"),
            Op::Constant(Literal::Int(v)) => write!(f, "{v}"),
            Op::Iota(a) | Op::ArgMax(a) | Op::Concat(a) => write!(f, "{} axis={a}", self.name()),
            Op::Reduce(_, axes) | Op::Permute(axes) | Op::Broadcast(axes) => {
                write!(f, "{} {axes:?}", self.name())
            }
            Op::Dot(d) => write!(
                f,
                "dot_general {:?}x{:?} batch {:?}x{:?}",
                d.lhs_contract, d.rhs_contract, d.lhs_batch, d.rhs_batch
            ),
            Op::Slice { axis, start, end } => write!(f, "slice axis={axis} {start}..{end}"),
            Op::Pad {
                axis,
                before,
                after,
            } => write!(f, "pad axis={axis} {before}+{after}"),
            _ => f.write_str(self.name()),
        }
    }
}

/// Element type and shape of a value.
pub(crate) type Type = (DType, Shape);
