//! NVRTC and the kernel cache.

use rtx_cuda::Error;
use rtx_cuda::driver::{Cache, Key, Origin, Version, compile, nvrtc, probe};
use std::path::{Path, PathBuf};

const ADD: &str = r#"
extern "C" __global__ void add(const float* a, const float* b, float* c, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) c[i] = a[i] + b[i];
}
"#;
const OPTIONS: &[&str] = &["--std=c++17"];
const VERSION: Version = Version {
    major: 13,
    minor: 0,
};

#[test]
fn a_machine_without_cuda_gets_an_error_that_says_why() {
    match probe() {
        Ok(devices) => devices.iter().for_each(|d| println!("{d:?}")),
        Err(error @ (Error::NoDriver { .. } | Error::DriverTooOld { .. })) => {
            let text = error.to_string();
            assert!(text.contains("driver"), "{text}");
            let error = rtx_runtime::Error::from(error);
            assert!(error.to_string().starts_with("cuda: "), "{error}");
        }
        Err(Error::NoDevice { found: 0, .. }) => {}
        Err(error) => panic!("unexpected: {error}"),
    }
}

fn key(source: &str) -> Key {
    Key::new(source, "sm_80", OPTIONS, VERSION)
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let mut found: Vec<_> = std::fs::read_dir(folder)
        .expect("the folder exists")
        .map(|e| e.expect("readable").path())
        .collect();
    found.sort();
    found
}

#[test]
fn every_part_of_a_key_counts() {
    let newer = Version {
        minor: 1,
        ..VERSION
    };
    let keys = [
        Key::new("a", "sm_80", &["x"], VERSION),
        Key::new("b", "sm_80", &["x"], VERSION),
        Key::new("a", "sm_90a", &["x"], VERSION),
        Key::new("a", "sm_80", &["x", "y"], VERSION),
        Key::new("a", "sm_80", &["xy"], VERSION),
        Key::new("a", "sm_80", &["x"], newer),
    ];
    for (i, a) in keys.iter().enumerate() {
        assert!(keys[i + 1..].iter().all(|b| a != b), "key {i}");
    }
    assert_eq!(keys[0], Key::new("a", "sm_80", &["x"], VERSION));
}

#[test]
fn an_entry_comes_back_and_damage_is_repaired() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let folder = dir.path().join("deep").join("cache");
    let cache = Cache::at(&folder, 1 << 20);
    let code = vec![7u8; 1000];
    let build = || Ok(code.clone());
    let never = || panic!("it is in the cache");

    let first = cache.fetch(key("a"), build).expect("built");
    assert_eq!((first.origin, first.warning), (Origin::Compiled, None));
    let second = cache.fetch(key("a"), never).expect("read");
    assert_eq!((&second.cubin, second.origin), (&code, Origin::Disk));

    let [entry] = &entries(&folder)[..] else {
        panic!("one entry, no temporary file");
    };
    let whole = std::fs::read(entry).expect("readable");
    let mut damaged: Vec<Vec<u8>> = [0, 5, 9, 39, whole.len() / 2, whole.len() - 1]
        .map(|i| {
            let mut bytes = whole.clone();
            bytes[i] ^= 1;
            bytes
        })
        .into();
    damaged.extend([0, 7, 40, whole.len() - 1].map(|n| whole[..n].to_vec()));
    damaged.push([&whole[..], &[0]].concat());
    for (i, bytes) in damaged.iter().enumerate() {
        std::fs::write(entry, bytes).expect("written");
        let repaired = cache.fetch(key("a"), build).expect("built again");
        assert_eq!(repaired.origin, Origin::Compiled, "damage {i} went unseen");
        assert_eq!(std::fs::read(entry).expect("readable"), whole);
    }

    // An entry under another's name is not taken for it.
    cache.fetch(key("b"), || Ok(vec![1; 10])).expect("built");
    let other = entries(&folder)
        .into_iter()
        .find(|e| e != entry)
        .expect("two entries");
    std::fs::copy(entry, &other).expect("copied");
    let b = cache.fetch(key("b"), || Ok(vec![1; 10])).expect("built");
    assert_eq!((b.cubin, b.origin), (vec![1; 10], Origin::Compiled));
}

#[test]
fn a_failed_compilation_leaves_nothing() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let cache = Cache::at(dir.path(), 1 << 20);
    let failed = cache.fetch(key("a"), || {
        Err(Error::NoNvrtc {
            searched: Vec::new(),
        })
    });
    assert!(failed.is_err());
    assert!(entries(dir.path()).is_empty());
}

