//! The viscous Burgers equation, forward: u_t + u u_x = nu u_xx with nu = 0.01 / pi, which forms a steep
//! front at x = 0. Prints the relative L2 error against a reference from the Cole-Hopf transformation
//! (`data/burgers.py`): about 4e-3, in a minute and a half on two cores.
//!
//! ```sh
//! cargo run --release -p rtx-pinn --example burgers
//! ```

use rtx_nn::{Activation, Adam, Lbfgs, Mlp, Schedule};
use rtx_pinn::{Geometry, Interval, PinnError, PointSet, Points, Problem, Sampling};
use rtx_tensor::Device;
use std::f64::consts::PI;

/// How much is spent.
pub struct Effort {
    /// Widths of the hidden layers.
    pub hidden: Vec<usize>,
    /// Collocation points to draw from.
    pub points: usize,
    /// Points of one step.
    pub batch: usize,
    /// Adam steps.
    pub steps: u64,
    /// L-BFGS iterations that follow.
    pub polish: usize,
}

/// Relative L2 errors after Adam and after L-BFGS.
pub fn solve(effort: &Effort, quiet: bool) -> Result<(f64, f64), PinnError> {
    let nu = 0.01 / PI;
    let net = Mlp::new(2, 1)
        .hidden(&effort.hidden)
        .activation(Activation::Tanh)
        .seed(1)
        .build(&Device::cpu());
    let domain = Interval::new(-1.0, 1.0).in_time(0.0, 1.0);
    // Half of the points near the front, where the solution is steep. Each step draws others: with fixed
    // points the front can hide between them.
    let even = domain.sample(effort.points / 2, Sampling::Halton)?;
    let near = Interval::new(-0.15, 0.15)
        .in_time(0.0, 1.0)
        .sample(effort.points / 2, Sampling::Halton)?;
    let collocation = PointSet::new("collocation", even.and(&near)?).batch(effort.batch);
    let mut trainer = Problem::new(domain)
        .field("u", net)
        // Initial and boundary values hold exactly.
        .hard("u", |x, raw| {
            let (x, t) = (x.axis(0), x.axis(1));
            -(&x * PI).sin() + t * (1.0 - x.square()) * raw
        })
        .residual("burgers", collocation, move |f| {
            let u = f.get("u");
            // Where the front is steep the residual would drown the rest.
            (u.dt() + &u * u.dx(0) - u.dxx(0) * nu) / (u.dx(0).abs() * 0.2 + 1.0)
        })
        .trainer(
            Adam::default(),
            Schedule::Cosine {
                lr: 5e-3,
                total: effort.steps,
                floor: 1e-5,
            },
        )?
        .quiet(quiet);
    let (points, reference) = reference()?;
    trainer.run(effort.steps)?;
    let adam = relative_error(&trainer.predict("u", &points)?.values, &reference);
    let minimum = trainer.then(&Lbfgs::f64().max_iter(effort.polish))?;
    if !quiet {
        println!(
            "L-BFGS: {} iterations, {}",
            minimum.iterations, minimum.reason
        );
    }
    let polished = relative_error(&trainer.predict("u", &points)?.values, &reference);
    Ok((adam, polished))
}

/// Points and values of the committed reference.
fn reference() -> Result<(Points, Vec<f64>), PinnError> {
    let (mut at, mut values) = (Vec::new(), Vec::new());
    for line in include_str!("data/burgers.csv").lines().skip(1) {
        let mut numbers = line.split(',').filter_map(|v| v.parse::<f64>().ok());
        at.extend(numbers.by_ref().take(2));
        values.extend(numbers);
    }
    Ok((Points::new(2, at)?, values))
}

fn relative_error(found: &[f64], expected: &[f64]) -> f64 {
    let square = |v: f64| v * v;
    let error: f64 = found.iter().zip(expected).map(|(a, b)| square(a - b)).sum();
    (error / expected.iter().copied().map(square).sum::<f64>()).sqrt()
}

#[allow(dead_code)]
fn main() -> Result<(), PinnError> {
    let effort = Effort {
        hidden: vec![20; 4],
        points: 6000,
        batch: 1000,
        steps: 5000,
        polish: 1500,
    };
    let start = std::time::Instant::now();
    let (adam, polished) = solve(&effort, false)?;
    println!(
        "relative L2 error {adam:.2e} after Adam, {polished:.2e} after L-BFGS ({:.0} s)",
        start.elapsed().as_secs_f64()
    );
    Ok(())
}
