//! Compiled code on the device.

use super::api::code;
use super::context::Context;
use super::cubin;
use crate::{Error, Result};
use cudarc::driver::sys::{CUfunction, CUfunction_attribute, CUmodule};
use std::ffi::{CString, c_int};
use std::sync::Arc;

/// A cubin loaded into a context; unloaded when the last of its functions is dropped.
#[derive(Clone, Debug)]
pub struct Module(Arc<Loaded>);

#[derive(Debug)]
struct Loaded {
    context: Arc<Context>,
    handle: CUmodule,
}

// SAFETY: the driver's functions on modules may be called from any thread.
unsafe impl Send for Loaded {}
// SAFETY: as for Send.
unsafe impl Sync for Loaded {}

impl Drop for Loaded {
    fn drop(&mut self) {
        if let Ok(_bound) = self.context.bind() {
            // SAFETY: no function of the module is left. The driver waits for kernels under way.
            unsafe { (self.context.api.cuModuleUnload)(self.handle) };
        }
    }
}

impl Module {
    /// Loads a cubin.
    ///
    /// # Errors
    /// [`Error::Misuse`] for bytes that are no whole cubin; the driver's refusal of one for another GPU.
    pub fn load(context: &Arc<Context>, cubin: &[u8]) -> Result<Self> {
        cubin::check(cubin)?;
        // The driver expects the alignment of an ELF header.
        let mut image = vec![0u64; cubin.len().div_ceil(8)];
        // SAFETY: `image` has at least `cubin.len()` bytes.
        unsafe {
            std::ptr::copy_nonoverlapping(
                cubin.as_ptr(),
                image.as_mut_ptr().cast::<u8>(),
                cubin.len(),
            );
        }
        let _bound = context.bind()?;
        let mut handle = std::ptr::null_mut();
        // SAFETY: the image's extents were checked; the driver copies it.
        let status = unsafe { (context.api.cuModuleLoadData)(&mut handle, image.as_ptr().cast()) };
        context.api.check("cuModuleLoadData", status)?;
        Ok(Self(Arc::new(Loaded {
            context: context.clone(),
            handle,
        })))
    }

    /// A kernel of the module, by the name it has in the code (`extern "C"` names are unchanged).
    ///
    /// # Errors
    /// The driver's answer if there is none of that name.
    pub fn function(&self, name: &str) -> Result<Function> {
        let api = self.0.context.api;
        let text = CString::new(name).map_err(|_| Error::Misuse {
            call: "Module::function",
            detail: format!("the name {name:?} holds a zero byte"),
        })?;
        let _bound = self.0.context.bind()?;
        let mut handle = std::ptr::null_mut();
        // SAFETY: both pointers outlive the call.
        let status =
            unsafe { (api.cuModuleGetFunction)(&mut handle, self.0.handle, text.as_ptr()) };
        if status != 0 {
            api.check(&format!("cuModuleGetFunction({name})"), status)?;
        }
        // Loaded at its first launch it could fail there, within a capture.
        // SAFETY: a live function.
        let status = unsafe { (api.cuFuncLoad)(handle) };
        api.check("cuFuncLoad", status)?;
        let mut params = 0;
        loop {
            let (mut offset, mut size) = (0, 0);
            // SAFETY: both outlive the call; an index past the last is answered by an error.
            let status =
                unsafe { (api.cuFuncGetParamInfo)(handle, params, &mut offset, &mut size) };
            if status == code::INVALID_VALUE {
                break;
            }
            api.check("cuFuncGetParamInfo", status)?;
            params += 1;
        }
        Ok(Function {
            module: self.0.clone(),
            handle,
            name: name.into(),
            params,
        })
    }
}

/// A kernel that can be launched by [`Context::launch`].
#[derive(Clone, Debug)]
pub struct Function {
    module: Arc<Loaded>,
    handle: CUfunction,
    name: Arc<str>,
    params: usize,
}

