//! Modules, initializers, losses, optimizers, learning-rate schedules, checkpoints and the trainer.
//!
//! ```
//! use rtx_nn::{Activation, Adam, Losses, Mlp, Module, Schedule, Trainer, loss};
//! use rtx_tensor::{DType, Device, Tensor};
//! let dev = Device::cpu();
//! let net = Mlp::new(1, 1).hidden(&[8]).activation(Activation::Tanh).seed(1).build(&dev);
//! let x = Tensor::from_vec(vec![-1.0f32, 0.0, 1.0], [3, 1], &dev).rows("points")?;
//! let y = x.square().rows("points")?;
//! let mut trainer = Trainer::new(
//!     net,
//!     Adam::default(),
//!     Schedule::Constant(1e-2),
//!     (x, y),
//!     |net: &Mlp, (x, y): &(Tensor, Tensor), _| Ok(Losses::from(loss::mse(&net.forward(x), y))),
//!     &dev,
//! )?
//! .quiet(true);
//! let first = trainer.run(1)?.loss;
//! let last = trainer.run(50)?.loss;
//! assert!(last < first);
//! # Ok::<(), rtx_nn::NnError>(())
//! ```

mod activation;
mod error;
mod fourier;
mod init;
mod lbfgs;
mod linear;
pub mod loss;
mod mlp;
mod module;
mod optim;
mod parameters;
mod schedule;
mod train;

pub use activation::Activation;
pub use error::{NnError, Result};
pub use fourier::{FourierFeatures, FrequencyScale};
pub use init::{Init, seed_stream};
pub use lbfgs::{Lbfgs, LbfgsReport, Minimum, StopReason};
pub use linear::Linear;
pub use mlp::{Mlp, MlpBuilder, Output};
pub use module::Module;
pub use optim::{Adam, Optimizer, Sgd};
pub use parameters::{cast, load_parameters, parameter_count, save_parameters};
pub use rtx_derive::Module;
pub use schedule::{Schedule, ScheduleState};
pub use train::{
    LossScale, Losses, Outcome, Progress, Resumed, RunReport, StepContext, TrainState, Trainer,
};
