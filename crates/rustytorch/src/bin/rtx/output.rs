//! Where results go: the terminal, and folders that are checked before any work starts.

use std::fs::{self, File, TryLockError};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use rustytorch::mre::MreError;
use rustytorch::tensor::io::{SystemError, write_atomic};
use serde::Serializer;
use serde_json::Value;

use crate::failure::Failure;

/// Writes a line to the standard output. A reader that went away (`rtx ... | head`) is no error.
///
/// # Errors
/// The system's refusal, for example on a full disk: a script must not take half a report for a whole one.
pub fn say(text: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    match writeln!(out, "{text}").and_then(|()| out.flush()) {
        Err(e) if e.kind() != ErrorKind::BrokenPipe => Err(Failure::Other(format!(
            "cannot write to the standard output: {e}"
        ))),
        _ => Ok(()),
    }
}

/// Writes a line to the standard error.
pub fn note(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// Prints a JSON document.
///
/// # Errors
/// As [`say`].
pub fn say_json(value: &Value) -> Result<(), Failure> {
    say(&format!("{value:#}"))
}

/// A path need not be UTF-8, a report must be.
pub fn as_text<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&path.display())
}

/// A setting by the name that its flag takes.
pub fn as_name<S: Serializer>(
    setting: &impl std::fmt::Display,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_str(setting)
}

/// A folder that exists and accepts files.
///
/// Folders made by [`prepare`](Self::prepare) vanish again when it is dropped while they are empty,
/// so a run that fails leaves nothing behind.
#[derive(Debug)]
pub struct OutputFolder {
    path: PathBuf,
    /// The folder, open and locked as long as its owner writes into it.
    _lock: Option<File>,
    /// Folders that did not exist before, outermost first.
    created: Vec<PathBuf>,
}

impl OutputFolder {
    /// Creates the folder if need be, proves that a file can be made in it, that no other process writes
    /// its results there, and that `files` are free or files that can be replaced.
    ///
    /// # Errors
    /// [`Failure::Input`] naming the path and the reason.
    pub fn prepare(path: &Path, files: &[&str]) -> Result<Self, Failure> {
        let refused = |problem: String| {
            Failure::input(format!(
                "cannot write into the output folder `{}`: {problem}; give another folder with --out",
                path.display()
            ))
        };
        let mut folder = Self::accessible(path).map_err(refused)?;
        folder._lock = lock(path).map_err(refused)?;
        for file in files {
            check_target(&folder.file(file)).map_err(refused)?;
        }
        Ok(folder)
    }

    /// Creates the folder of a file if need be, and proves that the file can be written.
    ///
    /// # Errors
    /// [`Failure::Input`] naming the file, `option` and the reason.
    pub fn of_file(file: &Path, option: &str) -> Result<Self, Failure> {
        let parent = file.parent().filter(|p| !p.as_os_str().is_empty());
        Self::accessible(parent.unwrap_or(".".as_ref()))
            .and_then(|folder| check_target(file).map(|()| folder))
            .map_err(|problem| {
                Failure::input(format!(
                    "{option} {}: cannot write there: {problem}; give another file",
                    file.display()
                ))
            })
    }

    fn accessible(path: &Path) -> Result<Self, String> {
        if path.as_os_str().is_empty() {
            return Err("the name is empty".into());
        }
        if path.exists() && !path.is_dir() {
            return Err(format!("`{}` is a file", path.display()));
        }
        let missing = |p: &&Path| !p.as_os_str().is_empty() && !p.exists();
        let mut created: Vec<PathBuf> = path
            .ancestors()
            .take_while(missing)
            .map(Path::to_owned)
            .collect();
        created.reverse();
        let folder = Self {
            path: path.to_owned(),
            _lock: None,
            created,
        };
        fs::create_dir_all(path).map_err(|e| e.to_string())?;
        let probe = tempfile::Builder::new()
            .prefix(".rtx-probe-")
            .tempfile_in(path);
        match probe {
            Ok(_) => Ok(folder),
            Err(e) => Err(e.to_string()),
        }
    }

