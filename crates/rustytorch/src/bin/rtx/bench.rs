//! `rtx bench`: time per step of reference workloads.

use std::path::PathBuf;
use std::time::Instant;

use clap::{Args, Subcommand};
use rustytorch::tensor::Device;
use serde::Serialize;

use crate::failure::Failure;
use crate::output::{OutputFolder, note, say, write_json};
use crate::table::Table;

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
    /// Device to measure; `rtx devices` lists them.
    #[arg(long, default_value = "cpu")]
    device: String,
    /// Workloads.
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "F,A,B",
        value_name = "F|A|B,..."
    )]
    workloads: Vec<String>,
    /// Numbers of points.
    #[arg(long, value_delimiter = ',', default_value = "200,1000,10000", value_name = "N,...", value_parser = clap::value_parser!(u64).range(1..10_000_000))]
    sizes: Vec<u64>,
    /// File for the results: a list of objects.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// A workload ready to run.
pub trait Steps {
    /// Runs `n` steps and waits until they are done.
    ///
    /// # Errors
    /// The device's refusal.
    fn run(&mut self, n: usize) -> Result<(), Failure>;
    /// `f32`, `f64`, ...
    fn precision(&self) -> String;
}

/// Builds a workload: the place where the workload library is connected.
fn build(workload: &str, _points: usize, _device: &Device) -> Result<Box<dyn Steps>, Failure> {
    match workload {
        "F" | "A" | "B" => Err(Failure::Other(format!(
            "workload {workload} is not part of this build"
        ))),
        other => Err(Failure::input(format!(
            "--workloads: `{other}` is not a workload; use F, A or B"
        ))),
    }
}

/// One measured cell.
#[derive(Debug, Serialize)]
struct Measured {
    workload: String,
    points: usize,
    device: String,
    precision: String,
    us_per_step: f64,
    us_min: f64,
    us_max: f64,
    steps: usize,
}

/// Timed groups of steps per cell; the median group counts.
const GROUPS: usize = 7;
/// Time that a group should take, s.
const GROUP_SECONDS: f64 = 0.3;

/// Measures every workload at every size.
pub fn run(command: BenchCommand) -> Result<(), Failure> {
    let BenchCommand::Pinn(args) = command;
    let device = Device::named(&args.device)?;
    // A folder that cannot be written must not cost the whole measurement.
    let folder = match &args.json {
        Some(file) => {
            let parent = file.parent().filter(|p| !p.as_os_str().is_empty());
            Some(OutputFolder::prepare(parent.unwrap_or(".".as_ref()))?)
        }
        None => None,
    };
    let mut cells = Vec::new();
    for workload in &args.workloads {
        for &points in &args.sizes {
            let points = usize::try_from(points).unwrap_or(usize::MAX);
            note(&format!("workload {workload}, {points} points"));
            cells.push(measure(workload, points, &device)?);
        }
    }
    let mut table = Table::new(["workload", "points", "us/step", "min", "max", "steps"]);
    for c in &cells {
        table.row([
            c.workload.clone(),
            c.points.to_string(),
            format!("{:.0}", c.us_per_step),
            format!("{:.0}", c.us_min),
            format!("{:.0}", c.us_max),
            c.steps.to_string(),
        ]);
    }
    say(&table.render());
    if let Some(file) = &args.json {
        let cells = serde_json::to_value(&cells).map_err(|e| Failure::Other(e.to_string()))?;
        write_json(file, &cells)?;
    }
    drop(folder);
    Ok(())
}

fn measure(workload: &str, points: usize, device: &Device) -> Result<Measured, Failure> {
    let mut steps = build(workload, points, device)?;
    let mut time = |n: usize| -> Result<f64, Failure> {
        let start = Instant::now();
        steps.run(n)?;
        Ok(start.elapsed().as_secs_f64())
    };
    time(2)?;
    let one = time(3)? / 3.0;
    let group = ((GROUP_SECONDS / one.max(1e-9)) as usize).clamp(3, 10_000);
    let mut groups = (0..GROUPS)
        .map(|_| time(group).map(|s| s / group as f64 * 1e6))
        .collect::<Result<Vec<_>, _>>()?;
    groups.sort_by(f64::total_cmp);
    Ok(Measured {
        workload: workload.into(),
        points,
        device: device.name().into(),
        precision: steps.precision(),
        us_per_step: groups[GROUPS / 2],
        us_min: groups[0],
        us_max: groups[GROUPS - 1],
        steps: group * GROUPS,
    })
}
