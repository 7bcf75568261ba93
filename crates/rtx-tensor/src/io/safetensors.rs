//! The safetensors format: a header in JSON, then the bytes of all arrays.
//! <https://github.com/huggingface/safetensors#format>

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use safetensors::tensor::{Dtype, Metadata, TensorInfo, TensorView};

use super::element::with_element;
use super::error::ArrayName;
use super::{Damage, Encoding, FileError, StoredElement, SystemError, write_atomic};
use crate::{DType, HostArray};

const FORMAT: &str = "safetensors";
/// Bytes of the number that gives the length of the header.
const PREFIX: usize = 8;
/// Entry of the header that holds texts instead of an array.
const METADATA: &str = "__metadata__";

/// A file in memory, from which arrays are read one at a time.
#[derive(Debug)]
pub struct SafetensorsFile {
    path: PathBuf,
    bytes: Vec<u8>,
    /// Where the arrays start.
    start: usize,
    header: Metadata,
    names: BTreeSet<String>,
}

impl SafetensorsFile {
    /// Reads a file and checks its header against its length.
    ///
    /// # Errors
    /// [`FileError::System`] and [`FileError::Malformed`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self, FileError> {
        let path = path.as_ref();
        let bytes = std::fs::read(path).map_err(|e| SystemError::read(path, e))?;
        let (header, start) = parse(&bytes).map_err(|d| d.in_file(path, FORMAT))?;
        Ok(Self {
            path: path.to_owned(),
            bytes,
            start,
            names: header.tensors().into_keys().collect(),
            header,
        })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A text stored beside the arrays.
    pub fn metadata(&self, key: &str) -> Option<&str> {
        let texts = self.header.metadata().as_ref()?;
        texts.get(key).map(String::as_str)
    }

    /// Names of the arrays, in alphabetical order.
    pub fn names(&self) -> impl ExactSizeIterator<Item = &str> {
        self.names.iter().map(String::as_str)
    }

    /// Whether the file has an array of that name.
    pub fn contains(&self, name: &str) -> bool {
        self.names.contains(name)
    }

    /// Reads an array.
    ///
    /// # Errors
    /// [`FileError::NoSuchArray`], or an array that no tensor can hold.
    pub fn read(&self, name: &str) -> Result<HostArray, FileError> {
        let (path, array) = (self.path.clone(), ArrayName::named(name));
        let Some(info) = self.header.info(name) else {
            return Err(FileError::NoSuchArray {
                path,
                asked: name.into(),
                held: self.names.iter().cloned().collect(),
            });
        };
        let Some(dtype) = dtype_of(info.dtype) else {
            return Err(FileError::ElementType {
                path,
                array,
                found: info.dtype.to_string(),
            });
        };
        let TensorInfo {
            shape,
            data_offsets: (from, to),
            ..
        } = info;
        // The header was checked; a slice that is not there would be a mistake of the library.
        let data = self.bytes[self.start..].get(*from..*to).unwrap_or_default();
        super::host_array(Encoding::of(dtype), shape, data, &self.path, array)
    }
}

fn parse(bytes: &[u8]) -> Result<(Metadata, usize), Damage> {
    let prefix = bytes.first_chunk::<PREFIX>().ok_or_else(|| {
        let problem = format!(
            "the file has {} bytes, its length field needs {PREFIX}",
            bytes.len()
        );
        Damage::new(bytes.len(), problem)
    })?;
    let len = u64::from_le_bytes(*prefix);
    let text = usize::try_from(len)
        .ok()
        .and_then(|len| bytes[PREFIX..].get(..len));
    let text = text.ok_or_else(|| {
        let left = bytes.len() - PREFIX;
        let problem = format!(
            "a header of {len} bytes is announced, and {left} are left ({})",
            super::start_of(bytes)
        );
        Damage::new(0, problem)
    })?;
    let header: Metadata = serde_json::from_slice(text)
        .map_err(|e| Damage::new(PREFIX, format!("the header cannot be used: {e}")))?;
    let start = PREFIX + text.len();
    let (wanted, left) = (header.data_len(), bytes.len() - start);
    if wanted != left {
        let problem = format!("the arrays need {wanted} bytes, but {left} are left in the file");
        return Err(Damage::new(start, problem));
    }
    Ok((header, start))
}

/// Writes named arrays and texts, whole or not at all.
///
/// Equal arrays and at most one text give equal bytes; the format keeps texts in no order.
///
/// # Errors
/// [`FileError::System`]; [`FileError::Name`] for a name that is used twice or reserved.
pub fn write(
    path: impl AsRef<Path>,
    arrays: &[(impl AsRef<str>, HostArray)],
    metadata: &BTreeMap<String, String>,
) -> Result<(), FileError> {
    let path = path.as_ref();
    super::check_names(
        path,
        arrays.iter().map(|(name, _)| name.as_ref()),
        &[METADATA],
    )?;
    let refused = |e: safetensors::SafeTensorError| {
        SystemError::write(
            path,
            std::io::Error::new(std::io::ErrorKind::InvalidInput, e),
        )
    };
    let stored: Vec<Vec<u8>> = arrays.iter().map(|(_, array)| bytes_of(array)).collect();
    let mut views = Vec::with_capacity(arrays.len());
    for ((name, array), bytes) in arrays.iter().zip(&stored) {
        let view = TensorView::new(stored_type(array.dtype), array.dims.clone(), bytes);
        views.push((name.as_ref(), view.map_err(refused)?));
    }
    let texts: HashMap<String, String> = metadata.clone().into_iter().collect();
    let texts = (!texts.is_empty()).then_some(texts);
    let file = safetensors::serialize(views, texts).map_err(refused)?;
    write_atomic(path, |out| {
        let written = std::io::Write::write_all(out, &file);
        written.map_err(|e| SystemError::write(path, e).into())
    })
}

fn bytes_of(array: &HostArray) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(array.data.len() * array.dtype.size());
    with_element!(array.dtype, T => for &v in &array.data {
        let element = <T as crate::Element>::from_f64(v);
        bytes.extend_from_slice(StoredElement::to_le_bytes(element).as_ref());
    });
    bytes
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

fn dtype_of(stored: Dtype) -> Option<DType> {
    match stored {
        Dtype::BOOL => Some(DType::Bool),
        Dtype::I32 => Some(DType::I32),
        Dtype::I64 => Some(DType::I64),
        Dtype::F32 => Some(DType::F32),
        Dtype::F64 => Some(DType::F64),
        _ => None,
    }
}
