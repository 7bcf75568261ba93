//! The error type of the crate.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use rtx_tensor::io::SystemError;

use crate::simulate::SimulateError;

/// Shorthand for results of this crate.
pub type Result<T, E = MreError> = std::result::Result<T, E>;

/// Everything that can go wrong between a measurement and its maps.
///
/// Each message says what was asked, what was found, where, and what to do.
/// [`is_input_error`](Self::is_input_error) tells errors that the user can cure by changing files
/// or flags (exit code 2 of the command) from the rest.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MreError {
    /// The operating system refused a file operation.
    #[error("cannot {action} `{}`: {source}", path.display())]
    Io {
        /// What was tried: "read", "create", ...
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// A file is damaged: its bytes do not follow its format.
    #[error("`{}` is not a valid {format} file: at byte {offset}: {problem}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// The format that its first bytes announce.
        format: &'static str,
        /// Where, in bytes from the start of the file.
        offset: u64,
        /// What was expected and what was found there.
        problem: String,
    },
    /// The training of a network failed.
    #[error("training: {0}")]
    Training(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// A file or variable is sound but of a kind that is not read.
    #[error("cannot read {what} of `{}`; {hint}", path.display())]
    Unsupported {
        /// The file.
        path: PathBuf,
        /// What was found.
        what: String,
        /// What to do.
        hint: String,
    },
    /// A file holds several arrays and none was named.
    #[error("`{}` holds several arrays; name one with --var: {candidates}", path.display())]
    VariableNotNamed {
        /// The file.
        path: PathBuf,
        /// The arrays with their shapes.
        candidates: String,
    },
    /// The named variable is not in the file.
    #[error("`{}` has no variable `{asked}`; it holds {candidates}", path.display())]
    NoSuchVariable {
        /// The file.
        path: PathBuf,
        /// The name that was asked for.
        asked: String,
        /// The arrays with their shapes.
        candidates: String,
    },
    /// No axis names were given.
    #[error(
        "array `{variable}` has shape {shape}, and nothing in the file says what its axes mean; \
         give --axes with {rank} names in the array's order, from x (or col), y (or row), slice \
         (or z), phase, dir, freq (and _ for an axis of length 1), for example --axes {example}. \
         The order differs between sites, and a wrong guess gives a wrong map without a warning"
    )]
    AxesMissing {
        /// The array.
        variable: String,
        /// Its shape.
        shape: Shape,
        /// Its rank.
        rank: usize,
        /// An example with the right number of names.
        example: String,
    },
    /// The number of axis names is not the rank of the array.
    #[error(
        "--axes {axes} names {named} axes, but array `{variable}` has {rank}: its shape is \
         {shape}; give one name per axis"
    )]
    AxesCount {
        /// The names that were given.
        axes: String,
        /// How many they are.
        named: usize,
        /// The array.
        variable: String,
        /// Its rank.
        rank: usize,
        /// Its shape.
        shape: Shape,
    },
    /// A list given by the user (axes, frequencies, components, ...) cannot be understood.
    #[error("{option} {given}: {problem}")]
    BadOption {
        /// The option, as written on the command line.
        option: &'static str,
        /// What was given.
        given: String,
        /// What is wrong and what would be right.
        problem: String,
    },
    /// Something that the inversion needs is neither in the file nor in the options.
    #[error("{what} of `{}` is not known: {why}; give {option}", path.display())]
    Missing {
        /// The quantity.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// Why it is needed.
        why: String,
        /// The option that gives it.
        option: &'static str,
    },
    /// The data cannot be used.
    #[error("`{variable}` of `{}`: {problem}", path.display())]
    BadData {
        /// The file.
        path: PathBuf,
        /// The array.
        variable: String,
        /// What was found, where, and what to do.
        problem: String,
    },
    /// The samples look like a wrapped phase that cannot be unwrapped here.
    #[error("`{variable}` of `{}` looks like a wrapped phase: {problem}", path.display())]
    WrappedPhase {
        /// The file.
        path: PathBuf,
        /// The array.
        variable: String,
        /// What was found and what to do.
        problem: String,
    },
    /// The recovered modulus is not physical.
    #[error(
        "the median loss modulus is {loss_kpa:.3} kPa (at {freq_hz} Hz), but a passive material \
         cannot have one below zero; the likely cause is data conjugated against the time \
         convention exp({sign}i omega t): give --time-sign {other}"
    )]
    NegativeLoss {
        /// The median of G'' over the mask, kPa.
        loss_kpa: f64,
        /// Frequency at which it is lowest, Hz.
        freq_hz: f64,
        /// The sign in use.
        sign: char,
        /// The sign to try.
        other: char,
    },
    /// A method that gives no pixel a value.
    #[error("{method} gives no pixel a modulus: {problem}")]
    NoModulus {
        /// The method.
        method: String,
        /// Why, and what to do.
        problem: String,
    },
    /// A checkpoint of another training than the one asked for.
    #[error(
        "`{}` belongs to another training: {differences}; give the data and flags of the command that \
         wrote it, or leave --resume out to start anew", path.display()
    )]
    OtherTraining {
        /// The checkpoint.
        path: PathBuf,
        /// What differs, there and here.
        differences: String,
    },
    /// Arrays that must agree do not; a mistake of the calling code.
    #[error("{what}: expected shape {expected}, found {found}")]
    ShapeMismatch {
        /// Which arrays.
        what: &'static str,
        /// The shape that was expected.
        expected: Shape,
        /// The shape that was found.
        found: Shape,
    },
    /// A phantom could not be described, computed or written.
    #[error(transparent)]
    Simulate(#[from] SimulateError),
    /// A figure could not be drawn or encoded.
    #[error("cannot draw the figure: {0}")]
    Figure(String),
}

impl MreError {
    /// Whether other files or flags would cure the error: exit code 2 of the command.
    pub fn is_input_error(&self) -> bool {
        let curable = |error: &io::Error| {
            !matches!(
                error.kind(),
                io::ErrorKind::StorageFull
                    | io::ErrorKind::QuotaExceeded
                    | io::ErrorKind::OutOfMemory
                    | io::ErrorKind::Interrupted
            )
        };
        match self {
            Self::Io { source, .. } | Self::Simulate(SimulateError::Io { source, .. }) => {
                curable(source)
            }
            Self::Simulate(SimulateError::Unsolvable { .. }) => false,
            Self::ShapeMismatch { .. } | Self::Figure(_) => false,
            _ => true,
        }
    }

    pub(crate) fn io(action: &'static str, path: &Path, source: io::Error) -> Self {
        Self::Io {
            action,
            path: path.to_owned(),
            source,
        }
    }

    pub(crate) fn option(
        option: &'static str,
        given: impl Into<String>,
        problem: impl Into<String>,
    ) -> Self {
        Self::BadOption {
            option,
            given: given.into(),
            problem: problem.into(),
        }
    }

    pub(crate) fn shape(what: &'static str, expected: &[usize], found: &[usize]) -> Self {
        Self::ShapeMismatch {
            what,
            expected: Shape::new(expected),
            found: Shape::new(found),
        }
    }
}

impl From<SystemError> for MreError {
    fn from(e: SystemError) -> Self {
        Self::io(e.action, &e.path, e.source)
    }
}

/// A shape, written as `[255, 255, 1]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shape(Vec<usize>);

impl Shape {
    /// Copies a slice of extents.
    pub fn new(extents: &[usize]) -> Self {
        Self(extents.to_vec())
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.0)
    }
}
