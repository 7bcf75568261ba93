//! The network from the command line, for a handful of steps: files, resume, Ctrl-C, the demo.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

fn rtx(folder: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_rtx"))
        .args(args)
        .current_dir(folder)
        .output()
        .unwrap()
}

fn ok(folder: &Path, args: &[&str]) -> Value {
    let out = rtx(folder, args);
    let error = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(out.status.success(), "{args:?}: {error}");
    serde_json::from_slice(&out.stdout).unwrap()
}

fn phantom(folder: &Path) {
    let args = [
        "mre",
        "simulate",
        "--preset",
        "homogeneous",
        "--size",
        "24,24",
        "--freq",
        "80,100",
        "--noise",
        "1e-4",
        "--out",
        "phantom",
        "--json",
    ];
    ok(folder, &args);
}

/// `rtx mre invert` with the network on that phantom.
fn invert<'a>(out: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let mut args = vec![
        "mre",
        "invert",
        "phantom/wave.npz",
        "--var",
        "u",
        "--axes",
        "freq,x,y",
        "--json",
        "--out",
        out,
    ];
    args.extend(more);
    args
}

#[test]
fn a_short_training_writes_all_files() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    phantom(at);
    let metrics = ok(
        at,
        &invert(
            "out",
            &["--steps", "20", "--seed", "4", "--holdout-block", "3"],
        ),
    );
    assert_eq!(
        (&metrics["steps"], &metrics["seed"]),
        (&20.into(), &4.into())
    );
    assert_eq!(metrics["heldout_relative_l2"].as_array().unwrap().len(), 2);
    assert!(!metrics["losses"].as_object().unwrap().is_empty());
    for file in [
        "modulus.npz",
        "maps.png",
        "metrics.json",
        "loss.csv",
        "checkpoint.safetensors",
    ] {
        assert!(at.join("out").join(file).is_file(), "{file}");
    }
    // A damaged checkpoint is bad input, and the maps of the finished run stay.
    fs::write(at.join("out/checkpoint.safetensors"), "damaged").unwrap();
    let out = rtx(
        at,
        &invert("out", &["--steps", "30", "--seed", "4", "--resume"]),
    );
    let error = String::from_utf8_lossy(&out.stderr).into_owned();
    assert_eq!(out.status.code(), Some(2), "{error}");
    assert!(error.contains("checkpoint.safetensors"), "{error}");
    assert!(at.join("out/modulus.npz").is_file());
}

#[test]
fn a_training_in_half_precision_is_told_and_not_mixed_with_another() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    phantom(at);
    let half = ["--steps", "20", "--precision", "f16"];
    let metrics = ok(at, &invert("out", &half));
    let settings = &metrics["settings"];
    assert_eq!(settings["flags"]["precision"], "f16");
    assert_eq!(settings["method"]["precision"], "f16");
    assert_eq!(metrics["precision"]["requested"], "f16");
    assert_eq!(metrics["precision"]["effective"], "f32");
    let out = rtx(at, &invert("out", &["--steps", "30", "--resume"]));
    let error = String::from_utf8_lossy(&out.stderr).into_owned();
    assert_eq!(out.status.code(), Some(2), "{error}");
    assert!(error.contains("precision"), "{error}");
    let on = ["--steps", "30", "--precision", "f16", "--resume"];
    assert_eq!(ok(at, &invert("out", &on))["steps"], 30);
    let out = rtx(at, &invert("out", &["--precision", "half"]));
    let error = String::from_utf8_lossy(&out.stderr).into_owned();
    assert_eq!(out.status.code(), Some(2), "{error}");
    assert!(
        error.contains("'half'") && error.contains("bf16x3"),
        "{error}"
    );
}

