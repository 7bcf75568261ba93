//! The readers against files of SciPy and NumPy, and against damage.

use std::path::{Path, PathBuf};

use ndarray::{Array, ArrayD, IxDyn, array};
use num_complex::Complex64;
use rtx_mre::MreError;
use rtx_mre::io::{ArrayFile, list_variables, read_array, write_npz};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures")
        .join(name)
}

fn expected(value: impl Fn(f64, f64, f64) -> Complex64) -> ArrayD<Complex64> {
    Array::from_shape_fn(IxDyn(&[3, 4, 2]), |i| {
        value(i[0] as f64, i[1] as f64, i[2] as f64)
    })
}

fn real(i: f64, j: f64, k: f64) -> f64 {
    i + 10.0 * j + 100.0 * k
}

fn check_values(file: &str) {
    let path = fixture(file);
    let re = |f: fn(f64, f64, f64) -> f64| expected(move |i, j, k| f(i, j, k).into());
    let cases = [
        ("real", re(real)),
        ("single", re(real)),
        (
            "field",
            expected(|i, j, k| Complex64::new(real(i, j, k), -real(i, j, k) - 1.0)),
        ),
        ("bytes", re(|i, j, _| i - j)),
        ("words", re(|i, _, k| 1000.0 * i + k)),
        ("longs", re(|i, _, _| i * 1e12)),
        ("flag", re(|i, _, _| f64::from(i > 0.0))),
    ];
    for (name, values) in cases {
        let read = read_array(&path, Some(name)).unwrap();
        assert_eq!(read.data, values, "{file}: {name}");
        assert_eq!(read.is_complex, name == "field", "{file}: {name}");
    }
}

#[test]
fn reads_every_numeric_class_of_matlab() {
    check_values("plain.mat");
    check_values("compressed.mat");
}

#[test]
fn reads_stored_and_deflated_npz() {
    check_values("stored.npz");
    check_values("deflated.npz");
}

#[test]
fn reads_either_byte_order_and_memory_order() {
    let field = expected(|i, j, k| Complex64::new(real(i, j, k), -real(i, j, k) - 1.0));
    assert_eq!(
        read_array(&fixture("big_endian.mat"), None).unwrap().data,
        field
    );
    assert_eq!(
        read_array(&fixture("fortran.npy"), None).unwrap().data,
        field
    );
    let values = expected(|i, j, k| real(i, j, k).into());
    assert_eq!(
        read_array(&fixture("big_endian.npy"), None).unwrap().data,
        values
    );
}

#[test]
fn lists_and_refuses_what_is_not_numeric() {
    for file in ["plain.mat", "compressed.mat"] {
        let list = list_variables(&fixture(file)).unwrap();
        let of = |name: &str| list.iter().find(|v| v.name == name).unwrap();
        assert_eq!(
            (of("text").dtype.as_str(), of("text").numeric),
            ("char", false)
        );
        assert_eq!(
            (of("record").dtype.as_str(), of("record").numeric),
            ("struct", false)
        );
        assert_eq!(
            (of("list").dtype.as_str(), of("list").numeric),
            ("cell", false)
        );
        assert_eq!(of("field").dtype, "complex double");
        assert_eq!(of("field").shape, [3, 4, 2]);
        let error = read_array(&fixture(file), Some("record")).unwrap_err();
        assert!(
            error.to_string().contains("`record` of type struct"),
            "{error}"
        );
        assert!(error.is_input_error());
        let field = read_array(&fixture(file), Some("record.a")).unwrap();
        assert_eq!(
            (field.data[[0, 0]].re, field.dtype.as_str()),
            (1.0, "double")
        );
        let error = read_array(&fixture(file), Some("record.b")).unwrap_err();
        assert!(
            error.to_string().contains("record.a [1, 1] double"),
            "{error}"
        );
    }
    let error = read_array(&fixture("stored.npz"), Some("text")).unwrap_err();
    assert!(matches!(error, MreError::Unsupported { .. }), "{error}");
}

#[test]
fn several_arrays_or_a_wrong_name_list_what_is_there() {
    let error = read_array(&fixture("plain.mat"), None).unwrap_err();
    assert!(matches!(error, MreError::VariableNotNamed { .. }));
    assert!(
        error.to_string().contains("field [3, 4, 2] complex double"),
        "{error}"
    );
    let error = read_array(&fixture("stored.npz"), Some("nothing")).unwrap_err();
    assert!(matches!(error, MreError::NoSuchVariable { .. }));
    assert!(
        error.to_string().contains("words [3, 4, 2] uint16"),
        "{error}"
    );
}

#[test]
fn foreign_files_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let mut v73 = vec![0_u8; 512];
    v73.extend(b"\x89HDF\r\n\x1a\n");
    for (name, bytes, says) in [
        ("hdf5.mat", b"\x89HDF\r\n\x1a\n rest".to_vec(), "v7.3"),
        ("v73.mat", v73, "v7.3"),
        ("empty.mat", vec![], "is empty"),
        (
            "text.mat",
            b"x,y\n1,2\n".to_vec(),
            "starts with `x,y\\n1,2\\n`",
        ),
        ("short.mat", b"MATLAB 5.0 MAT-file".to_vec(), "at byte 19"),
    ] {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        let error = read_array(&path, None).unwrap_err();
        assert!(error.to_string().contains(says), "{error}");
        assert!(error.is_input_error());
    }
    let error = read_array(&folder.path().join("absent.mat"), None).unwrap_err();
    assert!(matches!(error, MreError::Io { .. }) && error.is_input_error());
}

