//! Where results go: the terminal, and folders that are checked before any work starts.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use rustytorch::mre::MreError;
use rustytorch::tensor::io::{SystemError, write_atomic};
use serde_json::Value;

use crate::failure::Failure;

/// Writes a line to the standard output. A reader that went away (`rtx ... | head`) is no error.
pub fn say(text: &str) {
    let _ = writeln!(std::io::stdout(), "{text}");
}

/// Writes a line to the standard error.
pub fn note(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// Prints a JSON document.
pub fn say_json(value: &Value) {
    say(&format!("{value:#}"));
}

/// A folder that exists and accepts files.
///
/// Folders made by [`prepare`](Self::prepare) vanish again when it is dropped while they are empty,
/// so a run that fails leaves nothing behind.
#[derive(Debug)]
pub struct OutputFolder {
    path: PathBuf,
    /// Folders that did not exist before, outermost first.
    created: Vec<PathBuf>,
}

impl OutputFolder {
    /// Creates the folder if need be and proves that a file can be made in it.
    ///
    /// # Errors
    /// [`Failure::Input`] naming the path and the system's reason.
    pub fn prepare(path: &Path) -> Result<Self, Failure> {
        let refused = |problem: String| {
            Failure::input(format!(
                "cannot write into the output folder `{}`: {problem}; give another folder with --out",
                path.display()
            ))
        };
        if path.as_os_str().is_empty() {
            return Err(refused("the name is empty".into()));
        }
        if path.exists() && !path.is_dir() {
            return Err(refused("it is a file".into()));
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
            created,
        };
        fs::create_dir_all(path).map_err(|e| refused(e.to_string()))?;
        tempfile::Builder::new()
            .prefix(".rtx-probe-")
            .tempfile_in(path)
            .map_err(|e| refused(e.to_string()))?;
        Ok(folder)
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
        drop(OutputFolder::prepare(&path).unwrap());
        assert!(!root.path().join("a").exists());

        let folder = OutputFolder::prepare(&path).unwrap();
        write_json(&folder.file("x.json"), &serde_json::json!({"x": 1})).unwrap();
        drop(folder);
        assert_eq!(fs::read_dir(&path).unwrap().count(), 1);
        // A folder that was there before stays, empty or not.
        let before = root.path().join("before");
        fs::create_dir(&before).unwrap();
        drop(OutputFolder::prepare(&before).unwrap());
        assert!(before.exists());
    }
}
