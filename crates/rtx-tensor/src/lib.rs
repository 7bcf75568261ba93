//! Lazy tensors with derivatives of any order
