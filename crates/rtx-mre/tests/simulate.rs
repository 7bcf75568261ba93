//! The phantom simulator against analytic solutions, a reference of another solver, and bad input.

use ndarray::{Array1, Array2, Array3, ArrayView2, Axis as NdAxis};
use ndarray_npy::NpzReader;
use num_complex::Complex64;
use rtx_mre::simulate::{
    Axis, Disc, Face, Layer, Phantom, PhantomConfig, PhantomOverrides, Preset, Rheology,
    SimulateError, simulate,
};
use std::f64::consts::TAU;
use std::path::Path;

fn solve(config: &PhantomConfig) -> Phantom {
    simulate(config, |_| {}).unwrap()
}

fn relative_l2(found: ArrayView2<Complex64>, truth: ArrayView2<Complex64>) -> f64 {
    let error: f64 = found
        .iter()
        .zip(&truth)
        .map(|(a, b)| (a - b).norm_sqr())
        .sum();
    let norm: f64 = truth.iter().map(|b| b.norm_sqr()).sum();
    (error / norm).sqrt()
}

/// Complex wave number in rad/m.
fn wave_number(modulus: Complex64, frequency_hz: f64) -> Complex64 {
    TAU * frequency_hz * (Complex64::from(1000.0) / modulus).sqrt()
}

/// Pixel means of `a cos(k x) + b sin(k x)`: the point value at the centre times sinc(k h / 2).
fn pixel_mean(k: Complex64, a: Complex64, b: Complex64, x: f64, h: f64) -> Complex64 {
    let half = k * h / 2.0;
    (a * (k * x).cos() + b * (k * x).sin()) * half.sin() / half
}

/// A homogeneous strip, free at one end and driven at the other, as pixel means.
fn strip(config: &PhantomConfig, frequency_hz: f64, modulus: Complex64) -> Array2<Complex64> {
    let h = config.spacing_mm * 1e-3;
    let [nx, ny] = config.size;
    let along_x = matches!(config.driven_face, Face::XMin | Face::XMax);
    let n = if along_x { nx } else { ny };
    let k = wave_number(modulus, frequency_hz);
    let scale = config.amplitude / (k * (n as f64 * h)).cos();
    Array2::from_shape_fn((nx, ny), |(i, j)| {
        let from_low = if along_x { i } else { j };
        let from_free = match config.driven_face {
            Face::XMin | Face::YMin => n - 1 - from_low,
            Face::XMax | Face::YMax => from_low,
        };
        pixel_mean(
            k,
            scale,
            Complex64::from(0.0),
            (from_free as f64 + 0.5) * h,
            h,
        )
    })
}

#[test]
fn homogeneous_strip_matches_the_analytic_wave() {
    let config = Preset::Homogeneous.config();
    let phantom = solve(&config);
    for (u, &f) in phantom.u.outer_iter().zip(&phantom.freq) {
        let error = relative_l2(u, strip(&config, f, Complex64::new(3000.0, TAU * f)).view());
        println!("strip, {f} Hz: relative L2 {error:.2e}");
        assert!(error < 3e-3, "{f} Hz: {error}");
    }
}

#[test]
fn every_face_can_be_driven_with_every_rheology() {
    for driven_face in [Face::XMin, Face::XMax, Face::YMin, Face::YMax] {
        for rheology in [
            Rheology::Elastic,
            Rheology::Voigt,
            Rheology::Springpot { alpha: 0.25 },
        ] {
            let config = PhantomConfig {
                size: [30, 48],
                spacing_mm: 1.25,
                frequencies_hz: vec![70.0],
                viscosity_pa_s: 2.0,
                rheology,
                driven_face,
                amplitude: 2e-5,
                ..Preset::Homogeneous.config()
            };
            let modulus = match rheology {
                Rheology::Elastic => Complex64::new(3000.0, 0.0),
                Rheology::Voigt => Complex64::new(3000.0, TAU * 70.0 * 2.0),
                Rheology::Springpot { alpha } => {
                    Complex64::from(3000.0).powf(1.0 - alpha)
                        * Complex64::new(0.0, TAU * 70.0 * 2.0).powf(alpha)
                }
            };
            let phantom = solve(&config);
            assert!((phantom.g[[0, 3, 4]] - modulus).norm() < 1e-9 * modulus.norm());
            let u = phantom.u.index_axis(NdAxis(0), 0);
            let error = relative_l2(u, strip(&config, 70.0, modulus).view());
            println!("{driven_face:?}, {rheology}: relative L2 {error:.2e}");
            assert!(error < 5e-3, "{driven_face:?} {rheology}: {error}");
        }
    }
}

