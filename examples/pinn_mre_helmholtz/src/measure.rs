//! Timing.

use crate::flops::flops_per_step;
use crate::workload::{Job, Workload, build_with};
use rtx_tensor::{DType, Device, Precision, Result};
use serde::Serialize;
use std::fmt::{self, Write as _};
use std::str::FromStr;
use std::time::Instant;

/// Samples of a measurement; the median is reported.
const SAMPLES: usize = 7;

/// Arithmetic of a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arithmetic {
    /// Arrays of float32, with products of that precision.
    Single(Precision),
    /// Arrays of float64.
    Double,
}

impl Arithmetic {
    fn dtype(self) -> DType {
        match self {
            Arithmetic::Single(_) => DType::F32,
            Arithmetic::Double => DType::F64,
        }
    }

    /// What `device` computes in when this is asked.
    pub fn effective(self, device: &Device) -> Arithmetic {
        match self {
            Arithmetic::Single(asked) => Arithmetic::Single(device.effective_precision(asked)),
            Arithmetic::Double => Arithmetic::Double,
        }
    }

    fn products(self) -> Precision {
        match self {
            Arithmetic::Single(precision) => precision,
            Arithmetic::Double => Precision::F32,
        }
    }
}

impl fmt::Display for Arithmetic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Arithmetic::Single(precision) => precision.fmt(f),
            Arithmetic::Double => f.pad("f64"),
        }
    }
}

impl FromStr for Arithmetic {
    type Err = String;

    fn from_str(name: &str) -> std::result::Result<Self, String> {
        if name == "f64" {
            return Ok(Arithmetic::Double);
        }
        let tier = name.parse().map_err(|e| format!("{e}, f64"))?;
        Ok(Arithmetic::Single(tier))
    }
}

/// An arithmetic that was asked for, and the one that the device has.
#[derive(Clone, Debug, Serialize)]
pub struct RequestedPrecision {
    /// What was asked.
    pub requested: String,
    /// What the device computed in.
    pub effective: String,
}

impl fmt::Display for RequestedPrecision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.requested == self.effective {
            return f.pad(&self.effective);
        }
        f.pad(&format!("{} ({} asked)", self.effective, self.requested))
    }
}

/// Time of one workload at one number of points.
#[derive(Clone, Debug, Serialize)]
pub struct Measurement {
    /// Workload.
    pub workload: String,
    /// Points.
    pub points: usize,
    /// Device.
    pub device: String,
    /// Arithmetic that was asked and the one that was computed in: `f64`, or a tier of the products of float32 arrays.
    pub precision: RequestedPrecision,
    /// Microseconds per step, median of the samples.
    pub us_per_step: f64,
    /// Fastest sample.
    pub us_min: f64,
    /// Slowest sample.
    pub us_max: f64,
    /// Steps that were timed.
    pub steps: usize,
    /// Needed arithmetic of the products over the median time, in GFLOP/s.
    pub gflops: f64,
    /// Milliseconds to record and compile the step.
    pub compile_ms: f64,
}

/// Times a workload: two steps to warm up, then samples of about `seconds / 7` each. A sample ends when its
/// last output is read.
///
/// # Errors
/// The device's refusal.
pub fn measure(
    workload: Workload,
    points: usize,
    arithmetic: Arithmetic,
    device: &Device,
    seconds: f64,
) -> Result<Measurement> {
    let start = Instant::now();
    let Job {
        step,
        mut state,
        inputs,
    } = build_with(
        workload,
        points,
        arithmetic.dtype(),
        arithmetic.products(),
        device,
    )?;
    let compile_ms = start.elapsed().as_secs_f64() * 1e3;
    let mut sample = |steps: usize| -> Result<f64> {
        let start = Instant::now();
        let (next, output) = step.run(
            std::mem::replace(&mut state, (Vec::new(), Vec::new(), inputs.x.clone())),
            &inputs,
            steps,
        )?;
        output.to_host()?;
        state = next;
        Ok(start.elapsed().as_secs_f64() * 1e6 / steps as f64)
    };
    sample(1)?;
    let one = sample(1)?;
    let steps = (seconds * 1e6 / SAMPLES as f64 / one.max(1.0)).clamp(1.0, 1e5) as usize;
    let mut times = Vec::with_capacity(SAMPLES);
    for _ in 0..SAMPLES {
        times.push(sample(steps)?);
    }
    times.sort_by(f64::total_cmp);
    let median = times[SAMPLES / 2];
    Ok(Measurement {
        workload: workload.to_string(),
        points,
        device: device.name().to_string(),
        precision: RequestedPrecision {
            requested: arithmetic.to_string(),
            effective: arithmetic.effective(device).to_string(),
        },
        us_per_step: median,
        us_min: times[0],
        us_max: times[SAMPLES - 1],
        steps: steps * SAMPLES,
        gflops: flops_per_step(workload, points) / median / 1e3,
        compile_ms,
    })
}

/// A table for people.
pub fn table(rows: &[Measurement]) -> String {
    let mut s = String::from(
        "workload  points  device  precision           us/step (min .. max)                GFLOP/s  compile ms\n",
    );
    for r in rows {
        let spread = format!(
            "{:>10.1} ({:.1} .. {:.1})",
            r.us_per_step, r.us_min, r.us_max
        );
        let _ = writeln!(
            s,
            "{:<8} {:>7}  {:<6}  {:<18}  {:<35} {:>7.1}  {:>10.1}",
            r.workload, r.points, r.device, r.precision, spread, r.gflops, r.compile_ms
        );
    }
    s
}
