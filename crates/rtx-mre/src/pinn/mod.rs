//! Inversion by a physics-informed neural network.
//!
//! A network u(x) and a network G(x) are trained together: u follows the measured field, and both satisfy
//! div(G grad u) + rho omega^2 u = 0 (or G lap u + rho omega^2 u = 0) softly. Nothing but the data enters:
//! lengths are scaled by the extent of the mask, displacements by their root mean square, moduli by the
//! median of the windowed ratio, and the band of the Fourier features follows from the wavenumber.
//!
//! Sources: M. Raissi, P. Perdikaris, G. E. Karniadakis, Journal of Computational Physics 378 (2019); for
//! elastography M. Ragoza and K. Batmanghelich, MICCAI 2023 (MRE-PINN).

mod identity;
mod networks;
mod options;
mod scales;
mod terms;

pub use options::{Equation, PinnOptions, PinnResult, PinnRheology, Recipe};

use crate::error::{MreError, Result};
use crate::holdout;
use crate::inversion::{AhiOptions, Modulus, ahi};
use crate::mask::count;
use crate::wave::WaveField;
use identity::Identity;
use ndarray::{Array3, Array4, Array5};
use num_complex::Complex64;
use rtx_nn::{Adam, NnError, RunReport, Schedule};
use rtx_pinn::{Cuboid, PinnError, PinnTrainer, PointSet, Points, Problem, Rectangle};
use scales::Scales;
use std::path::Path;
use std::time::Instant;

/// Name of the file that an interrupted inversion continues from.
pub const CHECKPOINT: &str = "checkpoint.safetensors";

/// Name of the file beside it that says which data and settings it belongs to.
pub const RECORD: &str = "checkpoint.json";

/// Trains the networks on a wave field and reads the maps out of them.
///
/// # Errors
/// A field whose loss modulus comes out negative (the other time convention), an empty mask, a checkpoint
/// that does not fit, or a training that diverges.
pub fn invert(wave: &WaveField, options: &PinnOptions) -> Result<PinnResult> {
    let begin = Instant::now();
    let sign = if wave.provenance.time_sign == '-' {
        "-"
    } else {
        "+"
    };
    ahi(wave, AhiOptions::default())
        .map_err(no_modulus)?
        .check_loss_sign(sign.parse()?)?;
    let recipe = options.recipe(wave);
    let held = held_out(wave, options)?;
    let scales = Scales::of(wave, &held, options.rheology)?;
    let steps = options.steps.unwrap_or(recipe.steps);
    let mut trainer = problem(wave, &scales, &held, options, &recipe)?
        .trainer(
            Adam::default(),
            Schedule::WarmupCosine {
                lr: recipe.learning_rate,
                warmup: (steps / 50).max(1) as u64,
                total: steps as u64,
                floor: 0.0,
            },
        )
        .map_err(training)?
        .seed(options.seed)
        .read_every(50)
        .quiet(!options.progress)
        .stop_flag(options.stop.clone());
    if let Some(csv) = &options.csv {
        trainer = trainer.log_csv(csv);
    }
    if let Some(path) = &options.checkpoint {
        trainer = trainer.checkpoint_every(path, 500);
    }
    let mut record = None;
    if let Some(path) = &options.checkpoint {
        let identity = Identity::of(wave, options, &recipe);
        if options.resume {
            identity.check(path)?;
            trainer.resume(path).map_err(training)?;
        } else {
            Identity::forget(path)?;
            record = Some((identity, path.as_path()));
        }
    }
    let losses = train(&mut trainer, &recipe, steps as u64, record)?;
    let points = Points::new(scales.dims, scales.positions.clone()).map_err(training)?;
    let u = trainer.predict("u", &points).map_err(training)?.complex();
    let m = trainer.predict("m", &points).map_err(training)?;
    let viscosity = if options.rheology == PinnRheology::Voigt {
        trainer.unknown("viscosity").map_err(training)?
    } else {
        0.0
    };
    let (nf, nc, nx, ny, nz) = wave.dim();
    let mut fitted = Array5::from_elem((nf, nc, nx, ny, nz), Complex64::new(f64::NAN, f64::NAN));
    let mut g = Array4::from_elem((nf, nx, ny, nz), Complex64::new(f64::NAN, f64::NAN));
    for (p, &(x, y, z)) in scales.pixels.iter().enumerate() {
        let row = &m.values[p * m.components..(p + 1) * m.components];
        for f in 0..nf {
            g[[f, x, y, z]] = scales.modulus(options.rheology, row, f, viscosity);
            for c in 0..nc {
                let k = f * nc + c;
                fitted[[f, c, x, y, z]] = u[p * nf * nc + k] * scales.amplitude[k];
            }
        }
    }
    let heldout_error = (0..nf)
        .map(|f| relative_error(wave, &fitted, &held, f))
        .collect();
    let trained = trainer.inner().steps_done();
    let settings = serde_json::json!({
        "recipe": recipe,
        "equation": options.equation,
        "rheology": options.rheology,
        "precision": options.precision.name(),
        "holdout": options.holdout,
        "holdout_block": options.holdout_block,
        "length_scale_m": scales.length,
        "modulus_scale_pa": scales.modulus_scale,
        "viscosity_over_modulus": viscosity,
    });
    Ok(PinnResult {
        modulus: Modulus::inverted(
            wave,
            g,
            wave.mask.clone(),
            format!("PINN, {}", options.equation),
        )?,
        fitted,
        steps: trained as usize,
        stopped: trained < steps as u64,
        losses,
        heldout_error,
        seconds: begin.elapsed().as_secs_f64(),
        settings,
    })
}

