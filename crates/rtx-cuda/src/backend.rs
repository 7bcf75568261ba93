//! The backend: arrays and programs on one GPU.

use crate::Result;
use crate::array::CudaArray;
use crate::driver::{Cache, Context, DeviceInfo, arch_of};
use crate::program::{CudaProgram, OPTIONS};
use crate::source;
use rtx_ir::eval::HostArray;
use rtx_ir::{Graph, Value};
use rtx_runtime::{Backend, CompileOptions, Executable};
use std::sync::Arc;

/// One GPU.
pub struct CudaBackend {
    context: Arc<Context>,
    cache: Cache,
    arch: String,
}

impl CudaBackend {
    /// The GPU of that number.
    ///
    /// # Errors
    /// No driver, a driver or a GPU that is too old, or no GPU of that number.
    pub fn new(ordinal: usize) -> Result<Self> {
        let context = Context::new(ordinal)?;
        let arch = arch_of(context.info().capability);
        Ok(CudaBackend {
            context,
            cache: Cache::user(),
            arch,
        })
    }

    /// What the GPU is.
    pub fn info(&self) -> &DeviceInfo {
        self.context.info()
    }

    /// Its context, for tests that count allocations and synchronisations.
    pub fn context(&self) -> &Arc<Context> {
        &self.context
    }
}

impl Backend for CudaBackend {
    fn name(&self) -> &str {
        "cuda"
    }

    fn upload(&self, array: &HostArray) -> rtx_runtime::Result<Value> {
        Ok(Arc::new(CudaArray::from_host(&self.context, array)?))
    }

    fn compile(
        &self,
        graph: &Graph,
        options: &CompileOptions,
    ) -> rtx_runtime::Result<Arc<dyn Executable>> {
        let program = rtx_compiler::compile(graph, options)?;
        Ok(Arc::new(CudaProgram::new(
            program,
            &self.context,
            &self.cache,
            &self.arch,
        )?))
    }
}

/// Writes and compiles the kernels of a graph for an architecture such as `sm_90a`, without a GPU.
///
/// # Errors
/// An operation without code, or NVRTC's refusal.
pub fn compile_only(graph: &Graph, options: &CompileOptions, arch: &str) -> Result<()> {
    let program = rtx_compiler::compile(graph, options)?;
    let translation = source::translate(&program)?;
    Cache::user().compile(&translation.code, "program", arch, OPTIONS)?;
    Ok(())
}
