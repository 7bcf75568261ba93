//! CUDA backend: generated CUDA C, compiled by NVRTC for the GPU present, run through the driver API.
//!
//! The crate builds on a machine without CUDA, and a binary that holds it runs on a machine without a
//! GPU: libraries are opened at run time, and whatever is missing is an [`Error`] that says what to do.
//!
//! ```text
//! Program ──source──> CUDA C ──driver (NVRTC, cache)──> Module ──program──> launches and graphs
//! ```
//! [`driver`] is everything below the code generator: devices, memory, modules, graphs, the compiler and
//! its cache on disk.

mod array;
mod backend;
pub mod driver;
#[cfg(any(test, feature = "emulate"))]
mod emulate;
mod error;
mod plan;
mod program;
mod source;

pub use backend::{CudaBackend, compile_only};
#[cfg(feature = "emulate")]
pub use emulate::EmulatedBackend;
pub use error::{Error, Result};
