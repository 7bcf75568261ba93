//! Derive macros of RustyTorch++
