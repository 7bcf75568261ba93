//! From CUDA C to a cubin.

use super::nvrtc::{Nvrtc, Outcome, nvrtc};
use crate::{Error, Result};

/// The architecture to compile for on a device of the given compute capability: the variant with all
/// features of that very chip where one exists (`sm_90a`, `sm_100a`), else the plain one (`sm_86`).
pub fn arch_of(capability: (u32, u32)) -> String {
    let (major, minor) = capability;
    let suffix = if matches!(major, 9 | 10) { "a" } else { "" };
    format!("sm_{major}{minor}{suffix}")
}

/// Compiles CUDA C for one architecture (`sm_90a`) with NVRTC's options as given, without the cache.
/// `name` is the kernel's, for messages. With `RTX_DUMP` set the source is written to that folder.
/// May be called from several threads at a time.
///
/// # Errors
/// [`Error::NoNvrtc`], [`Error::UnknownArch`], [`Error::Compile`] with the lines around the first error.
pub fn compile(source: &str, name: &str, arch: &str, options: &[&str]) -> Result<Vec<u8>> {
    let nvrtc = nvrtc()?;
    dump(source, name);
    run(nvrtc, source, name, arch, options)
}

/// [`compile`] without the dump.
pub(crate) fn run(
    nvrtc: &Nvrtc,
    source: &str,
    name: &str,
    arch: &str,
    options: &[&str],
) -> Result<Vec<u8>> {
    if !knows(nvrtc, arch) {
        let archs: Vec<String> = nvrtc.archs().iter().map(|a| format!("sm_{a}")).collect();
        return Err(Error::UnknownArch {
            arch: arch.into(),
            version: nvrtc.version(),
            supported: archs.join(", "),
        });
    }
    let file = format!("{name}.cu");
    let target = format!("--gpu-architecture={arch}");
    let mut all = vec![target.as_str()];
    all.extend(options);
    match nvrtc.run(source, &file, &all)? {
        Outcome::Cubin(cubin) => Ok(cubin),
        Outcome::Refused(log) => Err(Error::Compile {
            kernel: name.into(),
            arch: arch.into(),
            excerpt: first_error(&log, &file).map_or(String::new(), |line| excerpt(source, line)),
            log,
        }),
    }
}

/// Whether the library lists the number of `sm_NUMBER` or `sm_NUMBERa`.
fn knows(nvrtc: &Nvrtc, arch: &str) -> bool {
    let number = arch
        .strip_prefix("sm_")
        .map(|n| n.trim_end_matches(['a', 'f']))
        .and_then(|n| n.parse().ok());
    number.is_some_and(|n| nvrtc.archs().contains(&n))
}

/// The line of the first error, from `file(LINE): error`.
fn first_error(log: &str, file: &str) -> Option<usize> {
    log.lines().find_map(|line| {
        let (number, rest) = line
            .split_once(file)?
            .1
            .strip_prefix('(')?
            .split_once(')')?;
        rest.contains("error").then(|| number.parse().ok())?
    })
}

/// Five lines before and after, numbered, the line itself marked.
fn excerpt(source: &str, line: usize) -> String {
    const AROUND: usize = 5;
    let first = line.saturating_sub(AROUND).max(1);
    source
        .lines()
        .enumerate()
        .skip(first - 1)
        .take(line + AROUND + 1 - first)
        .map(|(i, text)| {
            let mark = if i + 1 == line { '>' } else { ' ' };
            format!("{mark}{:5} | {text}\n", i + 1)
        })
        .collect()
}

/// Writes the source to the folder named by `RTX_DUMP`, if it is set.
pub(crate) fn dump(source: &str, name: &str) {
    rtx_compiler::dump(&format!("{name}.cu"), || source.to_string());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_error_is_found_and_shown() {
        let log =
            "warning: k.cu\nk.cu(2): warning #1: w\nk.cu(7): error: x is undefined\nk.cu(8): error";
        assert_eq!(first_error(log, "k.cu"), Some(7));
        assert_eq!(first_error("nvrtc: error: bad option", "k.cu"), None);
        let source: String = (1..=20).map(|i| format!("line {i}\n")).collect();
        let shown = excerpt(&source, 7);
        assert_eq!(shown.lines().count(), 11, "{shown}");
        assert!(shown.contains(">    7 | line 7\n"), "{shown}");
        assert!(shown.starts_with("     2 | line 2\n"), "{shown}");
        assert_eq!(excerpt(&source, 1).lines().count(), 6);
        assert_eq!(excerpt(&source, 99), "");
    }

    #[test]
    fn architectures() {
        let pairs = [
            ((7, 5), "sm_75"),
            ((8, 6), "sm_86"),
            ((9, 0), "sm_90a"),
            ((10, 0), "sm_100a"),
            ((12, 0), "sm_120"),
        ];
        for (capability, arch) in pairs {
            assert_eq!(arch_of(capability), arch);
        }
    }
}