#[cfg(unix)]
#[test]
fn ctrl_c_keeps_a_checkpoint_that_resume_continues_from() {
    use std::time::{Duration, Instant};

    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    phantom(at);
    // Far more steps than the test waits for.
    let steps = ["--steps", "1000000"];
    let mut child = Command::new(env!("CARGO_BIN_EXE_rtx"))
        .args(invert("out", &steps))
        .current_dir(at)
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let (start, log) = (Instant::now(), at.join("out/loss.csv"));
    let lines = || fs::read_to_string(&log).map_or(0, |text| text.lines().count());
    while lines() < 3 {
        assert!(
            start.elapsed() < Duration::from_secs(120),
            "no loss was logged"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
    let killed = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status()
        .unwrap();
    assert!(killed.success());
    let status = child.wait().unwrap();
    let mut error = String::new();
    std::io::Read::read_to_string(&mut child.stderr.take().unwrap(), &mut error).unwrap();
    assert_eq!(status.code(), Some(130), "{error}");
    assert!(error.contains("--resume"), "{error}");
    assert!(at.join("out/checkpoint.safetensors").is_file());
    assert!(
        !at.join("out/modulus.npz").exists(),
        "an unfinished training leaves no maps"
    );

    let before = fs::metadata(at.join("out/checkpoint.safetensors"))
        .unwrap()
        .len();
    assert!(before > 0);
    // The checkpoint is beyond 20 steps, so a total of 20 ends at once with what was trained.
    let metrics = ok(at, &invert("out", &["--steps", "20", "--resume"]));
    assert!(
        metrics["steps"].as_u64().unwrap() > 20,
        "{}",
        metrics["steps"]
    );
}

#[test]
fn a_checkpoint_is_continued_with_its_own_data_and_settings_only() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    phantom(at);
    ok(at, &invert("out", &["--steps", "10"]));
    let files = || {
        ["checkpoint.safetensors", "modulus.npz", "metrics.json"]
            .map(|file| fs::read(at.join("out").join(file)).unwrap())
    };
    let before = files();
    let refused = |more: &[&str], says: &str| {
        let flags = [&["--steps", "20", "--resume"], more].concat();
        let out = rtx(at, &invert("out", &flags));
        let error = String::from_utf8_lossy(&out.stderr).into_owned();
        assert_eq!(out.status.code(), Some(2), "{more:?}: {error}");
        for part in ["belongs to another training", says] {
            assert!(error.contains(part), "{more:?}: {error}");
        }
        assert!(before == files(), "{more:?} changed the results");
    };
    refused(&["--seed", "5"], "seed 0 there, 5 here");
    // With other pixels held out, the first training would have seen those that the second one judges by.
    refused(&["--holdout", "0.5"], "holdout 0.2 there, 0.5 here");
    refused(&["--holdout-block", "3"], "holdout block 1 there, 3 here");
    refused(&["--equation", "hetero"], "equation");
    refused(&["--rheology", "voigt"], "rheology");
    refused(&["--spacing-mm", "2"], "voxel size");
    refused(&["--freq", "40,50"], "frequencies");
    refused(&["--erode", "2"], "mask");

    // More steps are the same training.
    let metrics = ok(at, &invert("out", &["--steps", "20", "--resume"]));
    assert_eq!(metrics["steps"], 20);
    // Without its record nobody knows whose it is.
    fs::remove_file(at.join("out/checkpoint.json")).unwrap();
    let out = rtx(at, &invert("out", &["--steps", "30", "--resume"]));
    let error = String::from_utf8_lossy(&out.stderr).into_owned();
    assert_eq!(out.status.code(), Some(2), "{error}");
    assert!(error.contains("checkpoint.json"), "{error}");
}

#[test]
fn the_largest_seed_is_a_seed() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    phantom(at);
    let largest = u64::MAX.to_string();
    let metrics = ok(at, &invert("out", &["--steps", "2", "--seed", &largest]));
    assert_eq!(metrics["seed"].as_u64(), Some(u64::MAX));
}

/// A short training already finds the large disc; without training there is none.
#[test]
fn the_demo_draws_one_picture_and_one_table() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let found = |steps: &str| {
        let summary = ok(at, &["mre", "demo", "--steps", steps, "--json"]);
        assert_eq!(summary["truth"].as_array().unwrap().len(), 3);
        for file in ["wave.npz", "modulus.npz", "demo.png", "metrics.json"] {
            assert!(at.join("rtx-demo").join(file).is_file(), "{file}");
        }
        let network = &summary["truth"][0];
        let disc = &network["regions"][1];
        (
            network["pearson_r"].as_f64().unwrap(),
            disc["median_kpa"].as_f64().unwrap(),
        )
    };
    // Measured: 0.77 and 5.3 kPa (the truth is 10) after 400 steps, 0.03 and 3.3 kPa after one.
    let good = |(r, kpa): (f64, f64)| r > 0.5 && kpa > 4.2;
    let (trained, untrained) = (found("400"), found("1"));
    assert!(good(trained), "{trained:?}");
    assert!(!good(untrained), "{untrained:?}");
}
