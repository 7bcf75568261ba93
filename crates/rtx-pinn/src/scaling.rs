//! Nondimensionalisation from measured data.

use crate::error::check_finite;
use crate::{Complex64, PinnError, Points, Result};

/// Factors that bring coordinates and measured values to order one.
#[derive(Clone, Debug, PartialEq)]
pub struct Scaling {
    /// Middle of the points along every axis.
    pub centre: Vec<f64>,
    /// Half the extent of the points along every axis (1 for an axis without extent).
    pub half_width: Vec<f64>,
    /// Mean of every component.
    pub mean: Vec<f64>,
    /// Root mean square of the distance from the mean, for every component (1 where it is zero).
    pub spread: Vec<f64>,
}

impl Scaling {
    /// From values at points, row-major with `components` a point.
    ///
    /// # Errors
    /// A number of values other than points times components, or values that are not finite.
    pub fn of(points: &Points, components: usize, values: &[f64]) -> Result<Scaling> {
        let expected = points.len() * components;
        if components == 0 || values.len() != expected {
            return Err(PinnError::Components {
                what: format!("values of {} points", points.len()),
                expected,
                found: values.len(),
            });
        }
        check_finite("values", values, components)?;
        let rows = points.len() as f64;
        let column = |k: usize| values.iter().skip(k).step_by(components);
        let mean: Vec<f64> = (0..components)
            .map(|k| column(k).sum::<f64>() / rows)
            .collect();
        let spread = (0..components)
            .map(|k| {
                let square = column(k).map(|v| (v - mean[k]).powi(2)).sum::<f64>() / rows;
                nonzero(square.sqrt())
            })
            .collect();
        let (centre, half_width) = extent(points);
        Ok(Scaling {
            centre,
            half_width,
            mean,
            spread,
        })
    }

    /// From complex values at points, row-major with `components` a point: zero mean, and one spread
    /// (root mean square modulus) for real and imaginary part, listed as a field lists its components.
    ///
    /// # Errors
    /// As [`of`](Self::of).
    pub fn of_complex(points: &Points, components: usize, values: &[Complex64]) -> Result<Scaling> {
        let flat: Vec<f64> = values.iter().flat_map(|z| [z.re, z.im]).collect();
        let real = Scaling::of(points, 2 * components, &flat)?;
        let rows = points.len() as f64;
        let rms: Vec<f64> = (0..components)
            .map(|k| {
                let column = values.iter().skip(k).step_by(components);
                nonzero((column.map(Complex64::norm_sqr).sum::<f64>() / rows).sqrt())
            })
            .collect();
        Ok(Scaling {
            mean: vec![0.0; 2 * components],
            spread: rms.iter().chain(&rms).copied().collect(),
            ..real
        })
    }

    /// The same half-width along every axis, the largest: lengths stay comparable between axes.
    pub fn isotropic(mut self) -> Scaling {
        let largest = self.half_width.iter().copied().fold(0.0, f64::max);
        self.half_width.iter_mut().for_each(|h| *h = largest);
        self
    }
}

fn nonzero(v: f64) -> f64 {
    if v > 0.0 { v } else { 1.0 }
}

fn extent(points: &Points) -> (Vec<f64>, Vec<f64>) {
    (0..points.dims())
        .map(|axis| {
            let ends = points
                .iter()
                .fold([f64::INFINITY, f64::NEG_INFINITY], |[l, u], x| {
                    [l.min(x[axis]), u.max(x[axis])]
                });
            (
                0.5 * (ends[0] + ends[1]),
                nonzero(0.5 * (ends[1] - ends[0])),
            )
        })
        .unzip()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scaled_values_have_mean_zero_and_spread_one() {
        let points = Points::new(2, vec![0.0, 5.0, 4.0, 5.0, 2.0, 5.0]).unwrap();
        let s = Scaling::of(&points, 1, &[1.0, 2.0, 6.0]).unwrap();
        assert_eq!(
            (s.centre.as_slice(), s.half_width.as_slice()),
            (&[2.0, 5.0][..], &[2.0, 1.0][..])
        );
        let scaled: Vec<f64> = [1.0, 2.0, 6.0]
            .iter()
            .map(|v| (v - s.mean[0]) / s.spread[0])
            .collect();
        assert!(scaled.iter().sum::<f64>().abs() < 1e-12);
        assert!((scaled.iter().map(|v| v * v).sum::<f64>() - 3.0).abs() < 1e-12);
        assert_eq!(s.isotropic().half_width, [2.0, 2.0]);
    }

    #[test]
    fn complex_parts_share_one_factor() {
        let points = Points::new(1, vec![0.0, 1.0]).unwrap();
        let v = [Complex64::new(3.0, 0.0), Complex64::new(0.0, 4.0)];
        let s = Scaling::of_complex(&points, 1, &v).unwrap();
        assert_eq!(s.spread, [12.5f64.sqrt(); 2]);
        let bad = Scaling::of(&points, 1, &[1.0, f64::NAN]);
        assert!(matches!(
            bad,
            Err(PinnError::NotFinite {
                count: 1,
                row: 1,
                ..
            })
        ));
    }
}
