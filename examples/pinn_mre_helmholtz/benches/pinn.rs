//! `cargo bench -p pinn_mre_helmholtz -- [--workloads F,A,B] [--sizes 200,1000] [--precision f32|..|f64]
//! [--seconds 2] [--json FILE]`: times the workloads on the CPU.

use pinn_mre_helmholtz::{Arithmetic, Workload, measure, table};
use rtx_tensor::{Device, Precision};
use std::error::Error;

struct Options {
    workloads: Vec<Workload>,
    sizes: Vec<usize>,
    arithmetic: Arithmetic,
    seconds: f64,
    json: Option<String>,
}

fn options() -> Result<Options, Box<dyn Error>> {
    let mut o = Options {
        workloads: vec![Workload::F, Workload::A, Workload::B],
        sizes: vec![200, 1000, 10_000],
        arithmetic: Arithmetic::Single(Precision::F32),
        seconds: 2.0,
        json: None,
    };
    let mut args = std::env::args().skip(1);
    while let Some(name) = args.next() {
        // Cargo passes this to every benchmark.
        if name == "--bench" {
            continue;
        }
        let value = args.next().ok_or(format!("{name} needs a value"))?;
        match name.as_str() {
            "--workloads" => {
                o.workloads = value.split(',').map(str::parse).collect::<Result<_, _>>()?
            }
            "--sizes" => {
                o.sizes = value
                    .split(',')
                    .map(|s| s.trim().parse())
                    .collect::<Result<_, _>>()?
            }
            "--precision" => o.arithmetic = value.parse()?,
            "--seconds" => o.seconds = value.parse()?,
            "--json" => o.json = Some(value),
            other => return Err(format!("no option '{other}'").into()),
        }
    }
    Ok(o)
}

fn main() -> Result<(), Box<dyn Error>> {
    let o = options()?;
    let mut rows = Vec::new();
    for &points in &o.sizes {
        for &workload in &o.workloads {
            rows.push(measure(
                workload,
                points,
                o.arithmetic,
                &Device::cpu(),
                o.seconds,
            )?);
        }
    }
    print!("{}", table(&rows));
    if let Some(path) = o.json {
        std::fs::write(path, serde_json::to_string_pretty(&rows)? + "\n")?;
    }
    Ok(())
}
