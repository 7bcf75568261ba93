//! The command from the outside: bad input is explained with exit code 2 and leaves nothing behind;
//! a phantom goes all the way to maps.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use ndarray::{Array3, Array5, array};
use num_complex::Complex64;
use rustytorch::mre::io::{NpzArray, read_array, write_npz};
use serde_json::Value;

fn rtx(folder: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_rtx"))
        .args(args)
        .current_dir(folder)
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Runs a command that must succeed; its standard output.
fn ok(folder: &Path, args: &[&str]) -> String {
    let out = rtx(folder, args);
    assert!(out.status.success(), "{args:?}: {}", text(&out.stderr));
    text(&out.stdout)
}

/// Runs a command that must be refused as bad input, saying all of `says`, with no output folder.
fn refused(folder: &Path, args: &[&str], says: &[&str]) {
    let out = rtx(folder, args);
    let error = text(&out.stderr);
    assert_eq!(out.status.code(), Some(2), "{args:?}: {error}");
    assert!(error.starts_with("error: "), "{args:?}: {error}");
    for part in says {
        assert!(
            error.contains(part),
            "{args:?}: `{part}` is not in: {error}"
        );
    }
    for never in ["panicked", "RUST_BACKTRACE"] {
        assert!(!error.contains(never), "{error}");
    }
    assert!(out.stdout.is_empty(), "{}", text(&out.stdout));
    assert!(!folder.join("out").exists(), "{args:?} left a folder");
}

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../rtx-mre/tests/fixtures")
        .join(name)
}

/// A damped plane wave `[freq, x, y]`.
fn harmonic() -> Array3<Complex64> {
    Array3::from_shape_fn((2, 16, 12), |(f, x, y)| {
        Complex64::from_polar(
            (-0.02 * x as f64).exp() + 0.001 * y as f64,
            -(0.3 + 0.1 * f as f64) * x as f64,
        )
    })
}

/// The same wave at `offsets` phase offsets, `[x, y, phase, dir, freq]`; the second direction is zero.
fn offsets(offsets: usize) -> Array5<f64> {
    let u = harmonic();
    Array5::from_shape_fn((16, 12, offsets, 2, 2), |(x, y, k, dir, f)| {
        let phase = Complex64::cis(std::f64::consts::TAU * k as f64 / offsets as f64);
        if dir == 0 {
            (u[[f, x, y]] * phase).re
        } else {
            0.0
        }
    })
}

fn write(path: &Path, name: &str, values: NpzArray<'_>) {
    write_npz(path, &[(name, values)]).unwrap();
}

const AXES: &str = "x,y,phase,dir,freq";

/// `rtx mre invert FILE --out out`, then these arguments.
fn invert<'a>(file: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let mut args = vec!["mre", "invert", file, "--out", "out", "--method", "ahi"];
    args.extend(more);
    args
}

#[test]
fn files_that_are_not_data_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let mat = fs::read(fixture("plain.mat")).unwrap();
    fs::write(at.join("cut.mat"), &mat[..mat.len() / 2]).unwrap();
    refused(
        at,
        &invert("cut.mat", &["--var", "nothing"]),
        &["cut.mat", "byte"],
    );
    fs::write(
        at.join("notes.mat"),
        "these are my notes, not a measurement",
    )
    .unwrap();
    refused(
        at,
        &invert("notes.mat", &[]),
        &["notes.mat", ".npz is needed"],
    );
    fs::write(at.join("empty.npz"), "").unwrap();
    refused(at, &invert("empty.npz", &[]), &["empty.npz", "empty"]);
    refused(
        at,
        &invert("absent.npz", &[]),
        &["absent.npz", "cannot read"],
    );
    refused(at, &["mre", "info", "notes.mat"], &["notes.mat"]);
    let input = at.join("u.npz");
    write(&input, "u", (&offsets(4)).into());
    refused(
        at,
        &invert("u.npz", &["--var", "displacement", "--axes", AXES]),
        &["no variable `displacement`", "u [16, 12, 4, 2, 2]"],
    );
}

