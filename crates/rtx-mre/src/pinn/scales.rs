//! Scales taken from the data, so that every quantity that the networks see is of order one.

use super::options::PinnRheology;
use crate::error::{MreError, Result};
use crate::inversion::{DENSITY, RatioOptions, windowed_ratio};
use crate::wave::WaveField;
use ndarray::Array3;
use num_complex::Complex64;

/// Least fraction of the lossless phase range; keeps the modulus complex.
const QUARTER_TURN: f64 = std::f64::consts::FRAC_PI_2;

pub(super) struct Scales {
    /// 2, or 3 for several slices.
    pub dims: usize,
    /// Pixels of the mask.
    pub pixels: Vec<(usize, usize, usize)>,
    /// Their positions, m, row-major [pixel, axis].
    pub positions: Vec<f64>,
    /// Middle of the mask, m.
    pub centre: Vec<f64>,
    /// Half the largest extent of the mask, m.
    pub length: f64,
    /// Root mean square of each frequency and component.
    pub amplitude: Vec<f64>,
    /// Noise over signal of each frequency and component, from mixed second differences.
    pub noise: Vec<f64>,
    /// Modulus scale of each frequency, Pa.
    pub modulus_scale: Vec<f64>,
    /// Angular frequency over the mean one.
    pub omega_ratio: Vec<f64>,
    /// Squared wavenumber of each frequency at the modulus scale, 1/m^2.
    pub wavenumber_squared: Vec<f64>,
}

impl Scales {
    pub fn of(wave: &WaveField, held: &Array3<bool>, rheology: PinnRheology) -> Result<Self> {
        let (nf, nc, _, _, nz) = wave.dim();
        let dims = if nz > 1 { 3 } else { 2 };
        let pixels: Vec<_> = wave
            .mask
            .indexed_iter()
            .filter(|(_, m)| **m)
            .map(|(at, _)| at)
            .collect();
        let mut positions = Vec::with_capacity(pixels.len() * dims);
        for &(x, y, z) in &pixels {
            let at = [x, y, z];
            positions.extend((0..dims).map(|a| at[a] as f64 * wave.spacing[a]));
        }
        let bound = |a: usize, pick: fn(f64, f64) -> f64, start: f64| {
            positions
                .iter()
                .skip(a)
                .step_by(dims)
                .copied()
                .fold(start, pick)
        };
        let low: Vec<f64> = (0..dims)
            .map(|a| bound(a, f64::min, f64::INFINITY))
            .collect();
        let high: Vec<f64> = (0..dims)
            .map(|a| bound(a, f64::max, f64::NEG_INFINITY))
            .collect();
        let centre = (0..dims).map(|a| (low[a] + high[a]) / 2.0).collect();
        let length = (0..dims)
            .map(|a| (high[a] - low[a] + wave.spacing[a]) / 2.0)
            .fold(0.0, f64::max);
        let seen: Vec<_> = pixels
            .iter()
            .filter(|&&(x, y, z)| !held[[x, y, z]])
            .collect();
        let mut amplitude = Vec::new();
        for f in 0..nf {
            for c in 0..nc {
                let power: f64 = seen
                    .iter()
                    .map(|&&(x, y, z)| wave.u[[f, c, x, y, z]].norm_sqr())
                    .sum();
                amplitude.push((power / seen.len().max(1) as f64).sqrt());
            }
        }
        if amplitude.iter().any(|a| !a.is_finite() || *a <= 0.0) || pixels.is_empty() {
            return Err(MreError::NoModulus {
                method: "PINN".into(),
                problem:
                    "the pixels that are not held out carry no motion; lower --holdout, or look at \
                          the mask"
                        .into(),
            });
        }
        let ratio = windowed_ratio(wave, RatioOptions::default())?;
        let mut per_frequency: Vec<f64> = (0..nf)
            .map(|f| middle(ratio.values(f).iter().map(|g| g.norm()).collect()))
            .collect();
        if rheology != PinnRheology::Independent {
            let all = middle(
                (0..nf)
                    .flat_map(|f| ratio.values(f))
                    .map(|g| g.norm())
                    .collect(),
            );
            per_frequency = vec![all; nf];
        }
        let mean = (0..nf).map(|f| wave.omega(f)).sum::<f64>() / nf as f64;
        Ok(Scales {
            dims,
            pixels,
            positions,
            centre,
            length,
            noise: (0..nf * nc)
                .map(|k| noise(wave, k / nc, k % nc) / amplitude[k])
                .collect(),
            amplitude,
            omega_ratio: (0..nf).map(|f| wave.omega(f) / mean).collect(),
            wavenumber_squared: (0..nf)
                .map(|f| DENSITY * wave.omega(f).powi(2) / per_frequency[f])
                .collect(),
            modulus_scale: per_frequency,
        })
    }

