//! What has no derivative: values of integer and random operations, and refusals.

use crate::orders::devices;
use rtx_tensor::{DType, Device, Error, Tensor, grad, jvp};

fn vector(v: &[f64], dtype: DType, device: &Device) -> Tensor {
    Tensor::from_f64(v, [v.len()], dtype, device)
}

#[test]
fn product_reduction_has_a_value_and_refuses_derivatives() {
    for device in devices() {
        let x = vector(&[2.0, -3.0, 0.5, 4.0], DType::F64, &device);
        let f = |x: &Tensor| x.reshape([2, 2]).prod(&[0]).sum_all();
        assert_eq!(f(&x).item().unwrap(), 2.0 * 0.5 - 3.0 * 4.0);
        let refused = [
            grad(f)(&x).check().unwrap_err(),
            jvp(f, &x, &x).expect_err("no rule"),
        ];
        for e in refused {
            let graph = match &e {
                Error::Graph(g) => g,
                other => panic!("{other}"),
            };
            assert!(
                matches!(graph, rtx_ir::Error::NotDifferentiable { op, .. } if *op == "reduce_prod"),
                "{e}"
            );
            assert!(e.to_string().contains(file!()), "{e}");
        }
    }
}

#[test]
fn integers() {
    for device in devices() {
        let a = Tensor::from_vec(vec![7i64, -8, 3, 0], [2, 2], &device);
        let b = Tensor::from_vec(vec![2i64, 5, 3, -1], [2, 2], &device);
        let read = |t: Tensor| t.to_vec::<i64>().unwrap();
        assert_eq!(read(&a + &b), [9, -3, 6, -1]);
        assert_eq!(read(&a * &b - &a), [7, -32, 6, 0]);
        assert_eq!(read(a.maximum(&b)), [7, 5, 3, 0]);
        assert_eq!(read(-a.abs()), [-7, -8, -3, 0]);
        assert_eq!(read(a.sum(&[0])), [10, -8]);
        assert_eq!(read(a.max(&[1])), [7, 3]);
        assert_eq!(read(a.argmax(0)), [0, 1]);
        assert_eq!(read(a.eq(&b).cast(DType::I64)), [0, 0, 1, 0]);
        assert_eq!(
            a.cast(DType::F32).cast(DType::I32).to_vec::<i32>().unwrap(),
            [7, -8, 3, 0]
        );
        let row = Tensor::from_vec(vec![1i64], [1], &device);
        assert_eq!(read(a.gather(&row)), [3, 0]);
        assert_eq!(
            a.lt(&b).to_vec::<bool>().unwrap(),
            [false, true, false, false]
        );
    }
}

#[test]
fn iota_along_each_axis() {
    for device in devices() {
        let at = |axis| {
            let n = rtx_ir::Node::iota(&[2, 3].into(), axis, DType::F32);
            Tensor::from_node(n, &device).to_vec::<f32>().unwrap()
        };
        assert_eq!(at(0), [0.0, 0.0, 0.0, 1.0, 1.0, 1.0]);
        assert_eq!(at(1), [0.0, 1.0, 2.0, 0.0, 1.0, 2.0]);
    }
}

#[test]
fn extremes_and_not_a_number() {
    for device in devices() {
        for dtype in [DType::F32, DType::F64] {
            let x = vector(&[1.0, f64::NAN, 3.0, -1.0], dtype, &device).reshape([2, 2]);
            let max = x.max(&[1]).to_host().unwrap().data;
            assert!(max[0].is_nan() && max[1] == 3.0, "{max:?}");
            let min = x.min(&[0]).to_host().unwrap().data;
            assert!(min[0] == 1.0 && min[1].is_nan(), "{min:?}");
            let big = vector(&[f64::INFINITY, -0.0], dtype, &device);
            let y = big.recip().to_host().unwrap().data;
            assert_eq!(y, [0.0, f64::NEG_INFINITY]);
            let t = vector(&[40.0, -40.0, 1e-6], dtype, &device).tanh();
            let t = t.to_host().unwrap().data;
            assert!(t[0] == 1.0 && t[1] == -1.0 && (t[2] / 1e-6 - 1.0).abs() < 1e-6);
        }
    }
}

/// The same stream gives the same bits on every device, and other streams give others.
#[test]
fn random_streams() {
    let of = |device: &Device, seed| {
        let u = Tensor::random_uniform([1000], seed, DType::F32, device);
        let n = Tensor::random_normal([1000], seed, DType::F64, device);
        (u.to_vec::<f32>().unwrap(), n.to_vec::<f64>().unwrap())
    };
    let a = Device::cpu();
    for b in devices() {
        assert_eq!(of(&a, 5).0, of(&b, 5).0);
        for (x, y) in of(&a, 5).1.iter().zip(&of(&b, 5).1) {
            assert!((x - y).abs() < 1e-12, "{x} {y}");
        }
    }
    assert_ne!(of(&a, 5).0, of(&a, 6).0);
    let (u, n) = of(&a, 7);
    assert!(u.iter().all(|v| (0.0..1.0).contains(v)));
    let mean = n.iter().sum::<f64>() / 1000.0;
    assert!(mean.abs() < 0.15, "{mean}");
}

/// A number of rows is a value like others, also where it is all that a program returns.
#[test]
fn numbers_of_rows_can_be_read() {
    for device in devices() {
        for n in [3, 7] {
            let x = Tensor::from_f64(&vec![1.5; 2 * n], [n, 2], DType::F32, &device);
            let x = x.rows("conformance: counted").unwrap();
            let count = Tensor::from_node(x.node().count(&[0]), &device);
            rtx_tensor::eval(&[&count, &x.sum(&[0])]).unwrap();
            assert_eq!(count.item().unwrap(), n as f64);
        }
    }
}