#[test]
fn what_the_file_does_not_say_must_be_given() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    write(&at.join("u.npz"), "u", (&offsets(4)).into());
    let all = ["--axes", AXES, "--freq", "50,60", "--components", "x"];
    refused(at, &invert("u.npz", &[]), &["--axes", "[16, 12, 4, 2, 2]"]);
    refused(at, &invert("u.npz", &all), &["--spacing-mm", "square"]);
    refused(
        at,
        &invert("u.npz", &["--axes", AXES, "--spacing-mm", "2"]),
        &["--freq"],
    );
    // Both data and flags are complete now.
    let mut complete = all.to_vec();
    complete.extend(["--spacing-mm", "2"]);
    ok(at, &invert("u.npz", &complete));
}

#[test]
fn flags_that_do_not_fit_the_data_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    write(&at.join("u.npz"), "u", (&offsets(4)).into());
    write(&at.join("one.npz"), "u", (&offsets(1)).into());
    let mut bad = offsets(4);
    bad[[7, 6, 1, 0, 0]] = f64::NAN;
    write(&at.join("nan.npz"), "u", (&bad).into());
    let with = |axes: &'static str, freq: &'static str, components: &'static str| {
        [
            "--spacing-mm",
            "2",
            "--axes",
            axes,
            "--freq",
            freq,
            "--components",
            components,
        ]
    };
    let refuse =
        |file: &str, flags: &[&str], says: &[&str]| refused(at, &invert(file, flags), says);
    refuse(
        "u.npz",
        &with("x,y,phase", "50,60", "x"),
        &["names 3 axes", "has 5"],
    );
    refuse(
        "u.npz",
        &with("x,y,time,dir,freq", "50,60", "x"),
        &["`time` is no axis name"],
    );
    refuse("u.npz", &with(AXES, "50", "x"), &["--freq 50", "holds 2"]);
    refuse("u.npz", &with(AXES, "50,sixty", "x"), &["--freq", "sixty"]);
    refuse(
        "u.npz",
        &with(AXES, "50,60", "x,y"),
        &["component y is zero", "--components x"],
    );
    refuse(
        "u.npz",
        &with(AXES, "50,60", "-z"),
        &["--components", "hold 2"],
    );
    refuse(
        "one.npz",
        &with(AXES, "50,60", "x"),
        &["`u`", "1 phase offset"],
    );
    let everywhere = [&with(AXES, "50,60", "x")[..], &["--mask", "all"]].concat();
    refuse("nan.npz", &everywhere, &["NaN", "x 7, y 6"]);
    // Fewer pixels than those of the whole image say nothing for certain.
    let more = ["--time-sign", "-", "--erode", "0"];
    let conjugated = [&with(AXES, "50,60", "x")[..], &more].concat();
    refuse(
        "u.npz",
        &conjugated,
        &["loss modulus is -", "--time-sign +"],
    );
    let sensible = with(AXES, "50,60", "x");
    for (flag, value, says) in [
        ("--holdout", "1.5", "--holdout 1.5"),
        ("--smoothing", "-1", "--smoothing -1"),
        ("--spacing-mm", "zero", "--spacing-mm zero"),
        ("--device", "abacus", "abacus"),
        ("--mask", "nowhere", "nowhere"),
        ("--reference-var", "nothing", "no variable `nothing`"),
        ("--steps", "0", "--steps"),
        ("--method", "guess", "--method"),
    ] {
        let flags: Vec<&str> = sensible
            .chunks(2)
            .filter(|pair| pair[0] != flag)
            .flatten()
            .copied()
            .filter(|arg| !(flag == "--method" && *arg == "ahi"))
            .collect();
        let mut args = vec!["mre", "invert", "u.npz", "--out", "out"];
        args.extend(&flags);
        args.extend([flag, value]);
        refused(at, &args, &[says]);
    }
    refuse(
        "u.npz",
        &[&sensible[..], &["--resume"]].concat(),
        &["--resume", "pinn"],
    );
    let mut resume = vec!["mre", "invert", "u.npz", "--out", "out", "--resume"];
    resume.extend(sensible);
    refused(at, &resume, &["no checkpoint", "checkpoint.safetensors"]);
}

#[test]
fn an_output_folder_that_cannot_be_written_is_refused_before_any_work() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    fs::write(at.join("file"), "").unwrap();
    for out in ["file", "file/below"] {
        for command in [
            vec!["mre", "simulate", "--out", out],
            vec!["mre", "demo", "--out", out],
            // The input does not exist: the folder is looked at first.
            vec!["mre", "invert", "absent.npz", "--out", out],
        ] {
            refused(at, &command, &["output folder", "--out"]);
        }
    }
    refused(
        at,
        &["bench", "pinn", "--json", "file/bench.json"],
        &["file"],
    );
    assert_eq!(fs::read_dir(at).unwrap().count(), 1);
}

