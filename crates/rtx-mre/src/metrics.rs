//! Figures of merit of modulus maps: statistics per region, and comparison with a truth.
//!
//! Published work averages in different ways; here everything is a median over the pixels of a
//! region, all frequencies together, because direct inversions have tails that swamp any mean.

use std::path::Path;

use ndarray::{Array3, Array4, ArrayD, Axis};
use num_complex::Complex64;
use serde::Serialize;

use crate::error::{MreError, Result};
use crate::inversion::{Modulus, median, quantile};
use crate::io::ArrayFile;

/// The real number taken from a complex modulus.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quantity {
    /// G', the storage modulus.
    Storage,
    /// G'', the loss modulus.
    Loss,
    /// |G|.
    Magnitude,
}

impl Quantity {
    /// The value for one modulus.
    pub fn of(self, g: Complex64) -> f64 {
        match self {
            Self::Storage => g.re,
            Self::Loss => g.im,
            Self::Magnitude => g.norm(),
        }
    }
}

/// The known modulus and regions of a phantom.
#[derive(Debug, Clone)]
pub struct Truth {
    /// G in Pa, `[freq, x, y, z]`.
    pub g: Array4<Complex64>,
    /// Region labels `[x, y, z]`; 1 is the background.
    pub region: Array3<i64>,
}

/// Label of the background in [`Truth::region`].
pub const BACKGROUND: i64 = 1;

impl Truth {
    /// Reads arrays `G` (`[freq, x, y]` or with z) and `region` (`[x, y]` or with z) of the
    /// simulator's `.npz`; `None` when the file carries no `G` or no `region`.
    ///
    /// # Errors
    /// Those of [`ArrayFile`]; [`MreError::ShapeMismatch`] when the two do not fit each other.
    pub fn load(path: &Path) -> Result<Option<Self>> {
        let file = ArrayFile::open(path)?;
        if !(file.contains("G")? && file.contains("region")?) {
            return Ok(None);
        }
        let (g, region) = (file.read(Some("G"))?.data, file.read(Some("region"))?.data);
        let mismatch = MreError::shape("truth G, without its freq axis", region.shape(), g.shape());
        let (Some(g), Some(region)) = (as_volume::<_, 4>(g), as_volume::<_, 3>(region)) else {
            return Err(mismatch);
        };
        let (Ok(g), Ok(region)) = (g.into_dimensionality(), region.into_dimensionality()) else {
            return Err(mismatch);
        };
        let truth = Self {
            g,
            region: region.mapv(|v: Complex64| v.re as i64),
        };
        if truth.g.shape()[1..] != *truth.region.shape() {
            return Err(mismatch);
        }
        Ok(Some(truth))
    }
}

/// Adds the slice axis that a 2-D array lacks; `None` for another rank.
fn as_volume<T, const RANK: usize>(array: ArrayD<T>) -> Option<ArrayD<T>> {
    match array.ndim() {
        n if n == RANK => Some(array),
        n if n + 1 == RANK => Some(array.insert_axis(Axis(n))),
        _ => None,
    }
}

/// Median and quartiles of a map in one region at one frequency, kPa.
#[derive(Debug, Clone, Serialize)]
pub struct RegionStatistics {
    /// The region's label.
    pub region: i64,
    /// Vibration frequency, Hz.
    pub freq_hz: f64,
    /// Pixels with a value.
    pub pixels: usize,
    /// Median, kPa.
    pub median_kpa: f64,
    /// Lower quartile, kPa.
    pub q1_kpa: f64,
    /// Upper quartile, kPa.
    pub q3_kpa: f64,
}

/// Median and interquartile range per region and frequency; the whole mask is region 0 when no
/// regions are given.
///
/// # Errors
/// [`MreError::ShapeMismatch`] when the regions do not fit the maps.
pub fn region_statistics(
    modulus: &Modulus,
    region: Option<&Array3<i64>>,
    quantity: Quantity,
) -> Result<Vec<RegionStatistics>> {
    let whole;
    let region = match region {
        Some(region) => region,
        None => {
            whole = Array3::zeros(modulus.mask.dim());
            &whole
        }
    };
    let labels = labels_in(region, &modulus.mask)?;
    let mut out = Vec::new();
    for &label in &labels {
        for (f, &freq_hz) in modulus.freq.iter().enumerate() {
            let mut values: Vec<f64> = pixels(modulus, region, label)
                .map(|at| quantity.of(modulus.g[[f, at.0, at.1, at.2]]) / 1e3)
                .collect();
            out.push(RegionStatistics {
                region: label,
                freq_hz,
                pixels: values.len(),
                median_kpa: quantile(&mut values, 0.5),
                q1_kpa: quantile(&mut values, 0.25),
                q3_kpa: quantile(&mut values, 0.75),
            });
        }
    }
    Ok(out)
}

