//! Tensors in files: against files of NumPy, round trips, damage and refusals.

use rtx_tensor::io::{
    self, ArrayName, FileError, load_npz, load_npz_by_name, load_safetensors,
    load_safetensors_by_name, save_npz, save_safetensors,
};
use rtx_tensor::{DType, Device, Error, HostArray, Tensor};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

type Result<T> = rtx_tensor::Result<T>;

fn golden(name: &str) -> PathBuf {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    tests.join("goldens/files").join(name)
}

fn cpu() -> Device {
    Device::cpu()
}

/// The array `value(i + 10 j + 100 k)` of shape 3 x 4 x 2.
fn formula(dtype: DType, value: impl Fn(f64) -> f64) -> HostArray {
    let index = |n: usize| (n / 8) as f64 + 10.0 * (n / 2 % 4) as f64 + 100.0 * (n % 2) as f64;
    HostArray::new(
        dtype,
        &[3, 4, 2],
        (0..24).map(|n| value(index(n))).collect(),
    )
}

#[track_caller]
fn same(found: &Tensor, expected: &HostArray) {
    let found = found.to_host().unwrap();
    assert_eq!((found.dtype, &found.dims), (expected.dtype, &expected.dims));
    let bits = |a: &HostArray| a.data.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
    assert_eq!(bits(&found), bits(expected));
}

#[track_caller]
fn refusal<T>(result: Result<T>) -> (String, std::sync::Arc<FileError>) {
    match result.err() {
        Some(e @ Error::File(_)) => match (e.to_string(), e) {
            (text, Error::File(e)) => (text, e),
            _ => unreachable!(),
        },
        other => panic!("no file error: {other:?}"),
    }
}

fn expected() -> BTreeMap<&'static str, HostArray> {
    BTreeMap::from([
        ("f32", formula(DType::F32, |r| r + 0.5)),
        ("f64", formula(DType::F64, |r| r / 3.0)),
        ("i32", formula(DType::I32, |r| -r)),
        ("i64", formula(DType::I64, |r| r * 1e12)),
        ("bool", formula(DType::Bool, |r| f64::from(r % 3.0 == 0.0))),
        ("scalar", HostArray::new(DType::F64, &[], vec![2.5])),
        (
            "vector",
            HostArray::new(DType::F32, &[5], vec![0.0, 1.0, 2.0, 3.0, 4.0]),
        ),
        ("empty", HostArray::new(DType::F64, &[0, 3], vec![])),
    ])
}

#[test]
fn archives_of_numpy_are_read() -> Result<()> {
    for file in ["stored.npz", "deflated.npz"] {
        let read = load_npz(golden(file), &cpu())?;
        for (name, array) in expected() {
            same(&read[name], &array);
            same(&load_npz_by_name(golden(file), name, &cpu())?, &array);
        }
        same(&read["fortran"], &formula(DType::F32, |r| r));
        same(&read["big_endian"], &formula(DType::F64, |r| r));
        assert_eq!(read.len(), expected().len() + 2);
    }
    Ok(())
}

#[test]
fn arrays_of_either_order_and_of_later_versions_are_read() -> Result<()> {
    for (file, dtype) in [
        ("fortran.npy", DType::I32),
        ("big_endian.npy", DType::I64),
        ("big_endian_fortran.npy", DType::F32),
        ("version2.npy", DType::F64),
    ] {
        same(
            &Tensor::load_npy(golden(file), &cpu())?,
            &formula(dtype, |r| r),
        );
    }
    Ok(())
}

#[test]
fn safetensors_written_after_the_description_are_read() -> Result<()> {
    let path = golden("plain.safetensors");
    let read = load_safetensors(&path, &cpu())?;
    assert_eq!(read.len(), expected().len());
    for (name, array) in expected() {
        same(&read[name], &array);
    }
    let file = io::safetensors::SafetensorsFile::open(&path)?;
    assert_eq!(file.metadata("made by"), Some("hand"));
    assert!(file.names().eq(expected().into_keys()));
    Ok(())
}

