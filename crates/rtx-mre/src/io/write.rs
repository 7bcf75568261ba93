//! Writing: files appear whole or not at all.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use ndarray::{Array, ArrayView, ArrayViewD, Dimension};
use num_complex::Complex64;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use crate::error::{MreError, Result};

/// Writes a file under a temporary name in the same folder, then renames it into place.
///
/// A reader sees the old file or the new one, never a part; after an error nothing is left. The
/// temporary name keeps the extension, for encoders that look at it.
///
/// # Errors
/// [`MreError::Io`] of any step, and what `write` returns.
pub fn write_atomic(path: &Path, write: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
    let temporary = TemporaryFile::beside(path)?;
    write(&temporary.path)?;
    File::open(&temporary.path)
        .and_then(|file| file.sync_all())
        .and_then(|()| fs::rename(&temporary.path, path))
        .map_err(|e| MreError::io("write", path, e))?;
    std::mem::forget(temporary);
    Ok(())
}

/// A file that is removed when it goes out of scope.
struct TemporaryFile {
    path: PathBuf,
}

impl TemporaryFile {
    fn beside(path: &Path) -> Result<Self> {
        static COUNTER: AtomicU64 = AtomicU64::new(0);
        let error = |e| MreError::io("create", path, e);
        let name = path.file_name().ok_or_else(|| {
            error(io::Error::new(
                io::ErrorKind::InvalidInput,
                "not a file name",
            ))
        })?;
        let unique = COUNTER.fetch_add(1, Ordering::Relaxed);
        let prefix = format!(".{}-{unique}-", std::process::id());
        let mut temporary = std::ffi::OsString::from(prefix);
        temporary.push(name);
        let path_of_temporary = path.with_file_name(temporary);
        OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(&path_of_temporary)
            .map_err(error)?;
        Ok(Self {
            path: path_of_temporary,
        })
    }
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        // Nothing can be done about a failure here, and the first error is the one to report.
        let _ = fs::remove_file(&self.path);
    }
}

/// A borrowed array of one of the element types that [`write_npz`] stores.
#[derive(Debug, Clone)]
pub enum NpzArray<'a> {
    /// NumPy `float64`.
    F64(ArrayViewD<'a, f64>),
    /// NumPy `float32`.
    F32(ArrayViewD<'a, f32>),
    /// NumPy `complex128`.
    C64(ArrayViewD<'a, Complex64>),
    /// NumPy `bool`.
    Bool(ArrayViewD<'a, bool>),
    /// NumPy `int64`.
    I64(ArrayViewD<'a, i64>),
}

macro_rules! npz_array_from {
    ($($element:ty => $variant:ident),*) => {$(
        impl<'a, D: Dimension> From<&'a Array<$element, D>> for NpzArray<'a> {
            fn from(array: &'a Array<$element, D>) -> Self {
                Self::$variant(array.view().into_dyn())
            }
        }

        impl<'a, D: Dimension> From<ArrayView<'a, $element, D>> for NpzArray<'a> {
            fn from(array: ArrayView<'a, $element, D>) -> Self {
                Self::$variant(array.into_dyn())
            }
        }
    )*};
}
npz_array_from!(f64 => F64, f32 => F32, Complex64 => C64, bool => Bool, i64 => I64);

impl NpzArray<'_> {
    fn write_npy(&self, out: &mut impl Write) -> io::Result<()> {
        match self {
            Self::F64(a) => body(out, "<f8", a, |v, out| out.write_all(&v.to_le_bytes())),
            Self::F32(a) => body(out, "<f4", a, |v, out| out.write_all(&v.to_le_bytes())),
            Self::Bool(a) => body(out, "|b1", a, |v, out| out.write_all(&[u8::from(*v)])),
            Self::I64(a) => body(out, "<i8", a, |v, out| out.write_all(&v.to_le_bytes())),
            Self::C64(a) => body(out, "<c16", a, |v, out| {
                out.write_all(&v.re.to_le_bytes())?;
                out.write_all(&v.im.to_le_bytes())
            }),
        }
    }
}

fn body<T, W: Write>(
    out: &mut W,
    descr: &str,
    array: &ArrayViewD<'_, T>,
    element: impl Fn(&T, &mut W) -> io::Result<()>,
) -> io::Result<()> {
    let extents: String = array.shape().iter().map(|n| format!("{n}, ")).collect();
    let mut header =
        format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({extents}), }}");
    // The data must start at a multiple of 64 bytes, and the header end with a line feed.
    let padded = (10 + header.len() + 1).next_multiple_of(64) - 10;
    header.extend(std::iter::repeat_n(' ', padded - header.len() - 1));
    header.push('\n');
    let len = u16::try_from(header.len()).map_err(io::Error::other)?;
    out.write_all(b"\x93NUMPY\x01\x00")?;
    out.write_all(&len.to_le_bytes())?;
    out.write_all(header.as_bytes())?;
    array.iter().try_for_each(|v| element(v, out))
}

/// Writes named arrays as a deflated `.npz`, in C order, whole or not at all.
///
/// # Errors
/// [`MreError::Io`] when the file cannot be written.
///
/// # Examples
/// ```
/// # fn main() -> rtx_mre::Result<()> {
/// use ndarray::array;
/// let folder = std::env::temp_dir();
/// let path = folder.join(format!("rtx-doc-{}.npz", std::process::id()));
/// let (freq, mask) = (array![30.0, 40.0], array![[true, false]]);
/// rtx_mre::io::write_npz(&path, &[("freq", (&freq).into()), ("mask", (&mask).into())])?;
/// let read = rtx_mre::io::read_array(&path, Some("freq"))?;
/// assert_eq!(read.data[[1]].re, 40.0);
/// # std::fs::remove_file(&path).ok();
/// # Ok(())
/// # }
/// ```
pub fn write_npz(path: &Path, arrays: &[(&str, NpzArray<'_>)]) -> Result<()> {
    write_atomic(path, |temporary| {
        OpenOptions::new()
            .write(true)
            .open(temporary)
            .and_then(|file| write_archive(file, arrays))
            .map_err(|e| MreError::io("write", path, e))
    })
}

fn write_archive(file: impl Write + Seek, arrays: &[(&str, NpzArray<'_>)]) -> io::Result<()> {
    let mut archive = ZipWriter::new(file);
    let options = SimpleFileOptions::default()
        .compression_method(CompressionMethod::Deflated)
        .large_file(true);
    for (name, array) in arrays {
        archive.start_file(format!("{name}.npy"), options)?;
        let mut buffered = BufWriter::with_capacity(1 << 16, &mut archive);
        array.write_npy(&mut buffered)?;
        buffered.flush()?;
    }
    archive.finish()?.flush()
}
