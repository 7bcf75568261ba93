//! Whether Fourier features are fast enough for the waves that a field must represent.

use crate::Result;
use crate::model::{Model, Rules};
use crate::network::Frequencies;
use std::collections::BTreeMap;
use std::f64::consts::PI;

/// Frequency of a wave in cycles per unit of a scaled coordinate, where `extent` (the full length of the
/// axis) is two units: the least standard deviation that Fourier features need to represent it.
/// `wavenumber` is in radians per unit of length.
///
/// ```
/// // Ten wavelengths along an axis are five per unit of a coordinate from -1 to 1.
/// let wavenumber = 10.0 * 2.0 * std::f64::consts::PI / 0.3;
/// assert!((rtx_pinn::required_bandwidth(wavenumber, 0.3) - 5.0).abs() < 1e-12);
/// ```
pub fn required_bandwidth(wavenumber: f64, extent: f64) -> f64 {
    wavenumber.abs() * extent.abs() / (4.0 * PI)
}

/// Cycles per unit of input that a plain tanh network learns in a usual training.
const PLAIN: f64 = 1.0;

/// One sentence for every field whose network is too slow along an axis of space.
pub(crate) fn warnings(
    model: &Model,
    rules: &Rules,
    wavenumbers: &BTreeMap<String, f64>,
) -> Result<Vec<String>> {
    let mut all = Vec::new();
    for (name, &k) in wavenumbers {
        let (Some(net), Some(rule)) = (model.networks.get(name), rules.fields.get(name)) else {
            continue;
        };
        let axes: Vec<usize> = match &rule.inputs {
            Some(columns) => columns.clone(),
            None => (0..rules.centre.len()).collect(),
        };
        let there = match net.frequencies() {
            Frequencies::Unknown => continue,
            Frequencies::Plain => vec![PLAIN; axes.len()],
            Frequencies::Features(t) => {
                let host = t.to_host()?;
                let features = host.data.len() / axes.len().max(1);
                let rms = |row: &[f64]| {
                    (row.iter().map(|b| b * b).sum::<f64>() / row.len().max(1) as f64).sqrt()
                };
                host.data.chunks(features.max(1)).map(rms).collect()
            }
        };
        for (&axis, &found) in axes.iter().zip(&there).filter(|(a, _)| **a < rules.space) {
            let needed = required_bandwidth(k, 2.0 * rules.half_width[axis]);
            if found < needed {
                all.push(format!(
                    "field '{name}' must represent {needed:.1} cycles per unit of scaled axis {axis}, its \
                     network starts at about {found:.1}; give it Fourier features with a standard \
                     deviation of at least {needed:.1}"
                ));
            }
        }
    }
    Ok(all)
}