#[test]
fn many_threads_share_a_folder() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let cache = Cache::at(dir.path(), 1 << 30);
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let cache = &cache;
            scope.spawn(move || {
                for round in 0..200 {
                    let which = (round * 7 + thread) % 5;
                    let code = vec![which as u8; 20_000];
                    let got = cache
                        .fetch(key(&which.to_string()), || Ok(code.clone()))
                        .expect("built or read");
                    assert_eq!(got.cubin, code);
                    assert_eq!(got.warning, None);
                }
            });
        }
    });
    assert_eq!(entries(dir.path()).len(), 5);
}

#[test]
fn a_folder_that_cannot_be_written_costs_a_warning_only() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let file = dir.path().join("file");
    std::fs::write(&file, b"").expect("written");
    let cache = Cache::at(file.join("cache"), 1 << 20);
    let got = cache.fetch(key("a"), || Ok(vec![1, 2, 3])).expect("built");
    assert_eq!((got.cubin, got.origin), (vec![1, 2, 3], Origin::Compiled));
    let warning = got.warning.expect("it was not stored");
    assert!(warning.contains("RTX_CACHE"), "{warning}");
}

#[test]
fn the_oldest_leave_when_it_is_full() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let cache = Cache::at(dir.path(), 3500);
    let fetch = |name: &str| {
        let got = cache.fetch(key(name), || Ok(vec![0; 1000])).expect("built");
        std::thread::sleep(std::time::Duration::from_millis(20));
        got.origin
    };
    for name in ["a", "b", "c"] {
        assert_eq!(fetch(name), Origin::Compiled);
    }
    assert_eq!(fetch("a"), Origin::Disk);
    assert_eq!(fetch("d"), Origin::Compiled);
    // `b` was longest unused.
    assert_eq!(entries(dir.path()).len(), 3);
    for name in ["a", "c", "d"] {
        assert_eq!(fetch(name), Origin::Disk, "{name}");
    }
    assert_eq!(fetch("b"), Origin::Compiled);
}

mod needs_nvrtc {
    use super::*;

    #[test]
    #[ignore = "needs NVRTC"]
    fn one_source_compiles_for_every_generation() {
        for arch in [
            "sm_75", "sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_120",
        ] {
            match compile(ADD, "add", arch, OPTIONS) {
                Ok(cubin) => {
                    assert!(cubin.starts_with(b"\x7fELF"), "{arch}");
                    let again = compile(ADD, "add", arch, OPTIONS).expect("compiled once");
                    assert_eq!(cubin, again, "{arch}: not reproducible");
                }
                // An NVRTC that is older than the chip.
                Err(Error::UnknownArch { .. }) if nvrtc().is_ok_and(|n| n.version() < VERSION) => {}
                Err(error) => panic!("{arch}: {error}"),
            }
        }
    }

    #[test]
    #[ignore = "needs NVRTC"]
    fn an_unknown_architecture_is_named_with_those_known() {
        let error = compile(ADD, "add", "sm_13", OPTIONS).expect_err("no such chip");
        assert!(matches!(&error, Error::UnknownArch { .. }), "{error}");
        let text = error.to_string();
        assert!(text.contains("sm_13 ") && text.contains("sm_80"), "{text}");
    }

    #[test]
    #[ignore = "needs NVRTC"]
    fn a_mistake_is_shown_with_its_line() {
        let source = ADD.replace("a[i] + b[i]", "a[i] + missing[i]");
        let error = compile(&source, "add", "sm_80", OPTIONS).expect_err("a name is undefined");
        let Error::Compile {
            kernel,
            log,
            excerpt,
            ..
        } = &error
        else {
            panic!("{error}");
        };
        assert_eq!(kernel, "add");
        assert!(log.contains("missing"), "{log}");
        assert!(excerpt.contains(">    4 | "), "{excerpt}");
        assert!(excerpt.contains("missing[i]"), "{excerpt}");

        let error = compile(ADD, "add", "sm_80", &["--no-such-option"]).expect_err("a bad option");
        assert!(error.to_string().contains("no-such-option"), "{error}");
        let error = compile("a\0b", "zero", "sm_80", &[]).expect_err("a zero byte");
        assert!(matches!(error, Error::Misuse { .. }), "{error}");
    }

    #[test]
    #[ignore = "needs NVRTC"]
    fn the_cache_spares_the_compiler() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let cache = Cache::at(dir.path(), 1 << 20);
        let compile = |source| {
            cache
                .compile(source, "add", "sm_80", OPTIONS)
                .expect("compiles")
        };
        let first = compile(ADD);
        assert_eq!((first.origin, &first.warning), (Origin::Compiled, &None));
        let second = compile(ADD);
        assert_eq!(second.origin, Origin::Disk);
        assert_eq!(first.cubin, second.cubin);
        assert_eq!(compile(&ADD.replace('+', "-")).origin, Origin::Compiled);
    }
}
