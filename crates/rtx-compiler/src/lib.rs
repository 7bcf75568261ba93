//! From a recorded graph to a [`Program`]: simplify, merge, cluster into phases, fuse, plan memory.
//!
//! ```text
//! Graph ──simplify──> Graph ──merge_sums──> Graph ──cluster──> phases ──lower──> Program
//!        fold, CSE,          sums of products       levels of       row kernels: dot groups,
//!        dead code           become one product     row domains     fused elementwise blocks
//! ```
//! A *row kernel* works on blocks of rows of one domain and carries them through everything that does not
//! mix rows, on scratch that fits the cache; it ends in rows or in sums over rows. The number of rows is an
//! argument of the run. A *whole kernel* is one operation on whole arrays.

mod binding;
mod cluster;
mod lower;
mod merge;
mod precision;
mod print;
mod program;
mod scratch;
mod simplify;

pub use binding::{Binding, RowCounts};
pub use precision::{CompileOptions, Precision, UnknownPrecision};
pub use program::{
    Accumulator, Block, BufferId, BufferInfo, DotGroup, Elementwise, Kernel, Operand, Place,
    Primitive, Program, Rearrange, RowKernel, Source, Step, SumGroup, Tile, TileId, WholeKernel,
};

use rtx_ir::{Graph, Result};

/// Compiles a graph into a program.
///
/// # Errors
/// A pass that broke a rule of the representation (checked in debug builds).
pub fn compile(graph: &Graph, options: &CompileOptions) -> Result<Program> {
    dump("graph.txt", || graph.to_string());
    let simple = simplify::simplify(graph);
    if cfg!(debug_assertions) {
        simple.verify("simplify")?;
    }
    let merged = merge::merge_sums(simple);
    let clusters = cluster::cluster(&merged);
    let mut program = lower::lower(&merged, &clusters);
    program.precision = options.precision;
    program.carry = graph.carry.clone();
    dump("program.txt", || program.to_string());
    Ok(program)
}

/// Writes a stage of the compilation to the folder named by `RTX_DUMP`, if it is set, as `NUMBER-NAME`.
pub fn dump(name: &str, text: impl FnOnce() -> String) {
    use std::sync::atomic::{AtomicUsize, Ordering};
    static NUMBER: AtomicUsize = AtomicUsize::new(0);
    if let Some(folder) = std::env::var_os("RTX_DUMP") {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder = std::path::Path::new(&folder);
        let name = name.replace(['/', '\\'], "_");
        let _ = std::fs::create_dir_all(folder);
        let _ = std::fs::write(folder.join(format!("{number:04}-{name}")), text());
    }
}
