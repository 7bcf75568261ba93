//! Whether the loss modulus of a map is negative beyond what noise explains.

use super::{Modulus, median};
use crate::error::{MreError, Result};
use crate::harmonic::TimeSign;

/// Neighbouring pixels that share the sign of the noise in G'', on average. Measured on elastic phantoms whose
/// field was smoothed by two pixels, at noise powers from 1e-3 to 0.2: 2.4.
const PIXELS_PER_SIGN: f64 = 3.0;

/// Standard errors beyond one half from which most pixels are negative: one map in 30,000 by chance.
const STANDARD_ERRORS: f64 = 4.0;

/// Loss over |G| that no map shows, half a degree of loss angle: the sign of less does not matter.
const NEGLIGIBLE: f64 = 0.01;

impl Modulus {
    /// Refuses maps whose loss modulus is clearly negative.
    ///
    /// A passive material dissipates, so G'' >= 0 in the convention exp(+i omega t); a negative G'' over
    /// most of the mask tells data of the other convention. But an elastic material has a G'' of about zero,
    /// which noise makes negative in the median of every second measurement. So the map is refused where both
    /// hold: the median of G''/|G| is below -0.01, and the share of negative pixels is beyond one half by
    /// four standard errors of a share without a preference. The field must not have been smoothed by much
    /// more than two pixels, or more neighbours repeat each other than the standard error allows for.
    ///
    /// # Errors
    /// [`MreError::NegativeLoss`], naming the frequency at which the median of G'' is lowest.
    pub fn check_loss_sign(&self, sign: TimeSign) -> Result<()> {
        let loss = |f: usize| median(self.values(f).iter().map(|g| g.im));
        let lowest = (0..self.freq.len())
            .map(|f| (loss(f), f))
            .min_by(|a, b| a.0.total_cmp(&b.0));
        match lowest {
            Some((loss, f)) if loss < 0.0 && self.most_gain_energy() => {
                Err(MreError::NegativeLoss {
                    loss_kpa: loss / 1e3,
                    freq_hz: self.freq[f],
                    sign: sign.symbol(),
                    other: sign.flipped().symbol(),
                })
            }
            _ => Ok(()),
        }
    }

    fn most_gain_energy(&self) -> bool {
        let values = (0..self.freq.len()).flat_map(|f| self.values(f));
        let sines: Vec<f64> = values
            .map(|g| g.im / g.norm().max(f64::MIN_POSITIVE))
            .collect();
        let n = sines.len() as f64;
        let negative = sines.iter().filter(|sine| **sine < 0.0).count() as f64;
        let standard_error = 0.5 * (PIXELS_PER_SIGN / n).sqrt();
        median(sines.into_iter()) < -NEGLIGIBLE
            && negative / n > 0.5 + STANDARD_ERRORS * standard_error
    }
}
