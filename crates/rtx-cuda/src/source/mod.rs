//! Programs as CUDA C.

pub(crate) mod scalar;
pub(crate) mod whole;

/// Device functions that every generated kernel may use.
pub(crate) const PRELUDE: &str = include_str!("prelude.cu");
