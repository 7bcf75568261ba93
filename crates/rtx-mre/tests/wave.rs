//! Loading wave fields: what must be known, and what bad data say.

use std::path::PathBuf;

use ndarray::{Array, Array1, Array2, Array3, ArrayD, Axis, IxDyn, arr0, array};
use num_complex::Complex64;
use rtx_mre::harmonic::TimeSign;
use rtx_mre::inversion::{AhiOptions, RatioOptions, Stencil, ahi, windowed_ratio};
use rtx_mre::io::{read_array, write_npz};
use rtx_mre::mask::{AutoMask, count};
use rtx_mre::metrics::{Truth, compare};
use rtx_mre::pinn;
use rtx_mre::simulate::{Preset, simulate};
use rtx_mre::wave::MaskSource;
use rtx_mre::{LoadOptions, Modulus, MreError, WaveField};

const H: f64 = 1e-3;

/// A damped plane wave exp(-i k x) with k^2 = rho omega^2 / G.
fn plane_wave(g: Complex64, freq: f64, nx: usize, ny: usize) -> Array2<Complex64> {
    let k = (1000.0 * (std::f64::consts::TAU * freq).powi(2) / g).sqrt();
    Array2::from_shape_fn((nx, ny), |(x, _)| {
        (-Complex64::I * k * (x as f64 * H)).exp()
    })
}

/// Samples of `u` at phase offsets: real, `[x, y, offset]`.
fn cycle(u: &Array2<Complex64>, offsets: usize, direction: f64) -> ArrayD<f64> {
    let (nx, ny) = u.dim();
    Array3::from_shape_fn((nx, ny, offsets), |(x, y, k)| {
        let t = direction * std::f64::consts::TAU * k as f64 / offsets as f64;
        (u[[x, y]] * Complex64::cis(t)).re
    })
    .into_dyn()
}

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn npz<'a>(
        &self,
        name: &str,
        data: &'a ArrayD<f64>,
        more: &[(&str, rtx_mre::io::NpzArray<'a>)],
    ) -> PathBuf {
        let path = self.0.path().join(name);
        let mut arrays = vec![("u", data.into())];
        arrays.extend_from_slice(more);
        write_npz(&path, &arrays).unwrap();
        path
    }
}

fn options(axes: &str) -> LoadOptions {
    LoadOptions {
        variable: Some("u".into()),
        axes: Some(axes.parse().unwrap()),
        freq: Some(vec![50.0]),
        spacing: Some([H; 3]),
        ..LoadOptions::default()
    }
}

fn message(path: &std::path::Path, options: &LoadOptions) -> String {
    let error = WaveField::load(path, options).unwrap_err();
    assert!(error.is_input_error(), "{error}");
    error.to_string()
}

#[test]
fn a_plane_wave_gives_its_modulus_back() {
    let truth = Complex64::new(3000.0, 600.0);
    let folder = Folder::new();
    let data = cycle(&plane_wave(truth, 50.0, 30, 8), 8, 1.0);
    let path = folder.npz("wave.npz", &data, &[]);
    let wave = WaveField::load(&path, &options("x,y,phase")).unwrap();
    assert_eq!(wave.dim(), (1, 1, 30, 8, 1));
    assert!(wave.noise[0].unwrap() < 1e-12);
    assert_eq!(wave.provenance.phase_offsets, Some(8));
    for stencil in [Stencil::Compact, Stencil::Wide] {
        let modulus = ahi(
            &wave,
            AhiOptions {
                smoothing: 0.0,
                stencil,
            },
        )
        .unwrap();
        modulus.check_loss_sign(TimeSign::Plus).unwrap();
        // Differences see sin(kh/2) / (h/2) instead of k: an error of (kh)^2/12, or four times it.
        for g in modulus.values(0) {
            assert!((g - truth).norm() < 0.02 * truth.norm(), "{stencil:?} {g}");
        }
    }
}

