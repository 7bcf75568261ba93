//! The three workloads as compiled steps.

use crate::net::Net;
use crate::numbers::{array, field, points as unit_points};
use rtx_nn::{Adam, Module, Optimizer};
use rtx_tensor::{
    Compiled, DType, Device, Precision, Result, Tensor, Tree, compile_with, eval,
    value_and_grad_tree,
};
use std::fmt;
use std::str::FromStr;

/// Fourier frequencies of a network.
pub const FEATURES: usize = 64;
/// Units of a hidden layer.
pub const HIDDEN: usize = 128;
/// Hidden layers.
pub const LAYERS: usize = 4;
/// Coefficient of `u` in the equation.
pub const K: f64 = 40.0;
/// Learning rate of Adam.
pub const LEARNING_RATE: f64 = 1e-3;
/// Weight of the residual in the loss of B.
const RESIDUAL_WEIGHT: f64 = 0.01;

/// What is timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Workload {
    /// Forward pass of the network of `u`.
    F,
    /// Training step of `mu` with known `u` and Laplacian.
    A,
    /// Training step of both networks on the equation and the data.
    B,
}

impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

impl FromStr for Workload {
    type Err = String;
    fn from_str(s: &str) -> std::result::Result<Self, String> {
        match s.trim() {
            "F" | "f" => Ok(Workload::F),
            "A" | "a" => Ok(Workload::A),
            "B" | "b" => Ok(Workload::B),
            other => Err(format!("no workload '{other}'; there are F, A and B")),
        }
    }
}

/// What a step carries: networks in training, moments of Adam, number of updates made.
pub type State = (Vec<Net>, Vec<Tensor>, Tensor);

/// What a step reads.
#[derive(Clone, Debug, Module)]
pub struct Inputs {
    /// Points, `[n, 2]`.
    pub x: Tensor,
    /// Field at the points, `[n, 2]`.
    pub u: Tensor,
    /// Its Laplacian, `[n, 2]`.
    pub laplacian: Tensor,
    /// Networks that are not trained (workload F).
    pub networks: Vec<Net>,
}

/// A workload, ready to run. The output of a step is the loss before the update; of F the field `[n, 2]`.
pub struct Job {
    /// The step.
    pub step: Compiled<State, Inputs, Tensor>,
    /// State before the first step.
    pub state: State,
    /// Inputs of every step.
    pub inputs: Inputs,
}

fn loss(workload: Workload, networks: &[Net], inputs: &Inputs) -> Tensor {
    let x = &inputs.x;
    match (workload, networks) {
        (Workload::F, [net, ..]) => net.forward(x),
        (Workload::A, [mu, ..]) => {
            let residual = mu.forward(x) * &inputs.laplacian + &inputs.u * K;
            residual.square().mean_all()
        }
        (Workload::B, [u, mu, ..]) => {
            let (u, mu) = (u.forward(x), mu.forward(x));
            let transport = mu.dx(x, 0) * u.dx(x, 0) + mu.dx(x, 1) * u.dx(x, 1);
            let residual = &mu * u.laplacian(x, 2) + transport + &u * K;
            let misfit = (&u - &inputs.u).square().mean_all();
            misfit + residual.square().mean_all() * RESIDUAL_WEIGHT
        }
        _ => Tensor::concat(&[], 0),
    }
}

fn networks(workload: Workload, dtype: DType, device: &Device) -> Vec<Net> {
    match workload {
        Workload::F => vec![Net::new(2, 1, dtype, device)],
        Workload::A => vec![Net::new(1, 2, dtype, device)],
        Workload::B => vec![Net::new(2, 3, dtype, device), Net::new(1, 4, dtype, device)],
    }
}

fn inputs(points: usize, dtype: DType, device: &Device, networks: Vec<Net>) -> Result<Inputs> {
    let x = unit_points(points);
    let u = field(&x);
    let laplacian: Vec<f64> = u.iter().map(|u| -52.0 * u).collect();
    let rows = |data: &[f64]| array(data, &[points, 2], dtype, device).rows("points");
    Ok(Inputs {
        x: rows(&x)?,
        u: rows(&u)?,
        laplacian: rows(&laplacian)?,
        networks,
    })
}

/// Builds and compiles a workload, with products as exact as its element type. The program serves any number of
/// points.
///
/// # Errors
/// The device's refusal.
pub fn build(workload: Workload, points: usize, dtype: DType, device: &Device) -> Result<Job> {
    build_with(workload, points, dtype, Precision::F32, device)
}

/// As [`build`], with products of single-precision arrays as exact as `precision` says.
///
/// # Errors
/// The device's refusal.
pub fn build_with(
    workload: Workload,
    points: usize,
    dtype: DType,
    precision: Precision,
    device: &Device,
) -> Result<Job> {
    let nets = networks(workload, dtype, device);
    let step = Tensor::scalar(0.0, DType::I64, device);
    let (state, inputs): (State, Inputs) = if workload == Workload::F {
        let inputs = inputs(points, dtype, device, nets)?;
        ((Vec::new(), Vec::new(), step), inputs)
    } else {
        let parameters: Vec<Tensor> = nets.parameters().into_iter().map(|(_, t)| t).collect();
        let slots = Adam::default().init(&parameters);
        let inputs = inputs(points, dtype, device, Vec::new())?;
        ((nets, slots, step), inputs)
    };
    let step = compile_with(
        &precision.into(),
        |(nets, slots, step): &State, inputs: &Inputs| {
            if workload == Workload::F {
                let y = loss(workload, &inputs.networks, inputs);
                return Ok(((Vec::new(), Vec::new(), step + 1.0), y));
            }
            let (value, grads) = value_and_grad_tree(|n| loss(workload, n, inputs), nets)?;
            let step = step + 1.0;
            let rate = Tensor::scalar(LEARNING_RATE, dtype, device);
            let parameters: Vec<Tensor> = nets.parameters().into_iter().map(|(_, t)| t).collect();
            let (parameters, slots) =
                Adam::default().update(&parameters, &grads, slots, &rate, &step);
            Ok(((nets.with_parameters(&parameters), slots, step), value))
        },
        &state,
        &inputs,
        device,
    )?;
    Ok(Job {
        step,
        state,
        inputs,
    })
}

/// Loss of a training workload at its initial weights, and its gradients by name of the parameter.
///
/// # Errors
/// The device's refusal, or workload F, which has no loss.
pub fn initial_gradient(
    workload: Workload,
    points: usize,
    dtype: DType,
    device: &Device,
) -> Result<(f64, Vec<(String, Tensor)>)> {
    let nets = networks(workload, dtype, device);
    let inputs = inputs(points, dtype, device, Vec::new())?;
    let (value, grads) = value_and_grad_tree(|n| loss(workload, n, &inputs), &nets)?;
    let all: Vec<&Tensor> = grads.iter().chain([&value]).collect();
    eval(&all)?;
    let names = nets.parameters().into_iter().map(|(name, _)| name);
    Ok((value.item()?, names.zip(grads).collect()))
}
