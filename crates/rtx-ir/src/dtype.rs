//! Element types and scalar literals.

use std::fmt;

/// Element type of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DType {
    /// Truth value, stored as one byte.
    Bool,
    /// 32-bit signed integer.
    I32,
    /// 64-bit signed integer.
    I64,
    /// IEEE single precision.
    F32,
    /// IEEE double precision.
    F64,
}

impl DType {
    /// Bytes of one element.
    pub fn size(self) -> usize {
        match self {
            DType::Bool => 1,
            DType::I32 | DType::F32 => 4,
            DType::I64 | DType::F64 => 8,
        }
    }

    /// True for `F32` and `F64`.
    pub fn is_float(self) -> bool {
        matches!(self, DType::F32 | DType::F64)
    }

    /// Rounds a double to the values this type can hold (saturating for integers).
    pub fn round(self, v: f64) -> f64 {
        match self {
            DType::Bool => f64::from(u8::from(v != 0.0)),
            DType::I32 => f64::from(v as i32),
            DType::I64 => (v as i64) as f64,
            DType::F32 => f64::from(v as f32),
            DType::F64 => v,
        }
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            DType::Bool => "bool",
            DType::I32 => "i32",
            DType::I64 => "i64",
            DType::F32 => "f32",
            DType::F64 => "f64",
        })
    }
}

/// A Rust type that can be the element of an array.
pub trait Element: Copy + Send + Sync + 'static {
    /// The matching [`DType`].
    const DTYPE: DType;
    /// Converts to double precision.
    fn to_f64(self) -> f64;
    /// Converts from double precision, rounding.
    fn from_f64(v: f64) -> Self;
}

macro_rules! element {
    ($($t:ty => $d:ident),*) => {$(
        impl Element for $t {
            const DTYPE: DType = DType::$d;
            fn to_f64(self) -> f64 { self as f64 }
            fn from_f64(v: f64) -> Self { v as $t }
        }
    )*};
}
element!(f32 => F32, f64 => F64, i32 => I32, i64 => I64);

impl Element for bool {
    const DTYPE: DType = DType::Bool;
    fn to_f64(self) -> f64 {
        f64::from(u8::from(self))
    }
    fn from_f64(v: f64) -> Self {
        v != 0.0
    }
}

/// A scalar constant of a graph.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Literal {
    /// A floating-point constant; rounded to the dtype of its node.
    Float(f64),
    /// An integer or truth value.
    Int(i64),
}

impl Literal {
    /// The value in double precision.
    pub fn to_f64(self) -> f64 {
        match self {
            Literal::Float(v) => v,
            Literal::Int(v) => v as f64,
        }
    }
}
