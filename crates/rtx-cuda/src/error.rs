//! What can go wrong between the program and the GPU.

use crate::driver::Version;

/// Why CUDA cannot do what was asked.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Error {
    /// The driver library is absent or does not start.
    #[error("no CUDA driver: {detail}. Install the NVIDIA driver, or use the CPU")]
    NoDriver {
        /// What was tried and what came back.
        detail: String,
    },
    /// The driver is older than this crate's minimum.
    #[error(
        "the NVIDIA driver offers CUDA {found}, CUDA {needed} or later is needed: update the driver"
    )]
    DriverTooOld {
        /// What the driver offers.
        found: Version,
        /// The oldest version that serves.
        needed: Version,
    },
    /// There is a driver, but no GPU of that number.
    #[error("no CUDA device {ordinal}: {found} found (CUDA_VISIBLE_DEVICES can hide devices)")]
    NoDevice {
        /// Number asked for.
        ordinal: usize,
        /// Number of devices the driver shows.
        found: usize,
    },
    /// The GPU is older than the generated code allows.
    #[error(
        "{name} has compute capability {}.{}, 7.5 (Turing) or later is needed: use the CPU",
        capability.0, capability.1
    )]
    DeviceTooOld {
        /// Name of the GPU.
        name: String,
        /// Its compute capability.
        capability: (u32, u32),
    },
    /// NVRTC, the run-time compiler, was not found.
    #[error(
        "NVRTC, the CUDA run-time compiler, was not found. Install it (`pip install nvidia-cuda-nvrtc`, \
         or the CUDA toolkit) or set RTX_NVRTC to the library or its folder. Searched:\n  {}",
        searched.join("\n  ")
    )]
    NoNvrtc {
        /// Each place searched, and why what lay there was not used.
        searched: Vec<String>,
    },
    /// NVRTC knows no such GPU.
    #[error(
        "NVRTC {version} cannot compile for {arch} (it knows {supported}): install a version of NVRTC \
         that knows this GPU"
    )]
    UnknownArch {
        /// Architecture asked for, such as `sm_90a`.
        arch: String,
        /// Version of NVRTC.
        version: Version,
        /// The architectures it knows.
        supported: String,
    },
    /// A kernel did not compile.
    #[error("kernel {kernel} does not compile for {arch}:\n{log}\n{excerpt}")]
    Compile {
        /// Name of the kernel.
        kernel: String,
        /// Architecture asked for.
        arch: String,
        /// What the compiler said.
        log: String,
        /// Numbered source lines around the first error; empty if the log names no line.
        excerpt: String,
    },
    /// Device memory is exhausted. The process can go on.
    #[error(
        "out of device memory: {asked} bytes asked for, {free} of {total} bytes free. \
         Use fewer rows at a time, or free other users of this GPU"
    )]
    OutOfMemory {
        /// Bytes asked for.
        asked: usize,
        /// Bytes free on the device.
        free: usize,
        /// Bytes of the device.
        total: usize,
    },
    /// A call that this layer refuses before the driver sees it.
    #[error("{call}: {detail}")]
    Misuse {
        /// The refused call.
        call: &'static str,
        /// What is wrong with it.
        detail: String,
    },
    /// The driver refused a call.
    #[error("{call} failed with error {code}: {meaning}")]
    Driver {
        /// The driver's function, and what it was called for.
        call: String,
        /// The driver's code.
        code: u32,
        /// The driver's name and words for it, and what to do.
        meaning: String,
    },
    /// The program holds something that has no kernel here.
    #[error("{what} has no CUDA code: {instead}")]
    Unsupported {
        /// What it is.
        what: String,
        /// What to do.
        instead: String,
    },
    /// The emulation on the host cannot run, or has found a kernel to be wrong.
    #[error("emulation of {kernel}: {found}")]
    Emulation {
        /// Name of the kernel, or of what is needed.
        kernel: String,
        /// What is wrong.
        found: String,
    },
    /// A mistake in the graph or its inputs.
    #[error(transparent)]
    Graph(#[from] rtx_ir::Error),
    /// NVRTC refused a call for a reason other than the source.
    #[error("{call} failed with error {code}: {meaning}")]
    Nvrtc {
        /// NVRTC's function.
        call: &'static str,
        /// NVRTC's code.
        code: i32,
        /// NVRTC's words for it.
        meaning: String,
    },
}

/// Result of the CUDA backend.
pub type Result<T> = std::result::Result<T, Error>;

impl From<Error> for rtx_runtime::Error {
    fn from(error: Error) -> Self {
        if let Error::Graph(error) = error {
            return Self::Graph(error);
        }
        Self::Device {
            device: "cuda".into(),
            message: error.to_string(),
        }
    }
}
