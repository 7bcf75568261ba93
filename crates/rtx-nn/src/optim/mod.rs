//! First-order optimizers, written in graph operations: an update is part of the compiled step.

mod adam;
mod sgd;

pub use adam::Adam;
pub use sgd::Sgd;

use rtx_tensor::Tensor;

/// An update rule. All numbers that change from step to step are tensors, so that a compiled step never
/// freezes them.
pub trait Optimizer: Send + Sync {
    /// State arrays ("slots") for parameters that have not been updated yet.
    fn init(&self, params: &[Tensor]) -> Vec<Tensor>;

    /// New parameters and slots. `lr` is a floating-point scalar, `step` the integer number of this update,
    /// which is 1 at the first.
    fn update(
        &self,
        params: &[Tensor],
        grads: &[Tensor],
        slots: &[Tensor],
        lr: &Tensor,
        step: &Tensor,
    ) -> (Vec<Tensor>, Vec<Tensor>);

    /// A line that tells one optimizer from another in a checkpoint.
    fn describe(&self) -> String;
}

/// Arrays of zeros of the parameters' types. The shapes may have run-time rows, so the zeros follow from
/// the parameters themselves.
pub(crate) fn zeros_like(params: &[Tensor]) -> impl Iterator<Item = Tensor> + '_ {
    params.iter().map(|p| {
        let zero = Tensor::scalar(0.0, p.dtype(), p.device());
        zero.broadcast_to(p.symbolic_shape().clone())
    })
}