/// One region of a [`Comparison`].
#[derive(Debug, Clone, Serialize)]
pub struct RegionComparison {
    /// The region's label.
    pub region: i64,
    /// Pixels with a value.
    pub pixels: usize,
    /// Relative median absolute deviation of the complex modulus, median of |G - T| / |T|, %.
    pub rel_mad_percent: f64,
    /// The same of the storage modulus, median of |G' - T'| / |T'|, %.
    pub rel_mad_storage_percent: f64,
    /// Contrast transfer efficiency of |G|, (m_region - m_background) over the same of the truth,
    /// m a median, %; `None` for the background and for a region without contrast.
    pub cte_percent: Option<f64>,
    /// Median |G|, kPa.
    pub median_kpa: f64,
    /// Median |G| of the truth, kPa.
    pub truth_kpa: f64,
}

/// A map against the truth, over the pixels where it has a value, all frequencies together.
#[derive(Debug, Clone, Serialize)]
pub struct Comparison {
    /// The method.
    pub method: String,
    /// Pearson correlation of |G|; `None` for a constant map.
    pub pearson_r: Option<f64>,
    /// Pearson correlation of G'; `None` for a constant map.
    pub pearson_r_storage: Option<f64>,
    /// Root mean square of |G - T|, kPa.
    pub rmse_kpa: f64,
    /// The regions, in the order of their labels.
    pub regions: Vec<RegionComparison>,
}

/// Compares maps with the truth.
///
/// # Errors
/// [`MreError::ShapeMismatch`] when they are on different grids.
pub fn compare(modulus: &Modulus, truth: &Truth) -> Result<Comparison> {
    if modulus.g.dim() != truth.g.dim() {
        return Err(MreError::shape(
            "truth of a modulus",
            modulus.g.shape(),
            truth.g.shape(),
        ));
    }
    let labels = labels_in(&truth.region, &modulus.mask)?;
    let pairs = |label: i64| -> Vec<(Complex64, Complex64)> {
        let freqs = 0..modulus.freq.len();
        freqs
            .flat_map(|f| {
                pixels(modulus, &truth.region, label)
                    .map(move |(x, y, z)| (modulus.g[[f, x, y, z]], truth.g[[f, x, y, z]]))
            })
            .collect()
    };
    let background = pairs(BACKGROUND);
    let medians = |pairs: &[(Complex64, Complex64)]| {
        (
            median(pairs.iter().map(|p| p.0.norm())),
            median(pairs.iter().map(|p| p.1.norm())),
        )
    };
    let (background_kpa, background_truth) = medians(&background);

    let mut regions = Vec::new();
    let mut all = Vec::new();
    for label in labels {
        let pairs = pairs(label);
        let (found, known) = medians(&pairs);
        let contrast = known - background_truth;
        let has_contrast = label != BACKGROUND && contrast.abs() > 1e-6 * known;
        regions.push(RegionComparison {
            region: label,
            pixels: pairs.len() / modulus.freq.len().max(1),
            rel_mad_percent: 100.0 * median(pairs.iter().map(|(g, t)| (g - t).norm() / t.norm())),
            rel_mad_storage_percent: 100.0
                * median(pairs.iter().map(|(g, t)| ((g.re - t.re) / t.re).abs())),
            cte_percent: has_contrast.then(|| 100.0 * (found - background_kpa) / contrast),
            median_kpa: found / 1e3,
            truth_kpa: known / 1e3,
        });
        all.extend(pairs);
    }
    let square = all.iter().map(|(g, t)| (g - t).norm_sqr()).sum::<f64>();
    let correlation =
        |quantity: Quantity| pearson(all.iter().map(|(g, t)| (quantity.of(*g), quantity.of(*t))));
    Ok(Comparison {
        method: modulus.method.clone(),
        pearson_r: correlation(Quantity::Magnitude),
        pearson_r_storage: correlation(Quantity::Storage),
        rmse_kpa: (square / all.len() as f64).sqrt() / 1e3,
        regions,
    })
}

/// Pearson correlation; `None` without pairs or when one side is constant.
pub fn pearson(pairs: impl Iterator<Item = (f64, f64)> + Clone) -> Option<f64> {
    let (mut n, mut mean) = (0.0, (0.0, 0.0));
    for (a, b) in pairs.clone() {
        n += 1.0;
        mean = (mean.0 + a, mean.1 + b);
    }
    mean = (mean.0 / n, mean.1 / n);
    let (mut aa, mut bb, mut ab) = (0.0, 0.0, 0.0);
    for (a, b) in pairs {
        let (a, b) = (a - mean.0, b - mean.1);
        (aa, bb, ab) = (aa + a * a, bb + b * b, ab + a * b);
    }
    // Rounding leaves a constant with a spread of about 1e-16 of its level.
    let varies = |square: f64, mean: f64| square / n > 1e-24 * mean * mean;
    (n > 1.0 && varies(aa, mean.0) && varies(bb, mean.1)).then(|| ab / (aa * bb).sqrt())
}

