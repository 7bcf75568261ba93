//! Errors of the tensor library.

use crate::io::{FileError, SystemError};
use std::sync::Arc;

/// What can be wrong with a tensor program.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// A mistake in the graph: shapes, types, axes, a missing derivative rule.
    #[error(transparent)]
    Graph(#[from] rtx_ir::Error),
    /// A refusal of the device or of its program.
    #[error(transparent)]
    Runtime(rtx_runtime::Error),
    /// A device that this build or machine does not have.
    #[error("device '{asked}' is not available: {reason}")]
    Device {
        /// Name asked for.
        asked: String,
        /// Why, and what is there.
        reason: String,
    },
    /// A read as another element type.
    #[error("asked for elements of type {asked}, the tensor holds {found}; convert it with cast()")]
    ElementType {
        /// Type asked for.
        asked: rtx_ir::DType,
        /// Type found.
        found: rtx_ir::DType,
    },
    /// A tree of tensors that does not have the leaves of the one a program was compiled for.
    #[error("{what}: {message}")]
    Tree {
        /// State or inputs.
        what: &'static str,
        /// What was asked and what was found.
        message: String,
    },
    /// A file that could not be read or written.
    #[error(transparent)]
    File(Arc<FileError>),
}

impl From<FileError> for Error {
    fn from(e: FileError) -> Self {
        Error::File(Arc::new(e))
    }
}

impl From<SystemError> for Error {
    fn from(e: SystemError) -> Self {
        FileError::from(e).into()
    }
}

impl From<rtx_runtime::Error> for Error {
    fn from(e: rtx_runtime::Error) -> Self {
        match e {
            rtx_runtime::Error::Graph(g) => Error::Graph(g),
            other => Error::Runtime(other),
        }
    }
}

/// Result of the tensor library.
pub type Result<T> = std::result::Result<T, Error>;
