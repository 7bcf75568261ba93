//! What a training carries from step to step.

use crate::init::seed_stream;
use crate::train::LossScale;
use crate::{self as rtx_nn, Optimizer, Result, ScheduleState};
use rtx_tensor::{DType, Device, Tensor, Tree};

/// Model, optimizer slots and the scalars of a training. All of it lives on the device and is stored in a
/// checkpoint; only the model's parameters are trainable.
#[derive(Clone, Debug, rtx_nn::Module)]
pub struct TrainState<M> {
    /// The model.
    pub model: M,
    /// Slots of the optimizer.
    #[module(buffer)]
    pub optimizer: Vec<Tensor>,
    /// Memory of the learning-rate schedule.
    #[module(buffer)]
    pub schedule: ScheduleState,
    /// Scale of the loss, for a training in half precision.
    #[module(buffer)]
    pub loss_scale: Option<LossScale>,
    /// Finished steps, an integer scalar.
    #[module(buffer)]
    pub step: Tensor,
    /// Finished steps up to which every loss and gradient was finite, an integer scalar.
    #[module(buffer)]
    pub finite: Tensor,
    /// Base key of the random numbers, an integer scalar.
    #[module(buffer)]
    pub key: Tensor,
}

impl<M: Tree> TrainState<M> {
    /// The state before the first step.
    ///
    /// # Errors
    /// A mistake inside the model's parameters.
    pub fn new(model: M, optimizer: &dyn Optimizer, seed: u64, device: &Device) -> Result<Self> {
        let params: Vec<Tensor> = model.parameters().into_iter().map(|(_, t)| t).collect();
        let slots = optimizer.init(&params);
        let dtype = params.first().map_or(DType::F32, Tensor::dtype);
        let state = TrainState {
            schedule: ScheduleState::new(dtype, device),
            loss_scale: None,
            step: integer(0, device),
            finite: integer(0, device),
            key: base_key(seed, device),
            optimizer: slots,
            model,
        };
        let leaves = state.leaves();
        rtx_tensor::eval(&leaves.iter().collect::<Vec<_>>())?;
        Ok(state)
    }
}

/// An integer scalar that is an array, so that it becomes an input of the step.
pub(crate) fn integer(value: u64, device: &Device) -> Tensor {
    Tensor::from_f64(&[value as f64], [0usize; 0], DType::I64, device)
}

/// The key of a seed. Half the range below 2^53 is left for the steps, which are added to it.
pub(crate) fn base_key(seed: u64, device: &Device) -> Tensor {
    integer(seed_stream(seed, KEY_STREAM) >> 1, device)
}

/// Apart from the streams of the layers and features of a network with the same seed.
const KEY_STREAM: u64 = u64::MAX - 1;
