//! Workload B against JAX in double precision: ten steps of Adam and the first gradient.

use pinn_mre_helmholtz::{Workload, build, initial_gradient};
use rtx_tensor::{DType, Device};
use serde::Deserialize;
use std::collections::BTreeMap;

#[derive(Deserialize)]
struct Gradient {
    norm: f64,
    stride: usize,
    values: Vec<f64>,
}

#[derive(Deserialize)]
struct Golden {
    points: usize,
    losses: Vec<f64>,
    gradients: BTreeMap<String, Gradient>,
}

fn golden() -> Golden {
    serde_json::from_str(include_str!("golden_b.json")).expect("the output of make_golden.py")
}

/// The CPU, or the device that `RTX_TEST_DEVICES` names.
fn device() -> Device {
    match std::env::var("RTX_TEST_DEVICES") {
        Ok(name) if !name.is_empty() => Device::named(&name).expect("RTX_TEST_DEVICES"),
        _ => Device::cpu(),
    }
}

fn norm(v: impl Iterator<Item = f64>) -> f64 {
    v.map(|v| v * v).sum::<f64>().sqrt()
}

fn check_losses(dtype: DType, tolerance: f64) {
    let golden = golden();
    let job = build(Workload::B, golden.points, dtype, &device()).unwrap();
    let mut state = job.state;
    let mut worst = 0.0f64;
    for (k, expected) in golden.losses.iter().enumerate() {
        let (next, loss) = job.step.call(state, &job.inputs).unwrap();
        state = next;
        let loss = loss.item().unwrap();
        let error = (loss / expected - 1.0).abs();
        worst = worst.max(error);
        assert!(
            error <= tolerance,
            "{dtype}, step {k}: loss {loss}, golden {expected}, relative {error:e}"
        );
    }
    println!("{dtype}: ten losses within {worst:e}");
}

fn check_gradient(dtype: DType, tolerance: f64) {
    let golden = golden();
    let (loss, gradients) = initial_gradient(Workload::B, golden.points, dtype, &device()).unwrap();
    assert!((loss / golden.losses[0] - 1.0).abs() <= tolerance);
    assert_eq!(gradients.len(), golden.gradients.len());
    let mut worst = 0.0f64;
    for (name, found) in gradients {
        let expected = &golden.gradients[&name];
        let found = found.to_host().unwrap().data;
        let length = norm(found.iter().copied());
        let picked = found.iter().step_by(expected.stride);
        let difference = norm(picked.zip(&expected.values).map(|(f, e)| f - e));
        let size = norm(expected.values.iter().copied());
        let error = (difference / size).max((length / expected.norm - 1.0).abs());
        worst = worst.max(error);
        assert!(error <= tolerance, "{dtype}, {name}: relative {error:e}");
    }
    println!("{dtype}: first gradient within {worst:e}");
}

#[test]
fn ten_losses_in_double_precision() {
    check_losses(DType::F64, 1e-10);
}

#[test]
fn ten_losses_in_single_precision() {
    check_losses(DType::F32, 1e-5);
}

#[test]
fn first_gradient_in_double_precision() {
    check_gradient(DType::F64, 1e-10);
}

#[test]
fn first_gradient_in_single_precision() {
    check_gradient(DType::F32, 1e-5);
}

/// `run(n)` is `n` calls, to the bit.
#[test]
fn many_steps_at_once() {
    let one = build(Workload::B, 33, DType::F32, &device()).unwrap();
    let (mut state, mut loss) = one.step.call(one.state.clone(), &one.inputs).unwrap();
    for _ in 0..4 {
        (state, loss) = one.step.call(state, &one.inputs).unwrap();
    }
    let (together, last) = one.step.run(one.state, &one.inputs, 5).unwrap();
    assert_eq!(loss.to_vec::<f32>().unwrap(), last.to_vec::<f32>().unwrap());
    for (a, b) in state.1.iter().zip(&together.1) {
        assert_eq!(a.to_vec::<f32>().unwrap(), b.to_vec::<f32>().unwrap());
    }
}

#[test]
fn the_other_workloads_run() {
    let dev = device();
    let f = build(Workload::F, 7, DType::F32, &dev).unwrap();
    let (_, y) = f.step.call(f.state, &f.inputs).unwrap();
    assert_eq!(y.shape().unwrap(), [7, 2]);
    let a = build(Workload::A, 50, DType::F32, &dev).unwrap();
    let (state, first) = a.step.call(a.state, &a.inputs).unwrap();
    let (_, last) = a.step.run(state, &a.inputs, 20).unwrap();
    assert!(last.item().unwrap() < first.item().unwrap());
}
