//! Derivatives of a scalar function at orders 0 to 3 in every nesting, compared with a golden.

use crate::goldens::Golden;
use crate::inputs::{direction, points};
use rtx_tensor::{DType, Device, Tensor, grad, jvp};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Devices under test: the CPU, the reference, and what `RTX_TEST_DEVICES` names besides.
pub fn devices() -> Vec<Device> {
    let named = std::env::var("RTX_TEST_DEVICES").unwrap_or_default();
    let more = named.split(',').filter(|n| !n.is_empty());
    let more = more.map(|n| Device::named(n).unwrap_or_else(|e| panic!("RTX_TEST_DEVICES: {e}")));
    [Device::cpu(), Device::reference()]
        .into_iter()
        .chain(more)
        .collect()
}

/// Calls `f` with every item, on all cores.
pub fn each<T: Sync>(items: &[T], f: impl Fn(&T) + Sync) {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let (f, next) = (&f, &AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(move || {
                while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
                    f(item);
                }
            });
        }
    });
}

/// Largest difference allowed, relative to the largest element of the golden (at least one).
pub fn tolerance(dtype: DType, order: usize) -> f64 {
    match dtype {
        DType::F32 => 2e-6 * 4f64.powi(order as i32),
        _ => 1e-13 * 10f64.powi(order as i32),
    }
}

/// Panics where `found` is not `golden` within `tolerance`.
#[track_caller]
pub fn compare(what: &str, found: &Tensor, golden: &[f64], tolerance: f64) {
    let found = found
        .to_host()
        .unwrap_or_else(|e| panic!("{what}: {e}"))
        .data;
    assert_eq!(found.len(), golden.len(), "{what}: number of elements");
    let scale = golden.iter().fold(1.0f64, |m, g| m.max(g.abs()));
    for (i, (f, g)) in found.iter().zip(golden).enumerate() {
        assert!(
            (f - g).abs() <= tolerance * scale,
            "{what}: element {i} is {f:e}, the golden is {g:e} (allowed {:e})",
            tolerance * scale
        );
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Checks `f` on every device in both precisions at orders 0 to 3.
pub fn check(name: &str, golden: &Golden, f: &dyn Fn(&Tensor) -> Tensor) {
    for device in devices() {
        for dtype in [DType::F64, DType::F32] {
            check_on(name, golden, f, &device, dtype);
        }
    }
}

fn check_on(
    name: &str,
    golden: &Golden,
    f: &dyn Fn(&Tensor) -> Tensor,
    device: &Device,
    dtype: DType,
) {
    let n = golden.n;
    let x = points(n, golden.lo, golden.hi, &[n], dtype, device);
    let v = direction(n);
    let vt = Tensor::from_f64(&v, [n], dtype, device);
    let along = |g: &Tensor| (g * &vt).sum_all();
    let forward = |f: &dyn Fn(&Tensor) -> Tensor, x: &Tensor| -> Tensor {
        let (_, t) = jvp(f, x, &vt).unwrap_or_else(|e| panic!("{name}: {e}"));
        t
    };

    let d1 = |x: &Tensor| grad(f)(x);
    let d2 = |x: &Tensor| grad(|x: &Tensor| along(&d1(x)))(x);
    let d3 = |x: &Tensor| grad(|x: &Tensor| along(&d2(x)))(x);
    let f1 = |x: &Tensor| forward(f, x);
    let f2 = |x: &Tensor| forward(&f1, x);
    let f3 = |x: &Tensor| forward(&f2, x);
    let (g1, g2, g3) = (&golden.d1, &golden.d2, &golden.d3);
    let table: [(&str, usize, Tensor, Vec<f64>); 10] = [
        ("value", 0, f(&x), vec![golden.value]),
        ("grad", 1, d1(&x), g1.clone()),
        ("grad of grad.v", 2, d2(&x), g2.clone()),
        ("grad of grad of grad.v .v", 3, d3(&x), g3.clone()),
        ("jvp", 1, f1(&x), vec![dot(g1, &v)]),
        ("jvp of jvp", 2, f2(&x), vec![dot(g2, &v)]),
        ("jvp of jvp of jvp", 3, f3(&x), vec![dot(g3, &v)]),
        ("jvp of grad", 2, forward(&d1, &x), g2.clone()),
        ("grad of jvp", 2, grad(f1)(&x), g2.clone()),
        ("grad of jvp of jvp", 3, grad(f2)(&x), g3.clone()),
    ];
    for (mode, order, found, expected) in &table {
        let what = format!("{name} {dtype} on {}, {mode}", device.name());
        compare(&what, found, expected, tolerance(dtype, *order));
    }
}
