//! Why the command stops, and the exit code that says so to scripts.

use std::error::Error;
use std::fmt;
use std::process::ExitCode;

use rustytorch::mre::MreError;
use rustytorch::mre::simulate::SimulateError;
use rustytorch::nn::NnError;
use rustytorch::pinn::PinnError;

/// A reason to stop.
#[derive(Debug)]
pub enum Failure {
    /// Other files or flags would cure it.
    Input(String),
    /// Anything else.
    Other(String),
    /// The user pressed Ctrl-C; the text says what was kept.
    Interrupted(String),
}

impl Failure {
    /// Bad input.
    pub fn input(message: impl Into<String>) -> Self {
        Self::Input(message.into())
    }

    /// 2 for bad input, 130 after Ctrl-C, else 1.
    pub fn exit_code(&self) -> ExitCode {
        ExitCode::from(match self {
            Self::Input(_) => 2,
            Self::Other(_) => 1,
            Self::Interrupted(_) => 130,
        })
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Input(message) | Self::Other(message) => write!(f, "error: {message}"),
            Self::Interrupted(message) => write!(f, "interrupted: {message}"),
        }
    }
}

impl From<MreError> for Failure {
    fn from(error: MreError) -> Self {
        let curable = match &error {
            MreError::Training(source) => bad_checkpoint(&**source),
            other => other.is_input_error(),
        };
        if curable {
            Self::Input(error.to_string())
        } else {
            Self::Other(error.to_string())
        }
    }
}

/// Whether a training failed because of the checkpoint it was given, and not by itself.
fn bad_checkpoint(error: &(dyn Error + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(NnError::Format { .. } | NnError::Mismatch { .. }) = error.downcast_ref() {
            return true;
        }
        if let Some(PinnError::Training(inner)) = error.downcast_ref() {
            next = Some(&**inner);
            continue;
        }
        next = error.source();
    }
    false
}

impl From<SimulateError> for Failure {
    fn from(error: SimulateError) -> Self {
        MreError::from(error).into()
    }
}

impl From<rustytorch::tensor::Error> for Failure {
    fn from(error: rustytorch::tensor::Error) -> Self {
        match error {
            rustytorch::tensor::Error::Device { .. } => Self::Input(error.to_string()),
            other => Self::Other(other.to_string()),
        }
    }
}
