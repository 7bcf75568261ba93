//! Comparison with the truth of a phantom: numbers and table.

use rustytorch::mre::inversion::{AhiOptions, ahi};
use rustytorch::mre::metrics::{BACKGROUND, Comparison, Truth, compare};
use rustytorch::mre::{Modulus, MreError, WaveField};

use crate::table::{Table, number};

/// The map that a method must beat: the median storage modulus of the truth's background everywhere.
pub fn constant_map(wave: &WaveField, truth: &Truth) -> Result<Modulus, MreError> {
    let background = truth.g.axis_iter(ndarray::Axis(0)).flat_map(|map| {
        let inside = map.into_owned().into_iter().zip(truth.region.clone());
        inside.filter(|(_, region)| *region == BACKGROUND)
    });
    let mut storage: Vec<f64> = background.map(|(g, _)| g.re).collect();
    storage.sort_by(f64::total_cmp);
    let median = storage.get(storage.len() / 2).copied().unwrap_or(f64::NAN);
    Modulus::constant(wave, median.into())
}

/// The map, AHI (unless the map is one) and the constant map, each against the truth.
pub fn compare_all(
    wave: &WaveField,
    modulus: &Modulus,
    truth: &Truth,
) -> Result<Vec<Comparison>, MreError> {
    let mut out = vec![compare(modulus, truth)?];
    if !modulus.method.starts_with("AHI") {
        out.push(compare(&ahi(wave, AhiOptions::default())?, truth)?);
    }
    out.push(compare(&constant_map(wave, truth)?, truth)?);
    Ok(out)
}

/// One line per method: correlation, error, then relative MAD and contrast transfer per region.
pub fn table(comparisons: &[Comparison]) -> String {
    let regions: Vec<i64> = comparisons
        .first()
        .map(|c| c.regions.iter().map(|r| r.region).collect())
        .unwrap_or_default();
    let mut headings = vec!["method".to_string(), "R".into(), "RMSE kPa".into()];
    let name = |region: &i64| match *region {
        BACKGROUND => "bg".to_string(),
        other => other.to_string(),
    };
    headings.extend(regions.iter().map(|r| format!("MAD% {}", name(r))));
    let contrasted = |r: &&i64| **r != BACKGROUND;
    let targets: Vec<i64> = regions.iter().filter(contrasted).copied().collect();
    headings.extend(targets.iter().map(|r| format!("CTE% {r}")));
    let mut table = Table::new(headings);
    for c in comparisons {
        let of = |label: i64| c.regions.iter().find(|r| r.region == label);
        let mut row = vec![
            c.method.clone(),
            number(c.pearson_r, 3),
            number(Some(c.rmse_kpa), 2),
        ];
        row.extend(
            regions
                .iter()
                .map(|&r| number(of(r).map(|r| r.rel_mad_percent), 1)),
        );
        row.extend(
            targets
                .iter()
                .map(|&r| number(of(r).and_then(|r| r.cte_percent), 0)),
        );
        table.row(row);
    }
    table.render()
}