#[test]
fn conjugated_data_are_noticed_and_the_flag_cures_them() {
    let truth = Complex64::new(3000.0, 600.0);
    let folder = Folder::new();
    let path = folder.npz(
        "wave.npz",
        &cycle(&plane_wave(truth, 50.0, 30, 8), 4, -1.0),
        &[],
    );
    let wrong = options("x,y,phase");
    let smooth = AhiOptions {
        smoothing: 0.0,
        ..AhiOptions::default()
    };
    let modulus = ahi(&WaveField::load(&path, &wrong).unwrap(), smooth).unwrap();
    let error = modulus.check_loss_sign(TimeSign::Plus).unwrap_err();
    assert!(
        matches!(error, MreError::NegativeLoss { other: '-', .. }),
        "{error}"
    );
    assert!(error.to_string().contains("--time-sign -"), "{error}");

    let right = LoadOptions {
        time_sign: TimeSign::Minus,
        ..wrong
    };
    let modulus = ahi(&WaveField::load(&path, &right).unwrap(), smooth).unwrap();
    modulus.check_loss_sign(TimeSign::Minus).unwrap();
}

#[test]
fn what_is_not_known_is_asked_for() {
    let folder = Folder::new();
    let path = folder.npz(
        "wave.npz",
        &cycle(&plane_wave(3000.0.into(), 50.0, 9, 8), 4, 1.0),
        &[],
    );
    let all = options("x,y,phase");
    let text = message(
        &path,
        &LoadOptions {
            axes: None,
            ..all.clone()
        },
    );
    assert!(
        text.contains("`u` has shape [9, 8, 4]") && text.contains("--axes"),
        "{text}"
    );
    let text = message(
        &path,
        &LoadOptions {
            spacing: None,
            ..all.clone()
        },
    );
    assert!(
        text.contains("--spacing-mm") && text.contains("square"),
        "{text}"
    );
    let text = message(
        &path,
        &LoadOptions {
            freq: None,
            ..all.clone()
        },
    );
    assert!(text.contains("--freq"), "{text}");
    let text = message(
        &path,
        &LoadOptions {
            freq: Some(vec![30.0, 40.0]),
            ..all.clone()
        },
    );
    assert!(
        text.contains("--freq 30,40: 2 frequencies") && text.contains("holds 1"),
        "{text}"
    );
    let text = message(&path, &options("x,y"));
    assert!(
        text.contains("names 2 axes") && text.contains("[9, 8, 4]"),
        "{text}"
    );
    let text = message(&path, &options("x,y,_"));
    assert!(text.contains("needs length 1"), "{text}");
    let text = message(&path, &options("x,y,freq"));
    assert!(text.contains("--freq 50: 1 frequencies"), "{text}");
    let dead = LoadOptions {
        components: Some("x,y".parse().unwrap()),
        ..all
    };
    assert!(message(&path, &dead).contains("hold 1"));
}

#[test]
fn an_npz_carries_its_frequencies_and_voxel_size() {
    let folder = Folder::new();
    let fields = [30.0, 60.0].map(|f| plane_wave(Complex64::new(3000.0, 300.0), f, 20, 6));
    let u = ndarray::stack(Axis(0), &[fields[0].view(), fields[1].view()]).unwrap();
    for spacing in [
        arr0(H).into_dyn(),
        array![H, H].into_dyn(),
        array![H, H, 2e-3].into_dyn(),
    ] {
        let path = folder.0.path().join("wave.npz");
        let freq: Array1<i64> = array![30, 60];
        write_npz(
            &path,
            &[
                ("u", (&u).into()),
                ("freq", (&freq).into()),
                ("spacing", (&spacing).into()),
            ],
        )
        .unwrap();
        let given = LoadOptions {
            freq: None,
            spacing: None,
            ..options("freq,x,y")
        };
        let wave = WaveField::load(&path, &given).unwrap();
        assert_eq!(wave.freq, [30.0, 60.0]);
        assert_eq!(wave.spacing[..2], [H, H]);
        assert_eq!(wave.u.len(), u.len());
        assert_eq!(wave.provenance.spacing_from, "file");
        assert_eq!(wave.noise, [None, None]);
        let chosen = LoadOptions {
            spacing: Some([2e-3; 3]),
            ..given
        };
        assert_eq!(
            WaveField::load(&path, &chosen)
                .unwrap()
                .provenance
                .spacing_from,
            "option"
        );
    }
}

