//! CUDA backend: generated CUDA C, compiled by NVRTC for the GPU present, run through the driver API.
//!
//! The crate builds on a machine without CUDA, and a binary that holds it runs on a machine without a
//! GPU: libraries are opened at run time, and whatever is missing is an [`Error`] that says what to do.
//! [`driver`] is everything below the code generator: devices, memory, modules, graphs, the compiler and
//! its cache on disk.

pub mod driver;
mod error;

pub use error::{Error, Result};
