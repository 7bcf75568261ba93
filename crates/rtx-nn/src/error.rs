//! Errors of the neural-network library.

use rtx_tensor::io::{FileError, SystemError};
use std::path::{Path, PathBuf};

/// What can go wrong while a network is built, trained, stored or loaded.
#[derive(Debug, thiserror::Error)]
pub enum NnError {
    /// A mistake in a graph, or the device's refusal.
    #[error(transparent)]
    Tensor(#[from] rtx_tensor::Error),
    /// The loss function of a trainer failed for a reason of its own.
    #[error("the loss could not be written down: {0}")]
    Loss(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// A loss or gradient that is not a finite number. The trainer holds the last good state again.
    #[error(
        "the loss or its gradient became NaN or infinite at step {step} (loss {loss}); the state of step \
         {last_good} is restored{saved}; lower the learning rate, or look for a division by zero or the \
         root of a negative number in the loss",
        saved = checkpoint.as_ref().map(|p| format!(" and stored in {}", p.display())).unwrap_or_default()
    )]
    NotFinite {
        /// First step (counted from 0) whose loss or gradient was not finite.
        step: u64,
        /// The last loss read.
        loss: f64,
        /// Steps done in the state that was restored.
        last_good: u64,
        /// Checkpoint that holds that state, if one was asked for.
        checkpoint: Option<PathBuf>,
    },
    /// An optimizer whose answer does not fit the parameters.
    #[error("optimizer: {0}")]
    Optimizer(String),
    /// A file could not be read or written.
    #[error(transparent)]
    Io(#[from] SystemError),
    /// A file that is no safetensors file, is cut short, or was written by a newer version.
    #[error("{path} is not a usable checkpoint: {reason}", path = path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// What was expected and what was found.
        reason: String,
    },
    /// A file whose tensors are not those of the structure they are loaded into.
    #[error("{path} does not fit: tensor '{name}': {reason}", path = path.display())]
    Mismatch {
        /// The file.
        path: PathBuf,
        /// Path of the tensor within the structure.
        name: String,
        /// What was asked and what was found.
        reason: String,
    },
}

impl NnError {
    pub(crate) fn format(path: &Path, reason: impl Into<String>) -> Self {
        NnError::Format {
            path: path.to_path_buf(),
            reason: reason.into(),
        }
    }

    /// Wraps an error of the code that writes a loss down.
    pub fn loss(e: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        NnError::Loss(e.into())
    }
}

impl From<FileError> for NnError {
    fn from(e: FileError) -> Self {
        match e {
            FileError::System(e) => NnError::Io(e),
            FileError::Malformed {
                path,
                offset,
                problem,
                ..
            } => NnError::format(
                &path,
                format!(
                    "it is no safetensors file, or it is cut short: at byte {offset}: {problem}"
                ),
            ),
            other => NnError::format(other.path(), other.to_string()),
        }
    }
}

/// Result of the neural-network library.
pub type Result<T> = std::result::Result<T, NnError>;