#[test]
fn unusable_data_are_refused() {
    let folder = Folder::new();
    let data = cycle(&plane_wave(3000.0.into(), 50.0, 12, 10), 4, 1.0);

    let path = folder.npz(
        "one.npz",
        &data.index_axis(Axis(2), 0).to_owned().insert_axis(Axis(2)),
        &[],
    );
    assert!(message(&path, &options("x,y,phase")).contains("has 1 phase offset;"));
    assert!(message(&path, &options("x,y,_")).contains("names no phase axis"));

    let path = folder.npz("zero.npz", &(&data * 0.0), &[]);
    assert!(
        message(&path, &options("x,y,phase")).contains("component x is zero at every frequency")
    );

    let zeros = ArrayD::zeros(IxDyn(&[12, 10, 4]));
    let two = ndarray::stack(Axis(3), &[zeros.view(), data.view()]).unwrap();
    let path = folder.npz("two.npz", &two, &[]);
    let text = message(&path, &options("x,y,phase,dir"));
    assert!(
        text.contains("component x is zero") && text.contains("--components y"),
        "{text}"
    );
    let chosen = LoadOptions {
        components: Some("-y".parse().unwrap()),
        ..options("x,y,phase,dir")
    };
    let wave = WaveField::load(&path, &chosen).unwrap();
    assert_eq!(wave.provenance.components, ["-y"]);
    assert!((wave.u[[0, 0, 0, 0, 0]] + 1.0).norm() < 1e-12);

    let mut holed = data.clone();
    holed[[5, 4, 2]] = f64::NAN;
    holed[[6, 4, 0]] = f64::INFINITY;
    let path = folder.npz("nan.npz", &holed, &[]);
    let everywhere = LoadOptions {
        mask: MaskSource::All,
        ..options("x,y,phase")
    };
    let text = message(&path, &everywhere);
    assert!(
        text.contains("2 of the 120 pixels") && text.contains("x 5, y 4"),
        "{text}"
    );
    // The automatic mask fills its holes, but not with these.
    let wave = WaveField::load(&path, &options("x,y,phase")).unwrap();
    assert_eq!(count(&wave.mask), 118);
    assert!(wave.provenance.warnings[0].starts_with("2 pixels that are NaN"));

    let empty = ArrayD::zeros(IxDyn(&[0, 10, 4]));
    let path = folder.npz("empty.npz", &empty, &[]);
    assert!(message(&path, &options("x,y,phase")).contains("is empty"));
}

#[test]
fn nan_outside_the_mask_is_masked_and_masks_can_be_given() {
    let folder = Folder::new();
    let mut data = cycle(&plane_wave(3000.0.into(), 50.0, 12, 10), 4, 1.0);
    data.index_axis_mut(Axis(0), 11).fill(f64::NAN);
    let mut mask = Array::from_elem(IxDyn(&[12, 10]), 1.0);
    mask.index_axis_mut(Axis(0), 11).fill(0.0);
    mask.index_axis_mut(Axis(0), 0).fill(f64::NAN);
    let path = folder.npz("wave.npz", &data, &[("mask", (&mask).into())]);

    let wave = WaveField::load(&path, &options("x,y,phase")).unwrap();
    assert_eq!(count(&wave.mask), 110);
    assert_eq!(wave.u[[0, 0, 11, 3, 0]], Complex64::ZERO);

    let named = MaskSource::Array {
        file: None,
        variable: Some("mask".into()),
    };
    let given = LoadOptions {
        mask: named,
        erode: 1,
        ..options("x,y,phase")
    };
    assert_eq!(count(&WaveField::load(&path, &given).unwrap().mask), 8 * 8);
    let eroded = LoadOptions {
        erode: 9,
        ..options("x,y,phase")
    };
    assert!(message(&path, &eroded).contains("after 9 layers were eroded"));
    let all = LoadOptions {
        mask: MaskSource::All,
        ..options("x,y,phase")
    };
    assert!(message(&path, &all).contains("10 of the 120 pixels"));
    let swapped = LoadOptions {
        mask: given.mask.clone(),
        ..options("y,x,phase")
    };
    assert_eq!(count(&WaveField::load(&path, &swapped).unwrap().mask), 100);
    let auto = LoadOptions {
        mask: MaskSource::Auto(AutoMask {
            threshold: 2.0,
            percentile: 50.0,
        }),
        ..options("x,y,phase")
    };
    assert!(message(&path, &auto).contains("is empty"));
}

