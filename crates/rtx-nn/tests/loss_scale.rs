//! The loss scale of half precision: it changes no number, leaves out what overflows, and is part of a checkpoint.

use rtx_nn::{Adam, LossScale, NnError, Schedule, Sgd, StepContext, TrainState, Trainer};
use rtx_tensor::{DType, Device, Precision, Tensor, Tree};

fn dev() -> Device {
    Device::cpu()
}

fn bits(tree: &impl Tree) -> Vec<u64> {
    let leaves = tree.leaves();
    let values = leaves.iter().map(|t| t.to_host().unwrap().data);
    values.flatten().map(f64::to_bits).collect()
}

/// Parameters fitted to a curve, with a second term whose gradient is the input: it can be made to overflow.
fn trainer(precision: Precision) -> Result<Trainer<Tensor, Tensor>, NnError> {
    let p = Tensor::from_vec(vec![0.5f32, 0.25, -0.5, 1.0], [2, 2], &dev());
    let f = |p: &Tensor, slope: &Tensor, step: &StepContext| {
        let x = step.uniform([8, 2], DType::F32, 0);
        let fit = (x.matmul(p).tanh() - 0.25).square().mean_all();
        Ok((fit + p.sum_all() * slope).into())
    };
    let schedule = Schedule::Plateau {
        lr: 0.01,
        factor: 0.5,
        patience: 3,
        threshold: 0.1,
        floor: 1e-4,
    };
    let t = Trainer::with_precision(
        precision,
        p,
        Adam::default(),
        schedule,
        slope(0.0),
        f,
        &dev(),
    )?;
    Ok(t.quiet(true))
}

fn slope(value: f64) -> Tensor {
    Tensor::from_f64(&[value], [0usize; 0], DType::F32, &dev())
}

/// Factor, good steps in a row, skipped steps.
fn scale<M>(state: &TrainState<M>) -> Result<(f64, f64, f64), NnError> {
    let LossScale {
        scale,
        good,
        skipped,
    } = state.loss_scale.as_ref().unwrap();
    Ok((scale.item()?, good.item()?, skipped.item()?))
}

/// A slope whose gradient times 65536 is beyond float32, times 2048 is not.
const STEEP: f64 = 1e35;

#[test]
fn a_scaled_training_is_the_same_training() -> Result<(), NnError> {
    let (mut half, mut single) = (trainer(Precision::F16)?, trainer(Precision::F32)?);
    assert!(single.state().loss_scale.is_none());
    assert_eq!(half.run(30)?.loss, single.run(30)?.loss);
    let parts = |t: &Trainer<Tensor, Tensor>| {
        let s = t.state();
        (bits(&s.model), bits(&s.optimizer), bits(&s.schedule))
    };
    assert_eq!(parts(&half), parts(&single), "powers of two are exact");
    assert_eq!(scale(half.state())?, (65536.0, 30.0, 0.0));
    Ok(())
}

#[test]
fn an_overflow_leaves_everything_but_the_scale_as_it_was() -> Result<(), NnError> {
    let mut t = trainer(Precision::F16)?;
    t.run(3)?;
    let parts = |t: &Trainer<Tensor, Tensor>| {
        let s = t.state();
        (bits(&s.model), bits(&s.optimizer), bits(&s.schedule))
    };
    let before = parts(&t);
    t.set_inputs(slope(STEEP));
    let report = t.run(1)?;
    assert!(report.loss.is_finite() && report.step == 4);
    assert_eq!(parts(&t), before, "bit for bit");
    assert_eq!(scale(t.state())?, (32768.0, 0.0, 1.0));
    t.run(4)?;
    assert_eq!(parts(&t), before);
    assert_eq!(scale(t.state())?, (2048.0, 0.0, 5.0));
    t.run(1)?;
    assert_ne!(
        parts(&t).1,
        before.1,
        "the gradient fits now, and reaches the slots"
    );
    assert_eq!(scale(t.state())?, (2048.0, 1.0, 5.0));
    Ok(())
}

#[test]
fn skipped_steps_are_no_updates_to_the_optimizer() -> Result<(), NnError> {
    let p = Tensor::from_vec(vec![0.5f32], [1], &dev());
    let f = |p: &Tensor, slope: &Tensor, _: &StepContext| Ok((p.sum_all() * slope).into());
    let (adam, rate) = (Adam::default(), Schedule::Constant(0.01));
    let tier = Precision::F16;
    let mut t = Trainer::with_precision(tier, p, adam, rate, slope(STEEP), f, &dev())?.quiet(true);
    t.run(5)?;
    t.set_inputs(slope(1.0));
    t.run(1)?;
    let moved = 0.5 - t.model().to_vec::<f32>()?[0];
    assert!(
        (moved - 0.01).abs() < 1e-6,
        "Adam's first step is the rate: {moved}"
    );
    Ok(())
}

#[test]
fn the_scale_grows_after_two_thousand_good_steps() -> Result<(), NnError> {
    let mut t = trainer(Precision::F16)?.read_every(2000);
    t.run(1999)?;
    assert_eq!(scale(t.state())?, (65536.0, 1999.0, 0.0));
    t.run(1)?;
    assert_eq!(scale(t.state())?, (131_072.0, 0.0, 0.0));
    Ok(())
}

#[test]
fn the_scale_is_in_the_checkpoint() -> Result<(), NnError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("half.safetensors");
    let mut whole = trainer(Precision::F16)?;
    whole.run(3)?;
    whole.set_inputs(slope(STEEP));
    whole.run(2)?;
    whole.checkpoint(&path)?;
    let mut second = trainer(Precision::F16)?.seed(99);
    assert!(second.resume(&path)?.same_program);
    assert_eq!(bits(second.state()), bits(whole.state()));
    assert_eq!(scale(second.state())?, (16384.0, 0.0, 2.0));
    second.set_inputs(slope(STEEP));
    for t in [&mut whole, &mut second] {
        t.run(2)?;
        t.set_inputs(slope(0.0));
        t.run(5)?;
    }
    assert_eq!(bits(second.state()), bits(whole.state()));
    assert_eq!(scale(second.state())?.0, 4096.0);
    Ok(())
}

#[test]
fn a_gradient_that_no_scale_helps_ends_the_training() -> Result<(), NnError> {
    // The loss is 0, its derivative infinite.
    let p = Tensor::from_vec(vec![0.0f32], [1], &dev());
    let f = |p: &Tensor, (): &(), _: &StepContext| Ok(p.sqrt().sum_all().into());
    let (rate, tier) = (Schedule::Constant(0.1), Precision::F16);
    let t = Trainer::with_precision(tier, p, Sgd::default(), rate, (), f, &dev())?;
    let NnError::NotFinite {
        step, last_good, ..
    } = t.quiet(true).run(100).unwrap_err()
    else {
        panic!("another error");
    };
    assert_eq!((step, last_good), (30, 0), "30 halvings from 2^16 to 2^-14");
    Ok(())
}

#[test]
fn double_precision_needs_no_scale() -> Result<(), NnError> {
    let p = Tensor::from_vec(vec![0.5f64], [1], &dev());
    let f = |p: &Tensor, (): &(), _: &StepContext| Ok(p.square().sum_all().into());
    let (rate, tier) = (Schedule::Constant(0.1), Precision::F16);
    let t = Trainer::with_precision(tier, p, Sgd::default(), rate, (), f, &dev())?;
    assert!(t.state().loss_scale.is_none());
    Ok(())
}
