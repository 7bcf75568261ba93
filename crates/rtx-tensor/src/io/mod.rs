//! Arrays in files: NumPy's `.npy` and `.npz`, and safetensors.
//!
//! | file | one tensor | named tensors |
//! | --- | --- | --- |
//! | `.npy` | [`Tensor::load_npy`], [`Tensor::save_npy`] | |
//! | `.npz` | [`load_npz_by_name`] | [`load_npz`], [`save_npz`] |
//! | `.safetensors` | [`load_safetensors_by_name`] | [`load_safetensors`], [`save_safetensors`] |
//!
//! A tensor's element type is the file's: bool, int32, int64, float32 or float64, from either byte order and
//! from row-major or column-major (Fortran) arrays. Other types, complex ones among them, are refused with
//! the way out, as are 64-bit integers beyond 53 bits; nothing is converted silently. Files are written
//! little-endian and row-major.
//!
//! Files are not trusted: every length is checked against the bytes that are there before memory is asked
//! for. A file is written beside its target and renamed, so a reader never sees a part of it
//! ([`write_atomic`]).
//!
//! ```
//! use rtx_tensor::{DType, Device, Tensor, io};
//! let device = Device::cpu();
//! let folder = std::env::temp_dir().join(format!("rtx-doc-io-{}", std::process::id()));
//! std::fs::create_dir_all(&folder).unwrap();
//! let u = Tensor::from_vec(vec![1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0], [2, 3], &device);
//! let mask = Tensor::from_vec(vec![true, false], [2], &device);
//!
//! io::save_npz(folder.join("wave.npz"), [("u", &u), ("mask", &mask)])?;
//! let read = io::load_npz(folder.join("wave.npz"), &device)?;
//! assert_eq!(read["u"].shape()?, [2, 3]);
//! assert_eq!(read["mask"].dtype(), DType::Bool);
//!
//! io::save_safetensors(folder.join("wave.safetensors"), &read)?; // a map does as well
//! let u = io::load_safetensors_by_name(folder.join("wave.safetensors"), "u", &device)?;
//! assert_eq!(u.to_vec::<f32>()?, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
//! # std::fs::remove_dir_all(&folder).ok();
//! # Ok::<(), rtx_tensor::Error>(())
//! ```
//!
//! [`npy`], [`npz`] and [`safetensors`] hold what crates with arrays of their own build upon.

mod atomic;
mod element;
mod error;
pub mod inflate;
pub mod npy;
pub mod npz;
pub mod safetensors;
mod tensors;

pub use atomic::write_atomic;
pub use element::{Encoding, Kind, StoredElement};
pub use error::{ArrayName, Damage, FileError, SystemError};
pub use tensors::{
    load_npz, load_npz_by_name, load_safetensors, load_safetensors_by_name, save_npz,
    save_safetensors,
};

use crate::HostArray;
use rtx_ir::MAX_AXES;
use std::collections::BTreeSet;
use std::path::Path;

#[cfg(doc)]
use crate::Tensor;

/// What a file of another format starts with, for messages.
fn start_of(bytes: &[u8]) -> String {
    let format = match bytes {
        [] => return "the file is empty".into(),
        b if npz::is_archive(b) => ", a zip archive such as .npz",
        b if b.starts_with(npy::MAGIC) => ", an .npy file",
        _ => "",
    };
    let start: String = bytes
        .iter()
        .take(8)
        .map(|b| b.escape_ascii().to_string())
        .collect();
    format!("the file starts with `{start}`{format}")
}

/// An array of numbers whose length the caller has checked against the shape, in row-major order.
fn host_array(
    encoding: Encoding,
    shape: &[usize],
    data: &[u8],
    path: &Path,
    array: ArrayName,
) -> Result<HostArray, FileError> {
    let path = || path.to_owned();
    let Some(dtype) = encoding.dtype() else {
        return Err(FileError::ElementType {
            path: path(),
            array,
            found: encoding.name(),
        });
    };
    let mut problem = None;
    if shape.len() > MAX_AXES {
        problem = Some(format!("a tensor has at most {MAX_AXES} axes"));
    }
    // An extent of zero hides the others from the check of the length.
    let extents = shape.iter().filter(|n| **n > 0);
    let strides = extents.fold(dtype.size(), |n, &extent| n.saturating_mul(extent));
    if strides > isize::MAX as usize {
        problem = Some("its extents are beyond memory".into());
    }
    if let Some(problem) = problem {
        return Err(FileError::Shape {
            path: path(),
            array,
            shape: shape.to_vec(),
            problem,
        });
    }
    if let Some((index, value)) = encoding.inexact(data) {
        return Err(FileError::Inexact {
            path: path(),
            array,
            index,
            value,
        });
    }
    Ok(HostArray {
        dtype,
        dims: shape.to_vec(),
        data: encoding.to_f64(data),
    })
}

/// Refuses names that a file cannot keep apart.
fn check_names<'n>(
    path: &Path,
    names: impl Iterator<Item = &'n str>,
    reserved: &[&str],
) -> Result<(), FileError> {
    let mut seen = BTreeSet::new();
    for name in names {
        let problem = if reserved.contains(&name) {
            "is reserved by the format"
        } else if !seen.insert(name) {
            "is used twice"
        } else {
            continue;
        };
        return Err(FileError::Name {
            path: path.to_owned(),
            name: name.into(),
            problem,
        });
    }
    Ok(())
}
