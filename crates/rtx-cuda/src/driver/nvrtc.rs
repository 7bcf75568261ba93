//! NVRTC, the compiler of CUDA C at run time, opened by hand: cudarc looks for it under the loader's names
//! only, and panics where there is none.

use super::Version;
use super::api::api;
use super::locate::{Candidate, Environment, candidates};
use crate::{Error, Result};
use libloading::Library;
use std::ffi::{CStr, CString, OsStr, c_char, c_int, c_void};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

type Program = *mut c_void;

/// The oldest NVRTC that serves.
const OLDEST: Version = Version {
    major: 12,
    minor: 0,
};

macro_rules! functions {
    ($($name:ident($($argument:ty),*);)*) => {
        #[allow(non_snake_case)]
        struct Api {
            $($name: unsafe extern "C" fn($($argument),*) -> c_int,)*
            nvrtcGetErrorString: unsafe extern "C" fn(c_int) -> *const c_char,
        }

        impl Api {
            fn resolve(library: &Library) -> std::result::Result<Self, libloading::Error> {
                // SAFETY: the signatures are those of nvrtc.h; `Nvrtc` keeps the library open.
                unsafe {
                    Ok(Self {
                        $($name: *library.get(concat!(stringify!($name), "\0").as_bytes())?,)*
                        nvrtcGetErrorString: *library.get(b"nvrtcGetErrorString\0")?,
                    })
                }
            }
        }
    };
}

functions! {
    nvrtcVersion(*mut c_int, *mut c_int);
    nvrtcGetNumSupportedArchs(*mut c_int);
    nvrtcGetSupportedArchs(*mut c_int);
    nvrtcCreateProgram(
        *mut Program, *const c_char, *const c_char, c_int, *const *const c_char,
        *const *const c_char
    );
    nvrtcDestroyProgram(*mut Program);
    nvrtcCompileProgram(Program, c_int, *const *const c_char);
    nvrtcGetProgramLogSize(Program, *mut usize);
    nvrtcGetProgramLog(Program, *mut c_char);
    nvrtcGetCUBINSize(Program, *mut usize);
    nvrtcGetCUBIN(Program, *mut c_char);
}

/// An open NVRTC.
pub struct Nvrtc {
    api: Api,
    version: Version,
    archs: Vec<u32>,
    path: PathBuf,
    /// The compiler and its builtins, open as long as `api` is used.
    _libraries: Vec<Library>,
}

/// What one compilation gave.
pub(crate) enum Outcome {
    Cubin(Vec<u8>),
    /// The compiler refused the source; what it said.
    Refused(String),
}

/// The NVRTC of this process; looked for at the first call. A library of a later major version than the
/// driver's CUDA is passed over if an older one is found, because the driver may not load its code.
///
/// # Errors
/// [`Error::NoNvrtc`].
pub fn nvrtc() -> Result<&'static Nvrtc> {
    static NVRTC: OnceLock<Result<Nvrtc>> = OnceLock::new();
    NVRTC
        .get_or_init(|| {
            let driver = api().ok().map(|api| api.version);
            Nvrtc::open(&|name| std::env::var_os(name), driver)
        })
        .as_ref()
        .map_err(Clone::clone)
}

impl Nvrtc {
    /// Opens the first library that serves, for a driver of the given version.
    pub(crate) fn open(environment: Environment, driver: Option<Version>) -> Result<Self> {
        let mut searched = Vec::new();
        let mut newer: Option<Self> = None;
        for candidate in candidates(environment) {
            let opened = match &candidate {
                Candidate::Nothing(path) => {
                    searched.push(format!("{}: no NVRTC there", path.display()));
                    continue;
                }
                Candidate::Name(name) => Self::load(Path::new(name)),
                Candidate::File(path) => Self::load(path),
            };
            match opened {
                Ok(found) if driver.is_some_and(|d| found.version.major > d.major) => {
                    newer.get_or_insert(found);
                }
                Ok(found) => return Ok(found),
                Err(why) => searched.push(match candidate {
                    Candidate::File(path) => format!("{}: {why}", path.display()),
                    Candidate::Name(name) => format!("the loader's path: {name}"),
                    Candidate::Nothing(path) => path.display().to_string(),
                }),
            }
        }
        newer.ok_or_else(|| {
            if environment("RTX_NVRTC").is_none_or(|v| v.is_empty()) {
                searched.push(
                    "CUDA_HOME, CUDA_PATH, /usr/local/cuda*, and nvidia/* in the site-packages of \
                     VIRTUAL_ENV, CONDA_PREFIX, python3 and ~/.local"
                        .into(),
                );
            }
            Error::NoNvrtc { searched }
        })
    }

