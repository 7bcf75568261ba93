//! Learning-rate schedules, evaluated inside the compiled step from state that lives on the device.

use crate as rtx_nn;
use rtx_tensor::{DType, Device, Tensor};
use std::f64::consts::PI;

/// How the learning rate changes from step to step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Schedule {
    /// The same rate always.
    Constant(f64),
    /// `lr * factor^(step / every)`, without stairs.
    Exponential {
        /// Rate of the first step.
        lr: f64,
        /// Factor per `every` steps.
        factor: f64,
        /// Steps per factor.
        every: u64,
    },
    /// Half a cosine from `lr` down to `floor` over `total` steps, then `floor` (Loshchilov & Hutter 2017,
    /// without restarts).
    Cosine {
        /// Rate of the first step.
        lr: f64,
        /// Length in steps.
        total: u64,
        /// Last rate.
        floor: f64,
    },
    /// A line from zero to the cosine's rate over the first `warmup` steps, then [`Schedule::Cosine`].
    WarmupCosine {
        /// Largest rate.
        lr: f64,
        /// Length of the rise in steps.
        warmup: u64,
        /// Length in steps, the rise included.
        total: u64,
        /// Last rate.
        floor: f64,
    },
    /// Multiplies the rate by `factor` after more than `patience` steps in a row whose loss was not below
    /// `best * (1 - threshold)`. Counts every step, not every read.
    Plateau {
        /// Rate at the start.
        lr: f64,
        /// Factor of each reduction.
        factor: f64,
        /// Steps without improvement that are tolerated.
        patience: u64,
        /// Relative improvement that counts.
        threshold: f64,
        /// Smallest rate.
        floor: f64,
    },
}

/// What a schedule remembers: scalars on the device.
#[derive(Clone, Debug, rtx_nn::Module)]
pub struct ScheduleState {
    /// Lowest loss so far (infinite at the start).
    pub best: Tensor,
    /// Steps in a row without improvement, as a number of the parameters' type.
    pub bad: Tensor,
    /// Factor on the rate.
    pub scale: Tensor,
}

impl ScheduleState {
    /// The state before the first step.
    pub fn new(dtype: DType, device: &Device) -> Self {
        // Arrays rather than constants, so that they are inputs of the step.
        let value = |v: f64| Tensor::from_f64(&[v], [0usize; 0], dtype, device);
        ScheduleState {
            best: value(f64::INFINITY),
            bad: value(0.0),
            scale: value(1.0),
        }
    }
}

impl Schedule {
    /// Rate of the first step.
    pub fn initial(&self) -> f64 {
        match *self {
            Schedule::Constant(lr)
            | Schedule::Exponential { lr, .. }
            | Schedule::Cosine { lr, .. }
            | Schedule::Plateau { lr, .. } => lr,
            Schedule::WarmupCosine { lr, warmup, .. } => lr / warmup.max(1) as f64,
        }
    }

    /// Rate of the step that follows `step` finished ones (integer scalar), as a scalar of the state's type.
    pub fn rate(&self, step: &Tensor, state: &ScheduleState) -> Tensor {
        let t = step.cast(state.scale.dtype());
        match *self {
            Schedule::Constant(lr) => &state.scale * lr,
            Schedule::Exponential { lr, factor, every } => {
                (t * (factor.ln() / every.max(1) as f64)).exp() * &state.scale * lr
            }
            Schedule::Cosine { lr, total, floor } => {
                let done = (t / total.max(1) as f64).clamp(0.0, 1.0);
                (((done * PI).cos() + 1.0) * (0.5 * (lr - floor)) + floor) * &state.scale
            }
            Schedule::WarmupCosine {
                lr,
                warmup,
                total,
                floor,
            } => {
                let rise = ((&t + 1.0) / warmup.max(1) as f64).clamp(0.0, 1.0);
                Schedule::Cosine { lr, total, floor }.rate(step, state) * rise
            }
            Schedule::Plateau { lr, .. } => &state.scale * lr,
        }
    }

    /// The state after a step with that loss. A loss that is NaN never counts as an improvement.
    pub fn observe(&self, loss: &Tensor, state: &ScheduleState) -> ScheduleState {
        let Schedule::Plateau {
            lr,
            factor,
            patience,
            threshold,
            floor,
        } = *self
        else {
            return state.clone();
        };
        let dtype = state.best.dtype();
        let scalar = |v: f64| Tensor::scalar(v, dtype, state.best.device());
        let loss = loss.stop_gradient().cast(dtype);
        let better = loss.lt(&(&state.best * (1.0 - threshold)));
        let zero = scalar(0.0);
        let bad = better.select(&zero, &(&state.bad + 1.0));
        let reduce = scalar(patience as f64).lt(&bad);
        let smallest = if lr > 0.0 { (floor / lr).min(1.0) } else { 1.0 };
        // A rate that a caller scaled below the floor is not raised to it.
        let lower = (&state.scale * factor).maximum(&state.scale.minimum(&scalar(smallest)));
        ScheduleState {
            best: better.select(&loss, &state.best),
            scale: reduce.select(&lower, &state.scale),
            bad: reduce.select(&zero, &bad),
        }
    }
}