#[test]
fn the_error_falls_with_the_square_of_the_cell() {
    let errors: Vec<f64> = [1, 2, 4, 8]
        .into_iter()
        .map(|subsampling| {
            let config = PhantomConfig {
                size: [80, 4],
                frequencies_hz: vec![100.0],
                subsampling,
                ..Preset::Homogeneous.config()
            };
            let u = solve(&config).u;
            let truth = strip(&config, 100.0, Complex64::new(3000.0, TAU * 100.0));
            relative_l2(u.index_axis(NdAxis(0), 0), truth.view())
        })
        .collect();
    println!("relative L2 for 1, 2, 4, 8 cells per pixel: {errors:?}");
    for pair in errors.windows(2) {
        let order = (pair[0] / pair[1]).log2();
        assert!((1.85..2.15).contains(&order), "order {order} of {errors:?}");
    }
}

/// Two layers: free end at x = 0, interface at a, driven at L; displacement and stress are continuous.
#[test]
fn two_layers_match_the_analytic_wave() {
    let (split, n, h) = (32, 80, 1e-3);
    let config = PhantomConfig {
        size: [n, 6],
        layers: vec![Layer {
            from_mm: split as f64 - 0.5,
            to_mm: n as f64,
            modulus_kpa: 10.0,
            viscosity_pa_s: Some(3.0),
        }],
        ..Preset::Homogeneous.config()
    };
    let phantom = solve(&config);
    assert_eq!(
        phantom.region.iter().filter(|&&r| r == 2).count(),
        (n - split) * 6
    );
    for (u, &f) in phantom.u.outer_iter().zip(&phantom.freq) {
        let (near, far) = (
            Complex64::new(3000.0, TAU * f),
            Complex64::new(10_000.0, 3.0 * TAU * f),
        );
        let (k_near, k_far) = (wave_number(near, f), wave_number(far, f));
        let a = split as f64 * h;
        let depth = (n - split) as f64 * h;
        let cos = (k_near * a).cos();
        let sin = -(near * k_near) / (far * k_far) * (k_near * a).sin();
        let scale = 1.0 / (cos * (k_far * depth).cos() + sin * (k_far * depth).sin());
        let truth = Array2::from_shape_fn((n, 6), |(i, _)| {
            let x = (i as f64 + 0.5) * h;
            if i < split {
                pixel_mean(k_near, scale, Complex64::from(0.0), x, h)
            } else {
                pixel_mean(k_far, scale * cos, scale * sin, x - a, h)
            }
        });
        let error = relative_l2(u, truth.view());
        println!("two layers, {f} Hz: relative L2 {error:.2e}");
        assert!(error < 3e-3, "{f} Hz: {error}");
    }
}

fn small(noise: f64, seed: u64) -> PhantomConfig {
    PhantomConfig {
        frequencies_hz: vec![50.0, 90.0],
        subsampling: 1,
        noise,
        seed,
        ..Preset::Layered.config()
    }
}

#[test]
fn noise_has_the_power_asked_and_follows_the_seed() {
    let phantom = solve(&small(1e-2, 5));
    for (noisy, clean) in phantom.u.outer_iter().zip(phantom.u_clean.outer_iter()) {
        let power = relative_l2(noisy, clean).powi(2);
        assert!((power / 1e-2 - 1.0).abs() < 0.05, "{power}");
    }
    assert_eq!(phantom.u, solve(&small(1e-2, 5)).u);
    assert_ne!(phantom.u, solve(&small(1e-2, 6)).u);
    let quiet = solve(&small(0.0, 5));
    assert_eq!(quiet.u, quiet.u_clean);
    assert_eq!(quiet.u_clean, phantom.u_clean);
}

#[test]
fn progress_reports_every_frequency() {
    let mut seen = Vec::new();
    simulate(&small(0.0, 0), |step| {
        assert_eq!((step.done, step.total), (seen.len() + 1, 2));
        assert!(step.backward_error < 1e-12);
        seen.push(step.frequency_hz);
    })
    .unwrap();
    seen.sort_by(f64::total_cmp);
    assert_eq!(seen, [50.0, 90.0]);
}

