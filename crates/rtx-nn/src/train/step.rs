//! The compiled training step.

use crate::train::{LossScale, Losses, StepContext, TrainState};
use crate::{NnError, Optimizer, Result, Schedule, ScheduleState};
use rtx_tensor::{Compiled, DType, Device, Precision, Tensor, Tree};
use rtx_tensor::{compile_with, value_and_grad_tree};

/// Outputs of a step: loss, rate, named terms.
pub(crate) type StepOutput = (Tensor, Tensor, Vec<(String, Tensor)>);

/// The compiled step of a training.
pub(crate) type Step<M, I> = Compiled<TrainState<M>, I, StepOutput>;

/// The function that writes a loss down.
pub(crate) type LossFn<M, I> = dyn Fn(&M, &I, &StepContext) -> Result<Losses> + Send + Sync;

/// Records and compiles one step: loss, gradient, schedule, update, and the guard against NaN.
pub(crate) fn compile_step<M: Tree, I: Tree>(
    state: &TrainState<M>,
    inputs: &I,
    loss: &LossFn<M, I>,
    optimizer: &dyn Optimizer,
    schedule: &Schedule,
    precision: Precision,
    device: &Device,
) -> Result<Step<M, I>> {
    let mut failure = None;
    let compiled = compile_with(
        &precision.into(),
        |state: &TrainState<M>, inputs: &I| {
            let answer = record(state, inputs, loss, optimizer, schedule);
            answer.map_err(|e| match e {
                NnError::Tensor(e) => e,
                other => {
                    let error = refused(other.to_string());
                    failure = Some(other);
                    error
                }
            })
        },
        state,
        inputs,
        device,
    );
    match failure {
        Some(e) => Err(e),
        None => Ok(compiled?),
    }
}

/// Carries an error of this crate through the compiler, which returns its own kind.
fn refused(message: String) -> rtx_tensor::Error {
    rtx_tensor::Error::Tree {
        what: "loss",
        message,
    }
}

fn record<M: Tree, I: Tree>(
    state: &TrainState<M>,
    inputs: &I,
    loss: &LossFn<M, I>,
    optimizer: &dyn Optimizer,
    schedule: &Schedule,
) -> Result<(TrainState<M>, StepOutput)> {
    let context = StepContext::new(&state.key, &state.step);
    let scale = state.loss_scale.as_ref();
    let (losses, grads) = losses_and_grads(&state.model, inputs, loss, &context, scale)?;
    let params: Vec<Tensor> = state.model.parameters().into_iter().map(|p| p.1).collect();
    let rate = schedule.rate(&state.step, &state.schedule);
    let next = &state.step + 1.0;
    let updates = scale.map_or_else(|| next.clone(), |s| &next - &s.skipped);
    let (new, slots) = optimizer.update(&params, &grads, &state.optimizer, &rate, &updates);
    if new.len() != params.len() || slots.len() != state.optimizer.len() {
        return Err(NnError::Optimizer(format!(
            "{} returned {} parameters and {} slots for {} and {}",
            optimizer.describe(),
            new.len(),
            slots.len(),
            params.len(),
            state.optimizer.len()
        )));
    }
    let whole = state.finite.eq(&state.step);
    let schedule = schedule.observe(&losses.total, &state.schedule);
    let (after, fine, loss_scale) = match scale {
        None => {
            let fine = finite(&losses.total, &grads).logical_and(&whole);
            ((new, slots, schedule), fine, None)
        }
        Some(scale) => {
            let updated = finite(&losses.total, &grads);
            // A loss that is not finite is beyond help: its factor comes after it.
            let helped = finite(&losses.total, &[]).logical_and(&scale.may_shrink());
            let fine = updated.logical_or(&helped).logical_and(&whole);
            let keep = |new: Vec<Tensor>, old: &[Tensor]| -> Vec<Tensor> {
                let pairs = new.iter().zip(old);
                pairs.map(|(n, o)| updated.select(n, o)).collect()
            };
            let old = &state.schedule;
            let schedule = ScheduleState {
                best: updated.select(&schedule.best, &old.best),
                bad: updated.select(&schedule.bad, &old.bad),
                scale: updated.select(&schedule.scale, &old.scale),
            };
            let kept = (keep(new, &params), keep(slots, &state.optimizer), schedule);
            (kept, fine, Some(scale.after(&updated)))
        }
    };
    let new_state = TrainState {
        model: state.model.with_parameters(&after.0),
        optimizer: after.1,
        schedule: after.2,
        loss_scale,
        finite: fine.select(&next, &state.finite),
        step: next,
        key: state.key.clone(),
    };
    Ok((new_state, (losses.total, rate, losses.terms)))
}

/// Losses at a model, and the gradient of the total by its parameters, by way of the scaled total if there is a scale.
pub(crate) fn losses_and_grads<M: Tree, I>(
    model: &M,
    inputs: &I,
    loss: &LossFn<M, I>,
    context: &StepContext,
    scale: Option<&LossScale>,
) -> Result<(Losses, Vec<Tensor>)> {
    let mut answer = None;
    let recorded = value_and_grad_tree(
        |model: &M| {
            let losses = loss(model, inputs, context);
            let total = losses
                .as_ref()
                .map_or_else(|_| context.step.clone(), |l| l.total.clone());
            answer = Some(losses);
            scale.map_or(total.clone(), |s| s.scaled(&total))
        },
        model,
    );
    let losses = match answer {
        Some(Err(e)) => return Err(e),
        Some(Ok(l)) => l,
        None => return Err(NnError::loss("the loss function was not called")),
    };
    let (_, grads) = recorded?;
    Ok((losses, scale.map_or(grads.clone(), |s| s.unscaled(&grads))))
}

/// True where the loss and all gradients are finite numbers. Magnitudes are summed, not squares, which
/// would overflow in single precision before anything is wrong.
fn finite(loss: &Tensor, grads: &[Tensor]) -> Tensor {
    let dtype = loss.dtype();
    let size = grads
        .iter()
        .fold(loss.abs(), |sum, g| sum + g.abs().sum_all().cast(dtype));
    let largest = if dtype == DType::F32 {
        f64::from(f32::MAX)
    } else {
        f64::MAX
    };
    size.le(&Tensor::scalar(largest, dtype, loss.device()))
}