/// Reads every numeric array that these bytes list.
fn read_all(bytes: &[u8]) -> rtx_mre::Result<()> {
    let file = ArrayFile::from_bytes(Path::new("damaged"), bytes.to_vec())?;
    let list = file.variables()?;
    list.iter()
        .filter(|v| v.numeric)
        .try_for_each(|v| file.read(Some(&v.name)).map(drop))
}

const ALL: [&str; 7] = [
    "plain.mat",
    "compressed.mat",
    "big_endian.mat",
    "fortran.npy",
    "big_endian.npy",
    "stored.npz",
    "deflated.npz",
];

#[test]
fn truncation_at_every_length_is_an_error() {
    for file in ALL {
        let bytes = std::fs::read(fixture(file)).unwrap();
        read_all(&bytes).unwrap();
        let mut sound = 0;
        for len in 0..bytes.len() {
            match read_all(&bytes[..len]) {
                Ok(()) => sound += 1,
                Err(error) => assert!(error.is_input_error(), "{file} cut to {len}: {error}"),
            }
        }
        // A cut between two of the up to ten elements of a .mat (or in its last padding) leaves a
        // sound, shorter file.
        let most = if file.ends_with(".mat") { 30 } else { 0 };
        assert!(sound <= most, "{file}: {sound} cuts were read");
    }
}

#[test]
fn flipped_bytes_never_panic() {
    for file in ALL {
        let original = std::fs::read(fixture(file)).unwrap();
        for at in 0..original.len() {
            for flip in [0x01, 0x80, 0xff] {
                let mut bytes = original.clone();
                bytes[at] ^= flip;
                if let Err(error) = read_all(&bytes) {
                    assert!(error.is_input_error(), "{file}, byte {at}: {error}");
                }
            }
        }
    }
}

#[test]
fn claims_beyond_the_file_are_refused_without_allocating_them() {
    let folder = tempfile::tempdir().unwrap();
    let mut npy = b"\x93NUMPY\x01\x00".to_vec();
    let header = "{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000,), }\n";
    npy.extend((header.len() as u16).to_le_bytes());
    npy.extend(header.as_bytes());
    let path = folder.path().join("huge.npy");
    std::fs::write(&path, npy).unwrap();
    let error = read_array(&path, None).unwrap_err();
    assert!(error.to_string().contains("8000000000000 bytes"), "{error}");

    // The first array of the fixture is real, 3 x 4 x 2: its first extent sits at byte 160.
    let mut mat = std::fs::read(fixture("plain.mat")).unwrap();
    assert_eq!(mat[160..164], 3_i32.to_le_bytes());
    mat[160..164].copy_from_slice(&i32::MAX.to_le_bytes());
    let path = folder.path().join("huge.mat");
    std::fs::write(&path, mat).unwrap();
    let error = read_array(&path, Some("real")).unwrap_err();
    assert!(
        matches!(error, MreError::Malformed { offset: 184, .. }),
        "{error:?}"
    );
}

#[test]
fn written_npz_is_read_back_and_leaves_no_temporary_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("modulus.npz");
    let g = expected(|i, j, k| Complex64::new(real(i, j, k), 0.5));
    let (freq, half) = (array![30.0, 40.0], array![0.5_f32]);
    let (mask, region, spacing) = (array![[true, false]], array![-7_i64], ndarray::arr0(1e-3));
    let arrays = [
        ("G", (&g).into()),
        ("freq", (&freq).into()),
        ("half", (&half).into()),
        ("mask", (&mask).into()),
        ("region", (&region).into()),
        ("spacing", (&spacing).into()),
    ];
    write_npz(&path, &arrays).unwrap();
    write_npz(&path, &arrays).unwrap();
    assert_eq!(read_array(&path, Some("G")).unwrap().data, g);
    assert_eq!(read_array(&path, Some("half")).unwrap().data[[0]].re, 0.5);
    assert_eq!(read_array(&path, Some("mask")).unwrap().dtype, "bool");
    assert_eq!(
        read_array(&path, Some("region")).unwrap().data[[0]].re,
        -7.0
    );
    assert_eq!(read_array(&path, Some("spacing")).unwrap().data.ndim(), 0);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);

    let error = write_npz(&folder.path().join("no/such/folder.npz"), &arrays).unwrap_err();
    assert!(
        error.is_input_error() && error.to_string().contains("folder.npz"),
        "{error}"
    );
}

#[test]
fn version_4_of_matlab_is_named_in_either_byte_order() {
    let header = |kind: u32, to: fn(u32) -> [u8; 4]| {
        let words = [kind, 2, 1, 0, 2].map(to);
        let mut bytes: Vec<u8> = words.into_iter().flatten().collect();
        bytes.extend(b"u\0");
        bytes.extend([0; 16]);
        bytes
    };
    let of = |bytes: Vec<u8>| {
        let error = ArrayFile::from_bytes(Path::new("a.mat"), bytes).err();
        error.unwrap().to_string()
    };
    for bytes in [header(0, u32::to_le_bytes), header(1000, u32::to_be_bytes)] {
        let text = of(bytes);
        assert!(
            text.contains("MATLAB v4") && text.contains("save -v7"),
            "{text}"
        );
    }
    assert!(of(vec![0; 64]).contains("is needed"));
    assert!(of(header(9, u32::to_le_bytes)).contains("is needed"));
}
