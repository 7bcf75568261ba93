//! Reading and writing arrays: MATLAB v5 `.mat`, NumPy `.npy` and `.npz`.
//!
//! The format is told from the first bytes of a file, never from its name. The readers treat a
//! file as untrusted: they check every length against the bytes that are really there before they
//! allocate, and damage is reported with its byte offset.

mod mat5;
mod numpy;
mod write;

use std::path::Path;

use ndarray::ArrayD;
use num_complex::Complex64;
use rtx_tensor::io::{Damage, npy, npz};

pub(crate) use write::write_npz_as;
pub use write::{NpzArray, write_npz};

use crate::error::{MreError, Result, Shape};

/// What to do about an array of another type.
const NUMERIC: &str = "an array of floating-point (2, 4 or 8 bytes), complex or whole numbers is needed: save it as such, for example \
     a.astype('float64') in NumPy or double(a) in MATLAB";

/// Name given to the array of an `.npy` file, which carries none.
pub const NPY_NAME: &str = "array";

/// What a file says about one of its variables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VariableInfo {
    /// Name in the file.
    pub name: String,
    /// Extent per axis, in the file's order of axes.
    pub shape: Vec<usize>,
    /// Element type in the file's own words, such as `double` or `complex128`.
    pub dtype: String,
    /// Whether [`read_array`] can read it; a cell array or a string, say, cannot.
    pub numeric: bool,
}

/// A numeric array with its name; real data have a zero imaginary part.
#[derive(Debug, Clone)]
pub struct NamedArray {
    /// Name in the file ([`NPY_NAME`] for `.npy`).
    pub name: String,
    /// The values, in the file's order of axes (any memory order).
    pub data: ArrayD<Complex64>,
    /// Whether the file stores complex numbers.
    pub is_complex: bool,
    /// Element type in the file's own words.
    pub dtype: String,
}

/// A file read into memory, with its format recognised.
///
/// Keeps the (still compressed) bytes, so that several arrays can be taken from one reading.
pub struct ArrayFile<'p> {
    path: &'p Path,
    bytes: Vec<u8>,
    format: Format,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Format {
    Mat5,
    Npy,
    Npz,
}

impl Format {
    fn name(self) -> &'static str {
        match self {
            Self::Mat5 => "MATLAB v5",
            Self::Npy => ".npy",
            Self::Npz => ".npz",
        }
    }
}

impl<'p> ArrayFile<'p> {
    /// Reads a file and recognises its format.
    ///
    /// # Errors
    /// A file that cannot be read, is empty, or is none of the three formats; MATLAB v7.3 files
    /// (HDF5) are recognised and refused with the way out.
    pub fn open(path: &'p Path) -> Result<Self> {
        let bytes = std::fs::read(path).map_err(|e| MreError::io("read", path, e))?;
        Self::from_bytes(path, bytes)
    }

    /// Recognises the format of a file's content; `path` only serves messages.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn from_bytes(path: &'p Path, bytes: Vec<u8>) -> Result<Self> {
        let format = recognise(path, &bytes)?;
        Ok(Self {
            path,
            bytes,
            format,
        })
    }

    /// Lists the variables, numeric or not, in the file's order.
    ///
    /// # Errors
    /// [`MreError::Malformed`] when the file is damaged.
    pub fn variables(&self) -> Result<Vec<VariableInfo>> {
        match self.format {
            Format::Mat5 => mat5::list(&self.bytes),
            Format::Npy => numpy::list_npy(NPY_NAME, &self.bytes),
            Format::Npz => numpy::list_npz(&self.bytes),
        }
        .map_err(|damage| self.malformed(damage))
    }

    /// Whether a variable of this name is present.
    ///
    /// # Errors
    /// As [`variables`](Self::variables).
    pub fn contains(&self, name: &str) -> Result<bool> {
        Ok(self.variables()?.iter().any(|v| v.name == name))
    }

    /// Whether the file may carry arrays beside the wave field by name (`freq`, `spacing`).
    pub fn holds_names(&self) -> bool {
        self.format != Format::Npy
    }

    /// Whether the file was written by MATLAB, which drops trailing axes of length 1.
    pub fn is_matlab(&self) -> bool {
        self.format == Format::Mat5
    }

    /// Reads a variable, or the only numeric one when `name` is `None`.
    ///
    /// # Errors
    /// [`MreError::VariableNotNamed`] or [`MreError::NoSuchVariable`] with the list of what is
    /// there; [`MreError::Unsupported`] for strings, cells and structures;
    /// [`MreError::Malformed`] when the file is damaged.
    pub fn read(&self, name: Option<&str>) -> Result<NamedArray> {
        let variables = self.variables()?;
        let info = self.select(&variables, name)?;
        if !info.numeric {
            return Err(MreError::Unsupported {
                path: self.path.to_owned(),
                what: format!("variable `{}` of type {}", info.name, info.dtype),
                hint: NUMERIC.into(),
            });
        }
        match self.format {
            Format::Mat5 => mat5::read(&self.bytes, &info.name),
            Format::Npy => numpy::read_npy(&self.bytes),
            Format::Npz => numpy::read_npz(&self.bytes, &info.name),
        }
        .map(|(data, is_complex)| NamedArray {
            name: info.name.clone(),
            data,
            is_complex,
            dtype: info.dtype.clone(),
        })
        .map_err(|damage| self.malformed(damage))
    }

    fn select<'v>(
        &self,
        variables: &'v [VariableInfo],
        name: Option<&str>,
    ) -> Result<&'v VariableInfo> {
        let path = self.path.to_owned();
        if let Some(asked) = name {
            return variables.iter().find(|v| v.name == asked).ok_or_else(|| {
                MreError::NoSuchVariable {
                    path,
                    asked: asked.into(),
                    candidates: describe(variables),
                }
            });
        }
        let mut numeric = variables.iter().filter(|v| v.numeric);
        match (numeric.next(), numeric.next()) {
            (Some(only), None) => Ok(only),
            (Some(_), Some(_)) => Err(MreError::VariableNotNamed {
                path,
                candidates: describe(variables),
            }),
            (None, _) => Err(MreError::Unsupported {
                path,
                what: format!("an array (the file holds {})", describe(variables)),
                hint: NUMERIC.into(),
            }),
        }
    }

    fn malformed(&self, damage: Damage) -> MreError {
        MreError::Malformed {
            path: self.path.to_owned(),
            format: self.format.name(),
            offset: damage.offset,
            problem: damage.problem,
        }
    }
}