#[test]
fn phantoms_that_cannot_be_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let simulate = |more: &[&str], says: &[&str]| {
        let args = [&["mre", "simulate", "--out", "out"], more].concat();
        refused(folder.path(), &args, says);
    };
    simulate(&["--preset", "liver"], &["liver", "four-target"]);
    simulate(&["--disc", "1,2,3"], &["--disc 1,2,3", "modulus"]);
    simulate(&["--size", "20"], &["--size 20"]);
    simulate(&["--noise", "-1"], &["noise"]);
    simulate(&["--freq", "50,x"], &["--freq", "`x`"]);
    simulate(&["--config", "absent.toml"], &["absent.toml"]);
    fs::write(folder.path().join("bad.toml"), "nois = 1").unwrap();
    simulate(&["--config", "bad.toml"], &["bad.toml", "nois"]);
}

#[test]
fn every_command_explains_itself() {
    let folder = tempfile::tempdir().unwrap();
    for command in [
        &[][..],
        &["devices"],
        &["mre"],
        &["mre", "demo"],
        &["mre", "info"],
        &["mre", "invert"],
        &["mre", "simulate"],
        &["bench"],
        &["bench", "pinn"],
    ] {
        let help = ok(folder.path(), &[command, &["--help"]].concat());
        assert!(help.contains("Usage: rtx"), "{help}");
    }
    assert!(ok(folder.path(), &["--version"]).starts_with("rtx "));
    let devices: Value = serde_json::from_str(&ok(folder.path(), &["devices", "--json"])).unwrap();
    assert_eq!(devices[0]["name"], "cpu");
}

#[test]
fn a_benchmark_is_a_list_of_measurements() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    refused(
        at,
        &["bench", "pinn", "--workloads", "F,Z"],
        &["`Z`", "F, A or B"],
    );
    let args = [
        "bench",
        "pinn",
        "--workloads",
        "F",
        "--sizes",
        "64",
        "--json",
        "bench.json",
    ];
    assert!(ok(at, &args).contains("us/step"));
    let text = fs::read_to_string(at.join("bench.json")).unwrap();
    let cells: Value = serde_json::from_str(&text).unwrap();
    let cell = &cells[0];
    assert_eq!(
        (&cell["workload"], &cell["points"]),
        (&"F".into(), &64.into())
    );
    assert_eq!(
        (&cell["device"], &cell["precision"]["effective"]),
        (&"cpu".into(), &"f32".into())
    );
    let of = |name: &str| cell[name].as_f64().unwrap();
    assert!(0.0 < of("us_min") && of("us_min") <= of("us_per_step"));
    assert!(of("us_per_step") <= of("us_max") && of("steps") > 0.0);

    let tier = [&args[..], &["--precision", "bf16x3"]].concat();
    let out = rtx(at, &tier);
    assert!(out.status.success());
    let said = String::from_utf8_lossy(&out.stderr);
    assert!(said.contains("computed in f32"), "{said}");
    let text = fs::read_to_string(at.join("bench.json")).unwrap();
    let cells: Value = serde_json::from_str(&text).unwrap();
    let precision = &cells[0]["precision"];
    assert_eq!(precision["requested"], "bf16x3");
    assert_eq!(precision["effective"], "f32");
}

/// A phantom that takes a moment.
const TINY: [&str; 12] = [
    "--preset",
    "homogeneous",
    "--size",
    "30,30",
    "--freq",
    "80,100",
    "--disc",
    "15,15,5,8",
    "--noise",
    "1e-4",
    "--seed",
    "3",
];

fn simulate_tiny(folder: &Path, out: &str) -> String {
    ok(
        folder,
        &[&["mre", "simulate", "--out", out], &TINY[..]].concat(),
    )
}

