//! Which training a checkpoint belongs to.
//!
//! A checkpoint holds weights, and those of other data or settings load without complaint wherever the
//! networks have the same sizes. Going on from them would mix two trainings, and pixels that the first one
//! saw would count as held out by the second. So a record of data and settings lies beside the checkpoint.

use std::path::{Path, PathBuf};

use rtx_tensor::Precision;
use rtx_tensor::io::{SystemError, write_atomic};
use serde_json::{Map, Value, json};
use std::io::Write;

use super::options::{PinnOptions, Recipe};
use crate::error::{MreError, Result};
use crate::wave::WaveField;

/// Before the names of settings that follow from others, unless the calling code sets them.
const RECIPE: &str = "recipe: ";

/// Data and settings of a training, by name; the number of steps is left to each run.
pub(super) struct Identity(Map<String, Value>);

impl Identity {
    pub fn of(wave: &WaveField, options: &PinnOptions, recipe: &Recipe) -> Self {
        let (nf, nc, nx, ny, nz) = wave.dim();
        let mut entries = json!({
            "field [freq, component, x, y, z]": [nf, nc, nx, ny, nz],
            "fingerprint of the field": format!("{:016x}", fingerprint_of_field(wave)),
            "fingerprint of the mask": format!("{:016x}", fingerprint(wave.mask.iter().map(|&m| u64::from(m)))),
            "frequencies (Hz)": wave.freq,
            "voxel size (m)": wave.spacing,
            "equation": options.equation,
            "rheology": options.rheology,
            "seed": options.seed,
            "holdout": options.holdout,
            "holdout block": options.holdout_block,
        });
        let settings = serde_json::to_value(recipe).unwrap_or(Value::Null);
        if let (Value::Object(entries), Value::Object(settings)) = (&mut entries, settings) {
            let counted = settings.into_iter().filter(|(name, _)| name != "steps");
            entries.extend(counted.map(|(name, value)| (format!("{RECIPE}{name}"), value)));
        }
        // Absent by default, so that records of older versions still fit.
        if let Value::Object(entries) = &mut entries
            && options.precision != Precision::F32
        {
            entries.insert("precision".into(), json!(options.precision.name()));
        }
        match entries {
            Value::Object(entries) => Self(entries),
            _ => Self(Map::new()),
        }
    }

    /// The record that belongs to a checkpoint.
    fn path(checkpoint: &Path) -> PathBuf {
        checkpoint.with_extension("json")
    }

    /// Takes away the record of an earlier training, whose checkpoint is about to be replaced.
    ///
    /// # Errors
    /// The system's refusal.
    pub fn forget(checkpoint: &Path) -> Result<()> {
        let path = Self::path(checkpoint);
        match std::fs::remove_file(&path) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
                Err(MreError::io("replace", &path, e))
            }
            _ => Ok(()),
        }
    }

    /// Writes the record, once the checkpoint is this training's.
    ///
    /// # Errors
    /// The system's refusal.
    pub fn record(&self, checkpoint: &Path) -> Result<()> {
        let path = Self::path(checkpoint);
        write_atomic(&path, |out| {
            let written = writeln!(out, "{:#}", Value::Object(self.0.clone()));
            Ok(written.map_err(|e| SystemError::write(&path, e))?)
        })
    }

    /// Refuses a checkpoint of other data or settings.
    ///
    /// # Errors
    /// [`MreError::OtherTraining`] with what differs, also where the record is missing or damaged.
    pub fn check(&self, checkpoint: &Path) -> Result<()> {
        let path = Self::path(checkpoint);
        let other = |differences: String| MreError::OtherTraining {
            path: checkpoint.to_owned(),
            differences,
        };
        let text = std::fs::read_to_string(&path).map_err(|e| {
            other(format!(
                "its record of data and settings, `{}`, cannot be read ({e})",
                path.display()
            ))
        })?;
        let stored: Map<String, Value> = serde_json::from_str(&text).map_err(|e| {
            other(format!(
                "its record of data and settings, `{}`, is damaged ({e})",
                path.display()
            ))
        })?;
        let here = self.0.keys();
        let there = stored.keys().filter(|name| !self.0.contains_key(*name));
        let different: Vec<&String> = here
            .chain(there)
            .filter(|name| stored.get(*name) != self.0.get(*name))
            .collect();
        // The recipe changes along with the rheology; then it would only drown the reason.
        let reasons = different.iter().filter(|name| !name.starts_with(RECIPE));
        let reasons: Vec<&String> = match reasons.clone().next() {
            Some(_) => reasons.copied().collect(),
            None => different,
        };
        if reasons.is_empty() {
            return Ok(());
        }
        let show = |value: Option<&Value>| value.map_or("nothing".into(), Value::to_string);
        let told = reasons.iter().map(|name| {
            let (there, here) = (stored.get(*name), self.0.get(*name));
            format!("{name} {} there, {} here", show(there), show(here))
        });
        Err(other(told.collect::<Vec<_>>().join("; ")))
    }
}

fn fingerprint_of_field(wave: &WaveField) -> u64 {
    fingerprint(wave.u.iter().flat_map(|u| [u.re.to_bits(), u.im.to_bits()]))
}

/// FNV-1a over 64-bit words, the same on every machine: tells files apart, and keeps no secret.
/// Source: G. Fowler, L. C. Noll, K.-P. Vo, draft-eastlake-fnv.
fn fingerprint(words: impl Iterator<Item = u64>) -> u64 {
    words.fold(0xcbf2_9ce4_8422_2325, |hash, word| {
        (hash ^ word).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