/// Lists the variables of a file; see [`ArrayFile::variables`].
///
/// # Errors
/// As [`ArrayFile::open`] and [`ArrayFile::variables`].
pub fn list_variables(path: &Path) -> Result<Vec<VariableInfo>> {
    ArrayFile::open(path)?.variables()
}

/// Reads one array of a file; see [`ArrayFile::read`].
///
/// # Errors
/// As [`ArrayFile::open`] and [`ArrayFile::read`].
pub fn read_array(path: &Path, name: Option<&str>) -> Result<NamedArray> {
    ArrayFile::open(path)?.read(name)
}

fn describe(variables: &[VariableInfo]) -> String {
    if variables.is_empty() {
        return "no variables".into();
    }
    let item = |v: &VariableInfo| format!("{} {} {}", v.name, Shape::new(&v.shape), v.dtype);
    variables.iter().map(item).collect::<Vec<_>>().join(", ")
}

fn recognise(path: &Path, bytes: &[u8]) -> Result<Format> {
    const HDF5: &[u8] = b"\x89HDF\r\n\x1a\n";
    let unsupported = |what: String, hint: &str| MreError::Unsupported {
        path: path.to_owned(),
        what,
        hint: hint.into(),
    };
    // MATLAB puts 512 bytes of its own before the HDF5 signature.
    if bytes.starts_with(HDF5)
        || bytes.get(512..).is_some_and(|rest| rest.starts_with(HDF5))
        || bytes.starts_with(b"MATLAB 7.3")
    {
        return Err(unsupported(
            "the HDF5 format (MATLAB v7.3)".into(),
            "save the variable with save(..., '-v7'), or as .npy or .npz",
        ));
    }
    if bytes.starts_with(npy::MAGIC) {
        return Ok(Format::Npy);
    }
    if npz::is_archive(bytes) {
        return Ok(Format::Npz);
    }
    if matches!(bytes.get(126..128), Some(b"IM" | b"MI")) {
        return Ok(Format::Mat5);
    }
    if bytes.starts_with(b"MATLAB 5.0") {
        return Err(MreError::Malformed {
            path: path.to_owned(),
            format: Format::Mat5.name(),
            offset: bytes.len().min(126) as u64,
            problem: format!(
                "the 128-byte header ends without its byte-order mark ({} bytes in the file)",
                bytes.len()
            ),
        });
    }
    if is_mat4(bytes) {
        return Err(unsupported(
            "the MATLAB v4 format".into(),
            "load it in MATLAB or Octave and save it again with save -v7 (SciPy's loadmat and savemat do as well)",
        ));
    }
    const NEEDED: &str = "a MATLAB .mat file (v5 to v7), .npy or .npz is needed";
    if bytes.is_empty() {
        return Err(unsupported("a single byte".into(), "it is empty"));
    }
    let start = bytes.iter().take(8);
    let start: String = start.map(|b| b.escape_ascii().to_string()).collect();
    Err(unsupported(
        format!("the format that starts with `{start}`"),
        NEEDED,
    ))
}

/// Whether a file starts with the header of a matrix of MATLAB's level 4 format: five words (type, rows, columns, whether
/// there is an imaginary part, length of the name), then the name and its zero byte.
fn is_mat4(bytes: &[u8]) -> bool {
    let word = |i: usize| {
        let b = bytes.get(4 * i..4 * i + 4)?;
        Some([b[0], b[1], b[2], b[3]])
    };
    let follows = |read: fn([u8; 4]) -> u32, machine: u32| {
        let words: Option<Vec<u32>> = (0..5).map(|i| word(i).map(read)).collect();
        let Some([kind, _, _, imaginary, name]) = words.as_deref() else {
            return false;
        };
        // Thousands: byte order; hundreds: zero; tens: type of number; ones: full, text or sparse.
        let valid =
            kind / 1000 == machine && kind / 100 % 10 == 0 && kind / 10 % 10 <= 5 && kind % 10 <= 2;
        let text = bytes.get(20..20 + *name as usize);
        let (last, letters) = text.and_then(<[u8]>::split_last).unwrap_or((&1, &[]));
        let named = *last == 0
            && !letters.is_empty()
            && letters
                .iter()
                .all(|b| b.is_ascii_alphanumeric() || *b == b'_');
        valid && *imaginary <= 1 && named
    };
    follows(u32::from_le_bytes, 0) || follows(u32::from_be_bytes, 1)
}