#[test]
fn a_phantom_is_simulated_inverted_and_compared_with_its_truth() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    simulate_tiny(at, "phantom");
    simulate_tiny(at, "again");
    let bytes = |name: &str| fs::read(at.join(name).join("wave.npz")).unwrap();
    assert_eq!(
        bytes("phantom"),
        bytes("again"),
        "the same seed gives the same bits"
    );
    let info: Value =
        serde_json::from_str(&ok(at, &["mre", "info", "phantom/wave.npz", "--json"])).unwrap();
    assert_eq!(info[0]["shape"], serde_json::json!([2, 30, 30]));

    let args = [
        "mre",
        "invert",
        "phantom/wave.npz",
        "--var",
        "u",
        "--axes",
        "freq,x,y",
        "--method",
        "ahi",
        "--smoothing",
        "1",
        "--out",
        "out",
    ];
    let table = ok(at, &args);
    assert!(
        table.contains("against the truth") && table.contains("constant 3.000 kPa"),
        "{table}"
    );
    let printed: Value = serde_json::from_str(&ok(at, &[&args[..], &["--json"]].concat())).unwrap();
    let stored = fs::read_to_string(at.join("out/metrics.json")).unwrap();
    assert_eq!(printed, serde_json::from_str::<Value>(&stored).unwrap());
    assert!(
        printed["command"]
            .as_str()
            .unwrap()
            .starts_with("rtx mre invert phantom/wave.npz")
    );
    let background = printed["truth"][0]["regions"][0]["median_kpa"]
        .as_f64()
        .unwrap();
    assert!((background - 3.1).abs() < 0.4, "{background}");
    let g = read_array(&at.join("out/modulus.npz"), Some("G")).unwrap();
    assert_eq!((g.data.shape(), g.is_complex), (&[2, 30, 30][..], true));
    assert!(
        fs::read(at.join("out/maps.png"))
            .unwrap()
            .starts_with(b"\x89PNG")
    );
    assert!(
        printed["voxel_size_sensitivity"].is_null(),
        "the file carries the voxel size"
    );
}

#[test]
fn a_reference_map_is_compared_and_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let (u, freq) = (offsets(4), array![50.0, 60.0]);
    let reference = ndarray::Array4::from_shape_fn((16, 12, 2, 2), |(x, y, _, f)| {
        2.0 + f as f64 + 0.1 * (x * y) as f64
    });
    let arrays = [
        ("u", (&u).into()),
        ("freq", (&freq).into()),
        ("mu", (&reference).into()),
    ];
    write_npz(&at.join("u.npz"), &arrays).unwrap();
    let flags = [
        "--var",
        "u",
        "--axes",
        AXES,
        "--spacing-mm",
        "2",
        "--components",
        "x",
        "--reference-erode",
        "1",
    ];
    ok(at, &invert("u.npz", &flags));
    let alone = fs::read(at.join("out/modulus.npz")).unwrap();
    let with = [&flags[..], &["--reference-var", "mu", "--json"]].concat();
    let metrics: Value = serde_json::from_str(&ok(at, &invert("u.npz", &with))).unwrap();
    assert_eq!(fs::read(at.join("out/modulus.npz")).unwrap(), alone);
    assert_eq!(metrics["reference"]["methods"].as_array().unwrap().len(), 2);
    let medians = metrics["voxel_size_sensitivity"].clone();
    let at_plus = medians["median_magnitude_kpa_at_plus_10_percent"][0]
        .as_f64()
        .unwrap();
    let given = medians["median_magnitude_kpa"][0].as_f64().unwrap();
    assert!((at_plus / given - 1.21).abs() < 1e-12);
}

#[test]
fn lists_may_start_with_a_minus_and_are_then_explained() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    write(&at.join("u.npz"), "u", (&offsets(4)).into());
    refused(
        at,
        &invert("u.npz", &["--freq", "-50,60"]),
        &["--freq -50,60", "`-50`"],
    );
    refused(
        at,
        &invert("u.npz", &["--spacing-mm", "-1,1,1"]),
        &["--spacing-mm -1,1,1", "positive"],
    );
    let simulate = |flags: &[&str], says: &[&str]| {
        refused(
            at,
            &[&["mre", "simulate", "--out", "out"], flags].concat(),
            says,
        );
    };
    simulate(&["--size", "-5,5"], &["--size -5,5", "whole"]);
    simulate(&["--freq", "-50,60"], &["frequencies_hz[0] is -50"]);
    simulate(&["--disc", "-5,10,3,8"], &["disc 0", "leaves the phantom"]);
    refused(
        at,
        &["bench", "pinn", "--sizes", "-1"],
        &["'-1'", "--sizes"],
    );
}

