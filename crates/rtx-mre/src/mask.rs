//! Masks of tissue: from the amplitude, their largest part, holes filled, eroded.

use ndarray::{Array3, ArrayView3};

/// Rule of the automatic mask: pixels whose amplitude exceeds a share of a high percentile.
///
/// Fits data that are small or zero outside the body, as processed displacement usually is. Raw
/// phase outside the body is random and *large*; such data need a mask from the magnitude image.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AutoMask {
    /// Share of the reference amplitude below which a pixel is background.
    pub threshold: f64,
    /// Percentile of the non-zero amplitudes that serves as reference, 0 to 100.
    pub percentile: f64,
}

impl Default for AutoMask {
    fn default() -> Self {
        Self {
            threshold: 0.05,
            percentile: 90.0,
        }
    }
}

impl AutoMask {
    /// The largest connected part above the threshold, holes filled slice by slice.
    ///
    /// `amplitude` is `[x, y, z]`, not negative; NaN counts as background.
    pub fn apply(&self, amplitude: ArrayView3<'_, f64>) -> Array3<bool> {
        let mut positive: Vec<f64> = amplitude
            .iter()
            .copied()
            .filter(|a| a.is_finite() && *a > 0.0)
            .collect();
        positive.sort_by(f64::total_cmp);
        let rank = (self.percentile / 100.0 * positive.len().saturating_sub(1) as f64) as usize;
        let Some(reference) = positive.get(rank) else {
            return Array3::from_elem(amplitude.dim(), false);
        };
        let cut = self.threshold * reference;
        let mask = amplitude.mapv(|a| a > cut);
        fill_holes(&largest_component(&mask))
    }
}

/// Indices of the neighbours of a voxel that share a face with it.
pub(crate) fn face_neighbours(at: [usize; 3], dim: [usize; 3]) -> impl Iterator<Item = [usize; 3]> {
    (0..6).filter_map(move |side| {
        let (axis, up) = (side / 2, side % 2 == 1);
        let mut next = at;
        if up {
            next[axis] += 1;
            (next[axis] < dim[axis]).then_some(next)
        } else {
            next[axis] = next[axis].checked_sub(1)?;
            Some(next)
        }
    })
}

/// Visits the part of `mask` connected to `seed`, marking it with `label`; returns its size.
fn flood(mask: &Array3<bool>, labels: &mut Array3<u32>, seed: [usize; 3], label: u32) -> usize {
    let dim = [mask.dim().0, mask.dim().1, mask.dim().2];
    let mut stack = vec![seed];
    let mut size = 0;
    labels[seed] = label;
    while let Some(at) = stack.pop() {
        size += 1;
        for next in face_neighbours(at, dim) {
            if mask[next] && labels[next] == 0 {
                labels[next] = label;
                stack.push(next);
            }
        }
    }
    size
}

/// Keeps the largest part of a mask that is connected through faces.
pub fn largest_component(mask: &Array3<bool>) -> Array3<bool> {
    let mut labels = Array3::zeros(mask.dim());
    let (mut best, mut best_size, mut label) = (0, 0, 0);
    for ((x, y, z), &inside) in mask.indexed_iter() {
        if inside && labels[[x, y, z]] == 0 {
            label += 1;
            let size = flood(mask, &mut labels, [x, y, z], label);
            if size > best_size {
                (best, best_size) = (label, size);
            }
        }
    }
    labels.mapv(|l| l != 0 && l == best)
}

/// Fills background that, within its slice, is enclosed by the mask.
pub fn fill_holes(mask: &Array3<bool>) -> Array3<bool> {
    let (nx, ny, nz) = mask.dim();
    let mut out = mask.clone();
    for z in 0..nz {
        let outside = Array3::from_shape_fn((nx, ny, 1), |(x, y, _)| !mask[[x, y, z]]);
        let mut labels = Array3::zeros((nx, ny, 1));
        for x in 0..nx {
            for y in 0..ny {
                let at_border = x == 0 || y == 0 || x + 1 == nx || y + 1 == ny;
                if at_border && outside[[x, y, 0]] && labels[[x, y, 0]] == 0 {
                    flood(&outside, &mut labels, [x, y, 0], 1);
                }
            }
        }
        for x in 0..nx {
            for y in 0..ny {
                out[[x, y, z]] = labels[[x, y, 0]] == 0;
            }
        }
    }
    out
}

