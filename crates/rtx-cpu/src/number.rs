//! The Rust types of the element types.

/// Runs a body with `T` bound to the Rust type of a numeric element type.
macro_rules! with_numeric {
    ($dtype:expr, $t:ident => $body:expr) => {
        match $dtype {
            rtx_ir::DType::F32 => {
                type $t = f32;
                $body
            }
            rtx_ir::DType::F64 => {
                type $t = f64;
                $body
            }
            rtx_ir::DType::I32 => {
                type $t = i32;
                $body
            }
            rtx_ir::DType::I64 => {
                type $t = i64;
                $body
            }
            rtx_ir::DType::Bool => {
                type $t = u8;
                $body
            }
        }
    };
}

pub(crate) use with_numeric;

/// Arithmetic of the element types; that of integers wraps.
pub(crate) trait Number: Copy + PartialOrd + Send + Sync + 'static {
    const ZERO: Self;
    /// a + b; "or" for truth values
    fn sum(self, other: Self) -> Self;
    /// a b; "and" for truth values
    fn product(self, other: Self) -> Self;
    /// True for not-a-number.
    fn nan(self) -> bool;
}

macro_rules! number {
    ($($t:ty, $add:expr, $mul:expr, $nan:expr;)*) => {$(
        impl Number for $t {
            const ZERO: Self = 0 as $t;
            #[inline(always)]
            fn sum(self, other: Self) -> Self { let f: fn($t, $t) -> $t = $add; f(self, other) }
            #[inline(always)]
            fn product(self, other: Self) -> Self { let f: fn($t, $t) -> $t = $mul; f(self, other) }
            #[inline(always)]
            fn nan(self) -> bool { let f: fn($t) -> bool = $nan; f(self) }
        }
    )*};
}
number! {
    f32, |a, b| a + b, |a, b| a * b, f32::is_nan;
    f64, |a, b| a + b, |a, b| a * b, f64::is_nan;
    i32, i32::wrapping_add, i32::wrapping_mul, |_| false;
    i64, i64::wrapping_add, i64::wrapping_mul, |_| false;
    u8, |a, b| a | b, |a, b| a & b, |_| false;
}
