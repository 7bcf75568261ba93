//! What nearly every program uses: `use rustytorch::prelude::*;`.

pub use rtx_mre::{Modulus, WaveField};
pub use rtx_nn::{
    Activation, Adam, FourierFeatures, Lbfgs, Linear, Losses, Mlp, Module, Optimizer, Schedule,
    Trainer, loss,
};
pub use rtx_pinn::{
    Complex64, ComplexField, Cuboid, Edge, Field, Geometry, Interval, PinnTrainer, Points, Problem,
    Rectangle, Sampling,
};
pub use rtx_tensor::io::{load_npz, load_safetensors, save_npz, save_safetensors};
pub use rtx_tensor::{
    DType, Device, Precision, Tensor, compile, eval, grad, jet, jvp, linearize, value_and_grad, vjp,
};
