//! Arrays in device memory.

use crate::Result;
use crate::driver::{Context, Memory};
use rtx_ir::eval::HostArray;
use rtx_ir::{DType, Storage};
use std::sync::Arc;

/// An array of the CUDA backend.
pub(crate) struct CudaArray {
    pub(crate) dtype: DType,
    pub(crate) dims: Vec<usize>,
    pub(crate) memory: Memory,
}

/// Bytes of an array.
pub(crate) fn bytes(dtype: DType, dims: &[usize]) -> usize {
    dims.iter().product::<usize>() * dtype.size()
}

impl CudaArray {
    /// Room for an array; its elements are not set.
    pub(crate) fn new(context: &Arc<Context>, dtype: DType, dims: &[usize]) -> Result<Self> {
        Ok(CudaArray {
            dtype,
            dims: dims.to_vec(),
            memory: context.alloc(bytes(dtype, dims).max(1))?,
        })
    }

    pub(crate) fn from_host(context: &Arc<Context>, array: &HostArray) -> Result<Self> {
        let out = CudaArray::new(context, array.dtype, &array.dims)?;
        context.upload(&out.memory, &encode(array.dtype, &array.data))?;
        Ok(out)
    }
}

/// Doubles as elements of `dtype`, in the byte order of the device (little-endian).
pub(crate) fn encode(dtype: DType, data: &[f64]) -> Vec<u8> {
    let each = |v: &f64| -> ([u8; 8], usize) {
        let mut out = [0; 8];
        let n = dtype.size();
        match dtype {
            DType::Bool => out[0] = u8::from(*v != 0.0),
            DType::I32 => out[..4].copy_from_slice(&(*v as i32).to_le_bytes()),
            DType::I64 => out = (*v as i64).to_le_bytes(),
            DType::F32 => out[..4].copy_from_slice(&(*v as f32).to_le_bytes()),
            DType::F64 => out = v.to_le_bytes(),
        }
        (out, n)
    };
    let mut bytes = Vec::with_capacity(data.len() * dtype.size());
    for v in data {
        let (b, n) = each(v);
        bytes.extend_from_slice(&b[..n]);
    }
    bytes
}

/// The elements of `dtype` in memory as doubles.
pub(crate) fn decode(dtype: DType, bytes: &[u8]) -> Vec<f64> {
    fn part<const N: usize>(x: &[u8]) -> [u8; N] {
        let mut out = [0; N];
        out.copy_from_slice(x);
        out
    }
    let chunks = bytes.chunks_exact(dtype.size());
    match dtype {
        DType::Bool => bytes.iter().map(|&b| f64::from(b)).collect(),
        DType::I32 => chunks
            .map(|c| f64::from(i32::from_le_bytes(part(c))))
            .collect(),
        DType::I64 => chunks.map(|c| i64::from_le_bytes(part(c)) as f64).collect(),
        DType::F32 => chunks
            .map(|c| f64::from(f32::from_le_bytes(part(c))))
            .collect(),
        DType::F64 => chunks.map(|c| f64::from_le_bytes(part(c))).collect(),
    }
}

impl Storage for CudaArray {
    fn dims(&self) -> &[usize] {
        &self.dims
    }

    fn to_host(&self) -> rtx_ir::Result<HostArray> {
        let mut raw = vec![0; bytes(self.dtype, &self.dims)];
        self.memory
            .context()
            .download(&self.memory, &mut raw)
            .map_err(|e| rtx_ir::Error::Read {
                message: e.to_string(),
            })?;
        Ok(HostArray {
            dtype: self.dtype,
            dims: self.dims.clone(),
            data: decode(self.dtype, &raw),
        })
    }

    fn as_any(&self) -> &dyn std::any::Any {
        self
    }
}
