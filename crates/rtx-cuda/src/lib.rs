//! CUDA backend: programs as CUDA C.

#[allow(dead_code)]
mod source;
