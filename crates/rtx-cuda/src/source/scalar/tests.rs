//! Every primitive and element type on special values: floats against the reference evaluation, integers
//! against Rust's own arithmetic.

use super::*;
use crate::source::whole::Geometry;
use crate::source::whole::emulation::{self, Case, bytes, elementwise, numbers};
use rtx_ir::eval::HostArray;

fn floats(dtype: DType) -> Vec<f64> {
    let (tiny, subnormal, large) = match dtype {
        DType::F32 => (
            f64::from(f32::MIN_POSITIVE),
            f64::from(f32::from_bits(7)),
            f64::from(f32::MAX),
        ),
        _ => (f64::MIN_POSITIVE, f64::from_bits(7), f64::MAX),
    };
    let positive = [
        0.0,
        f64::INFINITY,
        subnormal,
        tiny,
        1e-20,
        1e-5,
        0.3,
        0.5,
        1.0,
        1.5,
        2.0,
        2.7,
        3.0,
        20.0,
        88.0,
        100.0,
        710.0,
        1e5,
        16_777_217.0,
        2_147_483_520.0,
        2_147_483_648.0,
        9_007_199_254_740_993.0,
        9.223_372_036_854_775e18,
        9.223_372_036_854_776e18,
        1e30,
        large,
    ];
    let all = positive.iter().flat_map(|&v| [v, -v]);
    all.chain([f64::NAN]).map(|v| dtype.round(v)).collect()
}

/// All pairs of the values.
fn pairs<T: Copy>(values: &[T]) -> (Vec<T>, Vec<T>) {
    let each = |x: T| values.iter().map(move |&y| (x, y));
    values.iter().flat_map(|&x| each(x)).unzip()
}

/// Distance in units of the last place of `dtype`; zero for two NaN, infinite where signs of zeros or
/// infinities differ.
fn distance(dtype: DType, a: f64, b: f64) -> f64 {
    if a.is_nan() && b.is_nan() || a.to_bits() == b.to_bits() {
        return 0.0;
    }
    if !a.is_finite() || !b.is_finite() || a == b {
        return f64::INFINITY;
    }
    let size = a.abs().max(b.abs());
    let unit = match dtype {
        DType::F32 => {
            let s = size as f32;
            f64::from(s) - f64::from(s.next_down())
        }
        _ => size - size.next_down(),
    };
    (a - b).abs() / unit
}

struct Check {
    label: String,
    operands: Vec<Vec<f64>>,
    dtype: DType,
    out: DType,
    expected: Vec<f64>,
    /// Units in the last place.
    allowed: f64,
}

fn case(k: usize, primitive: Primitive, operands: &[HostArray], dtype: DType, out: DType) -> Case {
    let names: Vec<String> = (0..operands.len()).map(|k| format!("x{k}[e]")).collect();
    let text = expression(primitive, dtype, out, &names)
        .unwrap_or_else(|| panic!("{primitive:?} {dtype} {out}"));
    let n = operands[0].data.len();
    let dtypes: Vec<DType> = operands.iter().map(|o| o.dtype).collect();
    let name = format!("scalar_{k}");
    let mut buffers: Vec<Vec<u8>> = operands.iter().map(bytes).collect();
    buffers.push(vec![0xCD; n * out.size()]);
    Case {
        code: elementwise(&name, &dtypes, out, &text, n),
        name,
        geometry: Geometry::Threads,
        rows: vec![],
        buffers,
    }
}

fn array(dtype: DType, data: &[f64]) -> HostArray {
    HostArray::new(dtype, &[data.len()], data.to_vec())
}

