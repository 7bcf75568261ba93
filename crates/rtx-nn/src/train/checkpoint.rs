//! Checkpoints: the whole state of a training in one safetensors file.

use crate::parameters::{StoredTensors, write_tensors};
use crate::train::TrainState;
use crate::{NnError, Result};
use rtx_tensor::Tree;
use serde_json::{Map, Value, json};
use std::path::Path;

/// Version of the layout of a checkpoint; a file with a larger one is refused.
const FORMAT_VERSION: u64 = 1;

/// What identifies the program that a checkpoint belongs to.
pub(crate) struct Identity {
    /// Hash of the structure of the compiled step.
    pub program: u64,
    /// Line that describes the optimizer.
    pub optimizer: String,
}

/// What was found when a training was resumed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resumed {
    /// Finished steps of the stored training.
    pub step: u64,
    /// True where the stored training ran the very same step program: going on is then bit-equal to never
    /// having stopped. Another schedule, loss or version of the library gives false, and is allowed.
    pub same_program: bool,
    /// Version of the library that wrote the file.
    pub written_by: String,
}

/// Writes a state.
pub(crate) fn save<M: Tree>(state: &TrainState<M>, id: &Identity, path: &Path) -> Result<()> {
    let mut meta = Map::new();
    meta.insert("format_version".into(), json!(FORMAT_VERSION));
    meta.insert("kind".into(), json!("training"));
    meta.insert("library_version".into(), json!(env!("CARGO_PKG_VERSION")));
    meta.insert("program".into(), json!(format!("{:016x}", id.program)));
    meta.insert("optimizer".into(), json!(id.optimizer));
    write_tensors(&state.named(), meta, path)
}

/// Reads a state into one of the same structure.
pub(crate) fn load<M: Tree>(
    like: &TrainState<M>,
    id: &Identity,
    path: &Path,
) -> Result<(TrainState<M>, Resumed)> {
    let file = StoredTensors::open(path)?;
    let text = |key: &str| file.meta.get(key).and_then(Value::as_str).unwrap_or("");
    if text("kind") != "training" {
        return Err(NnError::format(
            path,
            "it holds no training state; a file of parameters alone is read with load_parameters()",
        ));
    }
    let version = file.meta.get("format_version").and_then(Value::as_u64);
    match version {
        Some(v) if v <= FORMAT_VERSION => {}
        _ => {
            let found = version.map_or("none".to_string(), |v| v.to_string());
            return Err(NnError::format(
                path,
                format!(
                    "its format version is {found}, this build ({}) reads up to {FORMAT_VERSION}",
                    env!("CARGO_PKG_VERSION")
                ),
            ));
        }
    }
    let stored = text("optimizer");
    if kind(stored) != kind(&id.optimizer) {
        return Err(NnError::format(
            path,
            format!(
                "it was trained with '{stored}', the trainer has '{}'",
                id.optimizer
            ),
        ));
    }
    let state = file.fill(like)?;
    let resumed = Resumed {
        step: state.step.item()? as u64,
        same_program: text("program") == format!("{:016x}", id.program),
        written_by: text("library_version").to_string(),
    };
    Ok((state, resumed))
}

/// Name of an optimizer without its numbers, which may change between runs.
fn kind(description: &str) -> &str {
    description.split(' ').next().unwrap_or("")
}
