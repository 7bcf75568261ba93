//! The backend: arrays and programs on one GPU.

use crate::Result;
use crate::array::{CudaArray, encode};
use crate::driver::{Cache, Context, DeviceInfo, arch_of};
use crate::program::{CudaProgram, OPTIONS};
use crate::source;
use rtx_ir::eval::HostArray;
use rtx_ir::{Graph, Value};
use rtx_runtime::{Backend, CompileOptions, Executable};
use std::sync::Arc;

/// Alignment of every array: kernels move 16 bytes at a time, the driver's own memory starts at 256.
const ALIGN: usize = 256;

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

    // Small arrays share one allocation and one copy.
    fn upload_all(&self, arrays: &[HostArray]) -> rtx_runtime::Result<Vec<Value>> {
        let small = |a: &HostArray| a.data.len() * a.dtype.size() <= ALIGN;
        if arrays.len() < 2 || !arrays.iter().all(small) {
            return arrays.iter().map(|a| self.upload(a)).collect();
        }
        let mut bytes = vec![0; arrays.len() * ALIGN];
        for (slot, a) in bytes.chunks_exact_mut(ALIGN).zip(arrays) {
            let data = encode(a.dtype, &a.data);
            slot[..data.len()].copy_from_slice(&data);
        }
        let memory = self.context.alloc(bytes.len())?;
        self.context.upload(&memory, &bytes)?;
        let values = memory.parts(ALIGN).into_iter().zip(arrays);
        let values = values.map(|(memory, a)| CudaArray {
            dtype: a.dtype,
            dims: a.dims.clone(),
            memory,
        });
        Ok(values.map(|a| Arc::new(a) as Value).collect())
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
