//! RustyTorch++: a machine-learning framework for physics.
//!
//! This crate gathers the others under one name; it holds no logic of its own.
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`tensor`] | lazy tensors, devices, derivatives of any order, compiled steps, `.npy`, `.npz` and `.safetensors` files |
//! | [`nn`] | modules, networks, optimizers, schedules, the trainer, checkpoints |
//! | [`pinn`] | physics-informed networks: fields, differential operators, geometry, conditions |
//! | [`mre`] | magnetic resonance elastography: data, inversions, phantoms, figures |
//!
//! Most programs need only the [`prelude`]:
//!
//! ```
//! use rustytorch::prelude::*;
//!
//! fn main() -> rustytorch::Result<()> {
//!     let dev = Device::best();
//!     let x = Tensor::from_vec(vec![0.5f32, 1.5], [2], &dev);
//!     let f = |x: &Tensor| (x * x).sin().sum_all();
//!     let h = grad(|x: &Tensor| grad(f)(x).sum_all())(&x); // any order
//!     let values = h.to_vec::<f32>()?; // the only place where work happens and errors surface
//!     assert!((values[0] - 1.690).abs() < 1e-3);
//!     Ok(())
//! }
//! ```
//!
//! A network is fitted by a [`Trainer`](nn::Trainer):
//!
//! ```
//! use rustytorch::prelude::*;
//!
//! fn main() -> rustytorch::Result<()> {
//!     let dev = Device::best();
//!     let net = Mlp::new(1, 1).hidden(&[16]).activation(Activation::Tanh).seed(1).build(&dev);
//!     let x = Tensor::from_vec(vec![-1.0f32, 0.0, 1.0], [3, 1], &dev).rows("points")?;
//!     let y = x.square().rows("points")?;
//!     let mut trainer = Trainer::new(
//!         net,
//!         Adam::default(),
//!         Schedule::Constant(1e-2),
//!         (x, y),
//!         |net: &Mlp, (x, y): &(Tensor, Tensor), _| Ok(Losses::from(loss::mse(&net.forward(x), y))),
//!         &dev,
//!     )?
//!     .quiet(true);
//!     let first = trainer.run(1)?.loss;
//!     assert!(trainer.run(100)?.loss < first);
//!     Ok(())
//! }
//! ```
//!
//! An unknown coefficient of a differential equation is found from data by a [`Problem`](pinn::Problem):
//!
//! ```
//! use rustytorch::prelude::*;
//!
//! fn main() -> rustytorch::Result<()> {
//!     // u'' + k^2 u = 0 on (0, 1), with k unknown and u measured at 50 points.
//!     let line = Interval::new(0.0, 1.0);
//!     let at = line.sample(50, Sampling::Random(1))?;
//!     let measured = at.evaluate(|x| (3.0 * x[0]).sin());
//!     let net = Mlp::new(1, 1).hidden(&[16, 16]).activation(Activation::Tanh).seed(1).build(&Device::best());
//!     let mut trainer = Problem::new(line)
//!         .field("u", net)
//!         .unknown("k", 1.0, 0.1..10.0)
//!         .residual("wave", 64, |f| {
//!             let (u, k) = (f.get("u"), f.unknown("k"));
//!             u.laplacian() + k.clone() * k * u
//!         })
//!         .observe("u", ("sensors", at), measured)
//!         .weight("u.observed.sensors", 100.0)
//!         .trainer(Adam::default(), Schedule::Constant(3e-3))?
//!         .quiet(true);
//!     let before = trainer.run(1)?.loss;
//!     assert!(trainer.run(200)?.loss < before); // some thousand steps bring k to 3
//!     Ok(())
//! }
//! ```
//!
//! # Features
//! `cli` (on by default) builds the command `rtx`; libraries leave it out with
//! `default-features = false`.

mod error;
pub mod prelude;

pub use rtx_mre as mre;
pub use rtx_nn as nn;
pub use rtx_pinn as pinn;
pub use rtx_tensor as tensor;

pub use error::{Error, Result};