#[test]
fn modulus_files_have_the_documented_layout() {
    let folder = Folder::new();
    let truth = Complex64::new(3000.0, 600.0);
    let path = folder.npz(
        "wave.npz",
        &cycle(&plane_wave(truth, 50.0, 12, 10), 4, 1.0),
        &[],
    );
    let wave = WaveField::load(&path, &options("x,y,phase")).unwrap();
    let modulus = Modulus::constant(&wave, truth).unwrap();
    let out = folder.0.path().join("modulus.npz");
    modulus.write(&out, Some(&wave.u)).unwrap();
    let read = |name| read_array(&out, Some(name)).unwrap();
    assert_eq!(read("G").data.shape(), [1, 12, 10]);
    assert_eq!(read("G").data[[0, 3, 4]], truth);
    assert_eq!(read("G").dtype, "complex128");
    assert_eq!(read("u").data.shape(), [1, 12, 10]);
    assert_eq!(read("mask").data.shape(), [12, 10]);
    assert_eq!(read("freq").data[[0]].re, 50.0);
    assert_eq!(read("spacing").data.len(), 2);
    // The file can be read as a wave field again: its own u, freq and spacing.
    let again = LoadOptions {
        freq: None,
        spacing: None,
        ..options("freq,x,y")
    };
    assert_eq!(WaveField::load(&out, &again).unwrap().u, wave.u);
}

#[test]
fn a_simulated_phantom_is_read_with_its_truth() {
    let phantom = simulate(&Preset::Homogeneous.config(), |_| {}).unwrap();
    let folder = Folder::new();
    let path = folder.0.path().join("wave.npz");
    phantom.write_npz(&path).unwrap();
    let given = LoadOptions {
        freq: None,
        spacing: None,
        ..options("freq,x,y")
    };
    let wave = WaveField::load(&path, &given).unwrap();
    let truth = Truth::load(&path).unwrap().unwrap();
    assert_eq!(count(&wave.mask), truth.region.len());
    let modulus = ahi(
        &wave,
        AhiOptions {
            smoothing: 0.0,
            ..AhiOptions::default()
        },
    )
    .unwrap();
    modulus.check_loss_sign(given.time_sign).unwrap();
    let out = compare(&modulus, &truth).unwrap();
    assert!(out.regions[0].rel_mad_percent < 2.0, "{out:?}");
}

