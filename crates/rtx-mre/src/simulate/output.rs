//! Writing a phantom to `wave.npz`.

use super::{Phantom, SimulateError};
use ndarray::{Array1, Data, Dimension, arr0};
use ndarray_npy::{NpzWriter, WritableElement};
use std::fs::File;
use std::path::Path;

impl Phantom {
    /// Writes an uncompressed .npz file with the arrays `u` and `G` (complex128, axes frequency, x, y;
    /// G in Pa), `region` (int64, axes x, y), `freq` (Hz), `spacing` (m) and `noise` (relative power).
    ///
    /// The file is written under a temporary name in the same folder and renamed, so that `path` never
    /// holds a part of it.
    ///
    /// # Errors
    /// [`SimulateError::Io`] or [`SimulateError::Npz`], both with the path.
    pub fn write_npz(&self, path: &Path) -> Result<(), SimulateError> {
        let io = |source| SimulateError::Io {
            action: "write",
            path: path.to_owned(),
            source,
        };
        let folder = match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        let mut builder = tempfile::Builder::new();
        builder.prefix(".wave-").suffix(".npz");
        #[cfg(unix)]
        {
            // Temporary files are private by default; the mask of the process applies to this one.
            use std::os::unix::fs::PermissionsExt;
            builder.permissions(std::fs::Permissions::from_mode(0o666));
        }
        let file = builder.tempfile_in(folder).map_err(io)?;

        self.write_arrays(file.as_file(), path)?;
        file.as_file().sync_all().map_err(io)?;
        file.persist(path).map_err(|error| io(error.error))?;
        Ok(())
    }

    fn write_arrays(&self, file: &File, path: &Path) -> Result<(), SimulateError> {
        let mut npz = Writer {
            npz: NpzWriter::new(file),
            path,
        };
        npz.add("u", &self.u)?;
        npz.add("G", &self.g)?;
        npz.add("region", &self.region)?;
        npz.add("freq", &Array1::from(self.freq.clone()))?;
        npz.add("spacing", &arr0(self.spacing))?;
        npz.add("noise", &arr0(self.noise))?;
        npz.npz
            .finish()
            .map(|_| ())
            .map_err(|source| SimulateError::Npz {
                path: path.to_owned(),
                array: "the directory of arrays",
                source,
            })
    }
}

struct Writer<'a> {
    npz: NpzWriter<&'a File>,
    path: &'a Path,
}

impl Writer<'_> {
    fn add<S, D>(
        &mut self,
        array: &'static str,
        values: &ndarray::ArrayBase<S, D>,
    ) -> Result<(), SimulateError>
    where
        S: Data,
        S::Elem: WritableElement,
        D: Dimension,
    {
        self.npz
            .add_array(array, values)
            .map_err(|source| SimulateError::Npz {
                path: self.path.to_owned(),
                array,
                source,
            })
    }
}
