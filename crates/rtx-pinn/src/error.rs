//! Errors of physics-informed problems.

/// What can be wrong with a problem.
#[derive(Debug, thiserror::Error)]
pub enum PinnError {
    /// A field that the problem does not have.
    #[error("there is no field '{asked}'; the problem has the fields {known:?}")]
    UnknownField {
        /// Name asked for.
        asked: String,
        /// Names that exist.
        known: Vec<String>,
    },
    /// An unknown scalar that the problem does not have.
    #[error("there is no unknown '{asked}'; the problem has the unknowns {known:?}")]
    UnknownScalar {
        /// Name asked for.
        asked: String,
        /// Names that exist.
        known: Vec<String>,
    },
    /// A term (residual, condition, observation, penalty) that the problem does not have.
    #[error("there is no term '{asked}'; the problem has the terms {known:?}")]
    UnknownTerm {
        /// Name asked for.
        asked: String,
        /// Names that exist.
        known: Vec<String>,
    },
    /// Two things of one name.
    #[error("the {what} name '{name}' is used twice; give each its own")]
    DuplicateName {
        /// Field, unknown, term or point set.
        what: &'static str,
        /// The name.
        name: String,
    },
    /// A number of components that does not fit.
    #[error("{what}: expected {expected} components, found {found}")]
    Components {
        /// Where.
        what: String,
        /// Number that fits.
        expected: usize,
        /// Number found.
        found: usize,
    },
    /// A component that the field does not have.
    #[error("{what}: component {index} was asked for, there are {count} (counted from 0)")]
    ComponentIndex {
        /// Where.
        what: String,
        /// Component asked for.
        index: usize,
        /// Number of components.
        count: usize,
    },
    /// A set without points.
    #[error("the point set '{name}' is empty; {hint}")]
    NoPoints {
        /// Name of the set, or what should have made it.
        name: String,
        /// What to do.
        hint: String,
    },
    /// Coordinates of another dimension than the geometry, or of a ragged length.
    #[error("{what}: expected {expected} coordinates a point, found {found}")]
    Dimensions {
        /// Where.
        what: String,
        /// Number that fits.
        expected: usize,
        /// Number found.
        found: usize,
    },
    /// Numbers that are not finite.
    #[error(
        "{what}: {count} of {total} numbers are not finite, the first in row {row}, column {column}"
    )]
    NotFinite {
        /// Which data.
        what: String,
        /// How many.
        count: usize,
        /// Of how many.
        total: usize,
        /// Row of the first.
        row: usize,
        /// Column of the first.
        column: usize,
    },
    /// A geometry whose bounds make no sense.
    #[error(
        "axis {axis} of the geometry runs from {lower} to {upper}; it needs finite, increasing bounds"
    )]
    Bounds {
        /// Axis.
        axis: usize,
        /// Lower bound.
        lower: f64,
        /// Upper bound.
        upper: f64,
    },
    /// A face that the geometry does not have.
    #[error("the geometry has {dims} axes, a face of axis {axis} was asked for")]
    NoFace {
        /// Axis asked for.
        axis: usize,
        /// Axes of the geometry.
        dims: usize,
    },
    /// An initial condition without a time axis.
    #[error(
        "an initial condition needs a time axis; make the geometry with `.in_time(start, end)`"
    )]
    NoTime,
    /// A condition that needs normals, on points that have none.
    #[error("{what}: the points have no normals; take them from a face of the geometry")]
    NoNormals {
        /// Which condition.
        what: String,
    },
    /// An unknown whose start lies outside its range.
    #[error(
        "the unknown '{name}' starts at {initial}, which is not inside its range {lower}..{upper}"
    )]
    Range {
        /// Name.
        name: String,
        /// Start.
        initial: f64,
        /// Lower end.
        lower: f64,
        /// Upper end.
        upper: f64,
    },
    /// A loss weight or scale that is negative or not finite.
    #[error("{what} is {value}; it must be finite and {rule}")]
    Value {
        /// Which number.
        what: String,
        /// The number.
        value: f64,
        /// Rule.
        rule: &'static str,
    },
    /// Per-point data that the point set of a term does not carry.
    #[error(
        "the points of this term carry no data '{asked}'; they carry {known:?}; attach it with PointSet::with_data"
    )]
    UnknownData {
        /// Name asked for.
        asked: String,
        /// Names that exist.
        known: Vec<String>,
    },
    /// A problem that cannot be trained.
    #[error("the problem has no {what}; {hint}")]
    Incomplete {
        /// Fields or terms.
        what: &'static str,
        /// What to do.
        hint: &'static str,
    },
    /// The optimizer, the trainer or a checkpoint.
    #[error(transparent)]
    Training(Box<rtx_nn::NnError>),
    /// A mistake in a formula, or a refusal of the device.
    #[error(transparent)]
    Tensor(Box<rtx_tensor::Error>),
}

impl From<rtx_tensor::Error> for PinnError {
    fn from(e: rtx_tensor::Error) -> Self {
        PinnError::Tensor(Box::new(e))
    }
}

impl From<rtx_nn::NnError> for PinnError {
    fn from(e: rtx_nn::NnError) -> Self {
        match e {
            rtx_nn::NnError::Tensor(t) => t.into(),
            // Errors of this crate come back from inside a loss as they went in.
            rtx_nn::NnError::Loss(inner) => match inner.downcast::<PinnError>() {
                Ok(own) => *own,
                Err(other) => PinnError::Training(Box::new(rtx_nn::NnError::Loss(other))),
            },
            other => PinnError::Training(Box::new(other)),
        }
    }
}

/// Result of this crate.
pub type Result<T> = std::result::Result<T, PinnError>;

/// Checks that every number of a table is finite.
pub(crate) fn check_finite(what: &str, values: &[f64], columns: usize) -> Result<()> {
    let bad = || values.iter().enumerate().filter(|(_, v)| !v.is_finite());
    match bad().next() {
        None => Ok(()),
        Some((first, _)) => Err(PinnError::NotFinite {
            what: what.into(),
            count: bad().count(),
            total: values.len(),
            row: first / columns.max(1),
            column: first % columns.max(1),
        }),
    }
}
