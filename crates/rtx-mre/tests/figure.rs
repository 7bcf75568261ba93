//! Figures are drawn without system fonts and come out whole.
//!
//! With RTX_KEEP_FIGURES set to a folder, the pictures stay there to be looked at.

use std::path::{Path, PathBuf};

use ndarray::{Array3, Array4, Array5};
use num_complex::Complex64;
use rtx_mre::figure::{DisplacementUnit, PanelGrid, comparison_figure, maps_figure};
use rtx_mre::metrics::{Quantity, Truth};
use rtx_mre::wave::Provenance;
use rtx_mre::{Modulus, WaveField};

/// Writes and reads back a figure: its width and its pixels.
fn keep(grid: &PanelGrid, name: &str) -> (usize, Vec<u8>) {
    let folder = tempfile::tempdir().unwrap();
    let path = match std::env::var_os("RTX_KEEP_FIGURES") {
        Some(kept) => PathBuf::from(kept).join(name),
        None => folder.path().join(name),
    };
    grid.write_png(&path).unwrap();
    let decoder = png::Decoder::new(std::io::BufReader::new(std::fs::File::open(&path).unwrap()));
    let mut reader = decoder.read_info().unwrap();
    let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
    reader.next_frame(&mut pixels).unwrap();
    (reader.info().width as usize, pixels)
}

fn synthetic(nx: usize, ny: usize, nz: usize) -> (WaveField, Truth) {
    let shape = (nx, ny, nz);
    let region = Array3::from_shape_fn(shape, |(x, y, _)| {
        let r = (x as f64 - nx as f64 / 2.0).hypot(y as f64 - ny as f64 / 3.0);
        if r < nx as f64 / 6.0 { 2 } else { 1 }
    });
    let g = Array4::from_shape_fn((2, nx, ny, nz), |(f, x, y, z)| {
        let storage = if region[[x, y, z]] == 2 {
            10_000.0
        } else {
            3000.0
        };
        Complex64::new(storage, 300.0 * (f + 1) as f64)
    });
    let wave = WaveField {
        u: Array5::from_shape_fn((2, 1, nx, ny, nz), |(f, _, x, y, _)| {
            Complex64::from_polar(
                2e-5 * (-(y as f64) / 60.0).exp(),
                0.2 * (f + 1) as f64 * x as f64,
            )
        }),
        freq: vec![50.0, 100.0],
        components: vec![],
        spacing: [1e-3, 1e-3, 2e-3],
        mask: Array3::from_shape_fn(shape, |(x, y, _)| x + y > 10 && x + y + 12 < nx + ny),
        noise: vec![None; 2],
        provenance: Provenance::default(),
    };
    (wave, Truth { g, region })
}

#[test]
fn maps_are_drawn_with_colour_text_and_grey() {
    let (wave, truth) = synthetic(60, 80, 2);
    let modulus = Modulus::new(&wave, truth.g, wave.mask.clone(), "truth").unwrap();
    assert_eq!(DisplacementUnit::of(&wave), DisplacementUnit::Metres);
    let grid = maps_figure(&wave, &modulus, DisplacementUnit::Metres, "Synthetic maps").unwrap();
    assert_eq!((grid.panels.len(), grid.panels[0].len()), (2, 4));
    let (width, pixels) = keep(&grid, "synthetic.png");
    let has = |wanted: [u8; 3]| pixels.chunks_exact(3).any(|p| p == wanted);
    assert!(has([0, 0, 0]) && has([200, 200, 200]) && has([255, 255, 255]));
    let dark = pixels
        .chunks_exact(3)
        .take(60 * width)
        .filter(|p| p[0] < 128)
        .count();
    assert!(
        dark > 300,
        "the title is missing: {dark} dark pixels at the top"
    );
}

#[test]
fn odd_maps_are_drawn_or_refused_but_never_panic() {
    for (nx, ny) in [(40, 14), (13, 60), (400, 12)] {
        let (wave, truth) = synthetic(nx, ny, 1);
        let mut modulus = Modulus::new(&wave, truth.g.clone(), wave.mask.clone(), "truth").unwrap();
        modulus.g.fill(Complex64::new(f64::NAN, f64::NAN));
        let grid = maps_figure(&wave, &modulus, DisplacementUnit::Arbitrary, "NaN").unwrap();
        keep(&grid, &format!("odd-{nx}x{ny}.png"));
        assert!(comparison_figure(&truth, &[], Quantity::Storage, &[0], "").is_err());
        assert!(
            comparison_figure(&truth, &[("m", &modulus)], Quantity::Storage, &[2], "").is_err()
        );
    }
    let (mut wave, truth) = synthetic(30, 30, 1);
    wave.mask.fill(false);
    let modulus = Modulus::new(&wave, truth.g, wave.mask.clone(), "truth").unwrap();
    assert!(maps_figure(&wave, &modulus, DisplacementUnit::Metres, "").is_err());
    assert!(
        PanelGrid::default()
            .write_png(Path::new("never.png"))
            .is_err()
    );
}

#[test]
fn unwritable_folders_are_input_errors() {
    let (wave, truth) = synthetic(30, 30, 1);
    let modulus = Modulus::new(&wave, truth.g, wave.mask.clone(), "truth").unwrap();
    let grid = maps_figure(&wave, &modulus, DisplacementUnit::Metres, "x").unwrap();
    let error = grid
        .write_png(Path::new("no/such/folder/maps.png"))
        .unwrap_err();
    assert!(error.is_input_error(), "{error}");
}

mod needs_shared {
    use super::*;
    use rtx_mre::LoadOptions;
    use rtx_mre::inversion::{AhiOptions, RatioOptions, ahi, windowed_ratio};

    #[test]
    #[ignore = "needs ../shared"]
    fn shared_data_are_drawn() {
        let phantom = rtx_testing::shared("data/phantom2d.npz");
        let options = LoadOptions {
            variable: Some("u".into()),
            axes: Some("freq,x,y".parse().unwrap()),
            ..LoadOptions::default()
        };
        let wave = WaveField::load(&phantom, &options).unwrap();
        let truth = Truth::load(&phantom).unwrap().unwrap();
        let plain = ahi(
            &wave,
            AhiOptions {
                smoothing: 0.0,
                ..AhiOptions::default()
            },
        )
        .unwrap();
        let smooth = ahi(&wave, AhiOptions::default()).unwrap();
        let methods = [("AHI", &plain), ("AHI, 2 px", &smooth)];
        let title = "Four targets, noise-free: direct inversion beside the truth";
        let grid = comparison_figure(&truth, &methods, Quantity::Storage, &[0, 5], title).unwrap();
        keep(&grid, "comparison.png");

        let options = LoadOptions {
            variable: Some("displacement".into()),
            axes: Some("x,y,slice,phase,dir,freq".parse().unwrap()),
            freq: Some(vec![30.0, 40.0, 50.0, 60.0]),
            spacing: Some([0.9375e-3; 3]),
            components: Some("z".parse().unwrap()),
            ..LoadOptions::default()
        };
        let wave =
            WaveField::load(&rtx_testing::shared("data/brain_mre_30-60hz.mat"), &options).unwrap();
        let modulus = windowed_ratio(&wave, RatioOptions::default()).unwrap();
        let title = format!("Brain: {}", modulus.method);
        let grid = maps_figure(&wave, &modulus, DisplacementUnit::of(&wave), &title).unwrap();
        keep(&grid, "brain.png");
    }
}
