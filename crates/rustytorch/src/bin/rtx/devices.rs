//! `rtx devices`.

use clap::Args;
use rustytorch::tensor::{Device, Precision};
use serde_json::json;

use crate::failure::Failure;
use crate::output::{note, say, say_json};
use crate::table::Table;

/// Arguments of `rtx devices`.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  rtx devices --json")]
pub struct DevicesArgs {
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// The device that a flag names, or else the environment, or the best one.
pub fn pick(name: Option<&str>) -> Result<Device, Failure> {
    Ok(match name {
        Some(name) => Device::named(name)?,
        None => Device::chosen()?,
    })
}

/// Says so where the device computes products in another tier than the one allowed.
pub fn note_precision(device: &Device, asked: Precision) {
    let effective = device.effective_precision(asked);
    if effective != asked {
        note(&format!(
            "--precision {asked}: computed in {effective}, because the device '{}' has no faster products for it",
            device.name()
        ));
    }
}

/// The tier that was asked and the one that the device computes in, for metrics.json.
pub fn precision_record(device: &Device, asked: Precision) -> serde_json::Value {
    json!({
        "requested": asked.name(),
        "effective": device.effective_precision(asked).name(),
    })
}

/// Lists the devices.
pub fn run(args: &DevicesArgs) -> Result<(), Failure> {
    let asked = std::env::var("RTX_THREADS").ok();
    let threads = match asked.and_then(|n| n.trim().parse().ok()) {
        None | Some(0) => std::thread::available_parallelism().map_or(1, usize::from),
        Some(threads) => threads,
    };
    let size = match threads {
        1 => "1 thread".into(),
        n => format!("{n} threads"),
    };
    let best = Device::chosen()?;
    let is_best = |name: &str| Device::named(name).is_ok_and(|device| device == best);
    let gpu = Device::describe_cuda(0);
    let mut devices = vec![
        ("cpu", size, "compiled programs".to_string(), is_best("cpu")),
        (
            "reference",
            "1 thread".into(),
            "slow op-by-op evaluation, for comparisons".to_string(),
            is_best("reference"),
        ),
    ];
    match gpu {
        Ok(what) => devices.insert(0, ("cuda", "1 GPU".into(), what, is_best("cuda"))),
        Err(reason) => devices.push(("cuda", "none".into(), reason.to_string(), false)),
    }
    if args.json {
        let list: Vec<_> = devices
            .iter()
            .map(|(name, size, what, best)| {
                json!({"name": name, "size": size, "description": what, "best": best})
            })
            .collect();
        say_json(&json!(list))?;
        return Ok(());
    }
    let mut table = Table::new(["device", "size", "what it is"]);
    for (name, size, what, best) in devices {
        let mark = if best { " (default)" } else { "" };
        table.row([format!("{name}{mark}"), size, what]);
    }
    say(&table.render())?;
    Ok(())
}
