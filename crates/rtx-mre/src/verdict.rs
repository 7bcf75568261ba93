//! What the held-out error of an inversion says, in words.

use ndarray::{Array5, Axis};
use num_complex::Complex64;
use serde::Serialize;

use crate::metrics::relative_l2;
use crate::wave::WaveField;

/// Held-out error over the noise from which the wave counts as not explained, and the least such error: the noise is known
/// no better than that.
const FAR_ABOVE: f64 = 2.0;
const NOTICEABLE: f64 = 0.1;
/// Held-out error that no noise excuses where the data do not tell theirs.
const UNEXPLAINED: f64 = 0.5;
/// Held-out error over that of the pixels seen from which the noise was learnt by heart.
const MEMORISED: f64 = 2.0;

/// The kinds of [`Verdict`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// The held-out error is far above the noise: the maps mean little.
    Underfit,
    /// The held-out error is about the noise.
    AtNoiseLevel,
    /// Pixels that were seen are fitted much better than those held out.
    Overfit,
    /// There is nothing to judge by.
    NotJudged,
}

/// What the held-out error says.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Verdict {
    /// In one word.
    pub kind: Kind,
    /// In a sentence, with the likely causes.
    pub text: String,
}

impl Verdict {
    /// Judges the errors of the field on held-out pixels, relative, one per frequency; empty for a method without a fitted
    /// field. The noise is that of the field's second harmonic.
    pub fn new(
        wave: &WaveField,
        fitted: Option<&Array5<Complex64>>,
        heldout: &[Option<f64>],
    ) -> Self {
        let seen: Vec<Option<f64>> = (0..wave.freq.len())
            .map(|f| fitted.and_then(|u| error_inside(wave, u, f)))
            .collect();
        judge(&wave.freq, &wave.noise, &seen, heldout)
    }

    /// Whether the user should be warned.
    pub fn is_bad(&self) -> bool {
        matches!(self.kind, Kind::Underfit | Kind::Overfit)
    }
}

/// Relative distance of a fitted field over the mask: nearly all of its pixels were seen.
fn error_inside(wave: &WaveField, fitted: &Array5<Complex64>, f: usize) -> Option<f64> {
    if fitted.dim() != wave.u.dim() {
        return None;
    }
    let (found, truth) = (fitted.index_axis(Axis(0), f), wave.u.index_axis(Axis(0), f));
    let components = found.outer_iter().zip(truth.outer_iter());
    let pairs: Vec<(Complex64, Complex64)> = components
        .flat_map(|(a, b)| {
            let both = a.into_iter().zip(b).zip(&wave.mask);
            both.filter(|(_, inside)| **inside)
                .map(|((a, b), _)| (*a, *b))
                .collect::<Vec<_>>()
        })
        .collect();
    let error = relative_l2(pairs.into_iter());
    error.is_finite().then_some(error)
}

fn judge(
    freq: &[f64],
    noise: &[Option<f64>],
    seen: &[Option<f64>],
    heldout: &[Option<f64>],
) -> Verdict {
    let percent = |v: f64| format!("{:.1} %", 100.0 * v);
    let at = |list: &[Option<f64>], f: usize| list.get(f).copied().flatten();
    let (mut underfit, mut overfit, mut good, mut unknown) = (vec![], vec![], vec![], vec![]);
    for (f, hz) in freq.iter().enumerate() {
        let Some(error) = at(heldout, f) else {
            continue;
        };
        let (noise, seen) = (at(noise, f), at(seen, f));
        let limit = noise.map_or(UNEXPLAINED, |n| (FAR_ABOVE * n).max(NOTICEABLE));
        let what = match noise {
            Some(noise) => format!("{hz} Hz: {} (noise {})", percent(error), percent(noise)),
            None => format!("{hz} Hz: {}", percent(error)),
        };
        // Written so that a NaN is no success.
        if error <= limit {
            match (seen, noise) {
                (_, None) => unknown.push(what),
                _ => good.push(what),
            }
        } else if seen.is_some_and(|seen| error > MEMORISED * seen && seen <= limit) {
            overfit.push(what);
        } else {
            underfit.push(what);
        }
    }
    let verdict = |kind, text: String| Verdict { kind, text };
    if !underfit.is_empty() {
        return verdict(
            Kind::Underfit,
            format!(
                "the wave is not explained: the held-out error of u is far above the noise at {}. The maps mean little there. \
                 Likely causes: wrapped phase or noise inside the mask (look at |u| in maps.png), a voxel size or frequency in \
                 another unit, axes named in another order, too few training steps, or waves too short for the pixels",
                underfit.join(", ")
            ),
        );
    }
    if !overfit.is_empty() {
        return verdict(
            Kind::Overfit,
            format!(
                "overfit: pixels that the training saw are explained much better than those held out at {}. Likely causes: a \
                 mask of few pixels, too many steps for them, or a wave too short for the held-out blocks",
                overfit.join(", ")
            ),
        );
    }
    if !good.is_empty() {
        return verdict(
            Kind::AtNoiseLevel,
            format!(
                "the wave is explained: the held-out error of u is at the level of the noise at {}",
                [good, unknown].concat().join(", ")
            ),
        );
    }
    if !unknown.is_empty() {
        return verdict(
            Kind::NotJudged,
            format!(
                "not judged: the held-out error of u is {}, but a harmonic alone does not tell its noise (samples at four phase \
                 offsets would)",
                unknown.join(", ")
            ),
        );
    }
    verdict(
        Kind::NotJudged,
        "not judged: no pixels were held out, or the method fits no field that could be compared with them; --method pinn with \
         --holdout does"
            .into(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(noise: Option<f64>, seen: f64, heldout: Option<f64>) -> Verdict {
        judge(&[60.0], &[noise], &[Some(seen)], &[heldout])
    }

    #[test]
    fn the_error_is_compared_with_the_noise() {
        for (noise, seen, heldout, kind) in [
            (Some(0.11), 0.06, Some(0.063), Kind::AtNoiseLevel),
            (Some(0.225), 0.2, Some(0.231), Kind::AtNoiseLevel),
            (Some(0.001), 0.02, Some(0.03), Kind::AtNoiseLevel),
            (Some(0.0), 0.9, Some(0.95), Kind::Underfit),
            (Some(0.1), 0.5, Some(0.5), Kind::Underfit),
            (Some(0.1), 0.1, Some(0.5), Kind::Overfit),
            (Some(0.1), 0.1, Some(f64::NAN), Kind::Underfit),
            (None, 0.9, Some(0.9), Kind::Underfit),
            (None, 0.03, Some(0.04), Kind::NotJudged),
            (Some(0.1), 0.1, None, Kind::NotJudged),
        ] {
            let verdict = of(noise, seen, heldout);
            assert_eq!(
                verdict.kind, kind,
                "{noise:?} {seen} {heldout:?}: {}",
                verdict.text
            );
        }
        let text = of(Some(0.02), 0.9, Some(0.95)).text;
        assert!(text.starts_with("the wave is not explained: "), "{text}");
        assert!(text.contains("60 Hz: 95.0 % (noise 2.0 %)"), "{text}");
        // One bad frequency is enough.
        let two = judge(
            &[30.0, 60.0],
            &[Some(0.1); 2],
            &[Some(0.1); 2],
            &[Some(0.1), Some(0.8)],
        );
        assert_eq!(two.kind, Kind::Overfit);
        assert!(!two.text.contains("30 Hz"), "{}", two.text);
        assert_eq!(judge(&[], &[], &[], &[]).kind, Kind::NotJudged);
    }
}
