//! A text compiled by g++ together with the runtime, and its launches.

use super::memory::{Device, Memory};
use crate::driver::Cache;
use crate::plan::{Arguments, Launch, Start};
use crate::{Error, Result};
use std::ffi::c_void;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

const SHIM: &str = include_str!("shim.h");
const RUNTIME: &str = include_str!("runtime.cpp");
/// Dynamic shared memory has no counterpart in C++: the declaration, and what stands for it.
const DYNAMIC: (&str, &str) = (
    "extern __shared__ __align__(16) char shared[];",
    "char* const shared = rtx_dynamic;",
);
/// Part of every key: changes when the way of building does.
const FORMAT: &str = "rtx-cuda emulation 1";
const COMMON: &[&str] = &["-std=c++17", "-fPIC", "-w", "-x", "c++", "-c"];
/// Contraction off as on the GPU; the instrumentation calls the runtime at every access.
const KERNELS: &[&str] = &[
    "-O1",
    "-ffp-contract=off",
    "-fsanitize=thread",
    "--param=tsan-instrument-func-entry-exit=0",
    "-fvisibility=hidden",
    "-fno-gnu-unique",
    "-fno-exceptions",
];

/// Compiled kernels.
pub(crate) struct Library {
    library: libloading::Library,
    launch: RunLaunch,
    /// The text, for messages.
    text: PathBuf,
    /// The runtime has one set of fibers.
    busy: Mutex<()>,
    launches: AtomicU32,
}

type RunLaunch = unsafe extern "C" fn(
    *mut Device,
    *const c_void,
    i32,
    u64,
    *const c_void,
    u32,
    u32,
    u64,
    u32,
    *mut Report,
) -> i32;

/// As in the runtime.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct Report {
    kind: u32,
    block: u32,
    thread: u32,
    other: u32,
    line: u32,
    other_line: u32,
    write: u32,
    size: u32,
    space: u32,
    offset: u64,
}

fn refuse(kernel: &str, found: impl ToString) -> Error {
    Error::Emulation {
        kernel: kernel.to_string(),
        found: found.to_string(),
    }
}

/// Where compiled texts are kept: beside the kernels for GPUs.
fn folder() -> PathBuf {
    let cache = Cache::user();
    let base = cache.folder().map(Path::to_path_buf);
    base.unwrap_or_else(|| std::env::temp_dir().join("rustytorch"))
        .join("emulate")
}

/// A file named by what it is made from, made if it is not there. Written under another name first, so that readers
/// see all of it or nothing.
fn keep(parts: &[&str], ending: &str, make: impl FnOnce(&Path) -> Result<()>) -> Result<PathBuf> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let mut hasher = blake3::Hasher::new();
    for part in [FORMAT, SHIM, RUNTIME, ending].iter().chain(parts) {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part.as_bytes());
    }
    let folder = folder();
    let path = folder.join(format!("{}.{ending}", hasher.finalize().to_hex()));
    if path.exists() {
        return Ok(path);
    }
    let failed = |e: std::io::Error| refuse(&path.display().to_string(), e);
    std::fs::create_dir_all(&folder).map_err(failed)?;
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let temporary = folder.join(format!("{}-{number}.{ending}", std::process::id()));
    let made = make(&temporary).and_then(|()| std::fs::rename(&temporary, &path).map_err(failed));
    if made.is_err() {
        let _ = std::fs::remove_file(&temporary);
    }
    made.map(|()| path)
}

fn write(text: &str) -> impl FnOnce(&Path) -> Result<()> {
    move |to| std::fs::write(to, text).map_err(|e| refuse(&to.display().to_string(), e))
}

fn gxx(arguments: &[&str], files: &[&Path], to: &Path) -> Result<()> {
    let out = Command::new("g++")
        .args(arguments)
        .args(files)
        .arg("-o")
        .arg(to)
        .output()
        .map_err(|e| refuse("g++", format!("{e}: install the C++ compiler g++")))?;
    if out.status.success() {
        return Ok(());
    }
    let log = String::from_utf8_lossy(&out.stderr);
    let log: Vec<&str> = log.lines().take(30).collect();
    Err(refuse("g++", log.join("\n")))
}

/// Inline `fma` where the processor has it.
fn fused() -> &'static [&'static str] {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("fma") {
        return &["-mfma"];
    }
    &[]
}

impl Library {
    /// The compiled runtime.
    pub(crate) fn runtime() -> Result<PathBuf> {
        let text = keep(&[], "cpp", write(RUNTIME))?;
        // Jumps between stacks are what the fortified library forbids.
        let arguments = [COMMON, &["-O2", "-U_FORTIFY_SOURCE"]].concat();
        keep(&arguments, "o", |to| gxx(&arguments, &[&text], to))
    }

