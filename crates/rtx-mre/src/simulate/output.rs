//! Writing a phantom to `wave.npz`.

use super::{Phantom, SimulateError};
use crate::io::write_npz_as;
use ndarray::{Array1, arr0};
use rtx_tensor::io::npz::Compression;
use std::path::Path;

impl Phantom {
    /// Writes an uncompressed .npz file with the arrays `u` and `G` (complex128, axes frequency, x, y;
    /// G in Pa), `region` (int64, axes x, y), `freq` (Hz), `spacing` (m) and `noise` (relative power).
    ///
    /// The file is written under a temporary name in the same folder and renamed, so that `path` never
    /// holds a part of it.
    ///
    /// # Errors
    /// [`SimulateError::Io`] with the path.
    pub fn write_npz(&self, path: &Path) -> Result<(), SimulateError> {
        let freq = Array1::from(self.freq.clone());
        let (spacing, noise) = (arr0(self.spacing), arr0(self.noise));
        let arrays = [
            ("u", (&self.u).into()),
            ("G", (&self.g).into()),
            ("region", (&self.region).into()),
            ("freq", (&freq).into()),
            ("spacing", (&spacing).into()),
            ("noise", (&noise).into()),
        ];
        write_npz_as(path, &arrays, Compression::Stored).map_err(|e| SimulateError::Io {
            action: e.action,
            path: e.path,
            source: e.source,
        })
    }
}
