//! Derivatives of fields by coordinates against nested forward derivatives of the independent library.

use crate::goldens::goldens;
use crate::inputs::{inputs, points, split, wsum};
use crate::orders::{compare, devices};
use rtx_tensor::{DType, Device, Shape, Tensor, jet, jvp, value_and_grad_tree};

type Field = fn(&[Tensor], &Tensor) -> Tensor;

const SHAPES: [&[usize]; 5] = [&[2, 5], &[5], &[5, 4], &[4], &[4, 2]];

/// `sin`, `tanh`, linear.
fn network(p: &[Tensor], x: &Tensor) -> Tensor {
    let h = (2.0 * x.matmul(&p[0]) + &p[1]).sin();
    (h.matmul(&p[2]) + &p[3]).tanh().matmul(&p[4])
}

/// Quotient, powers, roots, products of fields, extremes and a choice.
fn rational(p: &[Tensor], x: &Tensor) -> Tensor {
    let z = x.matmul(&p[0].slice(1, 0, 2));
    let a = (z.sin() + 1.5).sqrt() / (x.cos() + 2.0);
    let b = (z.square() + 1.0).powf(1.75) - z.powf(3.0);
    let c = z.maximum(&(z.square() * 0.5)) + z.lt(x).select(&(-&z).exp(), &(-x).exp());
    a * b + c
}

const FIELDS: [(&str, Field); 2] = [("network", network), ("rational", rational)];

fn parameters(dtype: DType, device: &Device) -> Vec<Tensor> {
    let n = SHAPES.iter().map(|s| s.iter().product::<usize>()).sum();
    split(&points(n, -1.0, 1.0, &[n], dtype, device), SHAPES).to_vec()
}

fn tolerance(dtype: DType) -> f64 {
    if dtype == DType::F32 { 3e-5 } else { 1e-12 }
}

#[test]
fn partials_and_operators() {
    for device in devices() {
        for dtype in [DType::F64, DType::F32] {
            let p = parameters(dtype, &device);
            let x = points(8, -1.0, 1.0, &[4, 2], dtype, &device);
            for (name, field) in FIELDS {
                let golden = &goldens().jet[name];
                let what = |k: &str| format!("{name} {dtype} on {}, {k}", device.name());
                let all = jet(|x| field(&p, x), &x, 3).unwrap();
                assert_eq!(all.len(), 10);
                for (index, value) in &all {
                    let orders = (0..=3u8)
                        .flat_map(|i| (0..=3u8).map(move |j| (i, j)))
                        .find(|&(i, j)| rtx_tensor::MultiIndex::new(&[i, j]) == *index)
                        .unwrap();
                    let key = format!("{}{}", orders.0, orders.1);
                    compare(&what(&key), value, &golden.partials[&key], tolerance(dtype));
                }
                let u = field(&p, &x);
                let check = |k: &str, t: &Tensor, g: &[f64]| {
                    compare(&what(k), t, g, tolerance(dtype));
                };
                check("laplacian", &u.laplacian(&x, 2), &golden.laplacian);
                check(
                    "laplacian as a sum",
                    &(u.dx(&x, 0).dx(&x, 0) + u.partial(&x, &[0, 2])),
                    &golden.laplacian,
                );
                let biharmonic: [(&[u8], f64); 3] = [(&[4], 1.0), (&[2, 2], 2.0), (&[0, 4], 1.0)];
                check(
                    "biharmonic",
                    &u.operator(&x, &biharmonic),
                    &golden.biharmonic,
                );
                check(
                    "laplacian of laplacian",
                    &u.laplacian(&x, 2).laplacian(&x, 2),
                    &golden.biharmonic,
                );
                let third: [(&[u8], f64); 3] = [(&[3], 1.0), (&[1, 2], -0.5), (&[0, 3], 3.0)];
                check("third order", &u.operator(&x, &third), &golden.third);
            }
        }
    }
}

/// A residual of derivatives, differentiated by the parameters.
#[test]
fn gradient_of_a_residual() {
    for device in devices() {
        for dtype in [DType::F64, DType::F32] {
            let p = parameters(dtype, &device);
            for tagged in [false, true] {
                let mut x = points(8, -1.0, 1.0, &[4, 2], dtype, &device);
                if tagged {
                    x = x.rows("conformance points").unwrap();
                }
                for (name, field) in FIELDS {
                    let golden = &goldens().jet[name];
                    let residual = |p: &Vec<Tensor>| {
                        let u = field(p, &x);
                        let r = u.laplacian(&x, 2).square() + u.dx(&x, 0) * u.dx(&x, 1) * &u;
                        let w = wsum_weights(dtype, &device);
                        let w = if tagged {
                            w.rows("conformance points").unwrap()
                        } else {
                            w
                        };
                        (r * w).sum_all()
                    };
                    let (value, grads) = value_and_grad_tree(residual, &p).unwrap();
                    let what = format!("{name} {dtype} on {}, rows {tagged}", device.name());
                    compare(&what, &value, &[golden.residual], tolerance(dtype));
                    let flat: Vec<Tensor> = grads
                        .iter()
                        .zip(SHAPES)
                        .map(|(g, s)| g.reshape(Shape::of(&[s.iter().product()])))
                        .collect();
                    let flat = Tensor::concat(&flat.iter().collect::<Vec<_>>(), 0);
                    compare(&what, &flat, &golden.gradient, 4.0 * tolerance(dtype));
                }
            }
        }
    }
}