    /// Corners of the box that holds the mask, m.
    pub fn bounds(&self) -> (Vec<f64>, Vec<f64>) {
        let shifted = |s: f64| self.centre.iter().map(|c| c + s * self.length).collect();
        (shifted(-1.0), shifted(1.0))
    }

    /// Largest wavenumber in radians per unit of the networks' coordinates.
    pub fn largest_wavenumber(&self) -> f64 {
        self.wavenumber_squared
            .iter()
            .copied()
            .fold(0.0, f64::max)
            .sqrt()
            * self.length
    }

    /// The measured field over its amplitude: real parts, then imaginary parts, for each pixel.
    pub fn observed(&self, wave: &WaveField) -> Vec<f64> {
        let (nf, nc, ..) = wave.dim();
        let mut out = Vec::with_capacity(self.pixels.len() * 2 * nf * nc);
        for &(x, y, z) in &self.pixels {
            for part in [|u: Complex64| u.re, |u: Complex64| u.im] {
                for k in 0..nf * nc {
                    out.push(part(wave.u[[k / nc, k % nc, x, y, z]]) / self.amplitude[k]);
                }
            }
        }
        out
    }

    /// 1 where the data term sees a pixel, else 0.
    pub fn seen(&self, held: &Array3<bool>) -> Vec<f64> {
        self.pixels
            .iter()
            .map(|&(x, y, z)| f64::from(u8::from(!held[[x, y, z]])))
            .collect()
    }

    /// The modulus of frequency `f` from the outputs of its network at one pixel, Pa.
    pub fn modulus(
        &self,
        rheology: PinnRheology,
        row: &[f64],
        f: usize,
        viscosity: f64,
    ) -> Complex64 {
        let scale = self.modulus_scale[f];
        match rheology {
            PinnRheology::Independent => {
                let phase = QUARTER_TURN / (1.0 + (-row[self.modulus_scale.len() + f]).exp());
                Complex64::from_polar(scale * row[f].exp(), phase)
            }
            PinnRheology::Elastic => Complex64::new(scale * row[0].exp(), 0.0),
            PinnRheology::Voigt => Complex64::new(
                scale * row[0].exp(),
                scale * viscosity * self.omega_ratio[f],
            ),
        }
    }
}

/// Standard deviation of the complex noise: a smooth field has small mixed second differences
/// (second along x and along y), white noise has 36 times its variance there; the median is blind to edges.
fn noise(wave: &WaveField, f: usize, c: usize) -> f64 {
    let (_, _, nx, ny, nz) = wave.dim();
    let mut all = Vec::new();
    for z in 0..nz {
        for x in 1..nx.saturating_sub(1) {
            for y in 1..ny.saturating_sub(1) {
                if (x - 1..=x + 1).any(|i| (y - 1..=y + 1).any(|j| !wave.mask[[i, j, z]])) {
                    continue;
                }
                let row = |i: usize| {
                    let u = |j: usize| wave.u[[f, c, i, j, z]];
                    u(y - 1) - u(y) * 2.0 + u(y + 1)
                };
                let d = row(x - 1) - row(x) * 2.0 + row(x + 1);
                all.extend([d.re.abs(), d.im.abs()]);
            }
        }
    }
    // Median of |normal| is 0.6745 of its deviation; real and imaginary parts add.
    middle(all) / 0.6745 / 6.0 * std::f64::consts::SQRT_2
}

fn middle(mut v: Vec<f64>) -> f64 {
    v.retain(|x| x.is_finite());
    v.sort_by(f64::total_cmp);
    v.get(v.len() / 2)
        .copied()
        .unwrap_or(1.0)
        .max(f64::MIN_POSITIVE)
}
