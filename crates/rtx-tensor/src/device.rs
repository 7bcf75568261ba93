//! Devices over the backends that are compiled in.

#[cfg(feature = "cuda")]
mod gpu;

use crate::{Error, Result};
use rtx_ir::eval::HostArray;
use rtx_ir::{Graph, Value};
use rtx_runtime::{Backend, CompileOptions, Executable, Precision, ProgramCache};
use std::fmt;
use std::sync::{Arc, OnceLock};

/// Where tensors live and programs run.
#[derive(Clone)]
pub struct Device(Arc<Inner>);

struct Inner {
    backend: Box<dyn Backend>,
    cache: ProgramCache,
    /// Why nothing can run here.
    refusal: Option<String>,
}

impl Inner {
    fn new(backend: Box<dyn Backend>) -> Self {
        Inner {
            backend,
            cache: ProgramCache::new(CACHE_CAPACITY),
            refusal: None,
        }
    }
}

/// Programs kept per device.
const CACHE_CAPACITY: usize = 256;

impl Device {
    /// The CPU (one instance per process), with one thread per core or as many as `RTX_THREADS` says.
    /// `RTX_EAGER=1` runs op by op with the reference rules.
    ///
    /// Where a variable cannot be understood or threads cannot be started, every tensor on the device carries
    /// the error, and [`named`](Self::named) returns it.
    pub fn cpu() -> Device {
        static CPU: OnceLock<Device> = OnceLock::new();
        CPU.get_or_init(|| match environment::cpu_backend() {
            Ok(backend) => Device::with_backend(backend),
            Err(reason) => Device::refusing("cpu", reason),
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
        Device(Arc::new(Inner::new(backend)))
    }

    /// The best device of this machine; the environment variable `RTX_DEVICE` overrides. Where
    /// [`chosen`](Self::chosen) would fail, every tensor on the device returned carries the error.
    pub fn best() -> Device {
        static REFUSING: OnceLock<Device> = OnceLock::new();
        Device::chosen().unwrap_or_else(|e| {
            REFUSING
                .get_or_init(|| Device::refusing("best", e.to_string()))
                .clone()
        })
    }

    /// The device that `RTX_DEVICE` names, or the best one of this machine.
    ///
    /// # Errors
    /// As [`named`](Self::named).
    pub fn chosen() -> Result<Device> {
        match environment::variable("RTX_DEVICE") {
            None => Device::cuda(0).or_else(|_| Device::named("cpu")),
            Some(name) => Device::named(&name),
        }
    }

    /// The NVIDIA GPU of that number (one instance each per process).
    ///
    /// # Errors
    /// Why there is none: a build without the feature `cuda`, no driver, a driver or a GPU that is too old.
    pub fn cuda(ordinal: usize) -> Result<Device> {
        #[cfg(feature = "cuda")]
        return gpu::device(ordinal);
        #[cfg(not(feature = "cuda"))]
        Err(Device::no_gpus(ordinal))
    }

    /// What the NVIDIA GPU of that number is, without using it: name, memory, CUDA version of the driver.
    ///
    /// # Errors
    /// As [`cuda`](Self::cuda).
    pub fn describe_cuda(ordinal: usize) -> Result<String> {
        #[cfg(feature = "cuda")]
        return gpu::describe(ordinal);
        #[cfg(not(feature = "cuda"))]
        Err(Device::no_gpus(ordinal))
    }

    #[cfg(not(feature = "cuda"))]
    fn no_gpus(ordinal: usize) -> Error {
        Error::Device {
            asked: format!("cuda:{ordinal}"),
            reason: "this build is without NVIDIA GPUs; build with `--features cuda`".to_string(),
        }
    }

    /// A device by name: `cpu`, `cuda` (the first GPU), `cuda:1` and so on, or `reference`. With the feature `cuda`
    /// there is also `cuda-check:sm_90a`, which runs on the CPU and compiles every program for that GPU besides, with
    /// the feature `cuda-emulate` the device of that name, which runs the kernels for a GPU on the CPU and checks them.
    ///
    /// # Errors
    /// A name that this build does not have, or a device that cannot be used as it is set up.
    pub fn named(name: &str) -> Result<Device> {
        let (kind, detail) = name.split_once(':').unwrap_or((name, ""));
        let device = match (kind, detail, detail.parse::<usize>()) {
            ("cpu", "", _) => Device::cpu(),
            ("reference", "", _) => Device::reference(),
            ("cuda", "", _) => Device::cuda(0)?,
            ("cuda", _, Ok(ordinal)) => Device::cuda(ordinal)?,
            #[cfg(feature = "cuda")]
            ("cuda-check", arch, _) if !arch.is_empty() => gpu::checking(arch)?,
            #[cfg(feature = "cuda-emulate")]
            ("cuda-emulate", "", _) => gpu::emulating()?,
            _ => {
                return Err(Error::Device {
                    asked: name.to_string(),
                    reason: "the devices are 'cpu', 'cuda', 'cuda:<number>' and 'reference'"
                        .to_string(),
                });
            }
        };
        match device.0.refusal.clone() {
            None => Ok(device),
            Some(reason) => Err(Error::Device {
                asked: name.to_string(),
                reason,
            }),
        }
    }

    fn refusing(name: &str, reason: String) -> Device {
        let backend = Box::new(Refusing {
            name: name.to_string(),
            reason: reason.clone(),
        });
        let mut inner = Inner::new(backend);
        inner.refusal = Some(reason);
        Device(Arc::new(inner))
    }

    /// Name of the device.
    pub fn name(&self) -> &str {
        self.0.backend.name()
    }

    /// The tier in which this device computes products of `f32` arrays when `asked` is allowed. No device has faster
    /// arithmetic than float32 yet, so it is [`Precision::F32`] everywhere.
    pub fn effective_precision(&self, asked: Precision) -> Precision {
        self.0.backend.effective_precision(asked)
    }

    pub(crate) fn backend(&self) -> &dyn Backend {
        &*self.0.backend
    }

    pub(crate) fn cache(&self) -> &ProgramCache {
        &self.0.cache
    }
}

/// Stands in for a backend that cannot be had, so that devices need no `Result` and the reason still reaches
/// whoever reads a value.
struct Refusing {
    name: String,
    reason: String,
}

impl Refusing {
    fn error<T>(&self) -> rtx_runtime::Result<T> {
        Err(rtx_runtime::Error::Device {
            device: self.name.clone(),
            message: self.reason.clone(),
        })
    }
}

impl Backend for Refusing {
    fn name(&self) -> &str {
        &self.name
    }

    fn upload(&self, _: &HostArray) -> rtx_runtime::Result<Value> {
        self.error()
    }

    fn compile(&self, _: &Graph, _: &CompileOptions) -> rtx_runtime::Result<Arc<dyn Executable>> {
        self.error()
    }
}

/// What the environment says about devices. A value that is set and not understood is an error: to go on
/// with a default would run on other threads, or another device, than asked for.
mod environment {
    use super::Backend;

    /// A variable that is set and not empty.
    pub fn variable(name: &str) -> Option<String> {
        let value = std::env::var_os(name)?;
        Some(value.to_string_lossy().trim().to_string()).filter(|v| !v.is_empty())
    }

    /// The backend of the CPU, or why there is none.
    pub fn cpu_backend() -> Result<Box<dyn Backend>, String> {
        if let Some(threads) = variable("RTX_THREADS") {
            check_threads(&threads)?;
        }
        let eager = match variable("RTX_EAGER").as_deref() {
            None | Some("0") => false,
            Some("1") => true,
            Some(other) => return Err(format!("RTX_EAGER is '{other}'; set it to 0 or 1")),
        };
        if eager {
            return Ok(Box::new(rtx_cpu::ReferenceBackend));
        }
        match rtx_cpu::CpuBackend::new() {
            Ok(cpu) => Ok(Box::new(cpu)),
            Err(e) => Err(e.to_string()),
        }
    }

    /// More threads than this are a mistake, and would take the system down with them.
    const MOST_THREADS: usize = 1024;

    pub(super) fn check_threads(text: &str) -> Result<(), String> {
        match text.parse::<usize>() {
            Ok(0..=MOST_THREADS) => Ok(()),
            _ => Err(format!(
                "RTX_THREADS is '{text}'; set it to a number of threads up to {MOST_THREADS}, or to 0 for one \
                 per core"
            )),
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Tensor;

    #[test]
    fn a_refusing_device_says_why_at_the_read() {
        let device = Device::refusing("cpu", "no threads today".into());
        let x = Tensor::from_vec(vec![1.0f32, 2.0], [2], &device);
        for value in [&x * 2.0, Tensor::full([2], 1.0, crate::DType::F32, &device)] {
            let error = value.to_vec::<f32>().unwrap_err().to_string();
            assert!(error.contains("no threads today"), "{error}");
        }
    }

    #[test]
    fn numbers_of_threads_are_checked() {
        for good in ["0", "1", "64"] {
            environment::check_threads(good).unwrap();
        }
        for bad in ["abc", "-1", "1.5", "99999999", "99999999999999999999"] {
            let error = environment::check_threads(bad).unwrap_err();
            assert!(
                error.contains(bad) && error.contains("RTX_THREADS"),
                "{error}"
            );
        }
    }

    #[test]
    fn unknown_devices_name_the_known_ones() {
        let error = Device::named("tpu").unwrap_err().to_string();
        assert!(
            error.contains("'tpu'") && error.contains("'reference'"),
            "{error}"
        );
    }
}
