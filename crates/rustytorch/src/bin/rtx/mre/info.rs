//! `rtx mre info`.

use std::path::PathBuf;

use clap::Args;
use rustytorch::mre::error::Shape;
use rustytorch::mre::io::list_variables;
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
        let unread = if v.numeric { "" } else { " (cannot be read)" };
        table.row([
            v.name.clone(),
            Shape::new(&v.shape).to_string(),
            format!("{}{unread}", v.dtype),
        ]);
    }
    say(&table.render())?;
    Ok(())
}
