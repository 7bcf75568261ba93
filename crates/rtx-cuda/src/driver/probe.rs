//! Which CUDA devices there are.

use super::Version;
use super::api::{Api, api};
use crate::{Error, Result};
use cudarc::driver::sys::{CUdevice, CUdevice_attribute};
use std::ffi::{CStr, c_char, c_int};

/// The oldest compute capability for which code is generated (Turing).
const OLDEST_CAPABILITY: (u32, u32) = (7, 5);

/// What is known of a device without using it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceInfo {
    /// Number of the device, from 0.
    pub ordinal: usize,
    /// Name, such as `NVIDIA H200`.
    pub name: String,
    /// Compute capability, such as `(9, 0)`.
    pub capability: (u32, u32),
    /// Bytes of device memory.
    pub memory: usize,
    /// CUDA version that the driver offers.
    pub driver: Version,
    /// Number of multiprocessors.
    pub multiprocessors: u32,
    /// Bytes of shared memory that one block may opt into.
    pub shared_per_block: u32,
    /// Bytes of shared memory of one multiprocessor.
    pub shared_per_multiprocessor: u32,
    /// Bytes of level-2 cache.
    pub l2: usize,
}

impl DeviceInfo {
    /// Whether code can be generated for this device.
    ///
    /// # Errors
    /// [`Error::DeviceTooOld`].
    pub fn check(&self) -> Result<()> {
        if self.capability < OLDEST_CAPABILITY {
            return Err(Error::DeviceTooOld {
                name: self.name.clone(),
                capability: self.capability,
            });
        }
        Ok(())
    }
}

/// The devices of this machine, those too old included (see [`DeviceInfo::check`]).
/// Never panics, and starts no context on any device.
///
/// # Errors
/// [`Error::NoDriver`], [`Error::DriverTooOld`]; [`Error::NoDevice`] where the driver shows none.
pub fn probe() -> Result<Vec<DeviceInfo>> {
    let api = api()?;
    let count = count(api)?;
    if count == 0 {
        return Err(Error::NoDevice {
            ordinal: 0,
            found: 0,
        });
    }
    (0..count).map(|i| Ok(info(api, i)?.1)).collect()
}

/// Number of devices.
fn count(api: &Api) -> Result<usize> {
    let mut count: c_int = 0;
    // SAFETY: `count` outlives the call.
    let status = unsafe { (api.cuDeviceGetCount)(&mut count) };
    match status {
        // Not initialised (3) is what a driver without a device answers.
        3 | super::api::code::NO_DEVICE => Ok(0),
        _ => {
            api.check("cuDeviceGetCount", status)?;
            Ok(usize::try_from(count).unwrap_or(0))
        }
    }
}

/// Handle and description of one device.
///
/// # Errors
/// [`Error::NoDevice`] beyond the last.
pub(crate) fn info(api: &Api, ordinal: usize) -> Result<(CUdevice, DeviceInfo)> {
    let found = count(api)?;
    let number = c_int::try_from(ordinal).unwrap_or(c_int::MAX);
    if ordinal >= found {
        return Err(Error::NoDevice { ordinal, found });
    }
    let mut device: CUdevice = 0;
    let mut name: [c_char; 256] = [0; 256];
    let mut memory = 0usize;
    // SAFETY: every pointer outlives its call; the driver ends the name with a zero within 256 bytes.
    let name = unsafe {
        api.check("cuDeviceGet", (api.cuDeviceGet)(&mut device, number))?;
        api.check(
            "cuDeviceGetName",
            (api.cuDeviceGetName)(name.as_mut_ptr(), 255, device),
        )?;
        api.check(
            "cuDeviceTotalMem",
            (api.cuDeviceTotalMem_v2)(&mut memory, device),
        )?;
        CStr::from_ptr(name.as_ptr()).to_string_lossy().into_owned()
    };
    let ask = |attribute| attribute_of(api, device, attribute);
    use CUdevice_attribute as A;
    let info = DeviceInfo {
        ordinal,
        name,
        capability: (
            ask(A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
            ask(A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
        ),
        memory,
        driver: api.version,
        multiprocessors: ask(A::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
        shared_per_block: ask(A::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?,
        shared_per_multiprocessor: ask(
            A::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR,
        )?,
        l2: ask(A::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)? as usize,
    };
    Ok((device, info))
}

fn attribute_of(api: &Api, device: CUdevice, attribute: CUdevice_attribute) -> Result<u32> {
    let mut value: c_int = 0;
    // SAFETY: `value` outlives the call.
    let status = unsafe { (api.cuDeviceGetAttribute)(&mut value, attribute, device) };
    api.check("cuDeviceGetAttribute", status)?;
    Ok(u32::try_from(value).unwrap_or(0))
}