// SAFETY: as for the module, which it keeps loaded.
unsafe impl Send for Function {}
// SAFETY: as for Send.
unsafe impl Sync for Function {}

/// What the compiler and the device make of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// Registers of a thread.
    pub registers: u32,
    /// Bytes of local memory of a thread (spilled registers, arrays).
    pub local: u32,
    /// Bytes of static shared memory of a block.
    pub shared: u32,
    /// The most threads of a block.
    pub max_block: u32,
}

impl Function {
    /// Name of the kernel.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Number of arguments.
    pub fn params(&self) -> usize {
        self.params
    }

    pub(crate) fn handle(&self) -> CUfunction {
        self.handle
    }

    /// Registers, local and shared memory, largest block.
    ///
    /// # Errors
    /// The driver's refusal.
    pub fn usage(&self) -> Result<Usage> {
        use CUfunction_attribute as A;
        let context = &self.module.context;
        let _bound = context.bind()?;
        let ask = |attribute| {
            let mut value: c_int = 0;
            // SAFETY: `value` outlives the call.
            let status =
                unsafe { (context.api.cuFuncGetAttribute)(&mut value, attribute, self.handle) };
            context.api.check("cuFuncGetAttribute", status)?;
            Ok::<u32, Error>(u32::try_from(value).unwrap_or(0))
        };
        Ok(Usage {
            registers: ask(A::CU_FUNC_ATTRIBUTE_NUM_REGS)?,
            local: ask(A::CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES)?,
            shared: ask(A::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES)?,
            max_block: ask(A::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?,
        })
    }

    /// Allows launches with up to `bytes` of dynamic shared memory; needed above 48 KiB.
    ///
    /// # Errors
    /// The driver's refusal of more than the device has.
    pub fn set_max_dynamic_shared(&self, bytes: u32) -> Result<()> {
        let context = &self.module.context;
        let _bound = context.bind()?;
        // SAFETY: a plain number for a live function.
        let status = unsafe {
            (context.api.cuFuncSetAttribute)(
                self.handle,
                CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                c_int::try_from(bytes).unwrap_or(c_int::MAX),
            )
        };
        if status == 0 {
            return Ok(());
        }
        context.api.check(
            &format!(
                "cuFuncSetAttribute({}, {bytes} bytes shared of {} possible)",
                self.name,
                context.info().shared_per_block
            ),
            status,
        )
    }

    /// How many blocks of `block` threads and `shared` bytes of dynamic shared memory one multiprocessor
    /// holds at a time.
    ///
    /// # Errors
    /// The driver's refusal.
    pub fn blocks_per_multiprocessor(&self, block: u32, shared: u32) -> Result<u32> {
        let context = &self.module.context;
        let _bound = context.bind()?;
        let mut blocks: c_int = 0;
        // SAFETY: `blocks` outlives the call.
        let status = unsafe {
            (context.api.cuOccupancyMaxActiveBlocksPerMultiprocessor)(
                &mut blocks,
                self.handle,
                c_int::try_from(block).unwrap_or(c_int::MAX),
                shared as usize,
            )
        };
        context
            .api
            .check("cuOccupancyMaxActiveBlocksPerMultiprocessor", status)?;
        Ok(u32::try_from(blocks).unwrap_or(0))
    }

    pub(crate) fn check_call(
        &self,
        context: &Context,
        grid: u32,
        block: u32,
        params: usize,
    ) -> Result<()> {
        let wrong = if !std::ptr::eq(Arc::as_ptr(&self.module.context), context) {
            "it belongs to another context".into()
        } else if params != self.params {
            format!("{params} arguments given, it takes {}", self.params)
        } else if grid == 0 || block == 0 {
            format!("{grid} blocks of {block} threads: nothing to launch")
        } else {
            return Ok(());
        };
        Err(Error::Misuse {
            call: "launch",
            detail: format!("{}: {wrong}", self.name),
        })
    }
}
