//! Operations with axes and shapes, and compositions. Each function repeats the one of the same name in
//! `make_goldens.py`.

use crate::goldens::goldens;
use crate::inputs::{points, split, wsin, wsum};
use crate::orders::{check, each};
use rtx_ir::DotDims;
use rtx_tensor::{DType, Tensor};

type Case = (&'static str, fn(&Tensor) -> Tensor);

fn index(values: &[i64], shape: &[usize], like: &Tensor) -> Tensor {
    let shape = rtx_tensor::Shape::of(shape);
    Tensor::from_vec(values.to_vec(), shape, like.device())
}

/// A product with the axes `[lhs batch, rhs batch, lhs contracted, rhs contracted]`.
fn dot(a: &Tensor, b: &Tensor, axes: [&[usize]; 4]) -> Tensor {
    let [lhs_batch, rhs_batch, lhs_contract, rhs_contract] = axes.map(<[usize]>::to_vec);
    let dims = DotDims {
        lhs_batch,
        rhs_batch,
        lhs_contract,
        rhs_contract,
    };
    a.dot_general(b, dims)
}

const CASES: &[Case] = &[
    ("select", |x| {
        let [a, b, c] = split(x, [&[6], &[6], &[6]]);
        wsin(&a.lt(&b).select(&(&b * &c), &(&a * &a)))
    }),
    ("select_broadcast", |x| {
        let [a, b, c] = split(x, [&[2, 1], &[3], &[2, 3]]);
        wsin(&(c.lt(&(&c * 0.0)).select(&a, &b) * &c))
    }),
    ("reduce_sum_first", |x| wsin(&x.reshape([3, 4]).sum(&[0]))),
    ("reduce_sum_last", |x| wsin(&x.reshape([3, 4]).sum(&[1]))),
    ("reduce_sum_outer", |x| {
        wsin(&x.reshape([2, 3, 4]).sum(&[0, 2]))
    }),
    ("reduce_sum_all", |x| x.sum_all().sin()),
    ("reduce_mean_middle", |x| {
        wsin(&x.reshape([2, 3, 4]).mean(&[1]))
    }),
    ("reduce_max", |x| wsin(&x.reshape([3, 4]).max(&[1]))),
    ("reduce_max_pair", |x| {
        wsin(&x.reshape([2, 3, 4]).max(&[0, 2]))
    }),
    ("reduce_min", |x| wsin(&x.reshape([3, 4]).min(&[0]))),
    ("dot_matrix", |x| {
        let [a, b] = split(x, [&[3, 4], &[4, 2]]);
        wsin(&a.matmul(&b))
    }),
    ("dot_vector_matrix", |x| {
        let [a, b] = split(x, [&[3], &[3, 5]]);
        wsin(&a.matmul(&b))
    }),
    ("dot_inner", |x| {
        let [a, b] = split(x, [&[4], &[4]]);
        a.matmul(&b).sin()
    }),
    ("dot_outer", |x| {
        let [a, b] = split(x, [&[3], &[4]]);
        wsin(&dot(&a, &b, [&[], &[], &[], &[]]))
    }),
    ("dot_first_axes", |x| {
        let [a, b] = split(x, [&[4, 3], &[4, 2]]);
        wsin(&dot(&a, &b, [&[], &[], &[0], &[0]]))
    }),
    ("dot_last_axes", |x| {
        let [a, b] = split(x, [&[3, 4], &[2, 4]]);
        wsin(&dot(&a, &b, [&[], &[], &[1], &[1]]))
    }),
    ("dot_batch", |x| {
        let [a, b] = split(x, [&[2, 3, 2], &[2, 2, 3]]);
        wsin(&dot(&a, &b, [&[0], &[0], &[2], &[1]]))
    }),
    ("dot_batch_inner", |x| {
        let [a, b] = split(x, [&[3, 2, 2], &[2, 3, 2]]);
        wsin(&dot(&a, &b, [&[1], &[2], &[2], &[0]]))
    }),
    ("dot_two_contracted", |x| {
        let [a, b] = split(x, [&[2, 3, 2], &[2, 2, 3]]);
        wsin(&dot(&a, &b, [&[], &[], &[0, 1], &[1, 2]]))
    }),
    ("dot_two_contracted_crossed", |x| {
        let [a, b] = split(x, [&[3, 2, 2], &[2, 2, 3]]);
        wsin(&dot(&a, &b, [&[], &[], &[0, 1], &[2, 1]]))
    }),
    ("dot_two_batches", |x| {
        let [a, b] = split(x, [&[2, 3, 2], &[3, 2, 2]]);
        wsin(&dot(&a, &b, [&[0, 1], &[1, 0], &[2], &[2]]))
    }),
    ("dot_high_rank", |x| {
        let [a, b] = split(x, [&[2, 2, 3], &[3, 2, 2]]);
        wsin(&a.matmul(&b))
    }),
    ("dot_gram", |x| {
        let a = x.reshape([3, 4]);
        wsin(&a.matmul(&a.t()))
    }),
    ("dot_repeated_rows", |x| {
        let [a, b] = split(x, [&[2], &[2, 4]]);
        wsin(&a.broadcast_to([3, 2]).matmul(&b))
    }),
    ("reshape", |x| {
        wsin(&(x.reshape([2, 3, 2]).reshape([4, 3]) * x.reshape([4, 3])))
    }),
    ("broadcast", |x| {
        let [a, b, c] = split(x, [&[3, 1], &[4], &[2, 1, 1]]);
        wsin(&(a * b * c))
    }),
    ("broadcast_scalar", |x| {
        let [a, b] = split(x, [&[], &[3]]);
        wsin(&(a.broadcast_to([2, 3]) * b))
    }),
    ("permute", |x| {
        let a = x.reshape([2, 3, 4]);
        wsin(&(a.permute(&[2, 0, 1]) * a.reshape([4, 2, 3])))
    }),
    ("slice_axes", |x| {
        let a = x.reshape([4, 6]);
        wsin(&(a.slice(0, 1, 3).slice(1, 2, 6) * a.slice(0, 0, 2).slice(1, 0, 4)))
    }),
    ("pad", |x| {
        let a = x.reshape([3, 4]).pad(0, 1, 2).pad(1, 0, 1);
        wsum(&(a * 1.5).cos())
    }),
    ("concat", |x| {
        let [a, b, c] = split(x, [&[2, 3], &[2, 1], &[2, 7]]);
        wsin(&Tensor::concat(&[&a.square(), &b, &c, &a], 1))
    }),
    ("concat_first", |x| {
        let [a, b] = split(x, [&[2, 3], &[2, 3]]);
        wsin(&Tensor::concat(&[&a, &(&b * &a)], 0))
    }),
    ("gather", |x| {
        wsin(&x.reshape([4, 3]).gather(&index(&[2, 0, 2, 3, 2], &[5], x)))
    }),
    ("gather_matrix_index", |x| {
        wsin(
            &x.reshape([4, 3])
                .gather(&index(&[1, 3, 1, 0, 0, 3], &[2, 3], x)),
        )
    }),
    ("scatter_add", |x| {
        let i = index(&[2, 0, 2, 3, 2], &[5], x);
        wsin(&x.reshape([5, 3]).scatter_add(&i, [4, 3]))
    }),
    ("scatter_add_matrix_index", |x| {
        let i = index(&[1, 3, 1, 0, 0, 3], &[2, 3], x);
        wsin(&x.reshape([2, 3]).square().scatter_add(&i, [5]))
    }),
    ("cast_integer", |x| {
        wsum(&(x.cast(DType::I64).cast(x.dtype()) * x * x * x))
    }),
    ("argmax", |x| {
        let a = x.reshape([3, 4]);
        wsum(&(a.argmax(1).cast(x.dtype()) * a.powi(3).sum(&[1])))
    }),
    ("argmax_first", |x| {
        let a = x.reshape([3, 4]);
        wsum(&(a.argmax(0).cast(x.dtype()) * a.powi(3).sum(&[0])))
    }),
    ("iota", |x| {
        wsin(&(x.reshape([3, 4]) * (Tensor::arange(4, x.dtype(), x.device()) + 1.0)))
    }),
    ("stop_gradient", |x| {
        wsum(&(x.sin().stop_gradient() * x.powi(3)))
    }),
    ("unused_variable", |x| wsin(&x.slice(0, 0, 3))),
    ("shared_value", |x| {
        let y = x.tanh();
        let z = &y * x;
        wsum(&(&z * &y + z.exp()))
    }),
    ("softmax", |x| {
        let a = x.reshape([3, 4]);
        let e = (&a - a.max(&[1]).reshape([3, 1])).exp();
        wsum(&(&e / e.sum(&[1]).reshape([3, 1])))
    }),
    ("layer_norm", |x| {
        let a = x.reshape([3, 4]);
        let c = &a - a.mean(&[1]).reshape([3, 1]);
        wsum(&(&c / (c.square().mean(&[1]).reshape([3, 1]) + 0.125).sqrt()))
    }),
    ("powers", |x| {
        wsum(&(x.powi(3) + (x.square() + 0.5).powf(1.5) + 0.5 / (x.square() + 1.0)))
    }),
    ("power_of_negative", |x| wsum(&(x.powf(2.0) + x.powf(3.0)))),
    ("activations", |x| {
        wsum(&(x.sigmoid() + x.softplus() + x.relu() * x + x.clamp(-1.0, 1.0) * x))
    }),
    ("network", |x| {
        let [w1, b1, w2, b2] = split(x, [&[2, 4], &[4], &[4, 2], &[3]]);
        let p = points(6, -1.0, 1.0, &[3, 2], x.dtype(), x.device());
        let h = (p.matmul(&w1) + b1).tanh();
        let y = h.matmul(&w2).sin() * b2.slice(0, 0, 2) + b2.slice(0, 2, 3);
        y.square().mean_all()
    }),
];

/// Goldens that only [`cast_through_single_precision`] uses.
const SEPARATE: &[&str] = &["cast_single"];

#[test]
fn every_case() {
    each(CASES, |(name, f)| {
        let golden = goldens().case.get(*name);
        check(
            name,
            golden.unwrap_or_else(|| panic!("no golden of {name}")),
            f,
        );
    });
    let covered = |n: &str| SEPARATE.contains(&n) || CASES.iter().any(|(c, _)| *c == n);
    let missing: Vec<_> = goldens().case.keys().filter(|n| !covered(n)).collect();
    assert!(missing.is_empty(), "goldens without case: {missing:?}");
}

/// Double precision that passes through a single-precision value keeps single precision only.
#[test]
fn cast_through_single_precision() {
    use crate::orders::{compare, devices};
    let golden = &goldens().case["cast_single"];
    for device in devices() {
        let x = points(
            golden.n,
            golden.lo,
            golden.hi,
            &[golden.n],
            DType::F64,
            &device,
        );
        let f = |x: &Tensor| wsin(&(x.cast(DType::F32).cast(DType::F64) * x));
        let d1 = rtx_tensor::grad(f)(&x);
        assert_eq!(d1.dtype(), DType::F64);
        compare("cast_single value", &f(&x), &[golden.value], 1e-13);
        compare("cast_single grad", &d1, &golden.d1, 1e-7);
    }
}
