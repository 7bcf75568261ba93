//! An unknown diffusivity from noisy measurements: u_t = D u_xx, measured at scattered points and times;
//! neither the initial nor the boundary values are known. Prints the error of D, which is below 1 %.
//!
//! ```sh
//! cargo run --release -p rtx-pinn --example inverse_diffusion
//! ```

use rtx_ir::{RandomKind, random};
use rtx_nn::{Activation, Adam, Lbfgs, Mlp, Schedule};
use rtx_pinn::{Geometry, Interval, PinnError, Problem, Sampling};
use rtx_tensor::Device;
use std::f64::consts::PI;

/// The diffusivity that the measurements were made with.
pub const TRUTH: f64 = 0.13;

/// How much is measured and spent.
pub struct Effort {
    /// Measurements.
    pub measured: usize,
    /// Standard deviation of the noise over the root mean square of the signal.
    pub noise: f64,
    /// Collocation points.
    pub points: usize,
    /// Adam steps.
    pub steps: u64,
    /// L-BFGS iterations that follow.
    pub polish: usize,
}

/// The diffusivity found.
pub fn solve(effort: &Effort, seed: u64, quiet: bool) -> Result<f64, PinnError> {
    let domain = Interval::new(0.0, 1.0).in_time(0.0, 1.0);
    let at = domain.sample(effort.measured, Sampling::Random(seed))?;
    let mode = |x: f64, t: f64, k: f64| (-TRUTH * k * k * t).exp() * (k * x).sin();
    let clean = at.evaluate(|p| mode(p[0], p[1], PI) + 0.5 * mode(p[0], p[1], 2.0 * PI));
    let rms = (clean.iter().map(|v| v * v).sum::<f64>() / clean.len() as f64).sqrt();
    let noise = |i: usize| random::sample(RandomKind::Normal, seed + 1, i as u64, false);
    let measured: Vec<f64> = clean
        .iter()
        .enumerate()
        .map(|(i, v)| v + effort.noise * rms * noise(i))
        .collect();
    let net = Mlp::new(2, 1)
        .hidden(&[24, 24, 24])
        .activation(Activation::Tanh)
        .seed(seed)
        .build(&Device::cpu());
    let mut trainer = Problem::new(domain)
        .field("u", net)
        .unknown("D", 1.0, 1e-3..1e2)
        .residual("diffusion", effort.points, |f| {
            let u = f.get("u");
            u.dt() - f.unknown("D") * u.dxx(0)
        })
        .observe("u", ("sensors", at), measured)
        .trainer(
            Adam::default(),
            Schedule::Cosine {
                lr: 5e-3,
                total: effort.steps,
                floor: 5e-5,
            },
        )?
        .quiet(quiet);
    trainer.run(effort.steps)?;
    trainer.then(&Lbfgs::f64().max_iter(effort.polish))?;
    trainer.unknown("D")
}

#[allow(dead_code)]
fn main() -> Result<(), PinnError> {
    let effort = Effort {
        measured: 500,
        noise: 0.01,
        points: 500,
        steps: 4000,
        polish: 300,
    };
    for seed in 0..3 {
        let start = std::time::Instant::now();
        let found = solve(&effort, seed, false)?;
        println!(
            "seed {seed}: D = {found:.5}, {:.2} % from {TRUTH} ({:.0} s)",
            100.0 * (found / TRUTH - 1.0),
            start.elapsed().as_secs_f64()
        );
    }
    Ok(())
}