#[test]
fn sizes_without_a_meaning_are_bad_input_and_no_failed_solution() {
    let folder = tempfile::tempdir().unwrap();
    for flag in [
        "--freq",
        "--background-kpa",
        "--amplitude",
        "--viscosity",
        "--noise",
        "--spacing-mm",
    ] {
        for value in ["1e300", "1e-300"] {
            let args = [
                "mre", "simulate", "--out", "out", "--size", "20,20", flag, value,
            ];
            refused(folder.path(), &args, &[value, "1e-12 to 1e12"]);
        }
    }
}

#[test]
fn variables_of_the_environment_are_understood_or_refused() {
    let folder = tempfile::tempdir().unwrap();
    let devices = |name: &str, value: &str| {
        Command::new(env!("CARGO_BIN_EXE_rtx"))
            .args(["devices", "--json"])
            .current_dir(folder.path())
            .env(name, value)
            .output()
            .unwrap()
    };
    for (name, value) in [
        ("RTX_THREADS", "abc"),
        ("RTX_THREADS", "-1"),
        ("RTX_EAGER", "yes"),
        ("RTX_DEVICE", "gpu"),
    ] {
        let out = devices(name, value);
        let error = text(&out.stderr);
        assert_eq!(out.status.code(), Some(2), "{name}={value}: {error}");
        assert!(error.contains(&format!("'{value}'")), "{error}");
    }
    let list = |name: &str, value: &str| -> Value {
        let out = devices(name, value);
        assert!(out.status.success(), "{}", text(&out.stderr));
        serde_json::from_slice(&out.stdout).unwrap()
    };
    assert_eq!(list("RTX_THREADS", "1")[0]["size"], "1 thread");
    assert_eq!(list("RTX_DEVICE", "reference")[1]["best"], true);
    assert_eq!(list("RTX_DEVICE", "")[0]["best"], true);
}

#[test]
fn files_in_the_way_of_results_are_noticed_before_the_work() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    simulate_tiny(at, "phantom");
    let args = |out: &'static str| {
        let mut args = vec![
            "mre",
            "invert",
            "phantom/wave.npz",
            "--var",
            "u",
            "--axes",
            "freq,x,y",
        ];
        args.extend(["--method", "ahi", "--out", out]);
        args
    };
    fs::create_dir_all(at.join("full/maps.png")).unwrap();
    let out = rtx(at, &args("full"));
    let error = text(&out.stderr);
    assert_eq!(out.status.code(), Some(2), "{error}");
    assert!(error.contains("maps.png` is a folder"), "{error}");
    assert_eq!(
        fs::read_dir(at.join("full")).unwrap().count(),
        1,
        "something was written"
    );
    let bench = [
        "bench",
        "pinn",
        "--workloads",
        "F",
        "--sizes",
        "16",
        "--json",
        "full",
    ];
    refused(at, &bench, &["--json full", "is a folder"]);
}

#[cfg(target_os = "linux")]
#[test]
fn a_report_that_cannot_be_written_out_is_a_failure() {
    let folder = tempfile::tempdir().unwrap();
    let full = fs::OpenOptions::new()
        .write(true)
        .open("/dev/full")
        .unwrap();
    let out = Command::new(env!("CARGO_BIN_EXE_rtx"))
        .args(["devices", "--json"])
        .current_dir(folder.path())
        .stdout(full)
        .output()
        .unwrap();
    assert_eq!(out.status.code(), Some(1), "{}", text(&out.stderr));
    assert!(text(&out.stderr).contains("standard output"));
}

#[cfg(target_os = "linux")]
#[test]
fn paths_need_not_be_utf8() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    simulate_tiny(at, "phantom");
    let (input, output) = (OsStr::from_bytes(b"w\xff.npz"), OsStr::from_bytes(b"o\xff"));
    fs::copy(at.join("phantom/wave.npz"), at.join(input)).unwrap();
    let run = |command: &[&str], rest: &[&OsStr]| {
        let out = Command::new(env!("CARGO_BIN_EXE_rtx"))
            .args(command)
            .args(rest)
            .current_dir(at)
            .output()
            .unwrap();
        assert!(out.status.success(), "{}", text(&out.stderr));
    };
    let flags = [
        "mre", "invert", "--method", "ahi", "--var", "u", "--axes", "freq,x,y", "--out",
    ];
    run(&flags, &[output, input]);
    run(
        &[&["mre", "simulate"], &TINY[..], &["--out"]].concat(),
        &[output],
    );
    for file in ["metrics.json", "phantom.json"] {
        let text = fs::read_to_string(at.join(output).join(file)).unwrap();
        serde_json::from_str::<Value>(&text).unwrap();
    }
}

