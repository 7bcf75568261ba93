//! Counts compilations. The only tests of their process besides each other, because the counter belongs to the device.

use rtx_tensor::{DType, Device, Tensor, compilations};
use std::sync::Mutex;

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Compilations of `f`.
fn counted(f: impl FnOnce(&Device)) -> u64 {
    let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(|e| e.into_inner());
    let dev = Device::cpu();
    let before = compilations(&dev);
    f(&dev);
    compilations(&dev) - before
}

#[test]
fn loops_over_numbers_compile_once() {
    let integers = counted(|dev| {
        let x = Tensor::from_vec(vec![3i64, -4], [2], dev);
        for i in 0..40i64 {
            let y = &x * Tensor::scalar(i as f64, DType::I64, dev)
                + Tensor::full([2], 7.0 - i as f64, DType::I64, dev);
            assert_eq!(y.to_vec::<i64>().unwrap(), [3 * i + 7 - i, -4 * i + 7 - i]);
        }
    });
    assert_eq!(integers, 1);
    let seeds = counted(|dev| {
        let streams: Vec<Vec<f32>> = (0..20)
            .map(|seed| {
                Tensor::random_uniform([8], seed, DType::F32, dev)
                    .to_vec()
                    .unwrap()
            })
            .collect();
        assert_ne!(streams[3], streams[4]);
    });
    assert_eq!(seeds, 1);
    let floats = counted(|dev| {
        let x = Tensor::from_vec(vec![3.0f64, -4.0], [2], dev);
        for i in 3..40 {
            let y = (&x * f64::from(i) + 0.25).to_vec::<f64>().unwrap();
            assert_eq!(y, [3.0 * f64::from(i) + 0.25, -4.0 * f64::from(i) + 0.25]);
        }
    });
    assert_eq!(floats, 1);
}

/// A loop that never reads is evaluated on the way, in programs of one structure.
#[test]
fn a_long_loop_without_a_read_stays_bounded() {
    let n = 200_000;
    let compiled = counted(|dev| {
        let mut x = Tensor::from_vec(vec![0.0f64, 1.0], [2], dev);
        let mut deepest = 0;
        for _ in 0..n {
            x = x + 0.125;
            deepest = deepest.max(x.node().pending_depth());
        }
        assert!(deepest < 5000, "{deepest}");
        let end = f64::from(n) * 0.125;
        assert_eq!(x.to_vec::<f64>().unwrap(), [end, end + 1.0]);
    });
    // Whole pieces, and the rest.
    assert!(compiled <= 3, "{compiled} compilations");
}
