//! Classical inversions of a wave field, and the modulus maps that every method returns.
//!
//! All start from the Helmholtz equation of a locally homogeneous, incompressible, isotropic
//! solid, G lap(u) + rho omega^2 u = 0.

mod ahi;
mod local;
mod loss_sign;
mod ratio;

use std::ops::RangeInclusive;
use std::path::Path;

use ndarray::{Array1, Array3, Array4, Array5, ArrayD, Axis, arr1};
use num_complex::Complex64;

pub use ahi::{AhiOptions, Stencil, ahi};
pub use ratio::{RatioOptions, windowed_ratio};

use crate::error::{MreError, Result};
use crate::io::{NpzArray, write_npz};
use crate::mask::count;
use crate::wave::WaveField;

/// Density of soft tissue, kg/m^3, as elastography assumes it.
pub const DENSITY: f64 = 1000.0;

/// Medians of |G| that elastography measures, Pa: from loose gels to cartilage.
const STIFFNESSES: RangeInclusive<f64> = 50.0..=1e6;

/// Maps of the complex shear modulus.
#[derive(Debug, Clone)]
pub struct Modulus {
    /// G = G' + i G'' in Pa, `[freq, x, y, z]`; NaN outside the mask.
    pub g: Array4<Complex64>,
    /// Where the method gives a value, `[x, y, z]`.
    pub mask: Array3<bool>,
    /// Vibration frequencies, Hz.
    pub freq: Vec<f64>,
    /// Voxel size along x, y, z, m.
    pub spacing: [f64; 3],
    /// The method and its settings, in words.
    pub method: String,
}

impl Modulus {
    /// Wraps maps made for `wave`: same grid and frequencies; values outside the mask become NaN,
    /// and pixels with a value that is not finite leave the mask.
    ///
    /// # Errors
    /// [`MreError::ShapeMismatch`] when `g` does not fit `wave`.
    pub fn new(
        wave: &WaveField,
        mut g: Array4<Complex64>,
        mut mask: Array3<bool>,
        method: impl Into<String>,
    ) -> Result<Self> {
        let (nf, _, nx, ny, nz) = wave.dim();
        if g.dim() != (nf, nx, ny, nz) {
            return Err(MreError::shape(
                "modulus [freq, x, y, z]",
                &[nf, nx, ny, nz],
                g.shape(),
            ));
        }
        if mask.dim() != (nx, ny, nz) {
            return Err(MreError::shape(
                "mask of a modulus",
                &[nx, ny, nz],
                mask.shape(),
            ));
        }
        for ((x, y, z), inside) in mask.indexed_iter_mut() {
            *inside = *inside && (0..nf).all(|f| g[[f, x, y, z]].is_finite());
            if !*inside {
                (0..nf).for_each(|f| g[[f, x, y, z]] = Complex64::new(f64::NAN, f64::NAN));
            }
        }
        let (freq, spacing) = (wave.freq.clone(), wave.spacing);
        Ok(Self {
            g,
            mask,
            freq,
            spacing,
            method: method.into(),
        })
    }

    /// [`new`](Self::new) for a method: refuses maps without a single value.
    ///
    /// # Errors
    /// Those of [`new`](Self::new); [`MreError::NoModulus`] with the likely cause.
    pub(crate) fn inverted(
        wave: &WaveField,
        g: Array4<Complex64>,
        mask: Array3<bool>,
        method: String,
    ) -> Result<Self> {
        let candidates = count(&mask);
        let modulus = Self::new(wave, g, mask, method)?;
        if count(&modulus.mask) > 0 {
            return Ok(modulus);
        }
        let (_, _, nx, ny, nz) = wave.dim();
        let problem = match candidates {
            0 => format!(
                "none of the {} pixels of the mask (grid {nx} x {ny} x {nz}) has neighbours inside on both \
                 sides along every axis, as second derivatives need; give a larger mask, erode less{}",
                count(&wave.mask),
                if nz == 2 {
                    ", or take one slice or more than two"
                } else {
                    ""
                }
            ),
            n => format!(
                "none of {n} values is a finite number; look at the field, --freq and --spacing-mm"
            ),
        };
        let method = modulus.method;
        Err(MreError::NoModulus { method, problem })
    }

