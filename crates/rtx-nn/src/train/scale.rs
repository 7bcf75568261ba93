//! The factor on the loss that keeps gradients inside the range of half precision.

use crate as rtx_nn;
use crate::train::state::integer;
use rtx_tensor::{DType, Device, Tensor};

/// Factor at the start.
const INITIAL: f64 = 65536.0;
/// Largest factor: a gradient that is always zero must not drive it to infinity.
const LARGEST: f64 = 16_777_216.0;
/// Smallest factor. A gradient that is not finite here is no matter of range.
const SMALLEST: f64 = 1.0 / 16_384.0;
/// Steps with a finite gradient after which the factor doubles.
const PATIENCE: f64 = 2000.0;

/// Dynamic scale of the loss for trainings in [`Precision::F16`](rtx_tensor::Precision::F16): scalars on the device,
/// kept in the checkpoint (P. Micikevicius et al., Mixed Precision Training, ICLR 2018).
///
/// The gradient is that of the loss times a power of two, which starts at 65536, and is divided by it before the
/// update. A step with a gradient that is not finite leaves parameters, slots and schedule as they are, and halves
/// the factor (not below 2^-14); 2000 steps in a row with a finite one double it (not above 2^24).
#[derive(Clone, Debug, rtx_nn::Module)]
pub struct LossScale {
    /// The factor.
    pub scale: Tensor,
    /// Steps in a row with a finite gradient, an integer scalar.
    pub good: Tensor,
    /// Steps whose update was left out, an integer scalar.
    pub skipped: Tensor,
}

impl LossScale {
    /// The state before the first step.
    pub fn new(device: &Device) -> Self {
        LossScale {
            scale: Tensor::from_f64(&[INITIAL], [0usize; 0], DType::F32, device),
            good: integer(0, device),
            skipped: integer(0, device),
        }
    }

    /// The loss whose gradient is taken.
    pub(crate) fn scaled(&self, loss: &Tensor) -> Tensor {
        loss * self.scale.cast(loss.dtype())
    }

    /// The gradients of the loss itself: exact, because the factor is a power of two.
    pub(crate) fn unscaled(&self, gradients: &[Tensor]) -> Vec<Tensor> {
        let inverse = 1.0 / &self.scale;
        let each = gradients.iter();
        each.map(|g| g * inverse.cast(g.dtype())).collect()
    }

    /// True where a smaller factor can still be tried.
    pub(crate) fn may_shrink(&self) -> Tensor {
        self.number(SMALLEST).lt(&self.scale)
    }

    /// The state after a step whose gradient was finite, or not.
    pub(crate) fn after(&self, finite: &Tensor) -> Self {
        let zero = Tensor::scalar(0.0, DType::I64, self.scale.device());
        let one = Tensor::scalar(1.0, DType::I64, self.scale.device());
        let good = &self.good + &one;
        let due = Tensor::scalar(PATIENCE, DType::I64, self.scale.device()).le(&good);
        let grown = (&self.scale * 2.0).minimum(&self.number(LARGEST));
        let halved = (&self.scale * 0.5).maximum(&self.number(SMALLEST));
        LossScale {
            scale: finite.select(&due.select(&grown, &self.scale), &halved),
            good: finite.select(&due.select(&zero, &good), &zero),
            skipped: finite.select(&self.skipped, &(&self.skipped + &one)),
        }
    }

    fn number(&self, value: f64) -> Tensor {
        Tensor::scalar(value, DType::F32, self.scale.device())
    }
}