fn floats_agree_with_the_reference() {
    let (mut checks, mut cases) = (Vec::new(), Vec::new());
    for dtype in [DType::F32, DType::F64] {
        let values = floats(dtype);
        let (left, right) = pairs(&values);
        for &op in UnaryOp::ALL.iter().filter(|op| **op != UnaryOp::Not) {
            let exact = matches!(
                op,
                UnaryOp::Neg
                    | UnaryOp::Abs
                    | UnaryOp::Sign
                    | UnaryOp::Recip
                    | UnaryOp::Sqrt
                    | UnaryOp::Floor
                    | UnaryOp::Ceil
            );
            cases.push(case(
                cases.len(),
                Primitive::Unary(op),
                &[array(dtype, &values)],
                dtype,
                dtype,
            ));
            checks.push(Check {
                label: format!("{} {dtype}", op.name()),
                operands: vec![values.clone()],
                dtype,
                out: dtype,
                expected: values.iter().map(|&v| dtype.round(op.eval(v))).collect(),
                allowed: if exact { 0.0 } else { 2.0 },
            });
        }
        for &op in BinaryOp::ALL {
            if matches!(op, BinaryOp::And | BinaryOp::Or) {
                assert_eq!(
                    expression(
                        Primitive::Binary(op),
                        dtype,
                        DType::Bool,
                        &["a".into(), "b".into()]
                    ),
                    None
                );
                continue;
            }
            let out = if op.is_predicate() {
                DType::Bool
            } else {
                dtype
            };
            let operands = [array(dtype, &left), array(dtype, &right)];
            cases.push(case(
                cases.len(),
                Primitive::Binary(op),
                &operands,
                dtype,
                out,
            ));
            let values = left.iter().zip(&right);
            checks.push(Check {
                label: format!("{} {dtype}", op.name()),
                operands: vec![left.clone(), right.clone()],
                dtype,
                out,
                expected: values.map(|(&a, &b)| out.round(op.eval(a, b))).collect(),
                allowed: if matches!(op, BinaryOp::Pow | BinaryOp::Atan2) {
                    2.0
                } else {
                    0.0
                },
            });
        }
        for out in [DType::Bool, DType::I32, DType::I64, DType::F32, DType::F64] {
            cases.push(case(
                cases.len(),
                Primitive::Cast,
                &[array(dtype, &values)],
                dtype,
                out,
            ));
            checks.push(Check {
                label: format!("cast {dtype} {out}"),
                operands: vec![values.clone()],
                dtype,
                out,
                expected: values.iter().map(|&v| out.round(v)).collect(),
                allowed: 0.0,
            });
        }
        let condition = array(
            DType::Bool,
            &left
                .iter()
                .map(|v| f64::from(u8::from(*v > 0.0)))
                .collect::<Vec<_>>(),
        );
        let expected = (0..left.len()).map(|k| {
            if condition.data[k] != 0.0 {
                left[k]
            } else {
                right[k]
            }
        });
        checks.push(Check {
            label: format!("select {dtype}"),
            operands: vec![condition.data.clone(), left.clone(), right.clone()],
            dtype,
            out: dtype,
            expected: expected.collect(),
            allowed: 0.0,
        });
        let operands = [condition, array(dtype, &left), array(dtype, &right)];
        cases.push(case(
            cases.len(),
            Primitive::Select,
            &operands,
            dtype,
            dtype,
        ));
    }
    let results = emulation::run(&cases);
    let mut compared = 0;
    for (check, after) in checks.iter().zip(&results) {
        let got = numbers(check.out, &after[after.len() - 1]);
        for (k, (&g, &w)) in got.iter().zip(&check.expected).enumerate() {
            let x: Vec<f64> = check.operands.iter().map(|o| o[k]).collect();
            let d = distance(check.dtype, g, w);
            assert!(
                d <= check.allowed,
                "{} {x:?}: {g:?} instead of {w:?}",
                check.label
            );
            compared += 1;
        }
    }
    println!("{} primitives, {compared} values", checks.len());
}

