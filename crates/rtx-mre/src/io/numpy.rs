//! NumPy arrays as complex arrays of `ndarray`; the formats themselves are `rtx-tensor`'s.

use ndarray::{ArrayD, IxDyn, ShapeBuilder};
use num_complex::Complex64;
use rtx_tensor::io::npy::{Array, Header};
use rtx_tensor::io::npz::Reader;
use rtx_tensor::io::{Damage, Kind};

use super::VariableInfo;

/// Lists the array of an `.npy` file under the name given.
pub(super) fn list_npy(name: &str, file: &[u8]) -> Result<Vec<VariableInfo>, Damage> {
    let (header, _) = Header::parse(file)?;
    Ok(vec![info(name.into(), header)])
}

/// Lists the arrays of an archive, reading no more than their headers.
pub(super) fn list_npz(file: &[u8]) -> Result<Vec<VariableInfo>, Damage> {
    let headers = Reader::new(file)?.headers()?;
    Ok(headers.into_iter().map(|(n, h)| info(n, h)).collect())
}

/// Reads an `.npy` file; the flag says whether it stores complex numbers.
pub(super) fn read_npy(file: &[u8]) -> Result<(ArrayD<Complex64>, bool), Damage> {
    complex(&Array::parse(file)?)
}

/// Reads the array `name`, which the caller has found in [`list_npz`].
pub(super) fn read_npz(file: &[u8], name: &str) -> Result<(ArrayD<Complex64>, bool), Damage> {
    complex(&Reader::new(file)?.read(name)?)
}

fn info(name: String, header: Header) -> VariableInfo {
    VariableInfo {
        name,
        dtype: header.dtype_name(),
        numeric: header.encoding().is_some(),
        shape: header.shape,
    }
}

fn complex(array: &Array<'_>) -> Result<(ArrayD<Complex64>, bool), Damage> {
    let is_complex = array.encoding().kind() == Kind::Complex;
    let numbers = array.to_f64();
    let values: Vec<Complex64> = if is_complex {
        let (pairs, _) = numbers.as_chunks::<2>();
        pairs.iter().map(|&[re, im]| Complex64 { re, im }).collect()
    } else {
        numbers.into_iter().map(Complex64::from).collect()
    };
    let header = array.header();
    let shape = IxDyn(&header.shape).set_f(header.fortran_order);
    let array = ArrayD::from_shape_vec(shape, values)
        .map_err(|e| Damage::new(0, format!("shape {:?}: {e}", header.shape)))?;
    Ok((array, is_complex))
}
