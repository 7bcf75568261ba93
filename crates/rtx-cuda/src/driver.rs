//! Everything below the code generator: devices, memory, modules, graphs, the compiler and its cache.
//!
//! ```text
//! probe ─> Context ─> Memory                      source ─> Cache ─> cubin
//!             ├─────> Module ─> Function <────────────────────────────┘
//!             └─────> Graph (a captured sequence of launches)
//! ```
//! cudarc opens the driver library and declares its types. The functions are resolved here, once, because
//! cudarc's own entry points panic when a symbol is missing and hold the driver's result in a Rust `enum`,
//! which a code of a newer driver would make undefined behaviour.

mod api;
mod cache;
mod compile;
mod context;
mod cubin;
mod graph;
mod locate;
mod memory;
mod module;
mod nvrtc;
mod probe;
mod staging;

pub use cache::{Cache, Cached, Key, Origin};
pub use compile::{arch_of, compile};
pub use context::{Bound, Context, Counts};
pub use graph::Graph;
pub use memory::{Memory, Place};
pub use module::{Function, Module, Usage};
pub use nvrtc::{Nvrtc, nvrtc};
pub use probe::{DeviceInfo, probe};

/// A version of CUDA or of one of its libraries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version {
    /// Major number.
    pub major: u32,
    /// Minor number.
    pub minor: u32,
}

impl std::fmt::Display for Version {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}
