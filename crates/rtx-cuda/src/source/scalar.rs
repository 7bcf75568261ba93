//! The scalar primitives as CUDA C expressions.
//!
//! Semantics are those of Rust: integers wrap, a quotient that does not exist is zero, conversions saturate
//! and send NaN to zero. Functions are the full-precision ones of the CUDA math library.

#[cfg(test)]
mod tests;

use rtx_compiler::Primitive;
use rtx_ir::{BinaryOp, DType, UnaryOp};

/// Name of the C type of an element.
pub(crate) fn c_type(dtype: DType) -> &'static str {
    match dtype {
        DType::Bool => "unsigned char",
        DType::I32 => "int",
        DType::I64 => "long long",
        DType::F32 => "float",
        DType::F64 => "double",
    }
}

/// A C expression of one primitive. `dtype` is the element type of the operands (of the branches for a
/// select), `out` that of the result; operands are C expressions of exactly these types. `None` for a
/// combination that the type rules do not admit.
pub(crate) fn expression(
    primitive: Primitive,
    dtype: DType,
    out: DType,
    operands: &[String],
) -> Option<String> {
    match (primitive, operands) {
        (Primitive::Unary(u), [a]) => unary(u, dtype, a),
        (Primitive::Binary(b), [x, y]) => binary(b, dtype, x, y),
        (Primitive::Select, [c, x, y]) => Some(format!("(({c}) != 0 ? ({x}) : ({y}))")),
        (Primitive::Cast, [a]) => Some(cast(dtype, out, a)),
        (Primitive::Move, [a]) => Some(format!("({a})")),
        _ => None,
    }
}

fn unary(op: UnaryOp, dtype: DType, a: &str) -> Option<String> {
    match dtype {
        DType::F32 => float_unary(op, a, "f"),
        DType::F64 => float_unary(op, a, ""),
        DType::I32 | DType::I64 => Some(match op {
            UnaryOp::Neg => format!("rtx_neg({a})"),
            UnaryOp::Abs => format!("rtx_abs({a})"),
            UnaryOp::Sign => format!("rtx_sign({a})"),
            _ => return None,
        }),
        DType::Bool => (op == UnaryOp::Not).then(|| truth(format!("({a}) == 0"))),
    }
}

/// `suffix` ends function names and literals of the type.
fn float_unary(op: UnaryOp, a: &str, suffix: &str) -> Option<String> {
    let function = match op {
        UnaryOp::Neg => return Some(format!("(-({a}))")),
        UnaryOp::Sign => return Some(format!("rtx_sign({a})")),
        UnaryOp::Recip => return Some(format!("(1.0{suffix} / ({a}))")),
        UnaryOp::Rsqrt => return Some(format!("(1.0{suffix} / sqrt{suffix}({a}))")),
        UnaryOp::Abs => "fabs",
        UnaryOp::Sqrt => "sqrt",
        UnaryOp::Exp => "exp",
        UnaryOp::Expm1 => "expm1",
        UnaryOp::Log => "log",
        UnaryOp::Log1p => "log1p",
        UnaryOp::Sin => "sin",
        UnaryOp::Cos => "cos",
        UnaryOp::Tan => "tan",
        UnaryOp::Atan => "atan",
        UnaryOp::Sinh => "sinh",
        UnaryOp::Cosh => "cosh",
        UnaryOp::Tanh => "tanh",
        UnaryOp::Floor => "floor",
        UnaryOp::Ceil => "ceil",
        UnaryOp::Not => return None,
    };
    Some(format!("{function}{suffix}({a})"))
}

fn binary(op: BinaryOp, dtype: DType, x: &str, y: &str) -> Option<String> {
    let logical = matches!(op, BinaryOp::And | BinaryOp::Or);
    let boolean = dtype == DType::Bool;
    if logical != boolean && op != BinaryOp::Eq {
        return None;
    }
    let suffix = if dtype == DType::F32 { "f" } else { "" };
    let arithmetic = |sign: &str, wrapping: &str| {
        if dtype.is_float() {
            format!("(({x}) {sign} ({y}))")
        } else {
            format!("{wrapping}({x}, {y})")
        }
    };
    Some(match op {
        BinaryOp::Add => arithmetic("+", "rtx_add"),
        BinaryOp::Sub => arithmetic("-", "rtx_sub"),
        BinaryOp::Mul => arithmetic("*", "rtx_mul"),
        BinaryOp::Div => arithmetic("/", "rtx_div"),
        BinaryOp::Max => format!("rtx_max({x}, {y})"),
        BinaryOp::Min => format!("rtx_min({x}, {y})"),
        BinaryOp::Pow if dtype.is_float() => format!("pow{suffix}({x}, {y})"),
        BinaryOp::Atan2 if dtype.is_float() => format!("atan2{suffix}({x}, {y})"),
        BinaryOp::Pow | BinaryOp::Atan2 => return None,
        BinaryOp::Eq => truth(format!("({x}) == ({y})")),
        BinaryOp::Lt => truth(format!("({x}) < ({y})")),
        BinaryOp::Le => truth(format!("({x}) <= ({y})")),
        BinaryOp::And => truth(format!("({x}) & ({y})")),
        BinaryOp::Or => truth(format!("({x}) | ({y})")),
    })
}

fn truth(condition: String) -> String {
    format!("((unsigned char)({condition}))")
}

/// Conversion of the expression `a`.
pub(crate) fn cast(from: DType, to: DType, a: &str) -> String {
    match (from.is_float(), to) {
        (_, DType::Bool) => truth(format!("({a}) != 0")),
        (true, DType::I32) => format!("rtx_to_int({a})"),
        (true, DType::I64) => format!("rtx_to_long({a})"),
        _ => format!("(({})({a}))", c_type(to)),
    }
}
