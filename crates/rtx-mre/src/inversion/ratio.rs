//! The windowed ratio of the field to its Laplacian: a robust magnitude of the modulus.

use ndarray::{Array3, Array4, Axis};
use num_complex::Complex64;

use super::local::{laplacian, smooth};
use super::{DENSITY, Modulus};
use crate::error::Result;
use crate::wave::WaveField;

/// Settings of [`windowed_ratio`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RatioOptions {
    /// Standard deviation of the Gaussian that smooths the field first, pixels.
    pub smoothing: f64,
    /// Standard deviation of the Gaussian window of the two sums, pixels.
    pub window: f64,
}

impl Default for RatioOptions {
    fn default() -> Self {
        Self {
            smoothing: 1.5,
            window: 2.0,
        }
    }
}

/// |G| = rho omega^2 sum|u| / sum|lap u|, the sums over components and a Gaussian window, for
/// each frequency. Only a magnitude: it is returned as a real modulus.
///
/// This is the magnitude formula of MDEV (S. Papazoglou et al., Physics in Medicine and Biology
/// 57 (2012), 2329-2346) with the sum over frequencies replaced by one over a window.
///
/// # Errors
/// [`MreError::NoModulus`](crate::MreError::NoModulus) for a mask without a pixel that has all neighbours.
pub fn windowed_ratio(wave: &WaveField, options: RatioOptions) -> Result<Modulus> {
    let (nf, nc, nx, ny, nz) = wave.dim();
    let mut g = Array4::from_elem((nf, nx, ny, nz), Complex64::ZERO);
    let mut mask = wave.mask.clone();
    for f in 0..nf {
        let mut top = Array3::<f64>::zeros((nx, ny, nz));
        let mut bottom = Array3::<f64>::zeros((nx, ny, nz));
        for c in 0..nc {
            let field = wave.u.index_axis(Axis(0), f).index_axis_move(Axis(0), c);
            let u = smooth(field, &wave.mask, options.smoothing);
            for (at, lap) in laplacian(&u, &wave.mask, wave.spacing, 1).indexed_iter() {
                match lap {
                    Some(lap) => {
                        top[at] += u[at].norm();
                        bottom[at] += lap.norm();
                    }
                    None => mask[at] = false,
                }
            }
        }
        let top = smooth(top.view(), &mask, options.window);
        let bottom = smooth(bottom.view(), &mask, options.window);
        let scale = DENSITY * wave.omega(f).powi(2);
        g.index_axis_mut(Axis(0), f)
            .assign(&(top * scale / bottom).mapv(Complex64::from));
    }
    let method = format!(
        "windowed ratio, smoothing {} px, window {} px",
        options.smoothing, options.window
    );
    Modulus::inverted(wave, g, mask, method)
}
