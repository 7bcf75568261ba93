//! Wrapped phase in every scale comes back to the right stiffness, or is refused; displacement is never touched.

use ndarray::{Array4, ArrayD};
use num_complex::Complex64;
use rtx_mre::inversion::{AhiOptions, ahi};
use rtx_mre::io::write_npz;
use rtx_mre::phase::Unwrapping;
use rtx_mre::simulate::{Disc, Preset, simulate};
use rtx_mre::wave::MaskSource;
use rtx_mre::{LoadOptions, MreError, WaveField};
use rtx_testing::{Nan, assert_close};
use std::f64::consts::{PI, TAU};
use std::sync::LazyLock;

const GRID: (usize, usize) = (40, 48);

/// The wave of a stiff disc in 3 kPa at 60 and 80 Hz, largest amplitude 1.
static WAVE: LazyLock<Vec<ndarray::Array2<Complex64>>> = LazyLock::new(|| {
    let mut config = Preset::Homogeneous.config();
    config.size = [GRID.0, GRID.1];
    config.frequencies_hz = vec![60.0, 80.0];
    config.discs = vec![Disc {
        cx_mm: 20.0,
        cy_mm: 24.0,
        radius_mm: 7.0,
        modulus_kpa: 8.0,
        viscosity_pa_s: None,
    }];
    let u = simulate(&config, |_| {}).unwrap().u;
    let scaled = u.outer_iter().map(|u| {
        let largest = u.iter().map(|v| v.norm()).fold(0.0, f64::max);
        u.mapv(|v| v / largest)
    });
    scaled.collect()
});

/// Phase in radians at `offsets` offsets, `[freq, x, y, offset]`.
fn phase(offsets: usize, peaks: [f64; 2]) -> Array4<f64> {
    Array4::from_shape_fn((2, GRID.0, GRID.1, offsets), |(f, x, y, k)| {
        let turn = Complex64::cis(TAU * k as f64 / offsets as f64);
        peaks[f] * (WAVE[f][[x, y]] * turn).re
    })
}

fn wrap(value: f64) -> f64 {
    (value + PI).rem_euclid(TAU) - PI
}

/// A number in 0..1 that looks random.
fn scatter(f: usize, x: usize, y: usize) -> f64 {
    ((f * 7919 + x * 104_729 + y * 1_299_709) as f64 * 0.618_033_988_75).fract()
}

fn load(
    samples: &Array4<f64>,
    change: impl FnOnce(&mut LoadOptions),
) -> Result<WaveField, MreError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("phase.npz");
    write_npz(&path, &[("u", samples.into())]).unwrap();
    let mut options = LoadOptions {
        axes: Some("freq,x,y,phase".parse().unwrap()),
        freq: Some(vec![60.0, 80.0]),
        spacing: Some([1e-3; 3]),
        erode: 3,
        ..LoadOptions::default()
    };
    change(&mut options);
    WaveField::load(&path, &options)
}

/// Median of G' per frequency, kPa.
fn stiffness(wave: &WaveField) -> Vec<f64> {
    let options = AhiOptions {
        smoothing: 0.5,
        ..AhiOptions::default()
    };
    let modulus = ahi(wave, options).unwrap();
    let of = |f: usize| {
        let mut storage: Vec<f64> = modulus.values(f).iter().map(|g| g.re / 1e3).collect();
        storage.sort_by(f64::total_cmp);
        storage[storage.len() / 2]
    };
    vec![of(0), of(1)]
}

fn is_right(what: &str, samples: &Array4<f64>, unwrapped: &[(usize, usize)]) {
    let wave = load(samples, |_| {}).unwrap_or_else(|e| panic!("{what}: {e}"));
    let found = wave.provenance.unwrapped.as_ref();
    assert_eq!(found.map_or(&[][..], |u| &u.blocks), unwrapped, "{what}");
    assert_close(what, &stiffness(&wave), &[3.0, 3.0], 0.06, Nan::Fails);
    let said = wave
        .provenance
        .warnings
        .iter()
        .any(|w| w.contains("--unwrap off"));
    assert_eq!(
        said,
        !unwrapped.is_empty(),
        "{what}: {:?}",
        wave.provenance.warnings
    );
}

const BOTH: &[(usize, usize)] = &[(0, 0), (1, 0)];

#[test]
fn every_scale_gives_the_right_stiffness() {
    let u = phase(8, [6.0, 6.0]);
    is_right("as it is", &u, &[]);
    is_right("-pi..pi", &u.mapv(wrap), BOTH);
    is_right("0..2 pi", &u.mapv(|v| v.rem_euclid(TAU)), BOTH);
    is_right("degrees", &u.mapv(|v| wrap(v).to_degrees()), BOTH);
    is_right("milliradians", &u.mapv(|v| (1e3 * wrap(v)).round()), BOTH);
    let steps = |v: f64| (v.rem_euclid(TAU) / TAU * 4096.0).floor();
    is_right("0..4095", &u.mapv(steps), BOTH);
    is_right("-2048..2047", &u.mapv(|v| steps(v + PI) - 2048.0), BOTH);
    is_right(
        "-4096..4094",
        &u.mapv(|v| 2.0 * steps(v + PI) - 4096.0),
        BOTH,
    );
    is_right("float32", &u.mapv(|v| f64::from(wrap(v) as f32)), BOTH);
}

