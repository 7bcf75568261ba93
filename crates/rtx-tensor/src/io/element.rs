//! Numbers as files store them: of any size, in either byte order.

use crate::DType;

/// Kind of number; with the size it is an element type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Truth value of one byte.
    Bool,
    /// Signed integer.
    Int,
    /// Unsigned integer.
    Uint,
    /// IEEE floating-point number.
    Float,
    /// Real and imaginary part, each a floating-point number.
    Complex,
}

/// How one element is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Encoding {
    kind: Kind,
    size: usize,
    big_endian: bool,
}

impl Encoding {
    /// An element of `size` bytes, both parts of a complex number included; `None` for a size that no number
    /// of that kind has here (an extended float, say).
    pub fn new(kind: Kind, size: usize, big_endian: bool) -> Option<Self> {
        let known = match kind {
            Kind::Bool => size == 1,
            Kind::Int | Kind::Uint => matches!(size, 1 | 2 | 4 | 8),
            Kind::Float => matches!(size, 2 | 4 | 8),
            Kind::Complex => matches!(size, 8 | 16),
        };
        known.then_some(Self {
            kind,
            size,
            big_endian,
        })
    }

    /// The little-endian encoding of a tensor's elements.
    pub(super) fn of(dtype: DType) -> Self {
        let kind = match dtype {
            DType::Bool => Kind::Bool,
            DType::I32 | DType::I64 => Kind::Int,
            DType::F32 | DType::F64 => Kind::Float,
        };
        Self {
            kind,
            size: dtype.size(),
            big_endian: false,
        }
    }

    /// Kind of number.
    pub fn kind(self) -> Kind {
        self.kind
    }

    /// Bytes of one element.
    pub fn size(self) -> usize {
        self.size
    }

    /// The element type of a tensor of such numbers, if there is one.
    pub fn dtype(self) -> Option<DType> {
        match (self.kind, self.size) {
            (Kind::Bool, _) => Some(DType::Bool),
            (Kind::Int, 4) => Some(DType::I32),
            (Kind::Int, 8) => Some(DType::I64),
            (Kind::Float, 4) => Some(DType::F32),
            (Kind::Float, 8) => Some(DType::F64),
            _ => None,
        }
    }

    /// NumPy's name of the type, such as `float64`.
    pub fn name(self) -> String {
        let word = match self.kind {
            Kind::Bool => return "bool".into(),
            Kind::Int => "int",
            Kind::Uint => "uint",
            Kind::Float => "float",
            Kind::Complex => "complex",
        };
        format!("{word}{}", 8 * self.size)
    }

    /// The numbers in `data`, a complex one as two; integers above 2^53 round to the nearest double.
    pub fn to_f64(self, data: &[u8]) -> Vec<f64> {
        macro_rules! numbers {
            ($t:ty) => {{
                let (chunks, _) = data.as_chunks::<{ size_of::<$t>() }>();
                let read = match self.big_endian {
                    true => <$t>::from_be_bytes,
                    false => <$t>::from_le_bytes,
                };
                chunks.iter().map(|c| read(*c) as f64).collect()
            }};
        }
        let parts = if self.kind == Kind::Complex { 2 } else { 1 };
        match (self.kind, self.size / parts) {
            (Kind::Bool, _) => data.iter().map(|b| f64::from(u8::from(*b != 0))).collect(),
            (Kind::Int, 1) => numbers!(i8),
            (Kind::Int, 2) => numbers!(i16),
            (Kind::Int, 4) => numbers!(i32),
            (Kind::Int, _) => numbers!(i64),
            (Kind::Uint, 1) => numbers!(u8),
            (Kind::Uint, 2) => numbers!(u16),
            (Kind::Uint, 4) => numbers!(u32),
            (Kind::Uint, _) => numbers!(u64),
            (Kind::Float, 2) => {
                let (chunks, _) = data.as_chunks::<2>();
                let read = match self.big_endian {
                    true => u16::from_be_bytes,
                    false => u16::from_le_bytes,
                };
                chunks.iter().map(|c| half(read(*c))).collect()
            }
            (Kind::Float | Kind::Complex, 4) => numbers!(f32),
            (Kind::Float | Kind::Complex, _) => numbers!(f64),
        }
    }

