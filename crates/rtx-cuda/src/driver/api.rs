//! The driver's functions, resolved once, with results as plain numbers.

use super::Version;
use crate::{Error, Result};
use cudarc::driver::sys;
use std::ffi::{CStr, c_char, c_int, c_uchar, c_uint, c_ulonglong, c_void};
use std::sync::OnceLock;
use sys::{
    CUcontext, CUdevice, CUdevice_attribute, CUdeviceptr, CUevent, CUfunction,
    CUfunction_attribute, CUgraph, CUgraphExec, CUgraphNode, CUmemPool_attribute, CUmemPoolProps,
    CUmemoryPool, CUmodule, CUstream, CUstreamCaptureMode,
};

/// The oldest CUDA whose driver serves.
pub(crate) const OLDEST: Version = Version {
    major: 12,
    minor: 4,
};

/// Codes of `CUresult` that are handled apart.
pub(crate) mod code {
    pub const INVALID_VALUE: u32 = 1;
    pub const OUT_OF_MEMORY: u32 = 2;
    pub const NO_DEVICE: u32 = 100;
    pub const INVALID_IMAGE: u32 = 200;
    pub const NO_BINARY_FOR_GPU: u32 = 209;
    pub const NOT_READY: u32 = 600;
}

macro_rules! functions {
    ($($name:ident($($argument:ty),*);)*) => {
        /// Function pointers of the driver; each field has its exported symbol's name.
        #[allow(non_snake_case)]
        pub(crate) struct Api {
            $(pub $name: unsafe extern "C" fn($($argument),*) -> u32,)*
            /// CUDA version the driver offers.
            pub version: Version,
        }

        impl Api {
            /// Resolves every function, or names the first that is missing.
            fn resolve(version: Version) -> std::result::Result<Self, &'static str> {
                Ok(Self {
                    // SAFETY: the signatures are those of cuda.h (12.4), and the library stays open
                    // for the life of the process.
                    $($name: unsafe {
                        symbol(concat!(stringify!($name), "\0")).ok_or(stringify!($name))?
                    },)*
                    version,
                })
            }
        }
    };
}

functions! {
    cuGetErrorName(u32, *mut *const c_char);
    cuGetErrorString(u32, *mut *const c_char);
    cuDeviceGetCount(*mut c_int);
    cuDeviceGet(*mut CUdevice, c_int);
    cuDeviceGetName(*mut c_char, c_int, CUdevice);
    cuDeviceTotalMem_v2(*mut usize, CUdevice);
    cuDeviceGetAttribute(*mut c_int, CUdevice_attribute, CUdevice);
    cuDevicePrimaryCtxRetain(*mut CUcontext, CUdevice);
    cuDevicePrimaryCtxRelease_v2(CUdevice);
    cuCtxGetCurrent(*mut CUcontext);
    cuCtxPushCurrent_v2(CUcontext);
    cuCtxPopCurrent_v2(*mut CUcontext);
    cuStreamCreate(*mut CUstream, c_uint);
    cuStreamDestroy_v2(CUstream);
    cuStreamSynchronize(CUstream);
    cuStreamBeginCapture_v2(CUstream, CUstreamCaptureMode);
    cuStreamEndCapture(CUstream, *mut CUgraph);
    cuEventCreate(*mut CUevent, c_uint);
    cuEventDestroy_v2(CUevent);
    cuEventRecord(CUevent, CUstream);
    cuEventQuery(CUevent);
    cuEventSynchronize(CUevent);
    cuMemGetInfo_v2(*mut usize, *mut usize);
    cuMemPoolCreate(*mut CUmemoryPool, *const CUmemPoolProps);
    cuMemPoolDestroy(CUmemoryPool);
    cuMemPoolSetAttribute(CUmemoryPool, CUmemPool_attribute, *mut c_void);
    cuMemPoolTrimTo(CUmemoryPool, usize);
    cuMemAllocFromPoolAsync(*mut CUdeviceptr, usize, CUmemoryPool, CUstream);
    cuMemFreeAsync(CUdeviceptr, CUstream);
    cuMemHostAlloc(*mut *mut c_void, usize, c_uint);
    cuMemFreeHost(*mut c_void);
    cuMemcpyHtoDAsync_v2(CUdeviceptr, *const c_void, usize, CUstream);
    cuMemcpyDtoHAsync_v2(*mut c_void, CUdeviceptr, usize, CUstream);
    cuMemcpyDtoDAsync_v2(CUdeviceptr, CUdeviceptr, usize, CUstream);
    cuMemsetD8Async(CUdeviceptr, c_uchar, usize, CUstream);
    cuModuleLoadData(*mut CUmodule, *const c_void);
    cuModuleUnload(CUmodule);
    cuModuleGetFunction(*mut CUfunction, CUmodule, *const c_char);
    cuFuncGetAttribute(*mut c_int, CUfunction_attribute, CUfunction);
    cuFuncSetAttribute(CUfunction, CUfunction_attribute, c_int);
    cuFuncLoad(CUfunction);
    cuFuncGetParamInfo(CUfunction, usize, *mut usize, *mut usize);
    cuOccupancyMaxActiveBlocksPerMultiprocessor(*mut c_int, CUfunction, c_int, usize);
    cuLaunchKernel(
        CUfunction, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, CUstream,
        *mut *mut c_void, *mut *mut c_void
    );
    cuGraphInstantiateWithFlags(*mut CUgraphExec, CUgraph, c_ulonglong);
    cuGraphGetNodes(CUgraph, *mut CUgraphNode, *mut usize);
    cuGraphUpload(CUgraphExec, CUstream);
    cuGraphLaunch(CUgraphExec, CUstream);
    cuGraphDestroy(CUgraph);
    cuGraphExecDestroy(CUgraphExec);
}