/// A value of the type, the extremes among them.
fn random(dtype: DType, state: &mut u64) -> f64 {
    *state = state
        .wrapping_mul(6364136223846793005)
        .wrapping_add(1442695040888963407);
    let bits = *state;
    let special = [f64::NAN, f64::INFINITY, -0.0, f64::MIN_POSITIVE, f64::MAX];
    match (dtype, bits >> 60) {
        (DType::Bool, _) => f64::from(bits >> 63 != 0),
        (DType::I32, 0) => f64::from(i32::MIN),
        (DType::I32, _) => f64::from((bits >> 32) as i32),
        (DType::I64, 0) => -(1i64 << 53) as f64,
        (DType::I64, _) => ((bits as i64) >> 11) as f64,
        (_, 0) => special[(bits >> 33) as usize % special.len()],
        _ => f64::from((bits >> 32) as u32) / 3.0 - 5e8,
    }
}

#[test]
fn what_is_saved_is_loaded() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name);
    let mut state = 1;
    let mut arrays = BTreeMap::new();
    for dtype in [DType::Bool, DType::I32, DType::I64, DType::F32, DType::F64] {
        for dims in [&[][..], &[1], &[57], &[0], &[2, 0, 3], &[3, 5, 4], &[2; 8]] {
            let count = dims.iter().product();
            let data = (0..count).map(|_| random(dtype, &mut state)).collect();
            let array = HostArray::new(dtype, dims, data);
            let tensor = Tensor::from_host(array.clone(), &cpu());
            tensor.save_npy(file("a.npy"))?;
            same(&Tensor::load_npy(file("a.npy"), &cpu())?, &array);
            arrays.insert(format!("{dtype} {dims:?} µ/x"), (tensor, array));
        }
    }
    let tensors: BTreeMap<&String, Tensor> =
        arrays.iter().map(|(n, (t, _))| (n, t.clone())).collect();
    save_npz(file("a.npz"), tensors.iter().map(|(n, t)| (*n, t)))?;
    save_safetensors(file("a.safetensors"), tensors.iter().map(|(n, t)| (*n, t)))?;
    let (zip, safe) = (
        load_npz(file("a.npz"), &cpu())?,
        load_safetensors(file("a.safetensors"), &cpu())?,
    );
    assert_eq!((zip.len(), safe.len()), (arrays.len(), arrays.len()));
    for (name, (_, array)) in &arrays {
        same(&zip[name], array);
        same(&safe[name], array);
    }
    // What was read is written as it is, and equal tensors give equal files.
    save_npz(file("b.npz"), &zip)?;
    save_safetensors(file("b.safetensors"), &safe)?;
    let bytes = |name: &str| std::fs::read(file(name)).unwrap();
    assert!(bytes("a.npz") == bytes("b.npz"));
    assert!(bytes("a.safetensors") == bytes("b.safetensors"));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 5);
    Ok(())
}

#[test]
fn pending_values_are_computed_and_mistakes_write_nothing() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.npy");
    let x = Tensor::from_vec(vec![1.0f32, 2.0], [2], &cpu()).rows("points")?;
    (&x * 3.0).save_npy(&path)?;
    assert_eq!(
        Tensor::load_npy(&path, &cpu())?.to_vec::<f32>()?,
        [3.0, 6.0]
    );
    let before = std::fs::read(&path).unwrap();
    let wrong = &x + Tensor::ones([3], &cpu());
    assert!(matches!(wrong.save_npy(&path), Err(Error::Graph(_))));
    assert!(matches!(
        save_npz(&path, [("w", &wrong)]),
        Err(Error::Graph(_))
    ));
    assert_eq!(std::fs::read(&path).unwrap(), before);
    Ok(())
}

/// Reads a file by what its name says it is.
fn read_any(path: &Path) -> Result<()> {
    match path.extension().and_then(|e| e.to_str()) {
        Some("npy") => Tensor::load_npy(path, &cpu()).map(drop),
        Some("npz") => load_npz(path, &cpu()).map(drop),
        _ => load_safetensors(path, &cpu()).map(drop),
    }
}

const ALL: [&str; 6] = [
    "fortran.npy",
    "big_endian.npy",
    "version2.npy",
    "stored.npz",
    "deflated.npz",
    "plain.safetensors",
];

/// Reads bytes through a file that is new each time: some systems flush a file that is overwritten to disk.
fn read_damaged(path: &Path, bytes: &[u8]) -> Result<()> {
    std::fs::write(path, bytes).unwrap();
    let result = read_any(path);
    std::fs::remove_file(path).unwrap();
    result
}