#[test]
fn what_is_doubtful_is_said_and_kept() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    // A phase image in steps of a scanner: 4 pi from valley to peak.
    let steps = offsets(8).mapv(|u| (u * 4096.0).rem_euclid(4096.0).floor());
    write(&at.join("u.npz"), "u", (&steps).into());
    let listed = ok(at, &["mre", "info", "u.npz"]);
    assert!(
        listed.contains("4096 steps") && listed.contains("rtx mre invert u.npz"),
        "{listed}"
    );
    let flags = [
        "--axes",
        AXES,
        "--freq",
        "50,60",
        "--components",
        "x",
        "--spacing-mm",
        "0.002",
        "--erode",
        "0",
    ];
    let out = rtx(at, &invert("u.npz", &flags));
    let (said, error) = (text(&out.stdout), text(&out.stderr));
    assert!(out.status.success(), "{error}");
    assert!(
        said.contains("verdict: not judged: no pixels were held out"),
        "{said}"
    );
    let metrics = fs::read(at.join("out/metrics.json")).unwrap();
    let metrics: Value = serde_json::from_slice(&metrics).unwrap();
    assert_eq!(metrics["verdict"]["kind"], "not-judged");
    assert_eq!(metrics["input"]["unwrapped"]["period"], 4096.0);
    let kept = metrics["warnings"].to_string();
    for part in [
        "takes millimetres",
        "wrapped phase (4096 steps",
        "the median of |G| is",
    ] {
        assert!(
            error.contains(part) && kept.contains(part),
            "{part}: {error} {kept}"
        );
    }
    let off = rtx(
        at,
        &invert("u.npz", &[&flags[..], &["--unwrap", "off"]].concat()),
    );
    let said = text(&off.stderr);
    assert!(
        !said.contains("unwrapped at") && said.contains("third harmonic"),
        "{said}"
    );
}

#[test]
fn what_an_option_says_against_the_file_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    simulate_tiny(at, "phantom");
    let warnings = |more: &[&str]| {
        let plain = ["--var", "u", "--axes", "freq,x,y", "--json"];
        let args = invert("phantom/wave.npz", &plain);
        let metrics: Value = serde_json::from_str(&ok(at, &[&args[..], more].concat())).unwrap();
        metrics["warnings"].to_string()
    };
    let same = warnings(&["--freq", "80,100", "--spacing-mm", "1"]);
    assert!(!same.contains("the file's own"), "{same}");
    let other = warnings(&["--freq", "40,50", "--spacing-mm", "1.5"]);
    for part in ["own `freq` is 80,100 Hz", "own `spacing` is 1 mm"] {
        assert!(other.contains(part), "{part}: {other}");
    }
    fs::remove_dir_all(at.join("out")).unwrap();

    // A wrapped phase that was smoothed no longer jumps.
    let wrapped = offsets(8).mapv(|u| (3.0 * u + 0.5).rem_euclid(1.0) - 0.5);
    let smooth = Array5::from_shape_fn(wrapped.dim(), |(x, y, k, d, f)| {
        let near = |n: usize, i: usize| i.saturating_sub(2)..(i + 3).min(n);
        let all: Vec<f64> = near(16, x)
            .flat_map(|x| near(12, y).map(move |y| (x, y)))
            .map(|(x, y)| wrapped[[x, y, k, d, f]])
            .collect();
        all.iter().sum::<f64>() / all.len() as f64
    });
    write(&at.join("smooth.npz"), "u", (&smooth).into());
    let flags = ["--axes", AXES, "--freq", "50,60", "--components", "x"];
    let more = ["--spacing-mm", "1", "--unwrap", "off"];
    let out = rtx(at, &[&invert("smooth.npz", &flags)[..], &more].concat());
    let said = text(&out.stderr);
    assert!(
        out.status.success() && said.contains("third harmonic"),
        "{said}"
    );
    fs::remove_dir_all(at.join("out")).unwrap();

    // Nothing of a wave of two units is wrapped at 360.
    write(&at.join("u.npz"), "u", (&offsets(8)).into());
    let more = ["--spacing-mm", "1", "--unwrap", "360"];
    let args = invert("u.npz", &flags);
    refused(at, &[&args[..], &more].concat(), &["--unwrap 360", "span"]);
}

#[path = "cli/needs_shared.rs"]
mod needs_shared;