/// A symbol of the driver library, which must be present.
///
/// # Safety
/// `F` must be the type of the function of that name.
unsafe fn symbol<F: Copy>(name: &str) -> Option<F> {
    // SAFETY: the caller vouches for the type.
    unsafe { sys::culib().get::<F>(name.as_bytes()).ok().map(|f| *f) }
}

/// The driver, opened, initialised and checked; the same answer at every call.
///
/// # Errors
/// [`Error::NoDriver`], [`Error::DriverTooOld`].
pub(crate) fn api() -> Result<&'static Api> {
    static API: OnceLock<Result<Api>> = OnceLock::new();
    API.get_or_init(open).as_ref().map_err(Clone::clone)
}

fn open() -> Result<Api> {
    // SAFETY: opening the driver library runs its initialisers, nothing else. It is asked first because
    // `culib` panics where there is none.
    if !unsafe { sys::is_culib_present() } {
        return Err(Error::NoDriver {
            detail: format!(
                "the library {} is not on this machine",
                if cfg!(windows) {
                    "nvcuda.dll"
                } else {
                    "libcuda.so.1"
                }
            ),
        });
    }
    let missing = |name: &str| Error::NoDriver {
        detail: format!("the driver library lacks {name}"),
    };
    type VersionFn = unsafe extern "C" fn(*mut c_int) -> u32;
    type InitFn = unsafe extern "C" fn(c_uint) -> u32;
    // SAFETY: the types are those of cuda.h.
    let (ask, init) = unsafe {
        (
            symbol::<VersionFn>("cuDriverGetVersion\0")
                .ok_or_else(|| missing("cuDriverGetVersion"))?,
            symbol::<InitFn>("cuInit\0").ok_or_else(|| missing("cuInit"))?,
        )
    };
    let mut number: c_int = 0;
    // SAFETY: `number` outlives the call; the version may be asked before cuInit.
    let status = unsafe { ask(&mut number) };
    if status != 0 {
        return Err(Error::NoDriver {
            detail: format!("the driver library does not tell its version (error {status})"),
        });
    }
    let number = u32::try_from(number).unwrap_or(0);
    let version = Version {
        major: number / 1000,
        minor: number % 1000 / 10,
    };
    let too_old = Error::DriverTooOld {
        found: version,
        needed: OLDEST,
    };
    if version < OLDEST {
        return Err(too_old);
    }
    let api = Api::resolve(version).map_err(missing)?;
    // SAFETY: no flags are defined.
    let status = unsafe { init(0) };
    // Without a device the driver is fine; `probe` reports an empty list.
    if status != 0 && status != code::NO_DEVICE {
        return Err(Error::NoDriver {
            detail: format!("it does not start: {}", api.meaning(status)),
        });
    }
    Ok(api)
}

impl Api {
    /// Turns the driver's code into a result.
    ///
    /// # Errors
    /// [`Error::Driver`] for every code but success.
    pub(crate) fn check(&self, call: &str, status: u32) -> Result<()> {
        if status == 0 {
            return Ok(());
        }
        Err(Error::Driver {
            call: call.into(),
            code: status,
            meaning: self.meaning(status),
        })
    }

    /// The driver's name and words for a code, and what to do about it.
    pub(crate) fn meaning(&self, status: u32) -> String {
        let words = |ask: unsafe extern "C" fn(u32, *mut *const c_char) -> u32| {
            let mut text = std::ptr::null();
            // SAFETY: on success the driver returns a static string.
            unsafe {
                (ask(status, &mut text) == 0 && !text.is_null())
                    .then(|| CStr::from_ptr(text).to_string_lossy().into_owned())
            }
        };
        let name = words(self.cuGetErrorName).unwrap_or_else(|| "unknown error".into());
        let text = words(self.cuGetErrorString).unwrap_or_default();
        format!("{name}: {text}{}", advice(status))
    }
}

/// What a user can do about an error, where it is known.
fn advice(status: u32) -> &'static str {
    match status {
        code::INVALID_IMAGE | code::NO_BINARY_FOR_GPU | 218 | 222 => {
            " (the kernel was compiled for another GPU, or by an NVRTC newer than the driver: \
             update the driver, or use an NVRTC of the driver's CUDA version)"
        }
        700 | 702 | 714..=719 => {
            " (a kernel failed; every later call of this process on this device fails too)"
        }
        46 => " (another process holds the device for itself alone)",
        _ => "",
    }
}