#[test]
fn a_file_cut_anywhere_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    for name in ALL {
        let bytes = std::fs::read(golden(name)).unwrap();
        let path = folder.path().join(name);
        for len in 0..bytes.len() {
            let (text, error) = refusal(read_damaged(&path, &bytes[..len]));
            assert!(
                matches!(*error, FileError::Malformed { .. }),
                "{len}: {text}"
            );
            assert!(text.contains(name), "{text}");
        }
    }
}

#[test]
fn flipped_bytes_never_panic() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["fortran.npy", "deflated.npz", "plain.safetensors"] {
        let original = std::fs::read(golden(name)).unwrap();
        let path = folder.path().join(name);
        for at in 0..original.len() {
            for flip in [0x01, 0x80, 0xff] {
                let mut bytes = original.clone();
                bytes[at] ^= flip;
                let _ = read_damaged(&path, &bytes);
            }
        }
    }
}

fn npy(descr: &str, shape: &str, data: &[u8]) -> Vec<u8> {
    let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}\n");
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.as_bytes());
    bytes.extend(data);
    bytes
}

fn safetensors(header: &str, data: &[u8]) -> Vec<u8> {
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend(header.as_bytes());
    bytes.extend(data);
    bytes
}

#[test]
fn headers_that_lie_about_the_shape_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let max = usize::MAX;
    // Eight arrays whose lengths add up to more than a file can have.
    let step = (1u64 << 61) - 1;
    let chain: Vec<String> = (0..8)
        .map(|n| {
            let (from, to) = (n * step, (n + 1) * step);
            format!(r#""a{n}":{{"dtype":"U8","shape":[{step}],"data_offsets":[{from},{to}]}}"#)
        })
        .collect();
    let chain = format!("{{{}}}", chain.join(","));
    let one = |shape: &str, to: u64| {
        format!(r#"{{"a":{{"dtype":"F32","shape":{shape},"data_offsets":[0,{to}]}}}}"#)
    };
    let cases = [
        (
            "more.npy",
            npy("<f4", "(3,)", &[0; 8]),
            "needs 12 bytes, but 8",
        ),
        (
            "less.npy",
            npy("<f4", "(1,)", &[0; 8]),
            "needs 4 bytes, but 8",
        ),
        (
            "huge.npy",
            npy("<f8", "(1000000000000,)", &[]),
            "8000000000000 bytes",
        ),
        (
            "over.npy",
            npy("<f8", &format!("({max}, 3)"), &[]),
            "more than memory",
        ),
        (
            "minus.npy",
            npy("<f8", "(-1,)", &[0; 8]),
            "not a dictionary",
        ),
        (
            "zero.npy",
            npy("<f8", &format!("(0, {max}, {max})"), &[]),
            "beyond memory",
        ),
        (
            "axes.npy",
            npy("<f8", "(1, 1, 1, 1, 1, 1, 1, 1, 1)", &[0; 8]),
            "at most 8 axes",
        ),
        (
            "zip.npy",
            std::fs::read(golden("stored.npz")).unwrap(),
            "such as .npz",
        ),
        ("one.npz", npy("<f8", "()", &[0; 8]), "an .npy file"),
        ("text.npz", b"no archive".to_vec(), "starts with `no archi`"),
        (
            "more.safetensors",
            safetensors(&one("[3]", 12), &[0; 8]),
            "12 bytes, but 8",
        ),
        (
            "less.safetensors",
            safetensors(&one("[1]", 4), &[0; 8]),
            "4 bytes, but 8",
        ),
        (
            "lie.safetensors",
            safetensors(&one("[3]", 8), &[0; 8]),
            "invalid shape",
        ),
        (
            "chain.safetensors",
            safetensors(&chain, &[0; 8]),
            "bytes, but 8",
        ),
        ("json.safetensors", safetensors("{", &[]), "at byte 8"),
        ("npy.safetensors", npy("<f8", "()", &[0; 8]), "an .npy file"),
    ];
    for (name, bytes, says) in cases {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        let (text, _) = refusal(read_any(&path));
        assert!(text.contains(name) && text.contains(says), "{text}");
    }
}

#[test]
fn types_that_no_tensor_has_are_refused_by_name() -> Result<()> {
    let (text, error) = refusal(Tensor::load_npy(golden("complex.npy"), &cpu()));
    let FileError::ElementType { array, found, .. } = &*error else {
        panic!("{error:?}");
    };
    assert_eq!((array, found.as_str()), (&ArrayName(None), "complex128"));
    assert!(
        text.contains("two arrays") && text.contains("rtx-mre"),
        "{text}"
    );

    let (text, _) = refusal(load_npz(golden("mixed.npz"), &cpu()));
    assert!(
        text.contains("array `text`") && text.contains("float64"),
        "{text}"
    );
    let (text, _) = refusal(load_npz_by_name(golden("mixed.npz"), "bytes", &cpu()));
    assert!(text.contains("uint8"), "{text}");
    let good = load_npz_by_name(golden("mixed.npz"), "good", &cpu())?;
    same(&good, &formula(DType::F64, |r| r));

    let path = golden("half.safetensors");
    let (text, _) = refusal(load_safetensors(&path, &cpu()));
    assert!(
        text.contains("array `half`") && text.contains("F16"),
        "{text}"
    );
    let good = load_safetensors_by_name(&path, "good", &cpu())?;
    same(&good, &formula(DType::F32, |r| r + 0.5));
    Ok(())
}

#[test]
fn integers_that_would_be_rounded_are_refused() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("big.npy");
    let data = |v: i64| [1i64.to_le_bytes(), v.to_le_bytes()].concat();
    for sound in [1 << 53, -(1 << 53), 1 << 60, i64::MIN] {
        std::fs::write(&path, npy("<i8", "(2,)", &data(sound))).unwrap();
        assert_eq!(
            Tensor::load_npy(&path, &cpu())?.to_vec::<i64>()?,
            [1, sound]
        );
    }
    for rounded in [(1 << 53) + 1, -(1 << 53) - 1, i64::MAX] {
        std::fs::write(&path, npy("<i8", "(2,)", &data(rounded))).unwrap();
        let (text, error) = refusal(Tensor::load_npy(&path, &cpu()));
        assert!(
            matches!(*error, FileError::Inexact { index: 1, .. }),
            "{text}"
        );
        assert!(text.contains(&rounded.to_string()), "{text}");
    }
    Ok(())
}

