//! Small files that users bring, of the folder `shared/cases`.

use super::{Value, fs, ok, refused};
use rtx_testing::{Nan, assert_close, shared};

/// Inverts a file of `shared/cases`, whose background has 3.0 kPa at every frequency.
fn is_right(name: &str, flags: &[&str], says: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    let input = shared(&format!("cases/{name}")).display().to_string();
    let mut args = vec!["mre", "invert", &input, "--out", "o"];
    args.extend(["--method", "ahi", "--smoothing", "0.5"]);
    args.extend(flags);
    ok(folder.path(), &args);
    let metrics = fs::read(folder.path().join("o/metrics.json")).unwrap();
    let metrics: Value = serde_json::from_slice(&metrics).unwrap();
    let regions = metrics["regions"]["storage"].as_array().unwrap();
    let found: Vec<f64> = regions
        .iter()
        .map(|r| r["median_kpa"].as_f64().unwrap_or(f64::NAN))
        .collect();
    assert!(!found.is_empty());
    assert_close(name, &found, &vec![3.0; found.len()], 0.06, Nan::Fails);
    let warnings = metrics["warnings"].to_string();
    assert_eq!(warnings == "[]", says.is_empty(), "{name}: {warnings}");
    for part in says {
        assert!(warnings.contains(part), "{name}: {warnings}");
    }
}

fn is_refused(name: &str, flags: &[&str], says: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    let input = shared(&format!("cases/{name}")).display().to_string();
    let mut args = vec!["mre", "invert", &input, "--out", "out", "--method", "ahi"];
    args.extend(flags);
    refused(folder.path(), &args, says);
}

const SAMPLES: [&str; 6] = [
    "--axes",
    "freq,x,y,phase",
    "--freq",
    "60,80",
    "--spacing-mm",
    "1",
];

#[test]
#[ignore = "needs ../shared"]
fn wrapped_phase_is_unwrapped_and_the_control_is_not() {
    is_right("wrapped.npy", &SAMPLES, &["wrapped phase", "60 Hz, 80 Hz"]);
    is_right("unwrapped.npy", &SAMPLES, &[]);
}

#[test]
#[ignore = "needs ../shared"]
fn files_of_matlab_are_read_or_say_how() {
    let fields = ["--axes", "x,y,freq", "--spacing-mm", "1"];
    let with = |more: &[&'static str]| [&fields[..], more].concat();
    is_right("with_freq.mat", &with(&["--var", "u"]), &[]);
    is_right("struct.mat", &with(&["--var", "data.u"]), &[]);
    is_refused("struct.mat", &with(&[]), &["data.u [40, 48, 2]"]);
    let squeezed = ["--freq", "60", "--spacing-mm", "1", "--axes"];
    is_refused(
        "squeezed.mat",
        &[&squeezed[..], &["x,y,slice,phase,dir,freq"]].concat(),
        &["MATLAB drops", "--axes x,y,slice,phase"],
    );
    is_right(
        "squeezed.mat",
        &[&squeezed[..], &["x,y,slice,phase"]].concat(),
        &[],
    );
    is_refused("v4.mat", &squeezed[..4], &["MATLAB v4", "save -v7"]);
    let folder = tempfile::tempdir().unwrap();
    let input = shared("cases/struct.mat").display().to_string();
    let listed = ok(folder.path(), &["mre", "info", &input]);
    assert!(listed.contains("data.u ") && listed.contains("data.freq"));
}

#[test]
#[ignore = "needs ../shared"]
fn files_of_numpy_are_read() {
    let u = ["--var", "u", "--axes"];
    let with = |more: &[&'static str]| [&u[..], more].concat();
    is_right(
        "nan_inside.npz",
        &with(&["freq,x,y"]),
        &["NaN or infinite", "left out"],
    );
    is_right("float16.npz", &with(&["freq,x,y,phase"]), &[]);
    is_right("aniso.npz", &with(&["freq,x,y"]), &[]);
    is_right(
        "aniso.npz",
        &with(&["freq,x,y", "--spacing-mm", "1,2"]),
        &[],
    );
}