/// Adds the checks of one integer type; results are compared as bytes.
macro_rules! integers {
    ($t:ident, $dtype:expr, $checks:ident, $cases:ident) => {{
        let values: Vec<$t> = vec![
            0,
            1,
            -1,
            2,
            -2,
            3,
            7,
            -7,
            1000,
            46_341,
            $t::MAX,
            $t::MAX - 1,
            $t::MIN,
            $t::MIN + 1,
            $t::MAX / 2,
            $t::MIN / 2,
        ];
        let (left, right) = pairs(&values);
        let raw = |v: &[$t]| v.iter().flat_map(|x| x.to_ne_bytes()).collect::<Vec<u8>>();
        let mut add =
            |p: Primitive, out: DType, expected: Vec<u8>, operands: Vec<Vec<u8>>, n: usize| {
                let arrays: Vec<_> = operands
                    .iter()
                    .map(|_| array($dtype, &vec![0.0; n]))
                    .collect();
                let mut c = case($cases.len(), p, &arrays, $dtype, out);
                c.buffers[..operands.len()].clone_from_slice(&operands);
                $checks.push((format!("{p:?} {} {out}", $dtype), expected));
                $cases.push(c);
            };
        let unary: [(UnaryOp, fn($t) -> $t); 3] = [
            (UnaryOp::Neg, $t::wrapping_neg),
            (UnaryOp::Abs, $t::wrapping_abs),
            (UnaryOp::Sign, $t::signum),
        ];
        for (op, f) in unary {
            let expected: Vec<$t> = values.iter().map(|&x| f(x)).collect();
            add(
                Primitive::Unary(op),
                $dtype,
                raw(&expected),
                vec![raw(&values)],
                values.len(),
            );
        }
        let binary: [(BinaryOp, fn($t, $t) -> $t); 6] = [
            (BinaryOp::Add, $t::wrapping_add),
            (BinaryOp::Sub, $t::wrapping_sub),
            (BinaryOp::Mul, $t::wrapping_mul),
            (BinaryOp::Div, |a, b| a.checked_div(b).unwrap_or(0)),
            (BinaryOp::Max, $t::max),
            (BinaryOp::Min, $t::min),
        ];
        for (op, f) in binary {
            let expected: Vec<$t> = left.iter().zip(&right).map(|(&a, &b)| f(a, b)).collect();
            add(
                Primitive::Binary(op),
                $dtype,
                raw(&expected),
                vec![raw(&left), raw(&right)],
                left.len(),
            );
        }
        let compare: [(BinaryOp, fn(&$t, &$t) -> bool); 3] = [
            (BinaryOp::Eq, $t::eq),
            (BinaryOp::Lt, $t::lt),
            (BinaryOp::Le, $t::le),
        ];
        for (op, f) in compare {
            let expected: Vec<u8> = left
                .iter()
                .zip(&right)
                .map(|(a, b)| u8::from(f(a, b)))
                .collect();
            add(
                Primitive::Binary(op),
                DType::Bool,
                expected,
                vec![raw(&left), raw(&right)],
                left.len(),
            );
        }
        macro_rules! cast {
            ($to:ident, $out:expr) => {
                let expected = values
                    .iter()
                    .flat_map(|&x| (x as $to).to_ne_bytes())
                    .collect();
                add(
                    Primitive::Cast,
                    $out,
                    expected,
                    vec![raw(&values)],
                    values.len(),
                );
            };
        }
        cast!(i32, DType::I32);
        cast!(i64, DType::I64);
        cast!(f32, DType::F32);
        cast!(f64, DType::F64);
        let expected = values.iter().map(|&x| u8::from(x != 0)).collect();
        add(
            Primitive::Cast,
            DType::Bool,
            expected,
            vec![raw(&values)],
            values.len(),
        );
        add(
            Primitive::Move,
            $dtype,
            raw(&values),
            vec![raw(&values)],
            values.len(),
        );
        for op in [UnaryOp::Sin, UnaryOp::Not, UnaryOp::Recip] {
            assert_eq!(
                expression(Primitive::Unary(op), $dtype, $dtype, &["a".into()]),
                None
            );
        }
        for op in [BinaryOp::Pow, BinaryOp::Atan2, BinaryOp::And] {
            assert_eq!(
                expression(
                    Primitive::Binary(op),
                    $dtype,
                    $dtype,
                    &["a".into(), "b".into()]
                ),
                None
            );
        }
    }};
}

fn integers_and_truth_values_agree_with_rust() {
    let (mut checks, mut cases): (Vec<(String, Vec<u8>)>, Vec<Case>) = Default::default();
    integers!(i32, DType::I32, checks, cases);
    integers!(i64, DType::I64, checks, cases);
    let truth = [0.0, 0.0, 1.0, 1.0];
    let other = [0.0, 1.0, 0.0, 1.0];
    let operands = [array(DType::Bool, &truth), array(DType::Bool, &other)];
    for (op, expected) in [
        (BinaryOp::And, [0, 0, 0, 1]),
        (BinaryOp::Or, [0, 1, 1, 1]),
        (BinaryOp::Eq, [1, 0, 0, 1]),
    ] {
        cases.push(case(
            cases.len(),
            Primitive::Binary(op),
            &operands,
            DType::Bool,
            DType::Bool,
        ));
        checks.push((format!("{op:?} bool"), expected.to_vec()));
    }
    cases.push(case(
        cases.len(),
        Primitive::Unary(UnaryOp::Not),
        &operands[..1],
        DType::Bool,
        DType::Bool,
    ));
    checks.push(("not bool".into(), vec![1, 1, 0, 0]));
    for out in [DType::I32, DType::I64, DType::F32, DType::F64, DType::Bool] {
        cases.push(case(
            cases.len(),
            Primitive::Cast,
            &operands[..1],
            DType::Bool,
            out,
        ));
        checks.push((format!("cast bool {out}"), bytes(&array(out, &truth))));
    }
    let results = emulation::run(&cases);
    for ((label, expected), after) in checks.iter().zip(&results) {
        assert_eq!(&after[after.len() - 1], expected, "{label}");
    }
    println!("{} primitives", checks.len());
}

/// Run the generated text as C++.
mod needs_gxx {
    #[test]
    #[ignore = "needs g++"]
    fn floats_agree_with_the_reference() {
        super::floats_agree_with_the_reference();
    }

    #[test]
    #[ignore = "needs g++"]
    fn integers_and_truth_values_agree_with_rust() {
        super::integers_and_truth_values_agree_with_rust();
    }
}
