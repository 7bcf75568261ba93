//! Physics-informed networks: fields, differential operators, geometry and constraints.
//!
//! A [`Problem`] holds a domain ([`Geometry`]), fields that networks represent, unknown scalars, and terms:
//! residuals of equations, conditions, observations, penalties. Formulas are closures of [`Fields`];
//! derivatives in them are requests that the compiler gathers, so all of a program's are propagated
//! together. Coordinates are scaled to -1..1 behind the formulas, which see physical ones.
//!
//! ```
//! use rtx_nn::{Adam, Lbfgs, Mlp, Schedule};
//! use rtx_pinn::*;
//! use rtx_tensor::Device;
//!
//! # fn main() -> Result<()> {
//! // A damped wave on a square, measured at three points; modulus and loss are unknown.
//! let dev = Device::cpu();
//! let u = Mlp::new(2, 2).fourier(8, 1.0).hidden(&[16, 16]).seed(1).build(&dev); // re, im
//! let mu = Mlp::new(2, 1).hidden(&[8]).positive().seed(2).build(&dev);
//!
//! let domain = Rectangle::new([0.0, 0.0], [0.1, 0.1]); // metres
//! let points = Points::new(2, vec![0.02, 0.03, 0.05, 0.05, 0.08, 0.01])?;
//! let measured = vec![Complex64::new(1e-6, 0.0), Complex64::new(0.0, 1e-6), Complex64::new(-1e-6, 0.0)];
//! let scaling = Scaling::of_complex(&points, 1, &measured)?;
//! let pool = PointSet::new("interior", domain.sample(500, Sampling::Halton)?).batch(64);
//! let density_omega2 = 1000.0 * (2.0 * std::f64::consts::PI * 60.0_f64).powi(2);
//!
//! let mut trainer = Problem::new(domain)
//!     .field("u", u)
//!     .field("mu", mu)
//!     .scale_by("u", &scaling) // the network is of order one, the field is in metres
//!     .output_scaling("mu", &[3000.0], &[0.0]) // pascals
//!     .unknown("loss", 0.1, 0.01..1.0)
//!     .residual("motion", &pool, move |f| {
//!         let u = f.complex("u");
//!         let one = Complex64::new(1.0, 0.0);
//!         let modulus = f.get("mu") * one + f.get("mu") * f.unknown("loss") * Complex64::i();
//!         (u.div_of_gradient(&modulus) / density_omega2 + &u) / 1e-6
//!     })
//!     .penalty("smooth", &pool, |f| (f.get("mu").grad().norm2() + 1e-6).sqrt() * 1e-4)
//!     .observe("u", ("pixels", points.clone()), measured)
//!     .dirichlet("mu", (Edge::Left, 10), 3000.0)
//!     .neumann("mu", (Edge::Top, 10), 0.0)
//!     .weight("mu.dirichlet.lower0", 1e-6)
//!     .weight("smooth", 1e-3)
//!     .wavenumber("u", 300.0)
//!     .trainer(Adam::default(), Schedule::Constant(1e-3))?
//!     .on_warning(|text| eprintln!("{text}"))
//!     .on_read(|p| assert!(p.terms.iter().any(|(name, _)| name == "loss")))
//!     .quiet(true);
//! trainer.run(20)?;
//! trainer.set_weight("motion", 10.0)?; // no compilation
//! trainer.run(20)?;
//! trainer.then(&Lbfgs::f64().max_iter(3))?;
//! let field: Vec<Complex64> = trainer.predict("u", &points)?.complex();
//! assert_eq!(field.len(), 3);
//! assert!((0.01..1.0).contains(&trainer.unknown("loss")?));
//! # Ok(())
//! # }
//! ```
//!
//! Hard conditions are output transforms ([`Problem::hard`]); a field over some of the coordinates is
//! [`Problem::field_over`]; data at points that a formula needs come with [`PointSet::with_data`].

mod bandwidth;
mod complex;
mod condition;
mod error;
mod field;
mod fields;
mod frame;
mod geometry;
mod model;
mod network;
mod observe;
mod operators;
mod points;
mod pointset;
mod predict;
mod problem;
mod sampling;
mod scaling;
mod term;
mod trainer;
mod vector;

pub use bandwidth::required_bandwidth;
pub use complex::{ComplexField, ComplexVector};
pub use error::{PinnError, Result};
pub use field::Field;
pub use fields::Fields;
pub use frame::Frame;
pub use geometry::{Cuboid, Edge, Face, Geometry, Interval, Mask, Rectangle};
pub use model::Model;
pub use network::Network;
pub use num_complex::Complex64;
pub use observe::Observations;
pub use operators::{ComplexOperand, Operand};
pub use points::Points;
pub use pointset::{Place, PointSet};
pub use predict::Prediction;
pub use problem::Problem;
pub use sampling::Sampling;
pub use scaling::Scaling;
pub use term::{IntoTarget, Residual, Target};
pub use trainer::PinnTrainer;
pub use vector::VectorField;