/// Stages of the rise of the equation's weight.
const RAMP_STAGES: u64 = 50;

/// Trains to `steps` in all, raising the weight of the equation in stages that depend on the step alone, so that
/// a resumed training repeats them. Returns the last losses. The record is written as soon as the checkpoint is
/// this training's, not before: until then an older one may lie there.
fn train(
    trainer: &mut PinnTrainer,
    recipe: &Recipe,
    steps: u64,
    mut record: Option<(Identity, &Path)>,
) -> Result<Vec<(String, f64)>> {
    let ramp = (recipe.ramp * steps as f64) as u64;
    let mut losses = Vec::new();
    loop {
        let done = trainer.inner().steps_done();
        if done >= steps {
            return Ok(losses);
        }
        let stage = (done * RAMP_STAGES)
            .checked_div(ramp)
            .unwrap_or(RAMP_STAGES)
            .min(RAMP_STAGES);
        let next = if stage < RAMP_STAGES {
            ((stage + 1) * ramp).div_ceil(RAMP_STAGES).max(done + 1)
        } else {
            steps
        };
        let weight = recipe.equation_weight * stage as f64 / RAMP_STAGES as f64;
        trainer.set_weight("equation", weight).map_err(training)?;
        let run = trainer.run(next.min(steps) - done);
        if wrote_checkpoint(&run)
            && let Some((identity, path)) = record.take()
        {
            identity.record(path)?;
        }
        let report = run.map_err(training)?;
        losses = report.terms;
        if report.outcome == rtx_nn::Outcome::Stopped {
            return Ok(losses);
        }
    }
}

/// Whether a run left a checkpoint behind: at its end, or of the last good state.
fn wrote_checkpoint(run: &rtx_pinn::Result<RunReport>) -> bool {
    match run {
        Ok(_) => true,
        Err(PinnError::Training(e)) => matches!(
            **e,
            NnError::NotFinite {
                checkpoint: Some(_),
                ..
            }
        ),
        Err(_) => false,
    }
}

/// A mask without Laplacians gives the network no scale; the user asked for no AHI.
fn no_modulus(error: MreError) -> MreError {
    match error {
        MreError::NoModulus { problem, .. } => MreError::NoModulus {
            method: "PINN".into(),
            problem,
        },
        other => other,
    }
}

/// Wraps an error of the layers below.
fn training(e: impl std::error::Error + Send + Sync + 'static) -> MreError {
    MreError::Training(Box::new(e))
}

/// Pixels that the data term does not see.
///
/// # Errors
/// [`MreError::BadOption`] when they are all of the mask.
fn held_out(wave: &WaveField, options: &PinnOptions) -> Result<Array3<bool>> {
    let held = match options.holdout_block {
        0 | 1 => holdout::scattered(&wave.mask, options.holdout, options.seed),
        side => holdout::blocks(&wave.mask, options.holdout, side, options.seed),
    };
    let (all, kept_back) = (count(&wave.mask), count(&held));
    if kept_back < all {
        return Ok(held);
    }
    Err(MreError::option(
        "--holdout",
        options.holdout.to_string(),
        format!(
            "in blocks of {side} x {side} pixels, all {all} pixels of the mask are held out and none is left \
             to fit; lower --holdout or --holdout-block",
            side = options.holdout_block.max(1)
        ),
    ))
}

fn relative_error(
    wave: &WaveField,
    fitted: &Array5<Complex64>,
    held: &Array3<bool>,
    f: usize,
) -> Option<f64> {
    let (mut error, mut norm) = (0.0, 0.0);
    for ((x, y, z), _) in held.indexed_iter().filter(|(_, h)| **h) {
        for c in 0..wave.dim().1 {
            let u = wave.u[[f, c, x, y, z]];
            error += (fitted[[f, c, x, y, z]] - u).norm_sqr();
            norm += u.norm_sqr();
        }
    }
    (norm > 0.0).then(|| (error / norm).sqrt())
}

/// The description of the training: fields, point set, terms.
fn problem(
    wave: &WaveField,
    scales: &Scales,
    held: &Array3<bool>,
    options: &PinnOptions,
    recipe: &Recipe,
) -> Result<Problem> {
    let (nf, nc, ..) = wave.dim();
    let (low, high) = scales.bounds();
    let problem = if scales.dims == 2 {
        Problem::new(Rectangle::new([low[0], low[1]], [high[0], high[1]]))
    } else {
        Problem::new(Cuboid::new(
            [low[0], low[1], low[2]],
            [high[0], high[1], high[2]],
        ))
    };
    let (u, m) = networks::build(scales, nf * nc, options, recipe);
    let half = vec![scales.length; scales.dims];
    let mut problem = problem
        .precision(options.precision)
        .input_scaling(&scales.centre, &half)
        .field("u", u)
        .field("m", m);
    if options.rheology == PinnRheology::Voigt {
        problem = problem.unknown("viscosity", recipe.initial_viscosity, 1e-4..3.0);
    }
    let pixels = PointSet::new(
        "pixels",
        Points::new(scales.dims, scales.positions.clone()).map_err(training)?,
    )
    .with_data("u", 2 * nf * nc, scales.observed(wave))
    .and_then(|s| s.with_data("seen", 1, scales.seen(held)))
    .map_err(training)?
    .batch(recipe.points);
    Ok(terms::add(
        problem, &pixels, scales, options, recipe, nf, nc,
    ))
}
