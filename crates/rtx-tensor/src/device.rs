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
            let backend: Box<dyn Backend> = if eager {
                Box::new(rtx_cpu::ReferenceBackend)
            } else {
                Box::new(rtx_cpu::ReferenceBackend)
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

    /// The best device of this machine; the environment variable `RTX_DEVICE` overrides.
    pub fn best() -> Device {
        std::env::var("RTX_DEVICE")
            .ok()
            .and_then(|n| Device::named(&n).ok())
            .unwrap_or_else(Device::cpu)
    }

    /// A device by name.
    ///
    /// # Errors
    /// A name that this build does not have.
    pub fn named(name: &str) -> Result<Device> {
        match name {
            "cpu" => Ok(Device::cpu()),
            "reference" => Ok(Device::reference()),
            other => Err(Error::Device {
                asked: other.to_string(),
                reason: "this build has the device 'cpu' only".to_string(),
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