    /// Opens one library. The error is a text for people.
    fn load(path: &Path) -> std::result::Result<Self, String> {
        let mut libraries = Vec::new();
        if path.components().count() > 1 {
            libraries = builtins_beside(path);
        }
        // SAFETY: NVRTC's initialisers do nothing but set up the compiler.
        let library = unsafe { Library::new(path) }.map_err(|e| e.to_string())?;
        let api = Api::resolve(&library).map_err(|e| e.to_string())?;
        libraries.push(library);
        let (mut major, mut minor, mut count) = (0, 0, 0);
        // SAFETY: every pointer outlives its call; `archs` has room for as many as were announced.
        let archs = unsafe {
            if (api.nvrtcVersion)(&mut major, &mut minor) != 0
                || (api.nvrtcGetNumSupportedArchs)(&mut count) != 0
            {
                return Err("it does not tell its version".into());
            }
            let mut archs = vec![0 as c_int; usize::try_from(count).unwrap_or(0)];
            if !archs.is_empty() && (api.nvrtcGetSupportedArchs)(archs.as_mut_ptr()) != 0 {
                archs.clear();
            }
            archs
        };
        let version = Version {
            major: u32::try_from(major).unwrap_or(0),
            minor: u32::try_from(minor).unwrap_or(0),
        };
        if version < OLDEST {
            return Err(format!("version {version}, {OLDEST} or later is needed"));
        }
        Ok(Self {
            api,
            version,
            archs: archs
                .iter()
                .filter_map(|&a| u32::try_from(a).ok())
                .collect(),
            path: path.into(),
            _libraries: libraries,
        })
    }

    /// Version of the library.
    pub fn version(&self) -> Version {
        self.version
    }

    /// Where it lies, or the name under which the loader found it.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Compute capabilities it compiles for, as `10 * major + minor`.
    pub fn archs(&self) -> &[u32] {
        &self.archs
    }

    fn check(&self, call: &'static str, status: c_int) -> Result<()> {
        if status == 0 {
            return Ok(());
        }
        // SAFETY: NVRTC returns a static string for every code.
        let meaning = unsafe {
            let text = (self.api.nvrtcGetErrorString)(status);
            if text.is_null() {
                String::new()
            } else {
                CStr::from_ptr(text).to_string_lossy().into_owned()
            }
        };
        Err(Error::Nvrtc {
            call,
            code: status,
            meaning,
        })
    }

    /// Compiles `source`, called `file` in messages, with the options as they are.
    pub(crate) fn run(&self, source: &str, file: &str, options: &[&str]) -> Result<Outcome> {
        let text = |s: &str| {
            CString::new(s).map_err(|_| Error::Misuse {
                call: "compile",
                detail: format!("{file}: the source or an option holds a zero byte"),
            })
        };
        let (source, file) = (text(source)?, text(file)?);
        let options = options
            .iter()
            .map(|o| text(o))
            .collect::<Result<Vec<_>>>()?;
        let pointers: Vec<_> = options.iter().map(|o| o.as_ptr()).collect();
        let count = c_int::try_from(pointers.len()).unwrap_or(c_int::MAX);
        let mut program = Owned {
            nvrtc: self,
            program: std::ptr::null_mut(),
        };
        // SAFETY: every pointer outlives its call; buffers have the sizes that NVRTC announced.
        unsafe {
            self.check(
                "nvrtcCreateProgram",
                (self.api.nvrtcCreateProgram)(
                    &mut program.program,
                    source.as_ptr(),
                    file.as_ptr(),
                    0,
                    std::ptr::null(),
                    std::ptr::null(),
                ),
            )?;
            let status = (self.api.nvrtcCompileProgram)(program.program, count, pointers.as_ptr());
            if status != 0 {
                let log = self.log(program.program)?;
                if log.is_empty() {
                    self.check("nvrtcCompileProgram", status)?;
                }
                return Ok(Outcome::Refused(log));
            }
            let mut size = 0;
            self.check(
                "nvrtcGetCUBINSize",
                (self.api.nvrtcGetCUBINSize)(program.program, &mut size),
            )?;
            let mut cubin = vec![0u8; size];
            self.check(
                "nvrtcGetCUBIN",
                (self.api.nvrtcGetCUBIN)(program.program, cubin.as_mut_ptr().cast()),
            )?;
            Ok(Outcome::Cubin(cubin))
        }
    }