#[test]
fn names_that_are_absent_doubled_or_reserved_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("names");
    let x = Tensor::ones([2], &cpu());
    let (text, _) = refusal(save_npz(&path, [("x", &x), ("x", &x)]));
    assert!(text.contains("`x` is used twice"), "{text}");
    let (text, _) = refusal(save_safetensors(&path, [("x", &x), ("x", &x)]));
    assert!(text.contains("`x` is used twice"), "{text}");
    let (text, _) = refusal(save_safetensors(&path, [("__metadata__", &x)]));
    assert!(text.contains("reserved"), "{text}");
    assert!(!path.exists());
    for result in [
        load_npz_by_name(golden("mixed.npz"), "x", &cpu()),
        load_safetensors_by_name(golden("half.safetensors"), "x", &cpu()),
    ] {
        let (text, error) = refusal(result);
        assert!(matches!(*error, FileError::NoSuchArray { .. }), "{text}");
        assert!(text.contains("`x`") && text.contains("good"), "{text}");
    }
}

#[test]
fn absent_files_and_folders_that_refuse_are_named() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["absent.npy", "absent.npz", "absent.safetensors"] {
        let (text, error) = refusal(read_any(&folder.path().join(name)));
        assert!(matches!(&*error, FileError::System(e) if e.action == "read"));
        assert!(
            text.contains(name) && text.contains("existing file"),
            "{text}"
        );
    }
    let x = Tensor::ones([2], &cpu());
    std::fs::write(folder.path().join("file"), "").unwrap();
    // A file stands where the folder should be, which stops every user.
    for place in ["file", "absent"] {
        let path = folder.path().join(place).join("x.out");
        for result in [
            x.save_npy(&path),
            save_npz(&path, [("x", &x)]),
            save_safetensors(&path, [("x", &x)]),
        ] {
            let (text, error) = refusal(result);
            assert!(matches!(&*error, FileError::System(e) if e.action == "write"));
            assert!(
                text.contains("x.out") && text.contains("existing folder"),
                "{text}"
            );
        }
    }
    let left = std::fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(left, 1);
}

#[cfg(unix)]
#[test]
#[ignore = "needs a user who may not write everywhere"]
fn a_folder_without_permission_is_named() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let closed = std::fs::Permissions::from_mode(0o555);
    std::fs::set_permissions(folder.path(), closed).unwrap();
    let (text, _) = refusal(Tensor::ones([2], &cpu()).save_npy(folder.path().join("x.npy")));
    assert!(text.contains("another folder"), "{text}");
}