/// The weights of `wsum` for a [4, 2] array, as data.
fn wsum_weights(dtype: DType, device: &Device) -> Tensor {
    let x = points(8, -1.0, 1.0, &[4, 2], dtype, device);
    let w = rtx_tensor::grad(wsum)(&x);
    Tensor::from_f64(&w.to_host().unwrap().data, [4, 2], dtype, device)
}

/// Jets and nested forward derivatives give the same values.
#[test]
fn jets_agree_with_nested_forward_derivatives() {
    let device = Device::cpu();
    let p = parameters(DType::F64, &device);
    let x = Tensor::from_f64(&inputs(8, -1.0, 1.0), [4, 2], DType::F64, &device);
    let e = Tensor::from_f64(&[1.0, 0.0].repeat(4), [4, 2], DType::F64, &device);
    for (name, field) in FIELDS {
        let f = |x: &Tensor| field(&p, x);
        let d1 = |x: &Tensor| jvp(f, x, &e).unwrap().1;
        let d2 = |x: &Tensor| jvp(d1, x, &e).unwrap().1;
        let d3 = jvp(d2, &x, &e).unwrap().1.to_host().unwrap().data;
        compare(name, &f(&x).partial(&x, &[3]), &d3, 1e-12);
    }
}

/// Powers with a constant exponent hold at negative and zero bases, at every order.
#[test]
fn whole_powers_of_any_base() {
    for device in devices() {
        let x = Tensor::from_f64(&[-2.0, 0.0, 1.5], [3, 1], DType::F64, &device);
        let f = |x: &Tensor| x.powf(3.0) + x.powf(2.0) * 0.5 + x.powf(1.0) * 0.25 + x.powf(0.0);
        let expected = [
            [-6.5 + 1.0, 1.0, 3.375 + 1.125 + 0.375 + 1.0],
            [12.0 - 2.0 + 0.25, 0.25, 6.75 + 1.5 + 0.25],
            [-12.0 + 1.0, 1.0, 10.0],
            [6.0, 6.0, 6.0],
        ];
        let along = |f: &dyn Fn(&Tensor) -> Tensor, x: &Tensor| {
            rtx_tensor::grad(|x: &Tensor| f(x).sum_all())(x)
        };
        let d1 = |x: &Tensor| along(&f, x);
        let d2 = |x: &Tensor| along(&d1, x);
        let reverse = [f(&x), d1(&x), d2(&x), along(&d2, &x)];
        for (order, expected) in expected.iter().enumerate() {
            compare("reverse", &reverse[order], expected, 1e-14);
            let jet = f(&x).partial(&x, &[order as u8]);
            compare("jet", &jet, expected, 1e-14);
        }
    }
}

/// A field whose points look at each other has no derivative point by point: refused, never wrong.
#[test]
fn fields_that_mix_points_are_refused() {
    let device = Device::reference();
    let x = Tensor::from_f64(&inputs(6, -1.0, 1.0), [3, 2], DType::F64, &device);
    let square = x
        .slice(1, 0, 1)
        .matmul(&Tensor::full([1, 3], 1.0, DType::F64, &device));
    let index = Tensor::from_vec(vec![2i64, 0, 1], [3], &device);
    let mixing = [
        ("permute", square.t()),
        ("pad", x.slice(0, 0, 2).pad(0, 1, 0)),
        (
            "concat",
            Tensor::concat(&[&x.slice(0, 1, 3), &x.slice(0, 0, 1)], 0),
        ),
        ("gather", x.gather(&index)),
        ("scatter_add", x.scatter_add(&index, [3, 2])),
        ("reduce_sum", &x - x.mean(&[0])),
        ("reshape", x.reshape([2, 3]).reshape([3, 2])),
        ("dot_general", square.t().matmul(&x)),
        (
            "dot_general",
            Tensor::full([3, 3], 0.5, DType::F64, &device).matmul(&x),
        ),
        ("dot_general", x.matmul(&x.t())),
    ];
    for (op, field) in mixing {
        for request in [field.sin().dx(&x, 0), field.sin().laplacian(&x, 2)] {
            let e = request.to_host().expect_err(op).to_string();
            assert!(e.contains("points") && e.contains(file!()), "{op}: {e}");
        }
    }
    let kept = [
        x.reshape([3, 2, 1]).permute(&[0, 2, 1]).reshape([3, 2]),
        Tensor::concat(&[&x.slice(1, 1, 2), &x.slice(1, 0, 1).pad(1, 0, 1)], 1),
        x.slice(1, 0, 1).broadcast_to([3, 4]).sum(&[1]).square(),
    ];
    for field in kept {
        field.laplacian(&x, 2).to_host().unwrap();
    }
}
