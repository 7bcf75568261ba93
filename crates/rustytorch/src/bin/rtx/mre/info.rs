//! `rtx mre info`.

use std::path::{Path, PathBuf};

use clap::Args;
use rustytorch::mre::error::Shape;
use rustytorch::mre::io::{VariableInfo, list_variables, read_array};
use rustytorch::mre::phase::fills_scale;
use serde_json::json;

use crate::failure::Failure;
use crate::output::{say, say_json};
use crate::table::Table;

/// Arguments of `rtx mre info`.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  rtx mre info brain.mat")]
pub struct InfoArgs {
    /// A .mat (v5 to v7), .npy or .npz file.
    file: PathBuf,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Lists the arrays of a file.
pub fn run(args: &InfoArgs) -> Result<(), Failure> {
    let variables = list_variables(&args.file)?;
    if args.json {
        let list: Vec<_> = variables
            .iter()
            .map(|v| json!({"name": v.name, "shape": v.shape, "dtype": v.dtype, "numeric": v.numeric}))
            .collect();
        say_json(&json!(list))?;
        return Ok(());
    }
    let mut table = Table::new(["variable", "shape", "type"]);
    for v in &variables {
        let fields = variables
            .iter()
            .any(|w| w.name.starts_with(&format!("{}.", v.name)));
        let unread = match (v.numeric, fields) {
            (true, _) => "",
            (false, true) => " (its fields follow)",
            (false, false) => " (cannot be read)",
        };
        table.row([
            v.name.clone(),
            Shape::new(&v.shape).to_string(),
            format!("{}{unread}", v.dtype),
        ]);
    }
    say(&table.render())?;
    hints(&args.file, &variables)
}

/// Says what looks wrong, and what comes next.
fn hints(file: &Path, variables: &[VariableInfo]) -> Result<(), Failure> {
    for v in variables.iter().filter(|v| v.numeric) {
        let last = v.name.rsplit('.').next().unwrap_or_default();
        // An array that cannot be read after all is the inversion's to refuse.
        let Ok(array) = read_array(file, Some(&v.name)) else {
            continue;
        };
        let largest = array.data.iter().fold(0.0_f64, |m, z| m.max(z.re.abs()));
        if last == "spacing" && largest > 0.05 {
            say(&format!(
                "\n`{}` holds {largest}: as metres that is no voxel size; give --spacing-mm {largest} if these are \
                 millimetres",
                v.name
            ))?;
        }
        let field = v.shape.iter().filter(|n| **n > 1).count() >= 3;
        if let (true, false, Some(scale)) = (
            field,
            array.is_complex,
            fills_scale(array.data.iter().map(|z| z.re)),
        ) {
            say(&format!(
                "\n`{}` fills the range of a phase image ({scale}): most likely a wrapped phase. With its offsets named \
                 `phase` in --axes it is unwrapped by\n  rtx mre invert {} --var {} --axes ... --freq ... --spacing-mm ... \
                 --mask ... --out ...",
                v.name,
                file.display(),
                v.name
            ))?;
        }
    }
    Ok(())
}
