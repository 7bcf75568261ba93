//! Smoothing and second derivatives on a masked grid.

use std::ops::{Add, Mul};

use ndarray::{Array3, ArrayView3, Axis};
use num_complex::Complex64;

/// Half-width of the sampled Gaussian in standard deviations.
const TRUNCATE: f64 = 4.0;

/// Gaussian average over the pixels of the mask (normalised convolution): pixels outside carry
/// no weight, instead of pulling the average to zero. Outside the mask the result is zero.
///
/// `sigma` is in pixels along every axis longer than 1; zero returns the field as it is.
/// Source: H. Knutsson and C.-F. Westin, CVPR 1993.
pub(super) fn smooth<T>(field: ArrayView3<'_, T>, mask: &Array3<bool>, sigma: f64) -> Array3<T>
where
    T: Copy + Default + Add<Output = T> + Mul<f64, Output = T>,
{
    let mut masked = field.to_owned();
    masked.zip_mut_with(mask, |v, &inside| {
        if !inside {
            *v = T::default();
        }
    });
    if sigma <= 0.0 {
        return masked;
    }
    let mut weight = mask.mapv(f64::from);
    let kernel = gaussian(sigma);
    for axis in 0..3 {
        if field.len_of(Axis(axis)) > 1 {
            masked = convolve(&masked, &kernel, Axis(axis));
            weight = convolve(&weight, &kernel, Axis(axis));
        }
    }
    ndarray::Zip::from(&mut masked)
        .and(&weight)
        .and(mask)
        .for_each(|v, &w, &inside| {
            *v = if inside { *v * (1.0 / w) } else { T::default() };
        });
    masked
}

/// Half of a Gaussian kernel, from the centre out; the whole sums to one.
fn gaussian(sigma: f64) -> Vec<f64> {
    let radius = (TRUNCATE * sigma + 0.5) as usize;
    let half: Vec<f64> = (0..=radius)
        .map(|r| (-0.5 * (r as f64 / sigma).powi(2)).exp())
        .collect();
    let total = 2.0 * half.iter().sum::<f64>() - half[0];
    half.into_iter().map(|w| w / total).collect()
}

/// Symmetric convolution along one axis, zero beyond the ends.
fn convolve<T>(field: &Array3<T>, half: &[f64], axis: Axis) -> Array3<T>
where
    T: Copy + Default + Add<Output = T> + Mul<f64, Output = T>,
{
    let mut out = Array3::from_elem(field.dim(), T::default());
    for (source, mut target) in field.lanes(axis).into_iter().zip(out.lanes_mut(axis)) {
        for (i, value) in target.iter_mut().enumerate() {
            let mut sum = source[i] * half[0];
            for (r, &w) in half.iter().enumerate().skip(1) {
                if let Some(&v) = i.checked_sub(r).and_then(|k| source.get(k)) {
                    sum = sum + v * w;
                }
                if let Some(&v) = source.get(i + r) {
                    sum = sum + v * w;
                }
            }
            *value = sum;
        }
    }
    out
}

/// The Laplacian by differences over `reach` pixels, (u[i+r] - 2 u[i] + u[i-r]) / (r h)^2, summed
/// over the axes longer than 1; `None` where a pixel between or at the ends is outside the mask.
pub(super) fn laplacian(
    field: &Array3<Complex64>,
    mask: &Array3<bool>,
    spacing: [f64; 3],
    reach: usize,
) -> Array3<Option<Complex64>> {
    let dim = [field.dim().0, field.dim().1, field.dim().2];
    Array3::from_shape_fn(field.dim(), |(x, y, z)| {
        let centre = [x, y, z];
        if !mask[centre] {
            return None;
        }
        let mut sum = Complex64::ZERO;
        for axis in (0..3).filter(|&a| dim[a] > 1) {
            let mut ends = Complex64::ZERO;
            for step in 1..=reach {
                let (mut before, mut after) = (centre, centre);
                before[axis] = centre[axis].checked_sub(step)?;
                after[axis] += step;
                if after[axis] >= dim[axis] || !mask[before] || !mask[after] {
                    return None;
                }
                ends = field[before] + field[after];
            }
            let length = reach as f64 * spacing[axis];
            sum += (ends - field[centre] * 2.0) / (length * length);
        }
        Some(sum)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn smoothing_keeps_constants_up_to_the_rim_of_the_mask() {
        let mask = Array3::from_shape_fn((12, 9, 1), |(x, y, _)| x + y > 4 && x < 10);
        let field = mask.mapv(|inside| if inside { 3.0 } else { 1e6 });
        let out = smooth(field.view(), &mask, 1.7);
        for (value, &inside) in out.iter().zip(&mask) {
            assert!((value - if inside { 3.0 } else { 0.0 }).abs() < 1e-12);
        }
    }

    #[test]
    fn smoothing_damps_a_wave_as_a_gaussian_does() {
        let (sigma, k) = (2.0, 0.4);
        let mask = Array3::from_elem((101, 1, 1), true);
        let field = Array3::from_shape_fn((101, 1, 1), |(x, ..)| Complex64::cis(k * x as f64));
        let out = smooth(field.view(), &mask, sigma);
        let ratio = (out[[50, 0, 0]] / field[[50, 0, 0]]).re;
        // The kernel is cut at four standard deviations.
        assert!(
            (ratio - (-0.5 * (sigma * k).powi(2)).exp()).abs() < 2e-4,
            "{ratio}"
        );
    }

    #[test]
    fn laplacian_is_exact_for_quadratics_and_respects_the_mask() {
        let h = [0.5, 2.0, 1.0];
        let field = Array3::from_shape_fn((7, 6, 1), |(x, y, _)| {
            let (x, y) = (x as f64 * h[0], y as f64 * h[1]);
            Complex64::new(x * x + 3.0 * x * y, -2.0 * y * y)
        });
        let mut mask = Array3::from_elem((7, 6, 1), true);
        for reach in [1, 2] {
            let out = laplacian(&field, &mask, h, reach);
            assert!((out[[3, 2, 0]].unwrap() - Complex64::new(2.0, -4.0)).norm() < 1e-12);
            assert_eq!(
                out.iter().flatten().count(),
                (7 - 2 * reach) * (6 - 2 * reach)
            );
        }
        mask[[3, 3, 0]] = false;
        assert!(laplacian(&field, &mask, h, 1)[[3, 2, 0]].is_none());
    }
}
