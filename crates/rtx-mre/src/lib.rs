//! x
pub mod axes;
pub mod error;
pub mod harmonic;
pub mod holdout;
pub mod inversion;
pub mod io;
pub mod mask;
pub mod metrics;
pub mod wave;
pub use error::{MreError, Result};
pub use inversion::Modulus;
pub use wave::{LoadOptions, WaveField};