#[test]
fn numbers_that_cannot_be_meant_are_refused() {
    let folder = Folder::new();
    let u = plane_wave(Complex64::new(3000.0, 600.0), 50.0, 12, 10);
    let at = |scale: f64| folder.npz("wave.npz", &cycle(&u.mapv(|v| v * scale), 4, 1.0), &[]);
    let path = at(1.0);
    let given = options("x,y,phase");
    for (spacing, says) in [
        (0.94e-6, "0.00094,"),
        (0.9375, "937.5,"),
        (1e-300, "1e-297,"),
    ] {
        let with = LoadOptions {
            spacing: Some([spacing; 3]),
            ..given.clone()
        };
        let text = message(&path, &with);
        assert!(
            text.contains(says) && text.contains("between 1e-3 and 100 mm"),
            "{text}"
        );
    }
    for freq in [1e-4, 1e8] {
        let with = LoadOptions {
            freq: Some(vec![freq]),
            ..given.clone()
        };
        assert!(message(&path, &with).contains("between 1e-3 and 1e7 Hz"));
    }
    // Squares of such amplitudes are zero or infinite, and the mask would be empty without a reason.
    for scale in [1e-200, 1e200] {
        let text = message(&at(scale), &given);
        assert!(
            text.contains("largest amplitude") && text.contains("scale the array"),
            "{text}"
        );
    }
    WaveField::load(&at(1e-9), &given).unwrap();
}

#[test]
fn what_comes_from_the_file_is_named_as_the_files() {
    let folder = Folder::new();
    let u = cycle(&plane_wave(3000.0.into(), 50.0, 12, 10), 4, 1.0);
    let from_file = LoadOptions {
        freq: None,
        spacing: None,
        ..options("x,y,phase")
    };
    let negative = array![-50.0];
    let path = folder.npz("a.npz", &u, &[("freq", (&negative).into())]);
    let text = message(&path, &from_file);
    assert!(text.starts_with("`freq` of"), "{text}");
    assert!(text.contains("-50 Hz") && text.contains("--freq"), "{text}");

    let (freq, millimetres) = (array![50.0], array![1.5]);
    let arrays = [("freq", (&freq).into()), ("spacing", (&millimetres).into())];
    let text = message(&folder.npz("b.npz", &u, &arrays), &from_file);
    assert!(text.starts_with("`spacing` of"), "{text}");
    assert!(
        text.contains("1500") && text.contains("in metres"),
        "{text}"
    );

    let complex = array![Complex64::I];
    let path = folder.npz("c.npz", &u, &[("freq", (&complex).into())]);
    assert!(message(&path, &from_file).contains("is complex; give --freq"));
}

#[test]
fn masks_that_do_not_serve_say_how_to_name_one() {
    let folder = Folder::new();
    let u = cycle(&plane_wave(3000.0.into(), 50.0, 12, 10), 4, 1.0);
    let other = Array::from_elem(IxDyn(&[12, 10, 2]), 1.0);
    let path = folder.npz("wave.npz", &u, &[("three", (&other).into())]);
    let with = |file: Option<&std::path::Path>, variable: Option<&str>| LoadOptions {
        mask: MaskSource::Array {
            file: file.map(PathBuf::from),
            variable: variable.map(String::from),
        },
        ..options("x,y,phase")
    };
    let text = message(&path, &with(None, Some("brain")));
    assert!(text.starts_with("--mask brain:"), "{text}");
    assert!(
        text.contains("FILE:NAME") && text.contains("three"),
        "{text}"
    );
    let text = message(&path, &with(Some(&path), None));
    assert!(
        text.starts_with("--mask ") && text.contains(":NAME"),
        "{text}"
    );
    assert!(!text.contains("--var"), "{text}");
    let text = message(&path, &with(None, Some("three")));
    assert!(
        text.contains("[12, 10, 2]") && text.contains("x,y"),
        "{text}"
    );
    assert!(!text.contains("--axes x,y names"), "{text}");
}

#[test]
fn a_mask_that_vanishes_says_why() {
    let folder = Folder::new();
    let u = cycle(&plane_wave(3000.0.into(), 50.0, 12, 10), 4, 1.0);
    let path = folder.npz("wave.npz", &u, &[]);
    let eroded = LoadOptions {
        erode: usize::MAX,
        ..options("x,y,phase")
    };
    let text = message(&path, &eroded);
    assert!(
        text.contains("120 pixels") && text.contains("--erode"),
        "{text}"
    );
    let path = folder.npz("nan.npz", &u.mapv(|_| f64::NAN), &[]);
    let text = message(&path, &options("x,y,phase"));
    assert!(text.contains("no pixel has a finite amplitude"), "{text}");
}

