//! The classical inversions on the shared phantom and brain measurement, against published or
//! independently computed figures. They need the folder shared.

use ndarray::Axis;
use num_complex::Complex64;
use rtx_mre::inversion::{AhiOptions, RatioOptions, Stencil, ahi, windowed_ratio};
use rtx_mre::io::read_array;
use rtx_mre::mask::{count, erode};
use rtx_mre::metrics::{Comparison, Quantity, Truth, compare, pearson, region_statistics};
use rtx_mre::{LoadOptions, Modulus, WaveField};
use rtx_testing::shared;

/// Complex white noise of a given power relative to the mean of |u|^2, by a linear congruential
/// generator and Box and Muller.
fn add_noise(wave: &mut WaveField, power: f64) {
    let mut state = 1_u64;
    let mut uniform = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        ((state >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    };
    for mut field in wave.u.axis_iter_mut(Axis(0)) {
        let mean = field.iter().map(|u| u.norm_sqr()).sum::<f64>() / field.len() as f64;
        let sigma = (power * mean / 2.0).sqrt();
        for u in &mut field {
            let (radius, angle) = (
                (-2.0 * uniform().ln()).sqrt(),
                std::f64::consts::TAU * uniform(),
            );
            *u += Complex64::from_polar(sigma * radius, angle);
        }
    }
}

fn rel_mad(out: &Comparison) -> Vec<f64> {
    out.regions.iter().map(|r| r.rel_mad_percent).collect()
}

fn cte(out: &Comparison) -> Vec<f64> {
    out.regions.iter().filter_map(|r| r.cte_percent).collect()
}

fn close(found: &[f64], expected: &[f64], absolute: f64) -> bool {
    found.len() == expected.len()
        && found
            .iter()
            .zip(expected)
            .all(|(f, e)| (f - e).abs() <= absolute)
}

fn phantom() -> (WaveField, Truth) {
    let path = shared("data/phantom2d.npz");
    let options = LoadOptions {
        variable: Some("u".into()),
        axes: Some("freq,x,y".parse().unwrap()),
        ..LoadOptions::default()
    };
    let wave = WaveField::load(&path, &options).unwrap();
    (wave, Truth::load(&path).unwrap().unwrap())
}

mod needs_shared {
    use super::*;

    #[test]
    #[ignore = "needs ../shared"]
    fn ahi_reproduces_the_table_of_the_phantom() {
        let (clean, truth) = phantom();
        assert_eq!(
            count(&clean.mask),
            80 * 100,
            "the automatic mask keeps the whole phantom"
        );
        let table = [
            (
                0.0,
                0.0,
                [2.6, 1.7, 71.0, 83.0, 85.0],
                [100.0, 76.0, 14.0, 0.0],
            ),
            (
                1e-3,
                2.0,
                [4.6, 45.0, 65.0, 65.0, 68.0],
                [67.0, 21.0, 8.0, 2.0],
            ),
            (
                1e-2,
                2.0,
                [9.7, 55.0, 66.0, 66.0, 68.0],
                [56.0, 21.0, 8.0, 2.0],
            ),
        ];
        for (power, smoothing, mad, transfer) in table {
            let mut wave = clean.clone();
            add_noise(&mut wave, power);
            let modulus = ahi(
                &wave,
                AhiOptions {
                    smoothing,
                    stencil: Stencil::Wide,
                },
            )
            .unwrap();
            let out = compare(&modulus, &truth).unwrap();
            println!(
                "{power} R {:?} MAD {:.1?} CTE {:.0?}",
                out.pearson_r,
                rel_mad(&out),
                cte(&out)
            );
            assert!(
                close(&rel_mad(&out), &mad, 4.0),
                "{power}: {:?}",
                rel_mad(&out)
            );
            assert!(
                close(&cte(&out), &transfer, 5.0),
                "{power}: {:?}",
                cte(&out)
            );
            // Few pixels with a vanishing Laplacian decide the correlation.
            assert!((0.3..0.7).contains(&out.pearson_r.unwrap()));
        }
        let modulus = ahi(
            &clean,
            AhiOptions {
                smoothing: 0.0,
                stencil: Stencil::Compact,
            },
        )
        .unwrap();
        let out = compare(&modulus, &truth).unwrap();
        println!(
            "compact R {:?} MAD {:.1?} CTE {:.0?}",
            out.pearson_r,
            rel_mad(&out),
            cte(&out)
        );
        assert!(
            out.regions[1].rel_mad_percent < 1.0,
            "the compact Laplacian is the sharper one"
        );
    }

    #[test]
    #[ignore = "needs ../shared"]
    fn a_constant_map_has_the_errors_of_the_table() {
        let (wave, truth) = phantom();
        let out = compare(&Modulus::constant(&wave, 3000.0.into()).unwrap(), &truth).unwrap();
        let storage: Vec<f64> = out
            .regions
            .iter()
            .map(|r| r.rel_mad_storage_percent)
            .collect();
        assert!(
            close(&storage, &[0.0, 70.0, 70.0, 70.0, 70.0], 1e-9),
            "{storage:?}"
        );
        assert_eq!(out.pearson_r, None);
    }

    #[test]
    #[ignore = "needs ../shared"]
    fn the_windowed_ratio_agrees_with_the_reference_of_the_brain() {
        let path = shared("data/brain_mre_30-60hz.mat");
        let options = LoadOptions {
            variable: Some("displacement".into()),
            axes: Some("x,y,slice,phase,dir,freq".parse().unwrap()),
            freq: Some(vec![30.0, 40.0, 50.0, 60.0]),
            spacing: Some([0.9375e-3; 3]),
            components: Some("z".parse().unwrap()),
            ..LoadOptions::default()
        };
        let wave = WaveField::load(&path, &options).unwrap();
        // 13,035 by the amplitude, less those with an outlying second harmonic.
        assert_eq!(count(&wave.mask), 12_842);
        println!("noise over signal {:.3?}", wave.noise);
        // Computed with NumPy's FFT on the same pixels.
        let noise: Vec<f64> = wave.noise.iter().map(|n| n.unwrap()).collect();
        assert!(
            close(&noise, &[0.1091, 0.0797, 0.1139, 0.2246], 1e-3),
            "{noise:?}"
        );

        let mut modulus = windowed_ratio(&wave, RatioOptions::default()).unwrap();
        modulus.mask = erode(&modulus.mask, 3);
        let reference = read_array(&path, Some("MU_2d_smoothed")).unwrap().data;
        let medians = region_statistics(&modulus, None, Quantity::Magnitude).unwrap();
        let known = [0.73, 0.68, 0.79, 0.83];
        for f in 0..4 {
            let pairs: Vec<(f64, f64)> = modulus
                .mask
                .indexed_iter()
                .filter(|&(_, &inside)| inside)
                .map(|((x, y, z), _)| {
                    (
                        modulus.g[[f, x, y, z]].re / 1e3,
                        reference[[x, y, z, 2, f]].re,
                    )
                })
                .collect();
            let r = pearson(pairs.iter().copied()).unwrap();
            println!(
                "{} Hz: r {r:.3}, median {:.3} kPa",
                wave.freq[f], medians[f].median_kpa
            );
            assert!((r - known[f]).abs() < 0.08, "{r}");
        }

        // Without --components, the two empty directions are named.
        let all = LoadOptions {
            components: None,
            ..options
        };
        let error = WaveField::load(&path, &all).unwrap_err().to_string();
        assert!(
            error.contains("component x is zero") && error.contains("--components z"),
            "{error}"
        );
    }
}
