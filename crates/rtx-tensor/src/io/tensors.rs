//! Tensors to and from files.

use std::collections::BTreeMap;
use std::path::Path;

use super::error::ArrayName;
use super::npy::{self, Array, Header};
use super::npz::{self, Compression};
use super::safetensors::{self, SafetensorsFile};
use super::{FileError, SystemError, check_names, host_array, write_atomic};
use crate::io::element::with_element;
use crate::{Device, Element, HostArray, Result, Tensor};

impl Tensor {
    /// Reads the array of an `.npy` file; shape and element type are the file's (see [`io`](crate::io)).
    ///
    /// # Errors
    /// [`Error::File`](crate::Error::File): a file that cannot be read or is damaged, or an array that no
    /// tensor can hold.
    ///
    /// # Examples
    /// ```
    /// use rtx_tensor::{Device, Tensor};
    /// let path = std::env::temp_dir().join(format!("rtx-doc-{}.npy", std::process::id()));
    /// let x = Tensor::from_vec(vec![1i64, 2, 3, 4, 5, 6], [3, 2], &Device::cpu());
    /// x.save_npy(&path)?;
    /// let y = Tensor::load_npy(&path, &Device::cpu())?;
    /// assert_eq!(y.shape()?, [3, 2]);
    /// assert_eq!(y.to_vec::<i64>()?, [1, 2, 3, 4, 5, 6]);
    /// # std::fs::remove_file(&path).ok();
    /// # Ok::<(), rtx_tensor::Error>(())
    /// ```
    pub fn load_npy(path: impl AsRef<Path>, device: &Device) -> Result<Tensor> {
        let path = path.as_ref();
        let bytes = read(path)?;
        let damaged = |d: super::Damage| d.in_file(path, ".npy");
        let (header, _) = Header::parse(&bytes).map_err(damaged)?;
        check_type(path, ArrayName(None), &header)?;
        let array = Array::parse(&bytes[..]).map_err(damaged)?;
        upload(path, ArrayName(None), &array, device)
    }

    /// Writes this tensor as an `.npy` file, which `numpy.load` reads; the file is replaced whole or not at
    /// all.
    ///
    /// # Errors
    /// A mistake on the way to this tensor, or a file that cannot be written
    /// ([`Error::File`](crate::Error::File)).
    pub fn save_npy(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        let array = self.to_host()?;
        write_atomic(path, |out| {
            let written = with_element!(array.dtype, T => {
                npy::write(out, &array.dims, elements::<T>(&array))
            });
            Ok(written.map_err(|e| SystemError::write(path, e))?)
        })
    }
}

/// Reads all arrays of an `.npz` file, compressed or not.
///
/// # Errors
/// [`Error::File`](crate::Error::File): a file that cannot be read or is damaged, or an array that no tensor
/// can hold, in which case [`load_npz_by_name`] reads the others.
pub fn load_npz(path: impl AsRef<Path>, device: &Device) -> Result<BTreeMap<String, Tensor>> {
    let path = path.as_ref();
    let bytes = read(path)?;
    let damaged = |d: super::Damage| d.in_file(path, ".npz");
    let mut reader = npz::Reader::new(&bytes).map_err(damaged)?;
    let mut out = BTreeMap::new();
    for (name, header) in reader.headers().map_err(damaged)? {
        check_type(path, ArrayName::named(&name), &header)?;
        let array = reader.read(&name).map_err(damaged)?;
        let tensor = upload(path, ArrayName::named(&name), &array, device)?;
        out.insert(name, tensor);
    }
    Ok(out)
}

/// Reads one array of an `.npz` file.
///
/// # Errors
/// As [`load_npz`], and a name that is not in the file.
pub fn load_npz_by_name(path: impl AsRef<Path>, name: &str, device: &Device) -> Result<Tensor> {
    let path = path.as_ref();
    let bytes = read(path)?;
    let damaged = |d: super::Damage| d.in_file(path, ".npz");
    let mut reader = npz::Reader::new(&bytes).map_err(damaged)?;
    let headers = reader.headers().map_err(damaged)?;
    let Some((_, header)) = headers.iter().find(|(n, _)| n == name) else {
        return Err(FileError::NoSuchArray {
            path: path.to_owned(),
            asked: name.into(),
            held: headers.into_iter().map(|(n, _)| n).collect(),
        }
        .into());
    };
    check_type(path, ArrayName::named(name), header)?;
    let array = reader.read(name).map_err(damaged)?;
    upload(path, ArrayName::named(name), &array, device)
}

