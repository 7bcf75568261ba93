//! What every backend provides, and the cache of compiled programs.
//!
//! The runtime knows buffers and programs, but neither the meaning of an operation nor any device.

mod cache;
mod turns;

pub use cache::ProgramCache;
pub use rtx_compiler::{CompileOptions, Precision, UnknownPrecision};
pub use turns::Turns;

use rtx_compiler::{Kernel, Program, RowCounts};
use rtx_ir::eval::HostArray;
use rtx_ir::{Dim, Graph, Value};
use std::sync::Arc;

/// What can go wrong when a program is compiled or run.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// A mistake in the graph.
    #[error(transparent)]
    Graph(#[from] rtx_ir::Error),
    /// The device refused.
    #[error("{device}: {message}")]
    Device {
        /// Name of the device.
        device: String,
        /// What it refused, and what to do.
        message: String,
    },
}

/// Result of the runtime.
pub type Result<T> = std::result::Result<T, Error>;

/// What a compiled program does, in numbers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProgramStats {
    /// Kernels started per run.
    pub kernels: usize,
    /// Buffers of the memory plan.
    pub buffers: usize,
    /// Bytes of the memory plan, without inputs (per row where rows are run-time).
    pub bytes: usize,
    /// Floating-point operations that do not depend on run-time rows.
    pub flops: f64,
    /// Floating-point operations per row of each domain.
    pub flops_per_row: Vec<(String, f64)>,
}

impl ProgramStats {
    /// Counts what a program does.
    pub fn of(program: &Program) -> Self {
        let mut stats = ProgramStats {
            kernels: program.kernels.len(),
            buffers: program.buffers.len(),
            ..Default::default()
        };
        stats.bytes = program.buffers[program.inputs..]
            .iter()
            .map(|b| b.shape.row_elements() * b.dtype.size())
            .sum();
        for k in &program.kernels {
            let Kernel::Rows(r) = k else { continue };
            let Some(Dim::Rows(d)) = r.domain else {
                stats.flops += RowCounts::default().rows(r.domain) as f64 * r.flops_per_row;
                continue;
            };
            match stats.flops_per_row.iter_mut().find(|(n, _)| *n == d.name()) {
                Some((_, f)) => *f += r.flops_per_row,
                None => stats.flops_per_row.push((d.name(), r.flops_per_row)),
            }
        }
        stats
    }
}

/// A program compiled for one device. One instance may be run by several threads.
pub trait Executable: Send + Sync {
    /// Runs once. `inputs` are those of the graph it was compiled from, in order.
    ///
    /// # Errors
    /// An input of another type or shape, or the device's refusal.
    fn run(&self, inputs: &[Value]) -> Result<Vec<Value>>;

    /// Runs `steps` times; before each next run, the inputs that [`Graph::carry`] names become the outputs that it
    /// names. These inputs are donated: their arrays are written over if nobody else holds them ([`Turns`]).
    ///
    /// # Errors
    /// As [`run`](Self::run).
    fn run_steps(&self, inputs: Vec<Value>, steps: usize) -> Result<Vec<Value>>;

    /// A readable listing: kernels, buffers, bytes, flops.
    fn listing(&self) -> String;

    /// The listing in numbers.
    fn stats(&self) -> ProgramStats;
}

/// A device that compiles and runs programs.
pub trait Backend: Send + Sync {
    /// Name for people, such as "cpu".
    fn name(&self) -> &str;

    /// Copies an array to the device.
    ///
    /// # Errors
    /// The device's refusal (out of memory).
    fn upload(&self, array: &HostArray) -> Result<Value>;

    /// Copies several arrays, such as the scalars of a read. A device on which each copy costs makes one of them.
    ///
    /// # Errors
    /// As [`upload`](Self::upload).
    fn upload_all(&self, arrays: &[HostArray]) -> Result<Vec<Value>> {
        arrays.iter().map(|a| self.upload(a)).collect()
    }

    /// The tier in which products are computed here when `asked` is allowed: never less exact than that.
    fn effective_precision(&self, asked: Precision) -> Precision {
        let _ = asked;
        Precision::F32
    }

    /// Compiles a graph. The options' precision is a permission: a backend may be more exact, never less.
    ///
    /// # Errors
    /// A mistake in the graph, or an operation the backend has no code for.
    fn compile(&self, graph: &Graph, options: &CompileOptions) -> Result<Arc<dyn Executable>>;
}
