//! metrics.json and the summary on the terminal.

use std::time::Instant;

use rustytorch::mre::mask::count;
use rustytorch::mre::metrics::{Quantity, RegionStatistics, Truth, region_statistics};
use rustytorch::mre::verdict::Verdict;
use rustytorch::mre::{MreError, WaveField};
use rustytorch::tensor::Device;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::args::{InvertArgs, Method};
use super::method::Inversion;
use super::reference::ReferenceComparison;
use crate::devices;
use crate::mre::truth;
use crate::table::{Table, number};

/// Everything that is reported.
pub struct Report<'a> {
    /// The flags.
    pub args: &'a InvertArgs,
    /// The field.
    pub wave: &'a WaveField,
    /// The result.
    pub inversion: &'a Inversion,
    /// A warning about the result.
    pub doubt: Option<String>,
    /// What the held-out error says.
    pub verdict: Verdict,
    /// The truth of a phantom.
    pub truth: Option<&'a Truth>,
    /// The comparison with a reference map.
    pub reference: Option<ReferenceComparison>,
    /// Where it ran.
    pub device: &'a Device,
    /// Time to read and check the input.
    pub load_seconds: f64,
    /// When the command started.
    pub started: Instant,
    /// The command line.
    pub command: String,
}

impl Report<'_> {
    /// The content of metrics.json.
    ///
    /// # Errors
    /// Those of the comparisons.
    pub fn json(&self) -> Result<Value, MreError> {
        let inversion = self.inversion;
        let losses: Map<String, Value> = inversion
            .losses
            .iter()
            .map(|(name, loss)| (name.clone(), json!(loss)))
            .collect();
        let truth = self.truth.map(|truth| {
            truth::compare_all(self.wave, &inversion.modulus, truth).map(|list| json!(list))
        });
        Ok(json!({
            "program": "rtx mre invert",
            "version": env!("CARGO_PKG_VERSION"),
            "command": self.command,
            "method": inversion.modulus.method,
            "device": self.device.name(),
            "precision": (self.args.method == Method::Pinn)
                .then(|| devices::precision_record(self.device, self.args.precision)),
            "seed": self.args.seed,
            "steps": inversion.steps,
            "seconds": {
                "load": self.load_seconds,
                "inversion": inversion.seconds,
                "total": self.started.elapsed().as_secs_f64(),
            },
            "settings": {"flags": self.args, "method": inversion.settings},
            "input": self.wave.provenance,
            "freq_hz": self.wave.freq,
            "spacing_m": self.wave.spacing,
            "losses": losses,
            "noise_over_signal": self.wave.noise,
            "heldout_relative_l2": inversion.heldout_error,
            "verdict": self.verdict,
            "regions": {
                "storage": self.regions(Quantity::Storage)?,
                "loss": self.regions(Quantity::Loss)?,
                "magnitude": self.regions(Quantity::Magnitude)?,
            },
            "voxel_size_sensitivity": self.sensitivity()?,
            "truth": truth.transpose()?,
            "reference": self.reference.as_ref().map(as_json),
            "warnings": self.wave.provenance.warnings.iter().chain(&self.doubt).collect::<Vec<_>>(),
        }))
    }

    fn regions(&self, quantity: Quantity) -> Result<Vec<RegionStatistics>, MreError> {
        let region = self.truth.map(|truth| &truth.region);
        region_statistics(&self.inversion.modulus, region, quantity)
    }

    /// What an error of the voxel size would do; only where the user vouches for that size.
    fn sensitivity(&self) -> Result<Option<Value>, MreError> {
        if self.wave.provenance.spacing_from != "option" {
            return Ok(None);
        }
        let medians = region_statistics(&self.inversion.modulus, None, Quantity::Magnitude)?;
        let scaled = |factor: f64| -> Vec<f64> {
            medians
                .iter()
                .map(|m| m.median_kpa * factor * factor)
                .collect()
        };
        Ok(Some(json!({
            "spacing_mm": self.wave.spacing.map(|h| h * 1e3),
            "law": "the modulus scales with the square of the voxel size",
            "median_magnitude_kpa": scaled(1.0),
            "median_magnitude_kpa_at_minus_10_percent": scaled(0.9),
            "median_magnitude_kpa_at_plus_10_percent": scaled(1.1),
        })))
    }

    /// The summary for the terminal.
    ///
    /// # Errors
    /// Those of the comparisons.
    pub fn text(&self) -> Result<String, MreError> {
        let inversion = self.inversion;
        let steps = inversion.steps.map(|n| format!(", {n} steps"));
        let mut parts = vec![format!(
            "{}: {} pixels, {:.1} s{}",
            inversion.modulus.method,
            count(&inversion.modulus.mask),
            inversion.seconds,
            steps.unwrap_or_default(),
        )];
        parts.push(self.medians()?);
        if self.wave.provenance.spacing_from == "option" {
            parts.push(
                "The modulus scales with the square of the voxel size, which the file does not carry: \
                 10 % more give 21 % more."
                    .into(),
            );
        }
        if let Some(truth) = self.truth {
            let comparisons = truth::compare_all(self.wave, &inversion.modulus, truth)?;
            parts.push(format!(
                "against the truth:\n{}",
                truth::table(&comparisons)
            ));
        }
        if let Some(reference) = &self.reference {
            parts.push(reference.text(&self.wave.freq));
        }
        parts.push(format!("verdict: {}", self.verdict.text));
        Ok(parts.join("\n\n"))
    }

    fn medians(&self) -> Result<String, MreError> {
        let modulus = &self.inversion.modulus;
        let of = |quantity| region_statistics(modulus, None, quantity);
        let (storage, loss) = (of(Quantity::Storage)?, of(Quantity::Loss)?);
        let magnitude = of(Quantity::Magnitude)?;
        let mut table = Table::new([
            "frequency",
            "G' kPa",
            "G'' kPa",
            "|G| kPa",
            "|G| quartiles",
            "noise % (bound)",
            "held-out error of u %",
        ]);
        let percent = |list: &[Option<f64>], f: usize| {
            number(list.get(f).copied().flatten().map(|v| 100.0 * v), 1)
        };
        for (f, freq) in self.wave.freq.iter().enumerate() {
            let (Some(s), Some(l), Some(m)) = (storage.get(f), loss.get(f), magnitude.get(f))
            else {
                continue;
            };
            table.row([
                format!("{freq} Hz"),
                number(Some(s.median_kpa), 3),
                number(Some(l.median_kpa), 3),
                number(Some(m.median_kpa), 3),
                format!("{:.3}..{:.3}", m.q1_kpa, m.q3_kpa),
                percent(&self.wave.noise, f),
                percent(&self.inversion.heldout_error, f),
            ]);
        }
        Ok(format!("medians over the mask:\n{}", table.render()))
    }
}

fn as_json(value: &impl Serialize) -> Value {
    serde_json::to_value(value).unwrap_or(Value::Null)
}