    /// A file of the folder.
    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// Takes the lock of a folder, which the system gives back when the process ends, however it ends. `None` where
/// folders cannot be opened or locked (Windows, some network file systems).
fn lock(path: &Path) -> Result<Option<File>, String> {
    let Ok(folder) = File::open(path) else {
        return Ok(None);
    };
    match folder.try_lock() {
        Ok(()) => Ok(Some(folder)),
        Err(TryLockError::WouldBlock) => {
            Err("another rtx is writing its results into it; wait for its end".into())
        }
        Err(TryLockError::Error(_)) => Ok(None),
    }
}

/// Refuses what a new file must not take the place of: a folder, a device, a pipe, a link to one.
fn check_target(file: &Path) -> Result<(), String> {
    match fs::symlink_metadata(file) {
        Ok(found) if found.is_dir() => Err(format!("`{}` is a folder", file.display())),
        Ok(found) if !found.is_file() => Err(format!("`{}` is no ordinary file", file.display())),
        _ => Ok(()),
    }
}

impl Drop for OutputFolder {
    fn drop(&mut self) {
        for folder in self.created.iter().rev() {
            // Fails where the folder holds something, which is what is wanted.
            if fs::remove_dir(folder).is_err() {
                break;
            }
        }
    }
}

/// Writes a JSON document, whole or not at all.
///
/// # Errors
/// [`MreError::Io`] when the file cannot be written.
pub fn write_json(path: &Path, value: &Value) -> Result<(), MreError> {
    write_atomic(path, |out| {
        let written = writeln!(out, "{value:#}");
        Ok(written.map_err(|e| SystemError::write(path, e))?)
    })
}

/// The command line as typed, quoted where a shell needs it.
pub fn command_line() -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./,=+:@%".contains(c);
    let quote = |arg: String| {
        if !arg.is_empty() && arg.chars().all(plain) {
            arg
        } else {
            format!("'{}'", arg.replace('\'', r"'\''"))
        }
    };
    let args = std::env::args_os().skip(1);
    let args = args.map(|arg| quote(arg.to_string_lossy().into_owned()));
    std::iter::once("rtx".to_string())
        .chain(args)
        .collect::<Vec<_>>()
        .join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unused_folder_vanishes_and_a_used_one_stays() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("a/b");
        drop(OutputFolder::prepare(&path, &[]).unwrap());
        assert!(!root.path().join("a").exists());

        let folder = OutputFolder::prepare(&path, &[]).unwrap();
        write_json(&folder.file("x.json"), &serde_json::json!({"x": 1})).unwrap();
        drop(folder);
        assert_eq!(fs::read_dir(&path).unwrap().count(), 1);
        // A folder that was there before stays, empty or not.
        let before = root.path().join("before");
        fs::create_dir(&before).unwrap();
        drop(OutputFolder::prepare(&before, &[]).unwrap());
        assert!(before.exists());
    }

    #[test]
    fn what_cannot_be_replaced_is_refused_beforehand() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("maps.png")).unwrap();
        fs::write(root.path().join("old.npz"), "old").unwrap();
        let prepare = |files: &[&str]| OutputFolder::prepare(root.path(), files);
        prepare(&["old.npz", "new.json"]).unwrap();
        let error = prepare(&["old.npz", "maps.png"]).unwrap_err().to_string();
        assert!(error.contains("maps.png` is a folder"), "{error}");
        let error = OutputFolder::of_file(&root.path().join("maps.png"), "--json").unwrap_err();
        assert!(error.to_string().contains("--json"), "{error}");
    }

    #[cfg(unix)]
    #[test]
    fn a_folder_has_one_writer_at_a_time() {
        let root = tempfile::tempdir().unwrap();
        let first = OutputFolder::prepare(root.path(), &[]).unwrap();
        let error = OutputFolder::prepare(root.path(), &[]).unwrap_err();
        assert!(error.to_string().contains("another rtx"), "{error}");
        drop(first);
        OutputFolder::prepare(root.path(), &[]).unwrap();
    }
}