#[test]
fn the_file_holds_what_was_simulated() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("wave.npz");
    let phantom = solve(&small(1e-3, 1));
    phantom.write_npz(&path).unwrap();
    phantom.write_npz(&path).unwrap();
    assert_eq!(
        std::fs::read_dir(folder.path()).unwrap().count(),
        1,
        "a temporary file is left"
    );

    let mut npz = NpzReader::new(std::fs::File::open(&path).unwrap()).unwrap();
    assert_eq!(
        npz.by_name::<ndarray::OwnedRepr<Complex64>, ndarray::Ix3>("u")
            .unwrap(),
        phantom.u
    );
    assert_eq!(
        npz.by_name::<ndarray::OwnedRepr<Complex64>, ndarray::Ix3>("G")
            .unwrap(),
        phantom.g
    );
    let region: Array2<i64> = npz.by_name("region").unwrap();
    let freq: Array1<f64> = npz.by_name("freq").unwrap();
    let spacing: ndarray::Array0<f64> = npz.by_name("spacing").unwrap();
    let noise: ndarray::Array0<f64> = npz.by_name("noise").unwrap();
    assert_eq!(region, phantom.region);
    assert_eq!(freq.to_vec(), phantom.freq);
    assert_eq!((spacing[()], noise[()]), (1e-3, 1e-3));

    let missing = folder.path().join("absent").join("wave.npz");
    assert!(matches!(
        phantom.write_npz(&missing),
        Err(SimulateError::Io { .. })
    ));
}

#[test]
fn toml_and_flags_override_a_preset() {
    let file = PhantomOverrides::from_toml(
        "preset = \"four-target\"\nsize = [90, 100]\nrheology = \"springpot:0.3\"\nseed = 3\n\
         [[discs]]\ncx_mm = 40\ncy_mm = 50.0\nradius_mm = 8.0\nmodulus_kpa = 12.0\nviscosity_pa_s = 2.0\n",
    )
    .unwrap();
    let flags = PhantomOverrides {
        seed: Some(4),
        driven_face: Some("y-min".parse().unwrap()),
        layer_axis: Some(Axis::Y),
        ..PhantomOverrides::default()
    };
    let config = file.merge(flags).into_config().unwrap();
    assert_eq!(
        (config.size, config.seed, config.driven_face),
        ([90, 100], 4, Face::YMin)
    );
    assert_eq!(config.rheology, Rheology::Springpot { alpha: 0.3 });
    assert_eq!(config.discs[0].viscosity_pa_s, Some(2.0));
    assert_eq!(config.background_kpa, 3.0);
    let text = toml::to_string(&config).unwrap();
    assert_eq!(toml::from_str::<PhantomConfig>(&text).unwrap(), config);

    for wrong in [
        "sise = [1, 2]",
        "size = [1]",
        "rheology = \"maxwell\"",
        "preset = \"brain\"",
    ] {
        let error = PhantomOverrides::from_toml(wrong).unwrap_err();
        assert!(matches!(error, SimulateError::Toml { .. }), "{wrong}");
        println!("{error}");
    }
    let error = PhantomOverrides::from_toml_file(Path::new("absent.toml")).unwrap_err();
    assert!(error.to_string().contains("absent.toml"));
}

fn refused(change: impl FnOnce(&mut PhantomConfig)) -> SimulateError {
    let mut config = Preset::FourTarget.config();
    change(&mut config);
    let error = simulate(&config, |_| panic!("solved a bad configuration")).unwrap_err();
    println!("{error}");
    error
}

