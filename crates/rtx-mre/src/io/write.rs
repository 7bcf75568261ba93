//! Writing arrays of `ndarray` to `.npz` files.

use std::io::{self, Seek, Write};
use std::path::Path;

use ndarray::{Array, ArrayView, ArrayViewD, Dimension};
use num_complex::Complex64;
use rtx_tensor::io::npz::{Compression, Writer};
use rtx_tensor::io::{SystemError, write_atomic};

use crate::error::Result;

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
    fn add_to<W: Write + Seek>(&self, archive: &mut Writer<W>, name: &str) -> io::Result<()> {
        match self {
            Self::F64(a) => archive.add(name, a.shape(), a.iter().copied()),
            Self::F32(a) => archive.add(name, a.shape(), a.iter().copied()),
            Self::Bool(a) => archive.add(name, a.shape(), a.iter().copied()),
            Self::I64(a) => archive.add(name, a.shape(), a.iter().copied()),
            Self::C64(a) => archive.add(name, a.shape(), a.iter().map(|v| [v.re, v.im])),
        }
    }
}

/// Writes named arrays as a deflated `.npz`, in C order, whole or not at all.
///
/// # Errors
/// [`MreError::Io`](crate::MreError::Io) when the file cannot be written.
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
    Ok(write_npz_as(path, arrays, Compression::Deflated)?)
}

/// Writes named arrays in C order, whole or not at all.
pub(crate) fn write_npz_as(
    path: &Path,
    arrays: &[(&str, NpzArray<'_>)],
    compression: Compression,
) -> Result<(), SystemError> {
    write_atomic(path, |out| {
        let mut archive = Writer::new(out, compression);
        arrays
            .iter()
            .try_for_each(|(name, array)| array.add_to(&mut archive, name))
            .and_then(|()| archive.finish())
            .map_err(|e| SystemError::write(path, e))
    })
}
