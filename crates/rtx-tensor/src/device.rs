//! Devices over the backends that are compiled in.

use crate::{Error, Result};
use rtx_runtime::{Backend, ProgramCache};
use std::fmt;
use std::sync::{Arc, OnceLock};

/// Where tensors live and programs run.
#[derive(Clone)]
pub struct Device(Arc<Inner>);

struct Inner {
    backend: Box<dyn Backend>,
    cache: ProgramCache,
}

/// Programs kept per device.
const CACHE_CAPACITY: usize = 256;

impl Device {
    /// The CPU (one instance per process). `RTX_EAGER=1` runs op by op with the reference rules.
    pub fn cpu() -> Device {
        static CPU: OnceLock<Device> = OnceLock::new();
        CPU.get_or_init(|| {
            let eager = std::env::var("RTX_EAGER").is_ok_and(|v| v == "1");
            let backend: Box<dyn Backend> = match rtx_cpu::CpuBackend::new() {
                Ok(cpu) if !eager => Box::new(cpu),
                _ => Box::new(rtx_cpu::ReferenceBackend),
            };
            Device::with_backend(backend)
        })
        .clone()
    }

    /// The slow reference evaluation, for comparisons.
    pub fn reference() -> Device {
        static REFERENCE: OnceLock<Device> = OnceLock::new();
        REFERENCE
            .get_or_init(|| Device::with_backend(Box::new(rtx_cpu::ReferenceBackend)))
            .clone()
    }

    fn with_backend(backend: Box<dyn Backend>) -> Device {
        Device(Arc::new(Inner {
            backend,
            cache: ProgramCache::new(CACHE_CAPACITY),
        }))
    }

    /// The best device of this machine: a GPU if there is one that serves, else the CPU. The environment variable
    /// `RTX_DEVICE` overrides.
    pub fn best() -> Device {
        let asked = std::env::var("RTX_DEVICE");
        match asked {
            Ok(name) => Device::named(&name).unwrap_or_else(|_| Device::cpu()),
            Err(_) => Device::cuda(0).unwrap_or_else(|_| Device::cpu()),
        }
    }

    /// The NVIDIA GPU of that number (one instance each per process).
    ///
    /// # Errors
    /// Why there is none: a build without the feature `cuda`, no driver, a driver or a GPU that is too old.
    #[cfg(feature = "cuda")]
    pub fn cuda(ordinal: usize) -> Result<Device> {
        static GPUS: std::sync::Mutex<Vec<(usize, Device)>> = std::sync::Mutex::new(Vec::new());
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

    /// The NVIDIA GPU of that number.
    ///
    /// # Errors
    /// This build has no GPUs.
    #[cfg(not(feature = "cuda"))]
    pub fn cuda(ordinal: usize) -> Result<Device> {
        Err(Error::Device {
            asked: format!("cuda:{ordinal}"),
            reason: "this build is without NVIDIA GPUs; build with `--features cuda`".to_string(),
        })
    }

    /// A device by name: `cpu`, `cuda` (the first GPU), `cuda:1`, or `reference`.
    ///
    /// `cuda-check:sm_90a` runs on the CPU and compiles every program for that GPU besides, for machines without one.
    ///
    /// # Errors
    /// A name that this build does not have, or the reason why the device does not serve.
    pub fn named(name: &str) -> Result<Device> {
        match name.split_once(':').unwrap_or((name, "")) {
            ("cpu", "") => Ok(Device::cpu()),
            ("reference", "") => Ok(Device::reference()),
            ("cuda", "") => Device::cuda(0),
            ("cuda", n) if n.parse::<usize>().is_ok() => Device::cuda(n.parse().unwrap_or(0)),
            #[cfg(feature = "cuda")]
            ("cuda-check", arch) if !arch.is_empty() => {
                checking::device(arch).map_err(|e| Error::Device {
                    asked: name.to_string(),
                    reason: e.to_string(),
                })
            }
            _ => Err(Error::Device {
                asked: name.to_string(),
                reason:
                    "the devices are 'cpu', 'cuda' and 'cuda:<number>' (with the feature `cuda`), \
                         and 'reference'"
                        .to_string(),
            }),
        }
    }

    /// Name of the device.
    pub fn name(&self) -> &str {
        self.0.backend.name()
    }

    pub(crate) fn backend(&self) -> &dyn Backend {
        &*self.0.backend
    }

    pub(crate) fn cache(&self) -> &ProgramCache {
        &self.0.cache
    }
}

impl PartialEq for Device {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Device({})", self.name())
    }
}

/// The CPU, with every program compiled for a GPU besides: what a machine without a GPU can say of the generated code.
#[cfg(feature = "cuda")]
mod checking {
    use super::Device;
    use rtx_ir::eval::HostArray;
    use rtx_ir::{Graph, Value};
    use rtx_runtime::{Backend, Executable, Result};
    use std::sync::Arc;

    struct Checking {
        cpu: rtx_cpu::CpuBackend,
        arch: String,
        name: String,
    }

    pub(super) fn device(arch: &str) -> Result<Device> {
        Ok(Device::with_backend(Box::new(Checking {
            cpu: rtx_cpu::CpuBackend::new()?,
            arch: arch.to_string(),
            name: format!("cuda-check:{arch}"),
        })))
    }

    impl Backend for Checking {
        fn name(&self) -> &str {
            &self.name
        }

        fn upload(&self, array: &HostArray) -> Result<Value> {
            self.cpu.upload(array)
        }

        fn compile(&self, graph: &Graph) -> Result<Arc<dyn Executable>> {
            rtx_cuda::compile_only(graph, &self.arch)?;
            self.cpu.compile(graph)
        }
    }
}
