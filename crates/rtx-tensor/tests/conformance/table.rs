//! The operation tables, row by row.

use crate::goldens::{Golden, goldens};
use crate::inputs::wsum;
use crate::orders::{check, each};
use rtx_ir::{BinaryOp, UnaryOp};
use rtx_tensor::Tensor;

fn golden_of<'a>(map: &'a std::collections::BTreeMap<String, Golden>, name: &str) -> &'a Golden {
    map.get(name).unwrap_or_else(|| {
        panic!("the operation '{name}' has no golden: add a line to make_goldens.py and run it")
    })
}

#[test]
fn every_unary_operation() {
    each(UnaryOp::ALL, |&op| {
        let golden = golden_of(&goldens().unary, op.name());
        let apply = |x: &Tensor| Tensor::from_node(x.node().unary(op), x.device());
        let f = |x: &Tensor| -> Tensor {
            let zero = x * 0.0;
            match golden.form.as_str() {
                "plain" => wsum(&apply(x)),
                "cube" => wsum(&(apply(x) * x * x * x)),
                "logical" => wsum(&(apply(&x.lt(&zero)).cast(x.dtype()) * x * x * x)),
                other => panic!("{}: unknown form {other}", op.name()),
            }
        };
        check(op.name(), golden, &f);
    });
    assert_eq!(
        goldens().unary.len(),
        UnaryOp::ALL.len(),
        "a golden without operation"
    );
}

#[test]
fn every_binary_operation() {
    each(BinaryOp::ALL, |&op| {
        let golden = golden_of(&goldens().binary, op.name());
        let apply =
            |a: &Tensor, b: &Tensor| Tensor::from_node(a.node().binary(op, b.node()), a.device());
        let f = |x: &Tensor| -> Tensor {
            let half = golden.n / 2;
            let (a, b) = (x.slice(0, 0, half), x.slice(0, half, golden.n));
            let zero = &a * 0.0;
            let truth = match golden.form.as_str() {
                "plain" => return wsum(&apply(&a, &b)),
                "predicate" => apply(&a.floor(), &b.floor()),
                "logical" => apply(&a.lt(&zero), &b.lt(&zero)),
                other => panic!("{}: unknown form {other}", op.name()),
            };
            wsum(&(truth.cast(x.dtype()) * &a * &a * &b))
        };
        check(op.name(), golden, &f);
    });
    assert_eq!(
        goldens().binary.len(),
        BinaryOp::ALL.len(),
        "a golden without operation"
    );
}
