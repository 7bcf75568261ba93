//! From the phase offsets of one vibration cycle to the complex first harmonic.
//!
//! The N phase offsets divide one period, and u_k = Re(V exp(+2 pi i k / N)) defines
//! V = 2/N sum_k u_k exp(-2 pi i k / N). The crate works with u(t) = Re(U exp(+i omega t)): then a
//! material that dissipates has a modulus G = G' + i G'' with G'' > 0. Where offset k stands for the
//! time +k T / N (time sign `+`), U = V; where offsets go back in time, or a given harmonic was
//! made with exp(-i omega t) (time sign `-`), U is the conjugate. The wrong sign flips that of G''.

use std::fmt;
use std::str::FromStr;

use ndarray::{Array5, ArrayView6, Axis};
use num_complex::Complex64;
use rustfft::FftPlanner;

use crate::error::{MreError, Result, Shape};

/// The sign of i omega t in the time convention of the data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TimeSign {
    /// exp(+i omega t): phase offsets advance with time.
    #[default]
    Plus,
    /// exp(-i omega t): phase offsets go back in time.
    Minus,
}

impl TimeSign {
    /// `+` or `-`.
    pub fn symbol(self) -> char {
        match self {
            Self::Plus => '+',
            Self::Minus => '-',
        }
    }

    /// The other convention.
    pub fn flipped(self) -> Self {
        match self {
            Self::Plus => Self::Minus,
            Self::Minus => Self::Plus,
        }
    }

    /// Turns a value of this convention into one of the convention `+` that the crate uses.
    pub fn to_plus(self, value: Complex64) -> Complex64 {
        match self {
            Self::Plus => value,
            Self::Minus => value.conj(),
        }
    }
}

impl fmt::Display for TimeSign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.symbol())
    }
}

impl FromStr for TimeSign {
    type Err = MreError;

    fn from_str(text: &str) -> Result<Self> {
        match text.trim() {
            "+" | "+1" => Ok(Self::Plus),
            "-" | "-1" => Ok(Self::Minus),
            other => Err(MreError::option("--time-sign", other, "use + or -")),
        }
    }
}

/// The first two harmonics of a cycle, each `[freq, dir, x, y, z]`.
#[derive(Debug, Clone)]
pub struct Harmonics {
    /// The first harmonic: the wave field.
    pub first: Array5<Complex64>,
    /// The second harmonic, which holds noise and little else; `None` below four offsets.
    pub second: Option<Array5<Complex64>>,
}

/// Fewest offsets that fix amplitude and phase beside a constant.
pub const MIN_OFFSETS: usize = 3;

/// Fourier transform over the phase offsets of real data `[freq, dir, phase, x, y, z]`, in the
/// convention `+` of the crate.
///
/// # Errors
/// [`MreError::BadOption`] when there are fewer than [`MIN_OFFSETS`] offsets.
pub fn harmonics(
    data: ArrayView6<'_, Complex64>,
    variable: &str,
    sign: TimeSign,
) -> Result<Harmonics> {
    let offsets = data.len_of(Axis(2));
    if offsets < MIN_OFFSETS {
        return Err(MreError::option(
            "--axes",
            format!("phase of length {offsets}"),
            format!(
                "`{variable}` {} (as freq, dir, phase, x, y, z) has {offsets} phase offset{}; at \
                 least {MIN_OFFSETS} over one vibration cycle are needed to tell amplitude and \
                 phase of the wave from a constant (4 to 8 are usual). Is another axis the phase?",
                Shape::new(data.shape()),
                if offsets == 1 { "" } else { "s" },
            ),
        ));
    }
    let (nf, nd, _, nx, ny, nz) = data.dim();
    let mut first = Array5::zeros((nf, nd, nx, ny, nz));
    let mut second = (offsets >= 4).then(|| first.clone());
    let transform = FftPlanner::new().plan_fft_forward(offsets);
    let mut scratch = vec![Complex64::ZERO; transform.get_inplace_scratch_len()];
    let mut cycle = vec![Complex64::ZERO; offsets];
    let scale = 2.0 / offsets as f64;
    for f in 0..nf {
        for d in 0..nd {
            let block = data.index_axis(Axis(0), f).index_axis_move(Axis(0), d);
            for (index, target) in first
                .index_axis_mut(Axis(0), f)
                .index_axis_mut(Axis(0), d)
                .indexed_iter_mut()
            {
                let (x, y, z) = index;
                for (k, value) in cycle.iter_mut().enumerate() {
                    *value = block[[k, x, y, z]];
                }
                transform.process_with_scratch(&mut cycle, &mut scratch);
                *target = sign.to_plus(cycle[1] * scale);
                if let Some(second) = &mut second {
                    second[[f, d, x, y, z]] = sign.to_plus(cycle[2] * scale);
                }
            }
        }
    }
    Ok(Harmonics { first, second })
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::Array6;

    fn sampled(offsets: usize, wave: impl Fn(f64) -> f64) -> Array6<Complex64> {
        Array6::from_shape_fn((1, 1, offsets, 1, 1, 1), |(_, _, k, ..)| {
            wave(std::f64::consts::TAU * k as f64 / offsets as f64).into()
        })
    }

    #[test]
    fn recovers_the_phasor_in_either_convention() {
        let phasor = Complex64::new(0.3, -1.2);
        for offsets in [3, 4, 5, 8] {
            for sign in [TimeSign::Plus, TimeSign::Minus] {
                let data = sampled(offsets, |t| {
                    0.7 + (phasor * Complex64::from_polar(1.0, t)).re
                });
                let expected = sign.to_plus(phasor);
                let out = harmonics(data.view(), "u", sign).unwrap();
                let found = out.first[[0, 0, 0, 0, 0]];
                assert!(
                    (found - expected).norm() < 1e-14,
                    "{offsets} {sign}: {found}"
                );
            }
        }
    }

    #[test]
    fn the_second_harmonic_is_kept_apart() {
        let data = sampled(8, |t| t.cos() + 0.1 * (2.0 * t).sin());
        let out = harmonics(data.view(), "u", TimeSign::Plus).unwrap();
        assert!((out.first[[0, 0, 0, 0, 0]] - 1.0).norm() < 1e-14);
        let second = out.second.unwrap()[[0, 0, 0, 0, 0]];
        assert!((second - Complex64::new(0.0, -0.1)).norm() < 1e-14);
    }

    #[test]
    fn too_few_offsets_are_refused() {
        for offsets in [1, 2] {
            let error =
                harmonics(sampled(offsets, f64::cos).view(), "u", TimeSign::Plus).unwrap_err();
            assert!(error.is_input_error());
            assert!(
                error
                    .to_string()
                    .contains(&format!("has {offsets} phase offset")),
                "{error}"
            );
        }
    }
}
