//! Safetensors files: named arrays, and metadata as one JSON object.

use crate::parameters::replaced;
use crate::{NnError, Result};
use rtx_tensor::{DType, Tensor, Tree};
use safetensors::tensor::{Dtype, SafeTensors, TensorView};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, HashMap};
use std::io::Write;
use std::path::{Path, PathBuf};

/// The metadata entry that holds our JSON object. One entry, because the format keeps entries unordered
/// and equal states are to give equal bytes.
const META_KEY: &str = "rustytorch";

/// An array as read from a file.
pub(crate) struct Stored {
    pub dtype: DType,
    pub dims: Vec<usize>,
    pub data: Vec<f64>,
}

/// All arrays of a file.
pub(crate) struct StoredTensors {
    pub path: PathBuf,
    pub meta: Map<String, Value>,
    pub tensors: BTreeMap<String, Stored>,
}

impl StoredTensors {
    /// Reads and checks a file.
    pub fn open(path: &Path) -> Result<Self> {
        let bytes = std::fs::read(path).map_err(|e| NnError::io("read", path, e))?;
        let bad = |e: safetensors::SafeTensorError| {
            NnError::format(
                path,
                format!("it is no safetensors file, or it is cut short ({e})"),
            )
        };
        let (_, header) = SafeTensors::read_metadata(&bytes).map_err(bad)?;
        let meta = match header.metadata().as_ref().and_then(|m| m.get(META_KEY)) {
            Some(text) => serde_json::from_str(text)
                .map_err(|e| NnError::format(path, format!("its metadata are damaged ({e})")))?,
            None => Map::new(),
        };
        let mut tensors = BTreeMap::new();
        for (name, view) in SafeTensors::deserialize(&bytes).map_err(bad)?.iter() {
            // Arrays of types that we have no use for may stand in the file unread.
            if let Some((dtype, data)) = decode(view.dtype(), view.data()) {
                let dims = view.shape().to_vec();
                tensors.insert(name.to_string(), Stored { dtype, dims, data });
            }
        }
        Ok(StoredTensors {
            path: path.to_path_buf(),
            meta,
            tensors,
        })
    }

    /// The structure with every tensor replaced by the file's tensor of the same path.
    pub fn fill<T: Tree>(&self, like: &T) -> Result<T> {
        let mut failure = None;
        let new = like.map("", true, &mut |v, t| {
            let found = match self.tensors.get(v.path) {
                Some(s) => replaced(t, v.path, s, &self.path),
                None => Err(self.missing(v.path)),
            };
            found.unwrap_or_else(|e| {
                failure.get_or_insert(e);
                t.clone()
            })
        });
        failure.map_or(Ok(new), Err)
    }

    fn missing(&self, name: &str) -> NnError {
        let some: Vec<&str> = self.tensors.keys().take(6).map(String::as_str).collect();
        NnError::Mismatch {
            path: self.path.clone(),
            name: name.to_string(),
            reason: format!(
                "it is not in the file, which holds {} tensors ({}, ..)",
                self.tensors.len(),
                some.join(", ")
            ),
        }
    }
}

/// Writes named arrays and metadata; the file is replaced whole or not at all.
pub(crate) fn write_tensors(
    named: &[(String, Tensor)],
    meta: Map<String, Value>,
    path: &Path,
) -> Result<()> {
    let tensors: Vec<&Tensor> = named.iter().map(|(_, t)| t).collect();
    rtx_tensor::eval(&tensors)?;
    let mut arrays = Vec::with_capacity(named.len());
    for (name, t) in named {
        let host = t.to_host()?;
        arrays.push((name, host.dims, t.dtype(), encode(t.dtype(), &host.data)));
    }
    let mut views = Vec::with_capacity(arrays.len());
    for (name, dims, dtype, bytes) in &arrays {
        let view = TensorView::new(stored_type(*dtype), dims.clone(), bytes)
            .map_err(|e| NnError::format(path, format!("tensor '{name}': {e}")))?;
        views.push((name.as_str(), view));
    }
    let text = Value::Object(meta).to_string();
    let header = HashMap::from([(META_KEY.to_string(), text)]);
    let bytes = safetensors::serialize(views, Some(header))
        .map_err(|e| NnError::format(path, format!("it cannot be written ({e})")))?;
    write_atomically(path, &bytes)
}

/// Writes beside the target and renames, so that a reader sees the old or the new file, never a part.
fn write_atomically(path: &Path, bytes: &[u8]) -> Result<()> {
    let fail = |e| NnError::io("write", path, e);
    let folder = match path.parent() {
        Some(p) if !p.as_os_str().is_empty() => p,
        _ => Path::new("."),
    };
    let mut file = tempfile::NamedTempFile::new_in(folder).map_err(fail)?;
    file.write_all(bytes).map_err(fail)?;
    file.as_file().sync_all().map_err(fail)?;
    file.persist(path).map_err(|e| fail(e.error))?;
    Ok(())
}

fn stored_type(dtype: DType) -> Dtype {
    match dtype {
        DType::Bool => Dtype::BOOL,
        DType::I32 => Dtype::I32,
        DType::I64 => Dtype::I64,
        DType::F32 => Dtype::F32,
        DType::F64 => Dtype::F64,
    }
}

fn encode(dtype: DType, data: &[f64]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(data.len() * dtype.size());
    for &v in data {
        match dtype {
            DType::Bool => bytes.push(u8::from(v != 0.0)),
            DType::I32 => bytes.extend((v as i32).to_le_bytes()),
            DType::I64 => bytes.extend((v as i64).to_le_bytes()),
            DType::F32 => bytes.extend((v as f32).to_le_bytes()),
            DType::F64 => bytes.extend(v.to_le_bytes()),
        }
    }
    bytes
}

fn decode(dtype: Dtype, bytes: &[u8]) -> Option<(DType, Vec<f64>)> {
    fn values<const N: usize>(bytes: &[u8], f: fn([u8; N]) -> f64) -> Vec<f64> {
        bytes.as_chunks::<N>().0.iter().map(|c| f(*c)).collect()
    }
    Some(match dtype {
        Dtype::BOOL => (
            DType::Bool,
            values(bytes, |[b]| f64::from(u8::from(b != 0))),
        ),
        Dtype::I32 => (
            DType::I32,
            values(bytes, |c| f64::from(i32::from_le_bytes(c))),
        ),
        Dtype::I64 => (DType::I64, values(bytes, |c| i64::from_le_bytes(c) as f64)),
        Dtype::F32 => (
            DType::F32,
            values(bytes, |c| f64::from(f32::from_le_bytes(c))),
        ),
        Dtype::F64 => (DType::F64, values(bytes, f64::from_le_bytes)),
        _ => return None,
    })
}