#[test]
fn a_static_phase_and_several_wraps_do_no_harm() {
    let u = phase(8, [6.0, 6.0]);
    is_right("constant", &u.mapv(|v| wrap(v + 1.3)), BOTH);
    let with = |add: &dyn Fn(usize, usize, usize) -> f64| {
        Array4::from_shape_fn(u.dim(), |(f, x, y, k)| wrap(u[[f, x, y, k]] + add(f, x, y)))
    };
    is_right(
        "ramp",
        &with(&|_, x, y| 0.3 * x as f64 + 0.2 * y as f64),
        BOTH,
    );
    is_right("random", &with(&|f, x, y| TAU * scatter(f, x, y)), BOTH);
    is_right("two wraps", &phase(8, [12.0, 12.0]).mapv(wrap), BOTH);
    is_right("first alone", &phase(8, [6.0, 1.8]).mapv(wrap), &[(0, 0)]);
    is_right("second alone", &phase(8, [1.8, 6.0]).mapv(wrap), &[(1, 0)]);
    is_right("few pixels", &phase(8, [3.5, 3.3]).mapv(wrap), BOTH);
    is_right("four offsets", &phase(4, [4.5, 4.5]).mapv(wrap), BOTH);
    is_right("five offsets", &phase(5, [6.0, 6.0]).mapv(wrap), BOTH);
}

#[test]
fn unwrapped_phase_and_displacement_are_not_touched() {
    for scale in [1e-5, 0.5, 1.0, 3.0, 700.0] {
        for offsets in [4, 8] {
            let u = phase(offsets, [scale, 0.7 * scale]);
            let auto = load(&u, |_| {}).unwrap();
            assert!(auto.provenance.unwrapped.is_none(), "{scale}");
            let off = load(&u, |o| o.unwrapping = Unwrapping::Off).unwrap();
            assert_eq!(auto.u, off.u, "{scale}");
        }
    }
}

fn refusal(samples: &Array4<f64>, change: impl FnOnce(&mut LoadOptions)) -> String {
    let error = load(samples, change).unwrap_err();
    assert!(matches!(error, MreError::WrappedPhase { .. }), "{error}");
    assert!(error.is_input_error());
    error.to_string()
}

#[test]
fn what_cannot_be_told_is_refused_with_the_way_out() {
    let u = phase(8, [6.0, 6.0]);
    // Another scale: a turn is 2.
    let halves = u.mapv(|v| wrap(v) / PI);
    let text = refusal(&halves, |_| {});
    assert!(
        text.contains("--unwrap") && text.contains("about 2.0"),
        "{text}"
    );
    let told = load(&halves, |o| o.unwrapping = Unwrapping::Period(2.0)).unwrap();
    assert_close(
        "a turn is 2",
        &stiffness(&told),
        &[3.0, 3.0],
        0.06,
        Nan::Fails,
    );
    let text = refusal(&halves, |o| o.unwrapping = Unwrapping::Period(1.0));
    assert!(text.contains("more than --unwrap 1"), "{text}");

    // Noise around the body needs a mask.
    let noisy = Array4::from_shape_fn(u.dim(), |(f, x, y, k)| match y {
        36.. => TAU * scatter(f * 8 + k + 1, x, y) - PI,
        _ => wrap(u[[f, x, y, k]]),
    });
    let text = refusal(&noisy, |_| {});
    assert!(text.contains("--mask"), "{text}");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mask.npz");
    let mask = ArrayD::from_shape_fn(vec![GRID.0, GRID.1], |at| f64::from(u8::from(at[1] < 36)));
    write_npz(&path, &[("mask", (&mask).into())]).unwrap();
    let wave = load(&noisy, |o| {
        o.mask = MaskSource::Array {
            file: Some(path.clone()),
            variable: None,
        };
    });
    assert_close(
        "masked",
        &stiffness(&wave.unwrap()),
        &[3.0, 3.0],
        0.06,
        Nan::Fails,
    );

    // Amplitudes for which four offsets allow several fields: never a wrong one.
    for peak in [6.0, 8.0, 10.0, 15.0] {
        let text = refusal(&phase(4, [peak, peak]).mapv(wrap), |_| {});
        assert!(text.contains("more offsets"), "{text}");
    }
    for bad in ["", "on", "-1", "nan", "0", "inf"] {
        assert!(bad.parse::<Unwrapping>().is_err(), "{bad}");
    }
}

#[test]
fn odd_samples_do_not_confuse_the_detection() {
    let mut holed = phase(8, [6.0, 6.0]).mapv(wrap);
    holed[[0, 12, 30, 3]] = f64::NAN;
    holed[[1, 30, 11, 0]] = f64::INFINITY;
    let wave = load(&holed, |_| {}).unwrap();
    assert_close("holed", &stiffness(&wave), &[3.0, 3.0], 0.06, Nan::Fails);
    assert!(
        wave.provenance
            .warnings
            .iter()
            .any(|w| w.contains("2 pixels that are NaN"))
    );
    for value in [0.0, 3.0, f64::NAN] {
        let error = load(&holed.mapv(|_| value), |_| {}).unwrap_err();
        assert!(error.is_input_error(), "{error}");
    }
    for offsets in [0, 1, 2] {
        assert!(load(&phase(offsets, [6.0, 6.0]).mapv(wrap), |_| {}).is_err());
    }
}