    /// Position and value of the first 64-bit integer in `data` that a double does not hold.
    pub(super) fn inexact(self, data: &[u8]) -> Option<(usize, i64)> {
        if (self.kind, self.size) != (Kind::Int, 8) {
            return None;
        }
        let (chunks, _) = data.as_chunks::<8>();
        let read = match self.big_endian {
            true => i64::from_be_bytes,
            false => i64::from_le_bytes,
        };
        let values = chunks.iter().map(|c| read(*c));
        values
            .enumerate()
            .find(|(_, v)| (*v as f64) as i128 != i128::from(*v))
    }
}

/// An IEEE half-precision number, exactly.
fn half(bits: u16) -> f64 {
    let (exponent, fraction) = (i32::from(bits >> 10 & 0x1f), f64::from(bits & 0x3ff));
    let size = match exponent {
        0 => fraction * 2f64.powi(-24),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        e => (1024.0 + fraction) * 2f64.powi(e - 25),
    };
    if bits >> 15 == 1 { -size } else { size }
}

/// A Rust type that arrays in files can be written from.
pub trait StoredElement: Copy {
    /// The type as a NumPy header names it.
    const DESCR: &'static str;
    /// The element's bytes.
    type Bytes: AsRef<[u8]>;
    /// Its bytes, the least significant first.
    fn to_le_bytes(self) -> Self::Bytes;
}

macro_rules! stored {
    ($($t:ty => $descr:literal),*) => {$(
        impl StoredElement for $t {
            const DESCR: &'static str = $descr;
            type Bytes = [u8; size_of::<$t>()];
            fn to_le_bytes(self) -> Self::Bytes {
                <$t>::to_le_bytes(self)
            }
        }
    )*};
}
stored!(i32 => "<i4", i64 => "<i8", f32 => "<f4", f64 => "<f8");

impl StoredElement for bool {
    const DESCR: &'static str = "|b1";
    type Bytes = [u8; 1];
    fn to_le_bytes(self) -> [u8; 1] {
        [u8::from(self)]
    }
}

/// Real and imaginary part of a double-precision complex number.
impl StoredElement for [f64; 2] {
    const DESCR: &'static str = "<c16";
    type Bytes = [u8; 16];
    fn to_le_bytes(self) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&self[0].to_le_bytes());
        bytes[8..].copy_from_slice(&self[1].to_le_bytes());
        bytes
    }
}

/// Runs `$body` with the Rust type of `$dtype` named `$t`.
macro_rules! with_element {
    ($dtype:expr, $t:ident => $body:expr) => {
        match $dtype {
            $crate::DType::Bool => {
                type $t = bool;
                $body
            }
            $crate::DType::I32 => {
                type $t = i32;
                $body
            }
            $crate::DType::I64 => {
                type $t = i64;
                $body
            }
            $crate::DType::F32 => {
                type $t = f32;
                $body
            }
            $crate::DType::F64 => {
                type $t = f64;
                $body
            }
        }
    };
}
pub(super) use with_element;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_precision_is_exact() {
        // Values of NumPy's float16.
        for (bits, value) in [
            (0x0000, 0.0),
            (0x0001, 5.960464477539063e-08),
            (0x03ff, 6.097555160522461e-05),
            (0x0400, 6.103515625e-05),
            (0x3555, 0.333251953125),
            (0x3c00, 1.0),
            (0xc0b1, -2.345703125),
            (0x7bff, 65504.0),
            (0xfc00, f64::NEG_INFINITY),
        ] {
            assert_eq!(half(bits), value, "{bits:#x}");
        }
        assert!(half(0x7e00).is_nan());
        let big = Encoding::new(Kind::Float, 2, true).unwrap();
        assert_eq!(big.to_f64(&[0x3c, 0x00, 0xc0, 0xb1]), [1.0, -2.345703125]);
        assert_eq!((big.name().as_str(), big.dtype()), ("float16", None));
    }
}
