//! The sign of the loss modulus: elastic data pass at any noise, conjugated data stop at any noise.

use ndarray::Array2;
use num_complex::Complex64;
use rtx_mre::harmonic::TimeSign;
use rtx_mre::inversion::{AhiOptions, ahi};
use rtx_mre::io::write_npz;
use rtx_mre::simulate::{PhantomConfig, Preset, Rheology, simulate};
use rtx_mre::wave::MaskSource;
use rtx_mre::{LoadOptions, Modulus, MreError, WaveField};

const NOISES: [f64; 3] = [0.0, 1e-3, 1e-2];

/// AHI of a phantom with one stiff disc.
fn inverted(rheology: Rheology, noise: f64, seed: u64, conjugated: bool) -> Modulus {
    let mut config = PhantomConfig {
        size: [40, 44],
        frequencies_hz: vec![60.0, 80.0],
        rheology,
        noise,
        seed,
        subsampling: 2,
        ..Preset::FourTarget.config()
    };
    config.discs.truncate(1);
    for disc in &mut config.discs {
        (disc.cx_mm, disc.cy_mm) = (20.0, 20.0);
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("wave.npz");
    simulate(&config, |_| {}).unwrap().write_npz(&path).unwrap();
    let options = LoadOptions {
        variable: Some("u".into()),
        axes: Some("freq,x,y".parse().unwrap()),
        ..LoadOptions::default()
    };
    let wave = WaveField::load(&path, &options).unwrap();
    let wave = if conjugated { wave.conjugated() } else { wave };
    ahi(&wave, AhiOptions::default()).unwrap()
}

/// The median of G'' over |G| of all pixels, in the lower of the frequencies.
fn lowest_median(modulus: &Modulus) -> f64 {
    let of = |f: usize| {
        let mut sines: Vec<f64> = modulus.values(f).iter().map(|g| g.im / g.norm()).collect();
        sines.sort_by(f64::total_cmp);
        sines[sines.len() / 2]
    };
    of(0).min(of(1))
}

#[test]
fn elastic_data_pass_whatever_the_noise_makes_of_their_zero() {
    let mut negative = 0;
    for noise in NOISES {
        for seed in 0..12 {
            for conjugated in [false, true] {
                let modulus = inverted(Rheology::Elastic, noise, seed, conjugated);
                negative += usize::from(lowest_median(&modulus) < -1e-3);
                if let Err(error) = modulus.check_loss_sign(TimeSign::Plus) {
                    panic!("noise {noise}, seed {seed}, conjugated {conjugated}: {error}");
                }
            }
        }
    }
    // The test would mean nothing if chance never made a median negative.
    assert!(negative >= 10, "{negative}");
}

#[test]
fn conjugated_data_stop_at_every_noise_and_right_ones_do_not() {
    for noise in NOISES {
        for seed in 0..6 {
            let right = inverted(Rheology::Voigt, noise, seed, false);
            right.check_loss_sign(TimeSign::Plus).unwrap();
            let error = inverted(Rheology::Voigt, noise, seed, true)
                .check_loss_sign(TimeSign::Plus)
                .unwrap_err();
            assert!(
                matches!(error, MreError::NegativeLoss { loss_kpa, other: '-', .. } if loss_kpa < 0.0),
                "noise {noise}, seed {seed}: {error}"
            );
        }
    }
}

#[test]
fn noise_without_a_wave_is_not_called_conjugated() {
    let mut state = 1_u64;
    let mut uniform = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1_u64 << 53) as f64 - 0.5
    };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("noise.npz");
    let options = LoadOptions {
        variable: Some("u".into()),
        axes: Some("x,y".parse().unwrap()),
        freq: Some(vec![50.0]),
        spacing: Some([1e-3; 3]),
        mask: MaskSource::All,
        ..LoadOptions::default()
    };
    for _ in 0..20 {
        let u = Array2::from_shape_fn((24, 20), |_| Complex64::new(uniform(), uniform()));
        write_npz(&path, &[("u", (&u).into())]).unwrap();
        let wave = WaveField::load(&path, &options).unwrap();
        let modulus = ahi(&wave, AhiOptions::default()).unwrap();
        modulus.check_loss_sign(TimeSign::Plus).unwrap();
    }
}

mod needs_shared {
    use super::*;

    #[test]
    #[ignore = "needs ../shared"]
    fn a_conjugated_brain_stops() {
        let path = rtx_testing::shared("data/brain_mre_30-60hz.mat");
        let options = LoadOptions {
            variable: Some("displacement".into()),
            axes: Some("x,y,slice,phase,dir,freq".parse().unwrap()),
            freq: Some(vec![30.0, 40.0, 50.0, 60.0]),
            spacing: Some([0.9375e-3; 3]),
            components: Some("z".parse().unwrap()),
            erode: 3,
            ..LoadOptions::default()
        };
        let wave = WaveField::load(&path, &options).unwrap();
        let of = |wave: &WaveField| ahi(wave, AhiOptions::default()).unwrap();
        of(&wave).check_loss_sign(TimeSign::Plus).unwrap();
        of(&wave.conjugated())
            .check_loss_sign(TimeSign::Plus)
            .unwrap_err();
    }
}
