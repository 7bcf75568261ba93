//! Named tensors in safetensors files, and metadata as one JSON object.

use crate::parameters::replaced;
use crate::{NnError, Result};
use rtx_tensor::io::safetensors::{self, SafetensorsFile};
use rtx_tensor::{Tensor, Tree};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::path::Path;

/// The metadata entry that holds our JSON object. One entry, because the format keeps entries unordered
/// and equal states are to give equal bytes.
const META_KEY: &str = "rustytorch";

/// A file of tensors with its metadata.
pub(crate) struct StoredTensors {
    file: SafetensorsFile,
    pub meta: Map<String, Value>,
}

impl StoredTensors {
    /// Reads and checks a file.
    pub fn open(path: &Path) -> Result<Self> {
        let file = SafetensorsFile::open(path)?;
        let meta = match file.metadata(META_KEY) {
            Some(text) => serde_json::from_str(text)
                .map_err(|e| NnError::format(path, format!("its metadata are damaged ({e})")))?,
            None => Map::new(),
        };
        Ok(StoredTensors { file, meta })
    }

    /// The structure with every tensor replaced by the file's tensor of the same path. Other arrays of the
    /// file stay unread, so they may be of types that we have no use for.
    pub fn fill<T: Tree>(&self, like: &T) -> Result<T> {
        let mut failure = None;
        let new = like.map("", true, &mut |v, t| {
            replaced(t, v.path, &self.file).unwrap_or_else(|e| {
                failure.get_or_insert(e);
                t.clone()
            })
        });
        failure.map_or(Ok(new), Err)
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
    let arrays = named.iter().map(|(name, t)| Ok((name, t.to_host()?)));
    let arrays = arrays.collect::<Result<Vec<_>>>()?;
    let text = Value::Object(meta).to_string();
    let metadata = BTreeMap::from([(META_KEY.to_string(), text)]);
    Ok(safetensors::write(path, &arrays, &metadata)?)
}
