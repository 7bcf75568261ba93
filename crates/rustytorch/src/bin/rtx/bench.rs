//! `rtx bench`: time per step of reference workloads.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use pinn_mre_helmholtz::{Arithmetic, Workload, measure, table};

use crate::devices;
use crate::failure::Failure;
use crate::output::{OutputFolder, note, say, write_json};

/// Groups of workloads.
#[derive(Debug, Subcommand)]
pub enum BenchCommand {
    /// Physics-informed networks: F forward, A cached equation, B full training step.
    Pinn(PinnBenchArgs),
}

/// Arguments of `rtx bench pinn`.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  rtx bench pinn --workloads F,A,B --sizes 200,1000,10000 --json bench.json"
)]
pub struct PinnBenchArgs {
    /// Device to measure; `rtx devices` lists them [default: that of RTX_DEVICE, or cpu].
    #[arg(long)]
    device: Option<String>,
    /// Workloads.
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "F,A,B",
        value_name = "F|A|B,..."
    )]
    workloads: Vec<String>,
    /// Numbers of points.
    #[arg(long, value_delimiter = ',', default_value = "200,1000,10000", value_name = "N,...", allow_hyphen_values = true, value_parser = clap::value_parser!(u64).range(1..10_000_000))]
    sizes: Vec<u64>,
    /// Arithmetic: f64, or how exact products of float32 arrays have to be. A device without a faster way computes in
    /// float32.
    #[arg(
        long,
        default_value = "f32",
        value_name = "f32|bf16x3|tf32|bf16|f16|f64"
    )]
    precision: Arithmetic,
    /// File for the results: a list of objects.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// Time that a cell should take, s.
const SECONDS: f64 = 2.0;

/// Measures every workload at every size.
pub fn run(command: BenchCommand) -> Result<(), Failure> {
    let BenchCommand::Pinn(args) = command;
    let device = devices::pick(args.device.as_deref())?;
    // A folder that cannot be written must not cost the whole measurement.
    let json = args.json.as_deref();
    let folder = json.map(|file| OutputFolder::of_file(file, "--json"));
    let folder = folder.transpose()?;
    let workloads = args
        .workloads
        .iter()
        .map(|name| {
            name.parse::<Workload>().map_err(|_| {
                Failure::input(format!(
                    "--workloads: `{name}` is not a workload; use F, A or B"
                ))
            })
        })
        .collect::<Result<Vec<_>, _>>()?;
    if let Arithmetic::Single(asked) = args.precision {
        devices::note_precision(&device, asked);
    }
    let mut cells = Vec::new();
    for workload in workloads {
        for &points in &args.sizes {
            note(&format!("workload {workload}, {points} points"));
            let points = usize::try_from(points).unwrap_or(usize::MAX);
            cells.push(measure(workload, points, args.precision, &device, SECONDS)?);
        }
    }
    if let Some(file) = &args.json {
        let cells = serde_json::to_value(&cells).map_err(|e| Failure::Other(e.to_string()))?;
        write_json(file, &cells)?;
    }
    drop(folder);
    say(&table(&cells))
}