#[test]
fn a_map_without_a_value_is_no_result() {
    let folder = Folder::new();
    for (nx, ny) in [(1, 1), (2, 2), (2, 9)] {
        let data = cycle(
            &plane_wave(Complex64::new(3000.0, 600.0), 50.0, nx, ny),
            4,
            1.0,
        );
        let with = LoadOptions {
            mask: MaskSource::All,
            ..options("x,y,phase")
        };
        let wave = WaveField::load(&folder.npz("wave.npz", &data, &[]), &with).unwrap();
        let direct = ahi(&wave, AhiOptions::default()).map(|_| ());
        let ratio = windowed_ratio(&wave, RatioOptions::default()).map(|_| ());
        let network = pinn::invert(&wave, &pinn::PinnOptions::default()).map(|_| ());
        for result in [direct, ratio, network] {
            let error = result.unwrap_err();
            assert!(
                matches!(error, MreError::NoModulus { .. }),
                "{nx} x {ny}: {error}"
            );
            assert!(error.is_input_error());
        }
    }
}

#[test]
fn a_stiffness_that_nothing_has_raises_a_doubt() {
    let folder = Folder::new();
    let data = cycle(
        &plane_wave(Complex64::new(3000.0, 600.0), 50.0, 12, 10),
        4,
        1.0,
    );
    let path = folder.npz("wave.npz", &data, &[]);
    // 1.5 mm given in metres.
    let metres = LoadOptions {
        spacing: Some([1.5e-6; 3]),
        ..options("x,y,phase")
    };
    let of = |given: &LoadOptions| {
        let wave = WaveField::load(&path, given).unwrap();
        ahi(&wave, AhiOptions::default()).unwrap().doubt()
    };
    assert!(of(&metres).unwrap().contains("--spacing-mm"));
    assert_eq!(of(&options("x,y,phase")), None);
}

#[test]
fn two_numbers_serve_one_slice_alone() {
    let folder = Folder::new();
    let one = cycle(&plane_wave(3000.0.into(), 50.0, 12, 10), 4, 1.0);
    let two = LoadOptions {
        spacing: Some([1e-3, 2e-3, f64::NAN]),
        ..options("x,y,phase")
    };
    let wave = WaveField::load(&folder.npz("one.npz", &one, &[]), &two).unwrap();
    assert_eq!(wave.spacing, [1e-3, 2e-3, 1e-3]);
    let volume = ndarray::stack(Axis(3), &[one.view(), one.view()]).unwrap();
    let axes = Some("x,y,phase,slice".parse().unwrap());
    let path = folder.npz(
        "two.npz",
        &volume,
        &[("spacing", (&array![1e-3, 2e-3]).into())],
    );
    let option = LoadOptions { axes, ..two };
    let text = message(&path, &option);
    assert!(
        text.contains("--spacing-mm 1,2") && text.contains("2 slices"),
        "{text}"
    );
    let file = LoadOptions {
        spacing: None,
        ..option
    };
    assert!(message(&path, &file).starts_with("`spacing` of"));
}

#[test]
fn a_field_of_view_in_another_unit_is_doubted() {
    let folder = Folder::new();
    let data = cycle(&plane_wave(3000.0.into(), 50.0, 40, 30), 4, 1.0);
    let path = folder.npz("wave.npz", &data, &[]);
    let warned = |h: f64| {
        let with = LoadOptions {
            spacing: Some([h; 3]),
            ..options("x,y,phase")
        };
        WaveField::load(&path, &with).unwrap().provenance.warnings
    };
    assert!(warned(1e-3).is_empty());
    // 1 mm given in metres and in micrometres where an option takes millimetres.
    assert!(warned(1e-6)[0].contains("takes millimetres"));
    assert!(warned(0.04)[0].contains("1600 mm wide"));
}