/// Relative L2 distance |a - b| / |b| over paired values; NaN when `b` is zero.
pub fn relative_l2(pairs: impl Iterator<Item = (Complex64, Complex64)>) -> f64 {
    let sums = pairs.fold((0.0, 0.0), |(difference, size), (a, b)| {
        (difference + (a - b).norm_sqr(), size + b.norm_sqr())
    });
    (sums.0 / sums.1).sqrt()
}

fn labels_in(region: &Array3<i64>, mask: &Array3<bool>) -> Result<Vec<i64>> {
    if region.dim() != mask.dim() {
        return Err(MreError::shape(
            "regions of a map",
            mask.shape(),
            region.shape(),
        ));
    }
    let inside = region.iter().zip(mask).filter(|&(_, &inside)| inside);
    let labels: std::collections::BTreeSet<i64> = inside.map(|(label, _)| *label).collect();
    Ok(labels.into_iter().collect())
}

fn pixels<'a>(
    modulus: &'a Modulus,
    region: &'a Array3<i64>,
    label: i64,
) -> impl Iterator<Item = (usize, usize, usize)> + 'a {
    modulus
        .mask
        .indexed_iter()
        .filter(move |&(at, &inside)| inside && region[at] == label)
        .map(|(at, _)| at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::array;

    fn two_regions() -> (Modulus, Truth) {
        let re = Complex64::from;
        let region = array![[[1], [1]], [[1], [2]], [[1], [2]]];
        let truth = region.mapv(|r| re(if r == 1 { 3000.0 } else { 10_000.0 }));
        let mut g = truth.clone().insert_axis(Axis(0));
        g[[0, 1, 1, 0]] = re(6500.0);
        g[[0, 2, 1, 0]] = re(6500.0);
        g[[0, 0, 0, 0]] = Complex64::new(3000.0, 300.0);
        let modulus = Modulus {
            g,
            mask: Array3::from_elem((3, 2, 1), true),
            freq: vec![50.0],
            spacing: [1e-3; 3],
            method: "by hand".into(),
        };
        (
            modulus,
            Truth {
                g: truth.insert_axis(Axis(0)),
                region,
            },
        )
    }

    #[test]
    fn figures_of_merit_by_hand() {
        let (modulus, truth) = two_regions();
        let out = compare(&modulus, &truth).unwrap();
        let [background, disc] = &out.regions[..] else {
            panic!("{out:?}")
        };
        assert_eq!((background.pixels, disc.pixels), (4, 2));
        assert_eq!(background.rel_mad_percent, 0.0);
        assert!((disc.rel_mad_percent - 35.0).abs() < 1e-12);
        assert!((disc.cte_percent.unwrap() - 50.0).abs() < 1e-12);
        assert_eq!(background.cte_percent, None);
        assert!(out.pearson_r.unwrap() > 0.99);
        let rmse = ((2.0 * 3.5_f64.powi(2) + 0.3_f64.powi(2)) / 6.0).sqrt();
        assert!((out.rmse_kpa - rmse).abs() < 1e-12);

        let stats = region_statistics(&modulus, Some(&truth.region), Quantity::Loss).unwrap();
        assert_eq!(stats.len(), 2);
        assert_eq!(stats[0].median_kpa, 0.0);
        assert!((stats[0].q3_kpa - 0.075).abs() < 1e-12);
        let stats = region_statistics(&modulus, None, Quantity::Storage).unwrap();
        assert_eq!((stats[0].region, stats[0].pixels), (0, 6));
    }

    #[test]
    fn a_constant_map_has_no_correlation() {
        let (mut modulus, truth) = two_regions();
        modulus.g.fill(Complex64::new(0.1, 0.2));
        let out = compare(&modulus, &truth).unwrap();
        assert_eq!(out.pearson_r, None);
        assert_eq!(out.regions[1].cte_percent, Some(0.0));
    }

    #[test]
    fn other_grids_are_refused() {
        let (modulus, mut truth) = two_regions();
        truth.g = Array4::zeros((1, 2, 2, 1));
        assert!(compare(&modulus, &truth).is_err());
        assert!(
            region_statistics(&modulus, Some(&Array3::zeros((2, 2, 1))), Quantity::Loss).is_err()
        );
    }
}