#[test]
fn bad_configurations_are_named() {
    use SimulateError as E;
    for (name, error) in [
        ("background_kpa", refused(|c| c.background_kpa = -3.0)),
        (
            "discs[1].modulus_kpa",
            refused(|c| c.discs[1].modulus_kpa = f64::NAN),
        ),
        ("frequencies_hz[2]", refused(|c| c.frequencies_hz[2] = 0.0)),
        ("spacing_mm", refused(|c| c.spacing_mm = 0.0)),
        ("subsampling", refused(|c| c.subsampling = 0)),
        ("viscosity_pa_s", refused(|c| c.viscosity_pa_s = -1.0)),
        ("noise", refused(|c| c.noise = f64::INFINITY)),
        ("amplitude", refused(|c| c.amplitude = 0.0)),
        (
            "alpha",
            refused(|c| c.rheology = Rheology::Springpot { alpha: 1.5 }),
        ),
    ] {
        assert!(matches!(error, E::BadNumber { .. }), "{error}");
        assert!(error.to_string().contains(name), "{error}");
    }
    assert!(matches!(
        refused(|c| c.frequencies_hz.clear()),
        E::NoFrequency
    ));
    assert!(matches!(
        refused(|c| c.size = [0, 100]),
        E::BadSize { nx: 0, .. }
    ));
    assert!(matches!(
        refused(|c| c.discs[0].cy_mm = 95.0),
        E::DiscOutside { index: 0, .. }
    ));
    assert!(matches!(
        refused(|c| c.discs.push(Disc {
            cx_mm: 10.5,
            cy_mm: 10.5,
            radius_mm: 0.2,
            modulus_kpa: 5.0,
            viscosity_pa_s: None
        })),
        E::EmptyRegion {
            what: "disc",
            index: 4,
            ..
        }
    ));
    let layer = |from_mm, to_mm| Layer {
        from_mm,
        to_mm,
        modulus_kpa: 5.0,
        viscosity_pa_s: None,
    };
    assert!(matches!(
        refused(|c| c.layers = vec![layer(9.0, 3.0)]),
        E::BadLayer { index: 0, .. }
    ));
    assert!(matches!(
        refused(|c| c.layers = vec![layer(90.0, 95.0)]),
        E::BadLayer { .. }
    ));
    assert!(matches!(
        refused(|c| c.frequencies_hz = vec![5e3]),
        E::WaveUnresolved { .. }
    ));
}

#[test]
fn too_large_a_grid_is_refused_with_its_memory() {
    let error = refused(|c| c.size = [4000, 4000]);
    let SimulateError::TooLarge {
        predicted_mib,
        limit_mib,
        ..
    } = error
    else {
        panic!("{error}")
    };
    assert!(predicted_mib > 1e5 && limit_mib == 4096.0, "{error}");
    let error = refused(|c| c.size = [usize::MAX, 100]);
    assert!(matches!(error, SimulateError::TooLarge { .. }), "{error}");
}

#[test]
fn a_phantom_at_resonance_is_refused_or_solved_accurately() {
    // A strip free at one end resonates where cos(k L) = 0.
    let length = 0.04;
    let speed = 3_f64.sqrt();
    let config = PhantomConfig {
        size: [40, 4],
        frequencies_hz: vec![speed * 5.0 / (4.0 * length)],
        rheology: Rheology::Elastic,
        ..Preset::Homogeneous.config()
    };
    match simulate(&config, |step| assert!(step.backward_error < 1e-12)) {
        Ok(phantom) => assert!(phantom.u.iter().all(|u| u.norm().is_finite())),
        Err(error) => assert!(matches!(error, SimulateError::Unsolvable { .. }), "{error}"),
    }
}

mod needs_shared {
    use super::*;
    use rtx_testing::{Nan, assert_close};

    /// The reference was solved with SciPy by another program of the same discretisation.
    #[test]
    #[ignore = "needs ../shared"]
    fn four_target_matches_the_reference_solver() {
        let path = rtx_testing::shared("data/phantom2d.npz");
        let mut npz = NpzReader::new(std::fs::File::open(path).unwrap()).unwrap();
        let u: Array3<Complex64> = npz.by_name("u").unwrap();
        let g: Array3<Complex64> = npz.by_name("G").unwrap();
        let region: Array2<i64> = npz.by_name("region").unwrap();
        let freq: Array1<i64> = npz.by_name("freq").unwrap();

        let phantom = solve(&Preset::FourTarget.config());
        assert_eq!(phantom.region, region);
        assert_eq!(phantom.freq, freq.mapv(|f| f as f64).to_vec());
        let parts =
            |g: &Array3<Complex64>| -> Vec<f64> { g.iter().flat_map(|g| [g.re, g.im]).collect() };
        assert_close(
            "modulus, Pa",
            &parts(&phantom.g),
            &parts(&g),
            1e-9,
            Nan::Fails,
        );
        for ((found, truth), f) in phantom.u.outer_iter().zip(u.outer_iter()).zip(&freq) {
            let error = relative_l2(found, truth);
            println!("reference, {f} Hz: relative L2 {error:.2e}");
            assert!(error < 1e-9, "{f} Hz: {error}");
        }
    }
}
