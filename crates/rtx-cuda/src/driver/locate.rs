//! Where NVRTC may lie: it is not part of the driver.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Reads an environment variable; a parameter so that tests need not change the process's own.
pub(crate) type Environment<'a> = &'a dyn Fn(&str) -> Option<OsString>;

/// A place to look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Candidate {
    /// A name for the loader to resolve.
    Name(&'static str),
    /// A file, which exists.
    File(PathBuf),
    /// A folder in which nothing was found; kept for the error's text.
    Nothing(PathBuf),
}

/// Names that the loader may know, newest first.
const NAMES: &[&str] = if cfg!(windows) {
    &["nvrtc64_130_0.dll", "nvrtc64_120_0.dll"]
} else {
    &["libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12"]
};

/// Places in the order in which they are tried. `RTX_NVRTC`, where set, is the only one.
pub(crate) fn candidates(environment: Environment) -> Vec<Candidate> {
    let set = |name: &str| {
        environment(name)
            .filter(|v| !v.is_empty())
            .map(PathBuf::from)
    };
    if let Some(path) = set("RTX_NVRTC") {
        return if path.is_dir() {
            libraries(&path)
        } else if path.exists() {
            vec![Candidate::File(path)]
        } else {
            vec![Candidate::Nothing(path)]
        };
    }
    let mut found: Vec<Candidate> = NAMES.iter().map(|n| Candidate::Name(n)).collect();
    for folder in toolkits(&set).into_iter().chain(packages(&set)) {
        if folder.is_dir() {
            found.extend(libraries(&folder));
        }
    }
    found
}

/// The NVRTC libraries of a folder, newest first; several names of one file count once.
fn libraries(folder: &Path) -> Vec<Candidate> {
    let mut found: Vec<(Vec<u32>, PathBuf)> = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some(version) = name.to_str().and_then(version_of) else {
            continue;
        };
        let path = entry.path();
        let file = path.canonicalize().unwrap_or(path);
        // A link's own name says less than that of its file.
        let version = file
            .file_name()
            .and_then(|name| version_of(name.to_str()?))
            .unwrap_or(version);
        if !found.iter().any(|(_, other)| *other == file) {
            found.push((version, file));
        }
    }
    if found.is_empty() {
        return vec![Candidate::Nothing(folder.into())];
    }
    found.sort_by(|a, b| b.cmp(a));
    found.into_iter().map(|(_, f)| Candidate::File(f)).collect()
}

/// The numbers in the name of an NVRTC library; `None` for other files (its builtins, its `alt` build).
fn version_of(name: &str) -> Option<Vec<u32>> {
    let numbers = |text: &str, separator: char| -> Option<Vec<u32>> {
        text.split(separator)
            .filter(|part| !part.is_empty())
            .map(|part| part.parse().ok())
            .collect()
    };
    if cfg!(windows) {
        numbers(name.strip_prefix("nvrtc64_")?.strip_suffix(".dll")?, '_')
    } else {
        numbers(name.strip_prefix("libnvrtc.so")?, '.')
    }
}

/// Library folders of CUDA toolkits.
fn toolkits(set: &impl Fn(&str) -> Option<PathBuf>) -> Vec<PathBuf> {
    let mut roots: Vec<PathBuf> = ["CUDA_HOME", "CUDA_PATH"]
        .iter()
        .filter_map(|v| set(v))
        .collect();
    if cfg!(unix) {
        roots.push("/usr/local/cuda".into());
        let mut versions = children(Path::new("/usr/local"), |name| name.starts_with("cuda-"));
        versions.reverse();
        roots.extend(versions);
        roots.push("/opt/cuda".into());
    }
    roots
        .iter()
        .flat_map(|root| ["lib64", "lib", "bin", "bin/x64"].map(|sub| root.join(sub)))
        .collect()
}

