//! NVIDIA GPUs, and what a machine without one can say of the code for them.

use super::Device;
use crate::{Error, Result};
use rtx_ir::eval::HostArray;
use rtx_ir::{Graph, Value};
use rtx_runtime::{Backend, CompileOptions, Executable};
use std::sync::{Arc, Mutex};

/// One device per GPU and process.
static GPUS: Mutex<Vec<(usize, Device)>> = Mutex::new(Vec::new());

pub(super) fn device(ordinal: usize) -> Result<Device> {
    let mut gpus = GPUS.lock().unwrap_or_else(|e| e.into_inner());
    if let Some((_, device)) = gpus.iter().find(|(k, _)| *k == ordinal) {
        return Ok(device.clone());
    }
    let backend = rtx_cuda::CudaBackend::new(ordinal).map_err(|e| Error::Device {
        asked: format!("cuda:{ordinal}"),
        reason: e.to_string(),
    })?;
    let device = Device::with_backend(Box::new(backend));
    gpus.push((ordinal, device.clone()));
    Ok(device)
}

/// Name, memory and driver of a GPU, for people.
pub(super) fn describe(ordinal: usize) -> Result<String> {
    let refuse = |e: rtx_cuda::Error| Error::Device {
        asked: format!("cuda:{ordinal}"),
        reason: e.to_string(),
    };
    let all = rtx_cuda::driver::probe().map_err(refuse)?;
    let info = all.get(ordinal).ok_or_else(|| {
        let found = all.len();
        refuse(rtx_cuda::Error::NoDevice { ordinal, found })
    })?;
    info.check().map_err(refuse)?;
    Ok(format!(
        "{}, {} GiB, CUDA {}",
        info.name,
        info.memory >> 30,
        info.driver
    ))
}

/// The CPU, with every program compiled for a GPU besides.
struct Checking {
    cpu: rtx_cpu::CpuBackend,
    arch: String,
    name: String,
}

pub(super) fn checking(arch: &str) -> Result<Device> {
    Ok(Device::with_backend(Box::new(Checking {
        cpu: rtx_cpu::CpuBackend::new()?,
        arch: arch.to_string(),
        name: format!("cuda-check:{arch}"),
    })))
}

/// The kernels for a GPU on the CPU, one device per process.
#[cfg(feature = "cuda-emulate")]
pub(super) fn emulating() -> Result<Device> {
    static ONE: std::sync::OnceLock<Device> = std::sync::OnceLock::new();
    let backend = rtx_cuda::EmulatedBackend::new().map_err(|e| Error::Device {
        asked: "cuda-emulate".to_string(),
        reason: e.to_string(),
    })?;
    Ok(ONE
        .get_or_init(|| Device::with_backend(Box::new(backend)))
        .clone())
}

impl Backend for Checking {
    fn name(&self) -> &str {
        &self.name
    }

    fn upload(&self, array: &HostArray) -> rtx_runtime::Result<Value> {
        self.cpu.upload(array)
    }

    fn compile(
        &self,
        graph: &Graph,
        options: &CompileOptions,
    ) -> rtx_runtime::Result<Arc<dyn Executable>> {
        rtx_cuda::compile_only(graph, options, &self.arch)?;
        self.cpu.compile(graph, options)
    }
}
