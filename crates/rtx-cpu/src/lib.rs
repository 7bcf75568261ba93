//! CPU backend of RustyTorch++.

mod reference;

pub use reference::ReferenceBackend;
