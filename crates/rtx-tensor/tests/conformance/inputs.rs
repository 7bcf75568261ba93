//! The closed formulas of `make_goldens.py`: inputs, output weights and directions.

use rtx_tensor::{DType, Device, Tensor};

/// Multiples of 1/256 in [0, 1): exact in single precision.
fn quasi(n: usize, step: f64) -> Vec<f64> {
    (1..=n)
        .map(|i| {
            let t = i as f64 * step;
            ((t - t.floor()) * 256.0).floor() / 256.0
        })
        .collect()
}

/// `n` inputs in [lo, hi).
pub fn inputs(n: usize, lo: f64, hi: f64) -> Vec<f64> {
    let q = quasi(n, 0.618_033_988_749_894_9);
    q.into_iter().map(|q| lo + (hi - lo) * q).collect()
}

/// The direction of the directional derivatives.
pub fn direction(n: usize) -> Vec<f64> {
    let q = quasi(n, 0.569_840_290_998_053_2);
    q.into_iter().map(|q| 2.0 * q - 1.0).collect()
}

/// A constant array of the formula's values.
pub fn points(n: usize, lo: f64, hi: f64, shape: &[usize], dtype: DType, dev: &Device) -> Tensor {
    Tensor::from_f64(&inputs(n, lo, hi), rtx_tensor::Shape::of(shape), dtype, dev)
}

/// The weighted sum of all elements.
#[track_caller]
pub fn wsum(y: &Tensor) -> Tensor {
    let shape = y.symbolic_shape().clone();
    let n = shape.elements().expect("the cases have known extents");
    let w: Vec<f64> = quasi(n, 0.754_877_666_246_692_7)
        .into_iter()
        .map(|q| 0.25 + q)
        .collect();
    (Tensor::from_f64(&w, shape, y.dtype(), y.device()) * y).sum_all()
}

/// The weighted sum of the sine: gives linear operations curvature.
#[track_caller]
pub fn wsin(y: &Tensor) -> Tensor {
    wsum(&y.sin())
}

/// Consecutive pieces of a vector under the given shapes.
#[track_caller]
pub fn split<const N: usize>(x: &Tensor, shapes: [&[usize]; N]) -> [Tensor; N] {
    let mut at = 0;
    shapes.map(|s| {
        let n: usize = s.iter().product();
        at += n;
        x.slice(0, at - n, at).reshape(rtx_tensor::Shape::of(s))
    })
}
