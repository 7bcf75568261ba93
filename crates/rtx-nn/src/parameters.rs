//! Structures of tensors in safetensors files, and conversions of their element type.

mod file;

pub(crate) use file::{StoredTensors, write_tensors};

use crate::{NnError, Result};
use rtx_tensor::io::FileError;
use rtx_tensor::io::safetensors::SafetensorsFile;
use rtx_tensor::{DType, Tensor, Tree};
use std::path::Path;

/// Writes all tensors of a structure, buffers included, under their paths. The file is replaced whole or not
/// at all.
///
/// # Errors
/// A mistake inside a tensor, or the system's refusal.
pub fn save_parameters(tree: &impl Tree, path: impl AsRef<Path>) -> Result<()> {
    write_tensors(&tree.named(), serde_json::Map::new(), path.as_ref())
}

/// Reads a structure's tensors by their paths; `like` gives the structure, the shapes and the element types.
/// Tensors of the file that the structure does not have are ignored.
///
/// # Errors
/// A file that is damaged, or that lacks a tensor or holds it with another shape or type.
pub fn load_parameters<T: Tree>(like: &T, path: impl AsRef<Path>) -> Result<T> {
    let file = StoredTensors::open(path.as_ref())?;
    file.fill(like)
}

/// The structure with its floating-point tensors converted and evaluated; the others stay as they are.
///
/// # Errors
/// A mistake inside a tensor, or the device's refusal.
pub fn cast<T: Tree>(tree: &T, dtype: DType) -> Result<T> {
    let new = tree.map("", true, &mut |_, t| {
        if t.dtype().is_float() {
            t.cast(dtype)
        } else {
            t.clone()
        }
    });
    let leaves = new.leaves();
    rtx_tensor::eval(&leaves.iter().collect::<Vec<_>>())?;
    Ok(new)
}

/// Number of trainable values.
///
/// # Errors
/// A mistake inside a tensor.
pub fn parameter_count(tree: &impl Tree) -> Result<usize> {
    let mut sum = 0;
    for (_, t) in tree.parameters() {
        sum += t.shape()?.iter().product::<usize>();
    }
    Ok(sum)
}

/// A tensor like `like` with the elements that the file has under `name`, on the same device.
fn replaced(like: &Tensor, name: &str, file: &SafetensorsFile) -> Result<Tensor> {
    let mismatch = |reason: String| NnError::Mismatch {
        path: file.path().to_path_buf(),
        name: name.to_string(),
        reason,
    };
    if !file.contains(name) {
        let some: Vec<&str> = file.names().take(6).collect();
        return Err(mismatch(format!(
            "it is not in the file, which holds {} tensors ({}, ..)",
            file.names().len(),
            some.join(", ")
        )));
    }
    let stored = file.read(name).map_err(|e| match e {
        FileError::ElementType { found, .. } => mismatch(format!(
            "asked for {}, the file holds {found}",
            like.dtype()
        )),
        other => other.into(),
    })?;
    if stored.dtype != like.dtype() {
        return Err(mismatch(format!(
            "asked for {}, the file holds {}; convert the model with cast() before loading",
            like.dtype(),
            stored.dtype
        )));
    }
    let shape = like.shape()?;
    if stored.dims != shape {
        return Err(mismatch(format!(
            "asked for shape {shape:?}, the file holds {:?}; build the model with the sizes it was stored with",
            stored.dims
        )));
    }
    let new = Tensor::from_host(stored, like.device());
    match like.symbolic_shape().rows() {
        Some(domain) => Ok(new.rows(&domain.name())?),
        None => Ok(new),
    }
}
