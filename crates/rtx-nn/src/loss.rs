//! Losses: scalar means over all elements.

use rtx_tensor::Tensor;

/// Mean squared error.
#[track_caller]
pub fn mse(prediction: &Tensor, target: &Tensor) -> Tensor {
    (prediction - target).square().mean_all()
}

/// Mean absolute error.
#[track_caller]
pub fn mae(prediction: &Tensor, target: &Tensor) -> Tensor {
    (prediction - target).abs().mean_all()
}

/// Mean Huber loss (Huber 1964): half the squared error up to `delta`, then linear.
#[track_caller]
pub fn huber(prediction: &Tensor, target: &Tensor, delta: f64) -> Tensor {
    // With c = min(|e|, delta), both branches are c (|e| - c/2).
    let e = (prediction - target).abs();
    let c = e.clamp(0.0, delta);
    (&c * (e - &c * 0.5)).mean_all()
}