/// Folders into which the packages `nvidia-cuda-nvrtc`, `nvidia-cuda-nvrtc-cu12` and conda's put it.
fn packages(set: &impl Fn(&str) -> Option<PathBuf>) -> Vec<PathBuf> {
    let mut prefixes: Vec<PathBuf> = ["VIRTUAL_ENV", "CONDA_PREFIX"]
        .iter()
        .filter_map(|v| set(v))
        .collect();
    // The prefix of the first python3 on the path, and of the one it links to.
    if let Some(python) = set("PATH").and_then(|path| {
        std::env::split_paths(&path)
            .map(|folder| {
                folder.join(if cfg!(windows) {
                    "python.exe"
                } else {
                    "python3"
                })
            })
            .find(|file| file.is_file())
    }) {
        let real = python.canonicalize().unwrap_or_else(|_| python.clone());
        for file in [python, real] {
            prefixes.extend(file.parent().and_then(Path::parent).map(Path::to_owned));
        }
    }
    prefixes.extend(set("HOME").map(|home| home.join(".local")));
    prefixes.extend(["/usr/local".into(), "/usr".into()]);
    let mut folders = Vec::new();
    for prefix in prefixes {
        folders.push(prefix.join("lib"));
        let mut sites = vec![prefix.join("Lib/site-packages")];
        for python in children(&prefix.join("lib"), |name| name.starts_with("python3")) {
            sites.extend(["site-packages", "dist-packages"].map(|sub| python.join(sub)));
        }
        for site in sites {
            // `cu13` and its successors hold every library of that CUDA, `cuda_nvrtc` is the older layout.
            let mut parts = children(&site.join("nvidia"), |name| {
                name == "cuda_nvrtc"
                    || name
                        .strip_prefix("cu")
                        .is_some_and(|n| n.parse::<u32>().is_ok())
            });
            parts.sort_by_key(|part| part.ends_with("cuda_nvrtc"));
            for part in parts {
                folders.extend(["lib", "bin", "bin/x86_64"].map(|sub| part.join(sub)));
            }
        }
    }
    let mut seen = Vec::new();
    folders.retain(|folder| {
        let new = !seen.contains(folder);
        seen.push(folder.clone());
        new
    });
    folders
}

/// The entries of a folder whose names `keep` accepts, sorted.
fn children(folder: &Path, keep: impl Fn(&str) -> bool) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = std::fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| entry.file_name().to_str().is_some_and(&keep))
        .map(|entry| entry.path())
        .collect();
    found.sort();
    found
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    fn touch(path: &Path) {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, b"").unwrap();
    }

    #[test]
    fn a_named_place_is_the_only_one() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let with = |value: PathBuf| {
            candidates(&move |name| (name == "RTX_NVRTC").then(|| value.clone().into()))
        };
        let absent = root.join("absent");
        assert_eq!(with(absent.clone()), [Candidate::Nothing(absent)]);
        assert_eq!(with(root.clone()), [Candidate::Nothing(root.clone())]);
        for name in [
            "libnvrtc.so.12",
            "libnvrtc.so.13",
            "libnvrtc-builtins.so.13.0",
            "libnvrtc.alt.so.13",
        ] {
            touch(&root.join(name));
        }
        std::os::unix::fs::symlink(root.join("libnvrtc.so.13"), root.join("libnvrtc.so")).unwrap();
        let expected = ["libnvrtc.so.13", "libnvrtc.so.12"].map(|n| Candidate::File(root.join(n)));
        assert_eq!(with(root.clone()), expected);
        let file = root.join("libnvrtc.so.12");
        assert_eq!(with(file.clone()), [Candidate::File(file)]);
    }

    #[test]
    fn toolkits_come_before_packages() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let files = [
            root.join("toolkit/lib64/libnvrtc.so.12"),
            root.join("venv/lib/python3.11/site-packages/nvidia/cu13/lib/libnvrtc.so.13"),
            root.join("venv/lib/python3.11/site-packages/nvidia/cuda_nvrtc/lib/libnvrtc.so.12"),
            root.join(
                "home/.local/lib/python3.9/site-packages/nvidia/cuda_nvrtc/lib/libnvrtc.so.12",
            ),
        ];
        files.iter().for_each(|f| touch(f));
        let found = candidates(&|name| match name {
            "CUDA_HOME" => Some(root.join("toolkit").into()),
            "VIRTUAL_ENV" => Some(root.join("venv").into()),
            "HOME" => Some(root.join("home").into()),
            _ => None,
        });
        let places: Vec<_> = files
            .iter()
            .map(|f| found.iter().position(|c| *c == Candidate::File(f.clone())))
            .collect();
        assert!(places.iter().all(Option::is_some), "{found:?}");
        assert!(places.is_sorted(), "{places:?}");
    }
}
