//! Files that appear whole or not at all.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use super::SystemError;

/// Writes a file under a temporary name in the same folder, then renames it into place.
///
/// A reader sees the old file or the new one, never a part; after an error nothing is left. The new file has
/// the permissions of any new file (on Unix 0666 less the umask), also where it replaces another one.
///
/// # Errors
/// [`SystemError`] of any step, and what `write` returns.
///
/// # Examples
/// ```
/// use rtx_tensor::io::{SystemError, write_atomic};
/// use std::io::Write;
/// let path = std::env::temp_dir().join(format!("rtx-doc-atomic-{}.txt", std::process::id()));
/// write_atomic(&path, |out| {
///     out.write_all(b"all or nothing").map_err(|e| SystemError::write(&path, e))
/// })?;
/// assert_eq!(std::fs::read_to_string(&path).unwrap(), "all or nothing");
/// # std::fs::remove_file(&path).ok();
/// # Ok::<(), SystemError>(())
/// ```
pub fn write_atomic<E: From<SystemError>>(
    path: impl AsRef<Path>,
    write: impl FnOnce(&mut BufWriter<File>) -> Result<(), E>,
) -> Result<(), E> {
    let path = path.as_ref();
    let refused = |e| E::from(SystemError::write(path, e));
    let (temporary, file) = TemporaryFile::beside(path).map_err(refused)?;
    let mut out = BufWriter::with_capacity(1 << 16, file);
    write(&mut out)?;
    out.flush()
        .and_then(|()| out.get_ref().sync_all())
        .map_err(refused)?;
    // Some systems do not rename an open file.
    drop(out);
    temporary.rename(path).map_err(refused)
}

/// The folder that holds a file.
pub(super) fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// A file that is removed when it goes out of scope.
struct TemporaryFile {
    path: PathBuf,
    renamed: bool,
}

impl TemporaryFile {
    fn beside(path: &Path) -> io::Result<(Self, File)> {
        static COUNTER: AtomicU64 = AtomicU64::new(0);
        if path.file_name().is_none() {
            let message = "the path does not end in a file name";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        loop {
            let unique = COUNTER.fetch_add(1, Ordering::Relaxed);
            // Short whatever the target's name is, since the system limits the length of names.
            let name = format!(".rtx-{}-{unique}.tmp", std::process::id());
            let path = folder_of(path).join(name);
            match OpenOptions::new().write(true).create_new(true).open(&path) {
                Ok(file) => {
                    let renamed = false;
                    return Ok((Self { path, renamed }, file));
                }
                // Left by a process of the same number that was killed: take the next name.
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
                Err(e) => return Err(e),
            }
        }
    }

    fn rename(mut self, target: &Path) -> io::Result<()> {
        fs::rename(&self.path, target)?;
        self.renamed = true;
        Ok(())
    }
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        if !self.renamed {
            // Nothing can be done about a failure here, and the first error is the one to report.
            let _ = fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write_text(path: &Path, text: &str) -> Result<(), SystemError> {
        write_atomic(path, |out| {
            let written = out.write_all(text.as_bytes());
            written.map_err(|e| SystemError::write(path, e))
        })
    }

    #[cfg(unix)]
    #[test]
    fn a_new_file_has_the_permissions_that_the_umask_leaves() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o7777;
        // A file that the standard library makes shows what the umask of this process leaves.
        let usual = folder.path().join("usual");
        File::create(&usual).unwrap();
        let path = folder.path().join("atomic");
        write_text(&path, "first").unwrap();
        assert_eq!(mode(&path), mode(&usual));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        write_text(&path, "second").unwrap();
        assert_eq!(mode(&path), mode(&usual), "also where it replaces a file");
    }

    #[test]
    fn a_failure_leaves_the_old_file_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        write_text(&path, "old").unwrap();
        let failed: Result<(), SystemError> = write_atomic(&path, |out| {
            out.write_all(b"half").unwrap();
            Err(SystemError::write(&path, io::Error::other("enough")))
        });
        assert!(failed.is_err());
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn temporary_files_of_a_killed_process_are_no_obstacle() {
        let folder = tempfile::tempdir().unwrap();
        let prefix = format!(".rtx-{}-", std::process::id());
        for n in 0..100 {
            fs::write(folder.path().join(format!("{prefix}{n}.tmp")), "").unwrap();
        }
        let path = folder.path().join("file");
        write_text(&path, "new").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
    }

    #[test]
    fn long_names_are_written_and_no_name_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("n".repeat(250));
        write_text(&path, "").unwrap();
        let error = write_text(Path::new("/"), "").unwrap_err();
        assert!(error.to_string().contains("file name"), "{error}");
    }
}
