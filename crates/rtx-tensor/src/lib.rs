//! Lazy tensors with derivatives of any order.
//!
//! An operation on [`Tensor`]s records a node and returns at once; work happens when a value is read
//! ([`Tensor::to_vec`], [`eval`]) or a [`compile`]d step is called. Mistakes travel with the value and
//! surface there, naming the operation, the shapes and the line that made them.
//!
//! ```
//! use rtx_tensor::{Device, Tensor, grad};
//! let x = Tensor::from_vec(vec![0.5f64, 1.5], [2], &Device::cpu());
//! let f = |x: &Tensor| (x * x).sin().sum_all();
//! let second = grad(|x: &Tensor| grad(f)(x).sum_all())(&x);
//! let v = second.to_vec::<f64>()?;
//! assert!((v[0] - (2.0 * 0.25f64.cos() - 4.0 * 0.25 * 0.25f64.sin())).abs() < 1e-12);
//! # Ok::<(), rtx_tensor::Error>(())
//! ```

mod compiled;
mod create;
mod device;
mod error;
mod execute;
pub mod io;
mod operators;
mod ops;
mod tensor;
mod transforms;
mod tree;

pub use compiled::{Compiled, compile, compile_with};
pub use device::Device;
pub use error::{Error, Result};
pub use execute::{compilations, eval};
pub use rtx_ir::eval::HostArray;
pub use rtx_ir::jet::MultiIndex;
pub use rtx_ir::{DType, Dim, DotDims, Element, RandomKind, RowDomain, Shape};
pub use rtx_runtime::{CompileOptions, Precision, ProgramStats, UnknownPrecision};
pub use tensor::Tensor;
pub use transforms::{grad, jet, jvp, linearize, value_and_grad, value_and_grad_tree, vjp};
pub use tree::{Buffer, Tree, Visit};