/// Writes named tensors as an `.npz` file without compression, which `numpy.load` reads; the file is
/// replaced whole or not at all.
///
/// # Errors
/// A mistake on the way to a tensor; a file that cannot be written or a name that is used twice
/// ([`Error::File`](crate::Error::File)).
pub fn save_npz<'t, N: AsRef<str>>(
    path: impl AsRef<Path>,
    tensors: impl IntoIterator<Item = (N, &'t Tensor)>,
) -> Result<()> {
    let path = path.as_ref();
    let arrays = to_host(tensors)?;
    check_names(path, arrays.iter().map(|(name, _)| name.as_ref()), &[])?;
    write_atomic(path, |out| {
        let mut archive = npz::Writer::new(out, Compression::Stored);
        let written = arrays
            .iter()
            .try_for_each(|(name, array)| {
                with_element!(array.dtype, T => {
                    archive.add(name.as_ref(), &array.dims, elements::<T>(array))
                })
            })
            .and_then(|()| archive.finish());
        Ok(written.map_err(|e| SystemError::write(path, e))?)
    })
}

/// Reads all arrays of a safetensors file.
///
/// # Errors
/// [`Error::File`](crate::Error::File): a file that cannot be read or is damaged, or an array that no tensor
/// can hold, in which case [`load_safetensors_by_name`] reads the others.
pub fn load_safetensors(
    path: impl AsRef<Path>,
    device: &Device,
) -> Result<BTreeMap<String, Tensor>> {
    let file = SafetensorsFile::open(path)?;
    let read = |name: &str| Ok((name.to_owned(), Tensor::from_host(file.read(name)?, device)));
    file.names().map(read).collect()
}

/// Reads one array of a safetensors file.
///
/// # Errors
/// As [`load_safetensors`], and a name that is not in the file.
pub fn load_safetensors_by_name(
    path: impl AsRef<Path>,
    name: &str,
    device: &Device,
) -> Result<Tensor> {
    let file = SafetensorsFile::open(path)?;
    Ok(Tensor::from_host(file.read(name)?, device))
}

/// Writes named tensors as a safetensors file; the file is replaced whole or not at all.
///
/// # Errors
/// A mistake on the way to a tensor; a file that cannot be written or a name that is used twice or is
/// `__metadata__` ([`Error::File`](crate::Error::File)).
pub fn save_safetensors<'t, N: AsRef<str>>(
    path: impl AsRef<Path>,
    tensors: impl IntoIterator<Item = (N, &'t Tensor)>,
) -> Result<()> {
    Ok(safetensors::write(
        path,
        &to_host(tensors)?,
        &BTreeMap::new(),
    )?)
}

fn read(path: &Path) -> Result<Vec<u8>> {
    let bytes = std::fs::read(path).map_err(|e| SystemError::read(path, e));
    Ok(bytes?)
}

/// Refuses types that no tensor has, before any element is read.
fn check_type(
    path: &Path,
    array: ArrayName,
    header: &Header,
) -> std::result::Result<(), FileError> {
    match header.encoding().and_then(|e| e.dtype()) {
        Some(_) => Ok(()),
        None => Err(FileError::ElementType {
            path: path.to_owned(),
            array,
            found: header.dtype_name(),
        }),
    }
}

fn upload(path: &Path, name: ArrayName, array: &Array<'_>, device: &Device) -> Result<Tensor> {
    let (header, data) = (array.header(), array.data());
    let mut host = host_array(array.encoding(), &header.shape, data, path, name)?;
    if header.fortran_order {
        host.data = row_major(&host.data, &host.dims);
    }
    Ok(Tensor::from_host(host, device))
}

/// Elements in row-major order from elements whose first index varies fastest.
fn row_major(data: &[f64], dims: &[usize]) -> Vec<f64> {
    let mut strides = Vec::with_capacity(dims.len());
    let mut stride = 1;
    for &extent in dims {
        strides.push(stride);
        stride *= extent;
    }
    let mut index = vec![0; dims.len()];
    let mut from = 0;
    let mut out = Vec::with_capacity(data.len());
    while let (Some(&value), true) = (data.get(from), out.len() < data.len()) {
        out.push(value);
        for axis in (0..dims.len()).rev() {
            index[axis] += 1;
            from += strides[axis];
            if index[axis] < dims[axis] {
                break;
            }
            from -= strides[axis] * dims[axis];
            index[axis] = 0;
        }
    }
    out
}

/// The elements as numbers of type `T`.
fn elements<T: Element>(array: &HostArray) -> impl Iterator<Item = T> + '_ {
    array.data.iter().map(|&v| T::from_f64(v))
}

/// Reads tensors into host memory, evaluating them together.
fn to_host<'t, N>(
    tensors: impl IntoIterator<Item = (N, &'t Tensor)>,
) -> Result<Vec<(N, HostArray)>> {
    let (names, tensors): (Vec<N>, Vec<&Tensor>) = tensors.into_iter().unzip();
    crate::eval(&tensors)?;
    let named = names.into_iter().zip(tensors);
    named.map(|(n, t)| Ok((n, t.to_host()?))).collect()
}
