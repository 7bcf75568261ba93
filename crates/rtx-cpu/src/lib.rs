//! CPU backend of RustyTorch++.
//!
//! Row kernels run in blocks of rows whose scratch fits the second-level cache. Blocks are gathered into
//! groups whose number depends on the number of rows alone; each group sums into its own accumulators, which
//! are added in order at the end, so results do not depend on the number of threads. Elementwise work is
//! interpreted a cache line of registers at a time with vector loops chosen for the processor present;
//! products of tiles hold their result in registers, others go to the `gemm` crates.

mod backend;
mod buffer;
mod elementwise;
mod kernel;
mod level;
mod math;
mod number;
mod product;
mod reference;
mod whole;
mod workspace;

pub use backend::CpuBackend;
pub use reference::ReferenceBackend;
