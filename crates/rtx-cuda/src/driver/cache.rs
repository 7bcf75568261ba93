//! Compiled kernels on disk, shared by all processes of a user.
//!
//! An entry is a file named by the hash of everything that determines it. It is written under a temporary
//! name and renamed, so that a reader sees all of it or nothing; it carries a checksum, so that a disk's or
//! a crash's damage makes it be compiled again instead of being run.

use super::Version;
use super::compile::{dump, run};
use super::nvrtc::nvrtc;
use crate::Result;
use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

/// Part of every key: changes when the entries' format or the meaning of a key does.
const FORMAT: &str = "rtx-cuda kernel 1";
const MAGIC: &[u8; 8] = b"RTXCUBIN";
const HASH: usize = blake3::OUT_LEN;
/// Bytes of all entries beyond which the oldest leave.
const LIMIT: u64 = 512 << 20;
/// Age after which a temporary file is that of a process that died.
const STALE: Duration = Duration::from_secs(3600);

/// A folder of compiled kernels.
#[derive(Clone, Debug)]
pub struct Cache {
    folder: Option<PathBuf>,
    limit: u64,
}

/// The name of an entry: a hash of all that determines the code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key(blake3::Hash);

/// Where code came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Read from the cache.
    Disk,
    /// Compiled by this call.
    Compiled,
}

/// Compiled code from [`Cache::compile`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cached {
    /// The code, for [`Module::load`](super::Module::load).
    pub cubin: Vec<u8>,
    /// Where it came from.
    pub origin: Origin,
    /// Why it could not be stored; the code itself is good.
    pub warning: Option<String>,
}

impl Key {
    /// Key of a source compiled with these options for this architecture by this version of NVRTC.
    pub fn new(source: &str, arch: &str, options: &[&str], nvrtc: Version) -> Self {
        let mut hasher = blake3::Hasher::new();
        let version = nvrtc.to_string();
        let mut add = |part: &str| {
            // The length first, so that no two lists of parts give the same bytes.
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part.as_bytes());
        };
        for part in [FORMAT, &version, arch, source] {
            add(part);
        }
        options.iter().for_each(|option| add(option));
        Self(hasher.finalize())
    }
}

impl Cache {
    /// The user's cache: the folder `RTX_CACHE`, else `rustytorch/kernels` in the user's cache folder; at
    /// most 512 MiB. Where there is neither, nothing is stored.
    pub fn user() -> Self {
        let set = |name: &str| {
            std::env::var_os(name)
                .filter(|v| !v.is_empty())
                .map(PathBuf::from)
        };
        let folder = set("RTX_CACHE").or_else(|| {
            let base = if cfg!(windows) {
                set("LOCALAPPDATA")
            } else {
                set("XDG_CACHE_HOME").or_else(|| set("HOME").map(|home| home.join(".cache")))
            };
            base.map(|base| base.join("rustytorch").join("kernels"))
        });
        Self {
            folder,
            limit: LIMIT,
        }
    }

    /// A cache in a folder, which need not exist yet, of at most `limit` bytes.
    pub fn at(folder: impl Into<PathBuf>, limit: u64) -> Self {
        Self {
            folder: Some(folder.into()),
            limit,
        }
    }

    /// Where entries are stored.
    pub fn folder(&self) -> Option<&Path> {
        self.folder.as_deref()
    }

    /// Code of a source: from the cache, or compiled and stored. Arguments are those of
    /// [`compile`](super::compile()). Safe for several threads and processes at a time.
    ///
    /// # Errors
    /// Those of [`compile`](super::compile()). A folder that cannot be read or written is no error.
    pub fn compile(
        &self,
        source: &str,
        name: &str,
        arch: &str,
        options: &[&str],
    ) -> Result<Cached> {
        let nvrtc = nvrtc()?;
        dump(source, name);
        self.fetch(Key::new(source, arch, options, nvrtc.version()), || {
            run(nvrtc, source, name, arch, options)
        })
    }

