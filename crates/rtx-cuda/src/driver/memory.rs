//! Device memory that frees itself.

use super::context::Context;
use crate::{Error, Result};
use cudarc::driver::sys::CUdeviceptr;
use std::sync::Arc;

/// A piece of device memory. Dropped on any thread, it is freed once the work queued before is done.
#[derive(Debug)]
pub struct Memory {
    context: Arc<Context>,
    pointer: CUdeviceptr,
    bytes: usize,
    /// The memory that this is a part of; the last part frees it.
    whole: Option<Arc<Memory>>,
}

impl Memory {
    pub(crate) fn new(context: Arc<Context>, pointer: CUdeviceptr, bytes: usize) -> Self {
        Self {
            context,
            pointer,
            bytes,
            whole: None,
        }
    }

    /// Parts of `bytes` each, as far as there are whole ones.
    pub(crate) fn parts(self, bytes: usize) -> Vec<Memory> {
        let whole = Arc::new(self);
        (0..whole.bytes / bytes.max(1))
            .map(|k| Memory {
                context: whole.context.clone(),
                pointer: whole.pointer + (k * bytes) as u64,
                bytes,
                whole: Some(whole.clone()),
            })
            .collect()
    }

    /// The device address, aligned to 256 bytes: an argument for a kernel.
    pub fn pointer(&self) -> u64 {
        self.pointer
    }

    /// Bytes asked for.
    pub fn len(&self) -> usize {
        self.bytes
    }

    /// Whether it holds no byte.
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// The context it belongs to.
    pub fn context(&self) -> &Arc<Context> {
        &self.context
    }

    /// The place `offset` bytes from the start.
    pub fn at(&self, offset: usize) -> Place<'_> {
        Place {
            memory: self,
            offset,
        }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        if self.whole.is_none() {
            self.context.free(self.pointer);
        }
    }
}

/// A place in device memory; a reference to [`Memory`] is its start.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    memory: &'a Memory,
    offset: usize,
}

impl<'a> From<&'a Memory> for Place<'a> {
    fn from(memory: &'a Memory) -> Self {
        memory.at(0)
    }
}

impl Place<'_> {
    /// The address, if `bytes` bytes from here lie within memory of `context`.
    pub(crate) fn check(
        self,
        context: &Context,
        call: &'static str,
        bytes: usize,
    ) -> Result<CUdeviceptr> {
        if !std::ptr::eq(Arc::as_ptr(&self.memory.context), context) {
            return Err(Error::Misuse {
                call,
                detail: "the memory belongs to another context".into(),
            });
        }
        let end = self.offset.checked_add(bytes);
        if end.is_none_or(|end| end > self.memory.bytes) {
            return Err(Error::Misuse {
                call,
                detail: format!(
                    "{bytes} bytes at {} asked for, the memory has {}",
                    self.offset, self.memory.bytes
                ),
            });
        }
        Ok(self.memory.pointer + self.offset as u64)
    }
}