/// Removes the outer `layers` of pixels, slice by slice; the border of the image counts as edge.
pub fn erode(mask: &Array3<bool>, layers: usize) -> Array3<bool> {
    let (nx, ny, _) = mask.dim();
    let mut current = mask.clone();
    for _ in 0..layers {
        if count(&current) == 0 {
            break;
        }
        let previous = current.clone();
        for ((x, y, z), inside) in current.indexed_iter_mut() {
            let at_border = x == 0 || y == 0 || x + 1 == nx || y + 1 == ny;
            *inside = *inside
                && !at_border
                && previous[[x - 1, y, z]]
                && previous[[x + 1, y, z]]
                && previous[[x, y - 1, z]]
                && previous[[x, y + 1, z]];
        }
    }
    current
}

/// Second harmonic over its median beyond which a pixel's motion is not the vibration.
const UNRELIABLE: f64 = 6.0;
/// Share of the median amplitude that it must have as well: data without noise have a second harmonic of rounding errors.
const NOTICEABLE: f64 = 0.05;

/// Takes pixels out of `mask` whose second harmonic (`[freq, component, x, y, z]`: noise, pulsation, unwrapping
/// errors) exceeds six times its median over the mask and 5 % of the median of the `first` at any frequency. Returns how many.
pub fn drop_unreliable(
    mask: &mut Array3<bool>,
    first: &ndarray::Array5<num_complex::Complex64>,
    second: &ndarray::Array5<num_complex::Complex64>,
) -> usize {
    let before = count(mask);
    let inside: Vec<_> = mask
        .indexed_iter()
        .filter(|(_, m)| **m)
        .map(|(at, _)| at)
        .collect();
    let (nf, nc, ..) = second.dim();
    for f in 0..nf {
        for c in 0..nc {
            let median_of = |field: &ndarray::Array5<num_complex::Complex64>| {
                let sizes = inside
                    .iter()
                    .map(|&(x, y, z)| field[[f, c, x, y, z]].norm());
                let mut sizes: Vec<f64> = sizes.filter(|v| v.is_finite()).collect();
                sizes.sort_by(f64::total_cmp);
                sizes.get(sizes.len() / 2).copied().unwrap_or(0.0)
            };
            let limit = (UNRELIABLE * median_of(second)).max(NOTICEABLE * median_of(first));
            for &(x, y, z) in &inside {
                // Values that are not finite stay, to be refused with their place.
                let size = second[[f, c, x, y, z]].norm();
                if size.is_finite() && size > limit {
                    mask[[x, y, z]] = false;
                }
            }
        }
    }
    before - count(mask)
}

/// Number of pixels inside.
pub fn count(mask: &Array3<bool>) -> usize {
    mask.iter().filter(|&&inside| inside).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A ring with a dot inside it, and a separate dot.
    fn picture() -> Array3<bool> {
        let rows = [
            "........#",
            ".#####...",
            ".#...#...",
            ".#.#.#...",
            ".#...#...",
            ".#####...",
        ];
        Array3::from_shape_fn((rows.len(), 9, 1), |(x, y, _)| {
            rows[x].as_bytes()[y] == b'#'
        })
    }

    #[test]
    fn keeps_the_largest_part_and_fills_it() {
        let ring = largest_component(&picture());
        assert_eq!(count(&ring), 16);
        let disc = fill_holes(&ring);
        assert_eq!(count(&disc), 25);
        assert_eq!(count(&erode(&disc, 1)), 9);
        assert_eq!(count(&erode(&disc, 3)), 0);
    }

    #[test]
    fn erosion_counts_the_image_border_as_edge() {
        let full = Array3::from_elem((5, 6, 2), true);
        assert_eq!(count(&erode(&full, 1)), 3 * 4 * 2);
        assert_eq!(count(&erode(&full, usize::MAX)), 0);
    }

    #[test]
    fn automatic_mask_ignores_nan_and_small_values() {
        let amplitude = picture().mapv(|inside| if inside { 1.0 } else { 0.01 });
        let mut amplitude = amplitude;
        amplitude[[0, 0, 0]] = f64::NAN;
        let mask = AutoMask {
            threshold: 0.05,
            percentile: 99.0,
        }
        .apply(amplitude.view());
        assert_eq!(count(&mask), 25);
        let empty = AutoMask::default().apply(Array3::zeros((2, 2, 1)).view());
        assert_eq!(count(&empty), 0);
    }
}