    /// The same modulus everywhere in the mask: the least that a method must beat.
    ///
    /// # Errors
    /// Those of [`Modulus::new`].
    pub fn constant(wave: &WaveField, g: Complex64) -> Result<Self> {
        let (nf, _, nx, ny, nz) = wave.dim();
        let map = Array4::from_elem((nf, nx, ny, nz), g);
        Self::new(
            wave,
            map,
            wave.mask.clone(),
            format!("constant {:.3} kPa", g.re / 1e3),
        )
    }

    /// The values of frequency `f` inside the mask, in the order of the grid.
    pub fn values(&self, f: usize) -> Vec<Complex64> {
        let map = self.g.index_axis(Axis(0), f);
        map.iter()
            .zip(&self.mask)
            .filter(|&(_, &inside)| inside)
            .map(|(g, _)| *g)
            .collect()
    }

    /// What a report should say about a stiffness that no tissue or gel has: most often the voxel size or the
    /// frequencies are in another unit.
    pub fn doubt(&self) -> Option<String> {
        let all = (0..self.freq.len()).flat_map(|f| self.values(f));
        let level = median(all.map(|g| g.norm()));
        let doubtful = level.is_finite() && !STIFFNESSES.contains(&level);
        doubtful.then(|| {
            format!(
                "the median of |G| is {level:.3e} Pa, but tissue and gels have {:e} to {:e} Pa; is the voxel \
                 size (--spacing-mm) in millimetres and the frequency (--freq) in hertz?",
                STIFFNESSES.start(),
                STIFFNESSES.end()
            )
        })
    }

    /// Writes `G` (complex, Pa, `[freq, x, y]`, or `[freq, x, y, z]` for several slices), `mask`,
    /// `freq` (Hz), `spacing` (m, one per spatial axis of `G`) and, when given, the fitted field
    /// `u` (`[freq, component, x, y(, z)]`, without the component axis when there is one).
    ///
    /// # Errors
    /// [`MreError::Io`] when the file cannot be written.
    pub fn write(&self, path: &Path, fitted: Option<&Array5<Complex64>>) -> Result<()> {
        let g = drop_unit_axis(self.g.clone().into_dyn(), 3);
        let mask = drop_unit_axis(self.mask.clone().into_dyn(), 2);
        let freq = Array1::from(self.freq.clone());
        let spacing = arr1(&self.spacing[..mask.ndim()]);
        let u = fitted.map(|u| drop_unit_axis(drop_unit_axis(u.clone().into_dyn(), 4), 1));
        let mut arrays: Vec<(&str, NpzArray<'_>)> = vec![
            ("G", (&g).into()),
            ("mask", (&mask).into()),
            ("freq", (&freq).into()),
            ("spacing", (&spacing).into()),
        ];
        if let Some(u) = &u {
            arrays.push(("u", u.into()));
        }
        write_npz(path, &arrays)
    }
}

fn drop_unit_axis<T>(array: ArrayD<T>, axis: usize) -> ArrayD<T> {
    if array.len_of(Axis(axis)) == 1 {
        array.index_axis_move(Axis(axis), 0)
    } else {
        array
    }
}

/// The median; NaN when there are no values.
pub(crate) fn median(values: impl Iterator<Item = f64>) -> f64 {
    quantile(&mut values.collect::<Vec<_>>(), 0.5)
}

/// The quantile `q` in 0..=1, interpolated linearly between order statistics; sorts `values`.
pub(crate) fn quantile(values: &mut [f64], q: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let Some(last) = values.len().checked_sub(1) else {
        return f64::NAN;
    };
    let at = q * last as f64;
    let (low, high) = (at.floor() as usize, at.ceil() as usize);
    values[low] + (at - low as f64) * (values[high] - values[low])
}
