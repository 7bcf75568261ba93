//! Arrays in host memory.

use rtx_ir::eval::HostArray;
use rtx_ir::{DType, Storage};
use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};

/// Alignment of every array: one cache line, one 512-bit register.
const ALIGN: usize = 64;

/// Zeroed bytes on a cache-line boundary.
pub(crate) struct Bytes {
    start: *mut u8,
    len: usize,
}

// The memory is owned; sharing is governed by the borrow rules of the owner.
unsafe impl Send for Bytes {}
unsafe impl Sync for Bytes {}

impl Bytes {
    pub(crate) fn new(len: usize) -> Self {
        let layout = Self::layout(len);
        // SAFETY: the layout has a non-zero size.
        let start = unsafe { alloc_zeroed(layout) };
        if start.is_null() {
            handle_alloc_error(layout);
        }
        Bytes { start, len }
    }

    fn layout(len: usize) -> Layout {
        let size = len.max(1).next_multiple_of(ALIGN);
        Layout::from_size_align(size, ALIGN).unwrap_or(Layout::new::<u64>())
    }

    pub(crate) fn ptr(&self) -> *mut u8 {
        self.start
    }

    /// Makes room for `len` bytes; the contents are lost when it grows.
    pub(crate) fn ensure(&mut self, len: usize) {
        if self.len < len {
            *self = Bytes::new(len);
        }
    }
}

impl Drop for Bytes {
    fn drop(&mut self) {
        // SAFETY: allocated in `new` with the same layout.
        unsafe { dealloc(self.start, Self::layout(self.len)) }
    }
}

/// An array of the CPU backend.
pub(crate) struct CpuArray {
    pub(crate) dtype: DType,
    pub(crate) dims: Vec<usize>,
    pub(crate) bytes: Bytes,
}

impl CpuArray {
    pub(crate) fn new(dtype: DType, dims: &[usize]) -> Self {
        let elements: usize = dims.iter().product();
        CpuArray {
            dtype,
            dims: dims.to_vec(),
            bytes: Bytes::new(elements * dtype.size()),
        }
    }

    pub(crate) fn from_host(a: &HostArray) -> Self {
        let out = CpuArray::new(a.dtype, &a.dims);
        // SAFETY: `out` holds as many elements as `a`.
        unsafe { write_f64(out.bytes.ptr(), a.dtype, &a.data) };
        out
    }
}

/// Writes doubles as elements of `dtype`.
///
/// # Safety
/// `to` has room for `data.len()` elements.
pub(crate) unsafe fn write_f64(to: *mut u8, dtype: DType, data: &[f64]) {
    for (i, &v) in data.iter().enumerate() {
        // SAFETY: in range by the caller's promise.
        unsafe {
            match dtype {
                DType::Bool => *to.add(i) = u8::from(v != 0.0),
                DType::I32 => *to.cast::<i32>().add(i) = v as i32,
                DType::I64 => *to.cast::<i64>().add(i) = v as i64,
                DType::F32 => *to.cast::<f32>().add(i) = v as f32,
                DType::F64 => *to.cast::<f64>().add(i) = v,
            }
        }
    }
}

/// Reads elements of `dtype` as doubles.
///
/// # Safety
/// `from` holds `n` elements.
pub(crate) unsafe fn read_f64(from: *const u8, dtype: DType, n: usize) -> Vec<f64> {
    (0..n)
        .map(|i| {
            // SAFETY: in range by the caller's promise.
            unsafe {
                match dtype {
                    DType::Bool => f64::from(*from.add(i)),
                    DType::I32 => f64::from(*from.cast::<i32>().add(i)),
                    DType::I64 => *from.cast::<i64>().add(i) as f64,
                    DType::F32 => f64::from(*from.cast::<f32>().add(i)),
                    DType::F64 => *from.cast::<f64>().add(i),
                }
            }
        })
        .collect()
}

impl Storage for CpuArray {
    fn dims(&self) -> &[usize] {
        &self.dims
    }

    fn to_host(&self) -> rtx_ir::Result<HostArray> {
        let n = self.dims.iter().product();
        // SAFETY: the array holds `n` elements.
        let data = unsafe { read_f64(self.bytes.ptr(), self.dtype, n) };
        Ok(HostArray {
            dtype: self.dtype,
            dims: self.dims.clone(),
            data,
        })
    }

    fn as_any(&self) -> &dyn std::any::Any {
        self
    }
}