    /// What the compiler said.
    ///
    /// # Safety
    /// `program` must be live.
    unsafe fn log(&self, program: Program) -> Result<String> {
        let mut size = 0;
        // SAFETY: the buffer has the size that NVRTC announced.
        unsafe {
            self.check(
                "nvrtcGetProgramLogSize",
                (self.api.nvrtcGetProgramLogSize)(program, &mut size),
            )?;
            let mut log = vec![0u8; size];
            self.check(
                "nvrtcGetProgramLog",
                (self.api.nvrtcGetProgramLog)(program, log.as_mut_ptr().cast()),
            )?;
            let end = log.iter().position(|&b| b == 0).unwrap_or(log.len());
            Ok(String::from_utf8_lossy(&log[..end]).trim().to_owned())
        }
    }
}

impl std::fmt::Debug for Nvrtc {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "NVRTC {} ({})", self.version, self.path.display())
    }
}

/// A program of NVRTC, destroyed with its owner.
struct Owned<'a> {
    nvrtc: &'a Nvrtc,
    program: Program,
}

impl Drop for Owned<'_> {
    fn drop(&mut self) {
        if !self.program.is_null() {
            // SAFETY: created by this NVRTC and used by nobody else.
            unsafe { (self.nvrtc.api.nvrtcDestroyProgram)(&mut self.program) };
        }
    }
}

/// Opens the builtins library beside NVRTC first: NVRTC asks the loader for it by name, and the loader need
/// not know the folder, but it knows what is open.
fn builtins_beside(path: &Path) -> Vec<Library> {
    let is_builtins = |name: &OsStr| {
        name.to_str().is_some_and(|n| {
            n.starts_with("libnvrtc-builtins.so") || n.starts_with("nvrtc-builtins64")
        })
    };
    let mut files: Vec<PathBuf> = path
        .parent()
        .and_then(|folder| std::fs::read_dir(folder).ok())
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| is_builtins(&entry.file_name()))
        .filter_map(|entry| entry.path().canonicalize().ok())
        .collect();
    files.sort();
    files.dedup();
    // SAFETY: the library holds data only.
    files
        .iter()
        .filter_map(|file| unsafe { Library::new(file) }.ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_there_is_no_nvrtc_the_error_says_what_to_do() {
        let nowhere = "/nonexistent/nvrtc";
        let error = Nvrtc::open(&|name| (name == "RTX_NVRTC").then(|| nowhere.into()), None)
            .expect_err("there is nothing there");
        assert!(matches!(&error, Error::NoNvrtc { .. }), "{error}");
        let text = error.to_string();
        for part in [nowhere, "pip install nvidia-cuda-nvrtc", "RTX_NVRTC"] {
            assert!(text.contains(part), "{part} is not in: {text}");
        }
    }

    #[test]
    fn a_file_that_is_no_library_is_named() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let file = dir.path().join("libnvrtc.so.13");
        std::fs::write(&file, b"not a library").expect("written");
        let error = Nvrtc::open(
            &|name| (name == "RTX_NVRTC").then(|| file.clone().into()),
            None,
        )
        .expect_err("no library");
        assert!(error.to_string().contains("libnvrtc.so.13"), "{error}");
    }

    mod needs_nvrtc {
        use super::*;

        #[test]
        #[ignore = "needs NVRTC"]
        fn a_library_newer_than_the_driver_is_used_where_there_is_no_other() {
            let found = nvrtc().unwrap_or_else(|e| panic!("{e}"));
            let path = found.path().to_owned();
            let old = Version {
                major: found.version().major - 1,
                minor: 0,
            };
            let environment = |name: &str| (name == "RTX_NVRTC").then(|| path.clone().into());
            let opened = Nvrtc::open(&environment, Some(old)).expect("the only one");
            assert_eq!(opened.version(), found.version());
        }
    }
}
