//! Vector loops of the scalar primitives, one per primitive and element type, compiled for the
//! instruction sets that matter and chosen once for the processor present.

use crate::level::{Level, level};
use crate::math;
use rtx_compiler::Primitive;
use rtx_ir::{BinaryOp, DType, UnaryOp};
use std::sync::OnceLock;

/// A loop over `n` elements: result, then up to three operands.
pub(crate) type Loop = unsafe fn(*mut u8, *const u8, *const u8, *const u8, usize);

/// One element of work on types fixed by the implementor.
trait Scalar {
    type A: Copy;
    type B: Copy;
    type C: Copy;
    type Out: Copy;
    fn apply(a: Self::A, b: Self::B, c: Self::C) -> Self::Out;
}

#[inline(always)]
unsafe fn body<S: Scalar>(to: *mut u8, a: *const u8, b: *const u8, c: *const u8, n: usize) {
    let (to, a, b, c) = (
        to.cast::<S::Out>(),
        a.cast::<S::A>(),
        b.cast::<S::B>(),
        c.cast::<S::C>(),
    );
    for i in 0..n {
        // SAFETY: the caller gives `n` elements everywhere; `read` before `write` allows to == a.
        unsafe {
            to.add(i)
                .write(S::apply(a.add(i).read(), b.add(i).read(), c.add(i).read()))
        };
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx2,fma")]
unsafe fn avx512<S: Scalar>(to: *mut u8, a: *const u8, b: *const u8, c: *const u8, n: usize) {
    // SAFETY: passed on from the caller.
    unsafe { body::<S>(to, a, b, c, n) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
unsafe fn avx2<S: Scalar>(to: *mut u8, a: *const u8, b: *const u8, c: *const u8, n: usize) {
    // SAFETY: passed on from the caller.
    unsafe { body::<S>(to, a, b, c, n) }
}

unsafe fn portable<S: Scalar>(to: *mut u8, a: *const u8, b: *const u8, c: *const u8, n: usize) {
    // SAFETY: passed on from the caller.
    unsafe { body::<S>(to, a, b, c, n) }
}

fn choose<S: Scalar>() -> Loop {
    match level() {
        #[cfg(target_arch = "x86_64")]
        Level::Avx512 => avx512::<S>,
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 => avx2::<S>,
        _ => portable::<S>,
    }
}

macro_rules! scalar {
    ($name:ident, $a:ty, $b:ty, $c:ty => $out:ty, |$x:pat_param, $y:pat_param, $z:pat_param| $e:expr) => {{
        struct $name;
        impl Scalar for $name {
            type A = $a;
            type B = $b;
            type C = $c;
            type Out = $out;
            #[inline(always)]
            fn apply($x: $a, $y: $b, $z: $c) -> $out {
                $e
            }
        }
        choose::<$name>()
    }};
}

/// Unary loops of one float type; `$exp` and the like are its vector functions.
macro_rules! unary_float {
    ($t:ty, $op:expr, $exp:expr, $tanh:expr) => {
        match $op {
            UnaryOp::Neg => scalar!(S, $t, u8, u8 => $t, |x, _, _| -x),
            UnaryOp::Abs => scalar!(S, $t, u8, u8 => $t, |x, _, _| x.abs()),
            UnaryOp::Sign => scalar!(S, $t, u8, u8 => $t, |x, _, _| if x > 0.0 { 1.0 } else if x < 0.0 { -1.0 } else { x }),
            UnaryOp::Recip => scalar!(S, $t, u8, u8 => $t, |x, _, _| 1.0 / x),
            UnaryOp::Sqrt => scalar!(S, $t, u8, u8 => $t, |x, _, _| x.sqrt()),
            UnaryOp::Rsqrt => scalar!(S, $t, u8, u8 => $t, |x, _, _| 1.0 / x.sqrt()),
            UnaryOp::Exp => scalar!(S, $t, u8, u8 => $t, |x, _, _| $exp(x)),
            UnaryOp::Expm1 => scalar!(S, $t, u8, u8 => $t, |x, _, _| x.exp_m1()),
            UnaryOp::Log => scalar!(S, $t, u8, u8 => $t, |x, _, _| x.ln()),
            UnaryOp::Log1p => scalar!(S, $t, u8, u8 => $t, |x, _, _| x.ln_1p()),
            UnaryOp::Sin => scalar!(S, $t, u8, u8 => $t, |x, _, _| x.sin()),
            UnaryOp::Cos => scalar!(S, $t, u8, u8 => $t, |x, _, _| x.cos()),
            UnaryOp::Tan => scalar!(S, $t, u8, u8 => $t, |x, _, _| x.tan()),
            UnaryOp::Atan => scalar!(S, $t, u8, u8 => $t, |x, _, _| x.atan()),
            UnaryOp::Sinh => scalar!(S, $t, u8, u8 => $t, |x, _, _| x.sinh()),
            UnaryOp::Cosh => scalar!(S, $t, u8, u8 => $t, |x, _, _| x.cosh()),
            UnaryOp::Tanh => scalar!(S, $t, u8, u8 => $t, |x, _, _| $tanh(x)),
            UnaryOp::Floor => scalar!(S, $t, u8, u8 => $t, |x, _, _| x.floor()),
            UnaryOp::Ceil => scalar!(S, $t, u8, u8 => $t, |x, _, _| x.ceil()),
            UnaryOp::Not => return None,
        }
    };
}

/// Sine and cosine: the vector loop where all arguments are moderate, the standard library elsewhere.
macro_rules! trig {
    ($name:ident, $fast:path, $slow:path) => {
        unsafe fn $name(to: *mut u8, a: *const u8, b: *const u8, c: *const u8, n: usize) {
            static FAST: OnceLock<Loop> = OnceLock::new();
            let fast = FAST.get_or_init(|| scalar!(S, f32, u8, u8 => f32, |x, _, _| $fast(x)));
            let x = a.cast::<f32>();
            // SAFETY: the caller gives `n` elements.
            unsafe {
                if (0..n).all(|i| *x.add(i) <= math::TRIG_LIMIT && *x.add(i) >= -math::TRIG_LIMIT) {
                    fast(to, a, b, c, n);
                } else {
                    for i in 0..n {
                        to.cast::<f32>().add(i).write($slow(*x.add(i)));
                    }
                }
            }
        }
    };
}
trig!(sin_f32, math::sin, f32::sin);
trig!(cos_f32, math::cos, f32::cos);

fn unary(op: UnaryOp, dtype: DType) -> Option<Loop> {
    Some(match dtype {
        DType::F32 => match op {
            UnaryOp::Sin => sin_f32,
            UnaryOp::Cos => cos_f32,
            _ => unary_float!(f32, op, math::exp, math::tanh),
        },
        DType::F64 => unary_float!(f64, op, f64::exp, f64::tanh),
        DType::I32 | DType::I64 => return unary_integer(op, dtype),
        DType::Bool => match op {
            UnaryOp::Not => scalar!(S, u8, u8, u8 => u8, |x, _, _| u8::from(x == 0)),
            _ => return None,
        },
    })
}

fn unary_integer(op: UnaryOp, dtype: DType) -> Option<Loop> {
    Some(match (op, dtype) {
        (UnaryOp::Neg, DType::I32) => scalar!(S, i32, u8, u8 => i32, |x, _, _| x.wrapping_neg()),
        (UnaryOp::Abs, DType::I32) => scalar!(S, i32, u8, u8 => i32, |x, _, _| x.wrapping_abs()),
        (UnaryOp::Sign, DType::I32) => scalar!(S, i32, u8, u8 => i32, |x, _, _| x.signum()),
        (UnaryOp::Neg, DType::I64) => scalar!(S, i64, u8, u8 => i64, |x, _, _| x.wrapping_neg()),
        (UnaryOp::Abs, DType::I64) => scalar!(S, i64, u8, u8 => i64, |x, _, _| x.wrapping_abs()),
        (UnaryOp::Sign, DType::I64) => scalar!(S, i64, u8, u8 => i64, |x, _, _| x.signum()),
        _ => return None,
    })
}

macro_rules! binary_float {
    ($t:ty, $op:expr) => {
        match $op {
            BinaryOp::Add => scalar!(S, $t, $t, u8 => $t, |x, y, _| x + y),
            BinaryOp::Sub => scalar!(S, $t, $t, u8 => $t, |x, y, _| x - y),
            BinaryOp::Mul => scalar!(S, $t, $t, u8 => $t, |x, y, _| x * y),
            BinaryOp::Div => scalar!(S, $t, $t, u8 => $t, |x, y, _| x / y),
            BinaryOp::Pow => scalar!(S, $t, $t, u8 => $t, |x, y, _| x.powf(y)),
            BinaryOp::Max => scalar!(S, $t, $t, u8 => $t, |x, y, _| if x >= y || x.is_nan() { x } else { y }),
            BinaryOp::Min => scalar!(S, $t, $t, u8 => $t, |x, y, _| if x <= y || x.is_nan() { x } else { y }),
            BinaryOp::Atan2 => scalar!(S, $t, $t, u8 => $t, |x, y, _| x.atan2(y)),
            BinaryOp::Eq => scalar!(S, $t, $t, u8 => u8, |x, y, _| u8::from(x == y)),
            BinaryOp::Lt => scalar!(S, $t, $t, u8 => u8, |x, y, _| u8::from(x < y)),
            BinaryOp::Le => scalar!(S, $t, $t, u8 => u8, |x, y, _| u8::from(x <= y)),
            BinaryOp::And | BinaryOp::Or => return None,
        }
    };
}

macro_rules! binary_integer {
    ($t:ty, $op:expr) => {
        match $op {
            BinaryOp::Add => scalar!(S, $t, $t, u8 => $t, |x, y, _| x.wrapping_add(y)),
            BinaryOp::Sub => scalar!(S, $t, $t, u8 => $t, |x, y, _| x.wrapping_sub(y)),
            BinaryOp::Mul => scalar!(S, $t, $t, u8 => $t, |x, y, _| x.wrapping_mul(y)),
            BinaryOp::Div => scalar!(S, $t, $t, u8 => $t, |x, y, _| x.checked_div(y).unwrap_or(0)),
            BinaryOp::Max => scalar!(S, $t, $t, u8 => $t, |x, y, _| x.max(y)),
            BinaryOp::Min => scalar!(S, $t, $t, u8 => $t, |x, y, _| x.min(y)),
            BinaryOp::Eq => scalar!(S, $t, $t, u8 => u8, |x, y, _| u8::from(x == y)),
            BinaryOp::Lt => scalar!(S, $t, $t, u8 => u8, |x, y, _| u8::from(x < y)),
            BinaryOp::Le => scalar!(S, $t, $t, u8 => u8, |x, y, _| u8::from(x <= y)),
            _ => return None,
        }
    };
}

fn binary(op: BinaryOp, dtype: DType) -> Option<Loop> {
    Some(match dtype {
        DType::F32 => binary_float!(f32, op),
        DType::F64 => binary_float!(f64, op),
        DType::I32 => binary_integer!(i32, op),
        DType::I64 => binary_integer!(i64, op),
        DType::Bool => match op {
            BinaryOp::And => scalar!(S, u8, u8, u8 => u8, |x, y, _| x & y),
            BinaryOp::Or => scalar!(S, u8, u8, u8 => u8, |x, y, _| x | y),
            BinaryOp::Eq => scalar!(S, u8, u8, u8 => u8, |x, y, _| u8::from(x == y)),
            _ => return None,
        },
    })
}

fn select(size: usize) -> Loop {
    match size {
        1 => scalar!(S, u8, u8, u8 => u8, |c, x, y| if c != 0 { x } else { y }),
        4 => scalar!(S, u8, u32, u32 => u32, |c, x, y| if c != 0 { x } else { y }),
        _ => scalar!(S, u8, u64, u64 => u64, |c, x, y| if c != 0 { x } else { y }),
    }
}

fn copy(size: usize) -> Loop {
    match size {
        1 => scalar!(S, u8, u8, u8 => u8, |x, _, _| x),
        4 => scalar!(S, u32, u8, u8 => u32, |x, _, _| x),
        _ => scalar!(S, u64, u8, u8 => u64, |x, _, _| x),
    }
}

fn cast(from: DType, to: DType) -> Loop {
    macro_rules! into {
        ($t:ty) => {
            match to {
                DType::Bool => scalar!(S, $t, u8, u8 => u8, |x, _, _| u8::from(x != (0 as $t))),
                DType::I32 => scalar!(S, $t, u8, u8 => i32, |x, _, _| x as i32),
                DType::I64 => scalar!(S, $t, u8, u8 => i64, |x, _, _| x as i64),
                DType::F32 => scalar!(S, $t, u8, u8 => f32, |x, _, _| x as f32),
                DType::F64 => scalar!(S, $t, u8, u8 => f64, |x, _, _| x as f64),
            }
        };
    }
    match from {
        DType::Bool => into!(u8),
        DType::I32 => into!(i32),
        DType::I64 => into!(i64),
        DType::F32 => into!(f32),
        DType::F64 => into!(f64),
    }
}

/// The loop of a primitive; `None` for a combination the type rules do not admit.
pub(crate) fn loop_of(primitive: Primitive, dtype: DType, out: DType) -> Option<Loop> {
    match primitive {
        Primitive::Unary(u) => unary(u, dtype),
        Primitive::Binary(b) => binary(b, dtype),
        Primitive::Select => Some(select(dtype.size())),
        Primitive::Cast => Some(cast(dtype, out)),
        Primitive::Move => Some(copy(dtype.size())),
    }
}
