//! Physics-informed networks: fields, differential operators, geometry, constraints.

mod complex;
mod error;
mod field;
mod frame;
mod geometry;
mod operators;
mod points;
mod sampling;
mod vector;

pub use complex::{ComplexField, ComplexVector};
pub use error::{PinnError, Result};
pub use field::Field;
pub use frame::Frame;
pub use geometry::{Cuboid, Edge, Face, Geometry, Interval, Mask, Rectangle};
pub use num_complex::Complex64;
pub use operators::{ComplexOperand, Operand};
pub use points::Points;
pub use sampling::Sampling;
pub use vector::VectorField;
