//! The reference workload: a physics-informed network for magnetic-resonance elastography.
//!
//! Two networks of Fourier features and four hidden layers of 128 `tanh` units describe a wave field `u`
//! (two components) and a stiffness `mu` on the unit square. Three workloads are timed and checked:
//! - [`Workload::F`]: the forward pass of `u`;
//! - [`Workload::A`]: a training step of `mu` with known `u` and its Laplacian;
//! - [`Workload::B`]: a training step of both networks on the heterogeneous Helmholtz equation
//!   `mu lap u + grad mu . grad u + K u = 0` with observations of `u`. All derivatives are exact.
//!
//! Every step is a true gradient and a true update. Weights and data come from closed formulas
//! ([`numbers`]), repeated in `python/common.py`, so that other frameworks start from the same numbers.
//!
//! ```
//! use pinn_mre_helmholtz::{Workload, build};
//! use rtx_tensor::{DType, Device};
//! let job = build(Workload::B, 16, DType::F32, &Device::cpu())?;
//! let (state, first) = job.step.call(job.state, &job.inputs)?;
//! let (_, last) = job.step.run(state, &job.inputs, 50)?;
//! assert!(last.item()? < first.item()?);
//! # Ok::<(), rtx_tensor::Error>(())
//! ```

mod flops;
mod measure;
mod net;
pub mod numbers;
mod workload;

pub use flops::flops_per_step;
pub use measure::{Arithmetic, Measurement, RequestedPrecision, measure, table};
pub use net::Net;
pub use workload::{
    FEATURES, HIDDEN, Inputs, Job, K, LAYERS, LEARNING_RATE, State, Workload, build, build_with,
    initial_gradient,
};
