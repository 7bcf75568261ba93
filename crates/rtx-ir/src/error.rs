//! What can be wrong with a graph, said with the user's line.

use crate::{DType, Shape};
use std::panic::Location;

/// Result of graph construction and transforms.
pub type Result<T> = std::result::Result<T, Error>;

/// A mistake in a graph. Errors travel in the graph and surface at the first read or compilation.
#[derive(Clone, Debug, thiserror::Error, PartialEq)]
pub enum Error {
    /// Operands whose shapes do not fit.
    #[error("{op}: shapes {shapes:?} do not fit at {location}: {hint}")]
    Shape {
        /// Operation asked for.
        op: &'static str,
        /// Shapes of the operands.
        shapes: Vec<Shape>,
        /// User's file, line and column.
        location: &'static Location<'static>,
        /// What would fit.
        hint: String,
    },
    /// Operands whose element types do not fit.
    #[error("{op}: element types {} do not fit at {location}: {hint}", list(.dtypes))]
    DType {
        /// Operation asked for.
        op: &'static str,
        /// Element types of the operands.
        dtypes: Vec<DType>,
        /// User's file, line and column.
        location: &'static Location<'static>,
        /// What would fit.
        hint: String,
    },
    /// An axis or index outside the shape.
    #[error("{op}: axis {axis} is not an axis of {shape} at {location}")]
    Axis {
        /// Operation asked for.
        op: &'static str,
        /// Axis asked for.
        axis: usize,
        /// Shape found.
        shape: Shape,
        /// User's file, line and column.
        location: &'static Location<'static>,
    },
    /// An operation that has no derivative of the kind asked for.
    #[error("{transform}: operation '{op}' made at {location} has no rule: {hint}")]
    NotDifferentiable {
        /// Operation met.
        op: &'static str,
        /// Transform asked for.
        transform: &'static str,
        /// Where the operation was made.
        location: &'static Location<'static>,
        /// What to do.
        hint: String,
    },
    /// The gradient of something that is not a scalar.
    #[error(
        "grad needs a scalar, got shape {shape} from the value made at {location}; reduce it with sum_all() or mean_all(), or use vjp with a cotangent"
    )]
    NotScalar {
        /// Shape found.
        shape: Shape,
        /// Where the value was made.
        location: &'static Location<'static>,
    },
    /// An input of a program that was not given, or given with another type.
    #[error("input {slot}: {message}")]
    Input {
        /// Number of the input.
        slot: usize,
        /// What was asked and what was found.
        message: String,
    },
    /// A graph that breaks a rule of the representation; a bug of a pass.
    #[error("graph check failed after {pass}: {message}")]
    Verify {
        /// The pass that ran last.
        pass: &'static str,
        /// The broken rule.
        message: String,
    },
    /// Two row counts for one domain.
    #[error(
        "rows of '{domain}': one array has {first} rows and another {second}; arrays tagged with one name need the same count"
    )]
    RowCount {
        /// Name of the domain.
        domain: String,
        /// First count met.
        first: usize,
        /// Count that differs.
        second: usize,
    },
    /// A domain whose count no input gives.
    #[error("rows of '{domain}': no input of the program tells their count")]
    UnknownRows {
        /// Name of the domain.
        domain: String,
    },
    /// A value that its device no longer gives.
    #[error("the value cannot be read: {message}")]
    Read {
        /// What the device says.
        message: String,
    },
    /// Any other refusal.
    #[error("{op} at {location}: {message}")]
    Other {
        /// Operation asked for.
        op: &'static str,
        /// What is wrong and what to do.
        message: String,
        /// User's file, line and column.
        location: &'static Location<'static>,
    },
}

fn list(dtypes: &[DType]) -> String {
    let names: Vec<String> = dtypes.iter().map(DType::to_string).collect();
    format!("[{}]", names.join(", "))
}
