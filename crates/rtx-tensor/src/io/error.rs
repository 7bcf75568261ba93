//! What can be wrong with a file.

use std::io;
use std::path::{Path, PathBuf};

/// The operating system refused a file operation.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action} `{}`: {source}{}", path.display(), hint(action, path, source))]
pub struct SystemError {
    /// What was tried: `read` or `write`.
    pub action: &'static str,
    /// The file.
    pub path: PathBuf,
    /// The system's reason.
    pub source: io::Error,
}

impl SystemError {
    /// A file that could not be read.
    pub fn read(path: impl AsRef<Path>, source: io::Error) -> Self {
        Self::new("read", path.as_ref(), source)
    }

    /// A file that could not be written.
    pub fn write(path: impl AsRef<Path>, source: io::Error) -> Self {
        Self::new("write", path.as_ref(), source)
    }

    fn new(action: &'static str, path: &Path, source: io::Error) -> Self {
        Self {
            action,
            path: path.to_owned(),
            source,
        }
    }
}

fn hint(action: &str, path: &Path, source: &io::Error) -> String {
    let folder = || super::atomic::folder_of(path).display();
    match (action, source.kind()) {
        ("read", io::ErrorKind::NotFound) => "; give the path of an existing file".into(),
        ("write", io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            format!("; `{}` must be an existing folder", folder())
        }
        ("write", io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem) => {
            format!("; write to another folder than `{}`", folder())
        }
        _ => String::new(),
    }
}

/// Where and how the bytes of a file depart from its format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// Bytes from the start of the file.
    pub offset: u64,
    /// What was expected and what was found.
    pub problem: String,
}

impl Damage {
    /// Damage at an offset.
    pub fn new(offset: usize, problem: impl Into<String>) -> Self {
        Self {
            offset: offset as u64,
            problem: problem.into(),
        }
    }

    pub(super) fn in_file(self, path: &Path, format: &'static str) -> FileError {
        FileError::Malformed {
            path: path.to_owned(),
            format,
            offset: self.offset,
            problem: self.problem,
        }
    }
}

/// What can go wrong between a tensor and a file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// The operating system refused a file operation.
    #[error(transparent)]
    System(#[from] SystemError),
    /// A file is damaged, or of another format.
    #[error(
        "`{}` is not a valid {format} file: at byte {offset}: {problem}; write or copy it again, \
         or read it as what it is",
        path.display()
    )]
    Malformed {
        /// The file.
        path: PathBuf,
        /// The format that was asked for.
        format: &'static str,
        /// Where, in bytes from the start of the file.
        offset: u64,
        /// What was expected and what was found there.
        problem: String,
    },
    /// An array whose element type no tensor has.
    #[error(
        "`{}`: {array} holds elements of type {found}; a tensor holds bool, int32, int64, float32 or \
         float64: {}",
        path.display(), instead(found)
    )]
    ElementType {
        /// The file.
        path: PathBuf,
        /// The array.
        array: ArrayName,
        /// Element type in the file's own words.
        found: String,
    },
    /// An integer that a tensor would round: an integer passes through a double, which has 53 bits.
    #[error(
        "`{}`: element {index} of {array} is {value}, which needs more than the 53 bits that a tensor holds; \
         subtract an offset, or store float64 if rounding does no harm",
        path.display()
    )]
    Inexact {
        /// The file.
        path: PathBuf,
        /// The array.
        array: ArrayName,
        /// Position of the element in the order of the file.
        index: usize,
        /// The element.
        value: i64,
    },
    /// An array of a shape that no tensor has.
    #[error("`{}`: {array} has shape {shape:?}: {problem}; store it reshaped", path.display())]
    Shape {
        /// The file.
        path: PathBuf,
        /// The array.
        array: ArrayName,
        /// Extents.
        shape: Vec<usize>,
        /// What is wrong with it.
        problem: String,
    },
    /// An array that is not in the file.
    #[error("`{}` has no array `{asked}`; it holds {}", path.display(), list(held))]
    NoSuchArray {
        /// The file.
        path: PathBuf,
        /// The name asked for.
        asked: String,
        /// Names of the arrays that are there.
        held: Vec<String>,
    },
    /// A name that cannot be written: used twice, or reserved by the format.
    #[error("cannot write `{}`: the name `{name}` {problem}; give the array another name", path.display())]
    Name {
        /// The file.
        path: PathBuf,
        /// The name.
        name: String,
        /// What is wrong with it.
        problem: &'static str,
    },
}

impl FileError {
    /// The file that the error is about.
    pub fn path(&self) -> &Path {
        match self {
            Self::System(e) => &e.path,
            Self::Malformed { path, .. }
            | Self::ElementType { path, .. }
            | Self::Inexact { path, .. }
            | Self::Shape { path, .. }
            | Self::NoSuchArray { path, .. }
            | Self::Name { path, .. } => path,
        }
    }
}

/// Name of an array in a message; the array of an `.npy` file has none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArrayName(pub Option<String>);

impl ArrayName {
    pub(super) fn named(name: &str) -> Self {
        Self(Some(name.into()))
    }
}

impl std::fmt::Display for ArrayName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.0 {
            Some(name) => write!(f, "array `{name}`"),
            None => f.write_str("the array"),
        }
    }
}

fn instead(found: &str) -> &'static str {
    if found.starts_with("complex") || found == "C64" {
        "store real and imaginary part as two arrays (elastography data are read, complex or not, by rtx-mre)"
    } else {
        "convert the array before it is stored, or read the others by name"
    }
}

fn list(names: &[String]) -> String {
    const SHOWN: usize = 10;
    match names.len() {
        0 => "no arrays".into(),
        n if n > SHOWN => format!("{n} arrays: {}, ..", names[..SHOWN].join(", ")),
        _ => names.join(", "),
    }
}