    /// Compiles a text of kernels.
    pub(crate) fn build(code: &str) -> Result<Self> {
        let runtime = Library::runtime()?;
        let code = code.replace(DYNAMIC.0, DYNAMIC.1);
        let text = keep(&[&code], "cu", write(&code))?;
        let shim = keep(&[SHIM], "h", write(SHIM))?;
        let include = shim.to_string_lossy();
        let arguments = [COMMON, KERNELS, fused()].concat();
        let keys = [&arguments[..], &[&code]].concat();
        let library = keep(&keys, "so", |to| {
            let object = to.with_extension("o");
            let arguments = [&arguments[..], &["-include", &include]].concat();
            let built = gxx(&arguments, &[&text], &object)
                .and_then(|()| gxx(&["-shared"], &[&object, &runtime], to));
            let _ = std::fs::remove_file(&object);
            built
        })?;
        // SAFETY: the library is what was just built; its initialisers do nothing.
        let opened = unsafe { libloading::Library::new(&library) };
        let library = opened.map_err(|e| refuse(&library.display().to_string(), e))?;
        // SAFETY: the runtime defines it with these arguments.
        let launch = unsafe { library.get::<RunLaunch>(b"rtx_launch\0") }
            .map(|f| *f)
            .map_err(|e| refuse("rtx_launch", e))?;
        Ok(Library {
            library,
            launch,
            text,
            busy: Mutex::new(()),
            launches: AtomicU32::new(0),
        })
    }

    /// Runs one launch; `table` is the address of the kernels' table in `memory`. Threads and blocks go forwards,
    /// backwards and in mixed orders by turns.
    pub(crate) fn launch(&self, memory: &mut Memory, start: &Start, table: u64) -> Result<()> {
        self.call(memory, &start.callee.name(), start, table)
    }

    /// The same for a kernel of any name.
    pub(crate) fn call(
        &self,
        memory: &mut Memory,
        name: &str,
        start: &Start,
        table: u64,
    ) -> Result<()> {
        let _one = self.busy.lock().unwrap_or_else(PoisonError::into_inner);
        let symbol = format!("{name}\0");
        // SAFETY: only the address is taken here.
        let function = unsafe {
            self.library
                .get::<unsafe extern "C" fn()>(symbol.as_bytes())
        }
        .map(|f| *f as *const c_void)
        .map_err(|e| refuse(name, e))?;
        let launch: Launch;
        let three;
        let (copy, values): (i32, *const c_void) = match start.arguments {
            Arguments::Launch(l) => {
                launch = l;
                (0, (&raw const launch).cast())
            }
            Arguments::Copy { from, to, bytes } => {
                three = [from, to, bytes];
                (1, (&raw const three).cast())
            }
        };
        // Without a period that the number of kernels of a program could share.
        let number = self.launches.fetch_add(1, Ordering::Relaxed);
        let order = number.wrapping_mul(0x9E37_79B9) >> 16;
        let order = if order % 3 < 2 { order % 3 } else { order };
        let mut device = memory.device();
        let mut report = Report::default();
        let grid = u32::try_from(start.grid).map_err(|e| refuse(name, e))?;
        // SAFETY: the kernel has these arguments; every access of it to memory is checked by the runtime before it
        // happens, and `memory` is not touched by anybody else meanwhile.
        let status = unsafe {
            (self.launch)(
                &mut device,
                function,
                copy,
                table,
                values,
                grid,
                start.block,
                start.shared as u64,
                order,
                &mut report,
            )
        };
        memory.after(&device);
        match status {
            0 => Ok(()),
            1 => Err(refuse(name, self.words(&report, memory))),
            _ => Err(refuse(
                name,
                "more threads or shared memory than the emulation has room for",
            )),
        }
    }

    fn words(&self, r: &Report, memory: &Memory) -> String {
        let place = match r.space {
            0 => memory.part(r.offset as usize),
            1 => format!("byte {} of dynamic shared memory", r.offset),
            2 => format!("byte {} of a shared array", r.offset),
            _ => format!("address {:#x}, which is no array", r.offset),
        };
        let does = if r.write == 1 { "writes" } else { "reads" };
        let other = match r.other {
            511 | 510 => "several others".to_string(),
            t => format!("thread {t}"),
        };
        let line = |n: u32| match n {
            0 => "none".to_string(),
            n => format!("line {n}"),
        };
        let what = match r.kind {
            1 => format!(
                "no barrier between threads: thread {} {does} what {other} has used, {place}",
                r.thread
            ),
            2 => format!(
                "blocks meet: thread {} {does} what another block has used, {place}",
                r.thread
            ),
            3 => format!(
                "out of bounds: thread {} {does} {} bytes at {place}",
                r.thread, r.size
            ),
            4 => format!(
                "not aligned: thread {} {does} {} bytes at {place}",
                r.thread, r.size
            ),
            5 => format!(
                "threads wait at different barriers: {} at {}, {} at {}",
                r.thread,
                line(r.line),
                r.other,
                line(r.other_line)
            ),
            6 => format!(
                "thread {} shuffles with a part of its warp, or what is too large",
                r.thread
            ),
            _ => format!("the stack of thread {} overflows", r.thread),
        };
        format!(
            "{what} (block {}, last barrier: {}; text: {})",
            r.block,
            line(r.line),
            self.text.display()
        )
    }
}
