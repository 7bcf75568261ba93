//! Algebraic inversion of the Helmholtz equation (AHI, "direct inversion").

use ndarray::{Array3, Array4, Axis};
use num_complex::Complex64;

use super::local::{laplacian, smooth};
use super::{DENSITY, Modulus};
use crate::error::Result;
use crate::wave::WaveField;

/// Differences that make up the Laplacian.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Stencil {
    /// Neighbours one pixel away: the sharper, the better without noise.
    #[default]
    Compact,
    /// Neighbours two pixels away, which is what central differences applied twice amount to.
    Wide,
}

/// Settings of [`ahi`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AhiOptions {
    /// Standard deviation of the Gaussian that smooths the field first, pixels; 0 for none. The
    /// level of the result depends strongly on it.
    pub smoothing: f64,
    /// The Laplacian's stencil.
    pub stencil: Stencil,
}

impl Default for AhiOptions {
    fn default() -> Self {
        Self {
            smoothing: 2.0,
            stencil: Stencil::Compact,
        }
    }
}

/// G = -rho omega^2 u / lap(u) pixel by pixel and frequency by frequency; several components are
/// joined by least squares, G = -rho omega^2 sum(u conj(lap u)) / sum(|lap u|^2).
///
/// The mask of the result lacks the rim, where the Laplacian has no neighbours.
/// Source: T. E. Oliphant et al., Magnetic Resonance in Medicine 45 (2001), 299-310.
///
/// # Errors
/// [`MreError::NoModulus`](crate::MreError::NoModulus) for a mask without a pixel that has all neighbours.
pub fn ahi(wave: &WaveField, options: AhiOptions) -> Result<Modulus> {
    let (nf, nc, nx, ny, nz) = wave.dim();
    let reach = match options.stencil {
        Stencil::Compact => 1,
        Stencil::Wide => 2,
    };
    let mut g = Array4::from_elem((nf, nx, ny, nz), Complex64::ZERO);
    let mut mask = wave.mask.clone();
    for f in 0..nf {
        let mut top = Array3::<Complex64>::zeros((nx, ny, nz));
        let mut bottom = Array3::<f64>::zeros((nx, ny, nz));
        for c in 0..nc {
            let field = wave.u.index_axis(Axis(0), f).index_axis_move(Axis(0), c);
            let u = smooth(field, &wave.mask, options.smoothing);
            let lap = laplacian(&u, &wave.mask, wave.spacing, reach);
            for (at, lap) in lap.indexed_iter() {
                match lap {
                    Some(lap) => {
                        top[at] += u[at] * lap.conj();
                        bottom[at] += lap.norm_sqr();
                    }
                    None => mask[at] = false,
                }
            }
        }
        let scale = -DENSITY * wave.omega(f).powi(2);
        g.index_axis_mut(Axis(0), f)
            .assign(&(top * scale / bottom.mapv(Complex64::from)));
    }
    let stencil = match options.stencil {
        Stencil::Compact => "compact",
        Stencil::Wide => "wide",
    };
    let method = format!(
        "AHI, smoothing {} px, {stencil} Laplacian",
        options.smoothing
    );
    Modulus::inverted(wave, g, mask, method)
}