    /// The entry of a key, or what `build` makes, then stored.
    ///
    /// # Errors
    /// Those of `build`.
    pub fn fetch(&self, key: Key, build: impl FnOnce() -> Result<Vec<u8>>) -> Result<Cached> {
        let path = self
            .folder
            .as_ref()
            .map(|folder| folder.join(file_name(key)));
        if let Some(cubin) = path.as_ref().and_then(|path| self.read(path, key)) {
            return Ok(Cached {
                cubin,
                origin: Origin::Disk,
                warning: None,
            });
        }
        let cubin = build()?;
        let warning = match (&self.folder, path) {
            (Some(folder), Some(path)) => store(folder, &path, key, &cubin).err().map(|error| {
                format!(
                    "compiled kernels are not kept: {} cannot be written ({error}); set RTX_CACHE to a \
                     folder that can",
                    folder.display()
                )
            }),
            _ => Some(
                "compiled kernels are not kept: neither RTX_CACHE nor HOME is set".to_owned(),
            ),
        };
        if let (Some(folder), None) = (&self.folder, &warning) {
            evict(folder, self.limit);
        }
        Ok(Cached {
            cubin,
            origin: Origin::Compiled,
            warning,
        })
    }

    /// An entry that is whole; one that is damaged is removed.
    fn read(&self, path: &Path, key: Key) -> Option<Vec<u8>> {
        let mut file = File::open(path).ok()?;
        let length = file.metadata().ok()?.len();
        let mut entry = Vec::new();
        let whole = length <= self.limit.max(LIMIT)
            && file.read_to_end(&mut entry).is_ok()
            && entry.len() >= MAGIC.len() + HASH
            && entry.starts_with(MAGIC);
        let cubin = whole
            .then(|| entry.split_off(MAGIC.len() + HASH))
            .filter(|cubin| entry[MAGIC.len()..] == *checksum(key, cubin).as_bytes());
        if cubin.is_none() {
            drop(file);
            let _ = std::fs::remove_file(path);
            return None;
        }
        // The time of last use decides who leaves; a folder that is only readable serves as well.
        if let Ok(file) = File::options().append(true).open(path) {
            let _ = file.set_modified(SystemTime::now());
        }
        cubin
    }
}

fn file_name(key: Key) -> String {
    format!("{}.cubin", key.0.to_hex())
}

/// Of the code and of the key under which it is filed.
fn checksum(key: Key, cubin: &[u8]) -> blake3::Hash {
    blake3::keyed_hash(key.0.as_bytes(), cubin)
}

/// Writes an entry under a temporary name, then renames it.
fn store(folder: &Path, path: &Path, key: Key, cubin: &[u8]) -> std::io::Result<()> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    std::fs::create_dir_all(folder)?;
    let temporary = folder.join(format!(
        "{}-{}-{}.tmp",
        key.0.to_hex(),
        std::process::id(),
        NUMBER.fetch_add(1, Ordering::Relaxed)
    ));
    let written = File::create_new(&temporary)
        .and_then(|mut file| {
            file.write_all(MAGIC)?;
            file.write_all(checksum(key, cubin).as_bytes())?;
            file.write_all(cubin)
        })
        .and_then(|()| std::fs::rename(&temporary, path));
    if written.is_err() {
        let _ = std::fs::remove_file(&temporary);
    }
    written
}

/// Removes the entries longest unused until the rest fits, and what dead processes left.
fn evict(folder: &Path, limit: u64) {
    let mut entries = Vec::new();
    let mut total = 0;
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let Ok(data) = entry.metadata() else { continue };
        let used = data.modified().unwrap_or(SystemTime::UNIX_EPOCH);
        match path.extension().and_then(|e| e.to_str()) {
            Some("cubin") => {
                total += data.len();
                entries.push((used, data.len(), path));
            }
            Some("tmp") if used.elapsed().is_ok_and(|age| age > STALE) => {
                let _ = std::fs::remove_file(path);
            }
            _ => {}
        }
    }
    entries.sort();
    for (_, bytes, path) in entries {
        if total <= limit {
            return;
        }
        if std::fs::remove_file(path).is_ok() {
            total -= bytes;
        }
    }
}
