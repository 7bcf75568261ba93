//! The methods behind one result.

use ndarray::Array5;
use num_complex::Complex64;
use rustytorch::mre::inversion::{AhiOptions, RatioOptions, ahi, windowed_ratio};
use rustytorch::mre::pinn::{self, CHECKPOINT, Equation, PinnOptions, PinnRheology, Recipe};
use rustytorch::mre::{Modulus, WaveField};
use rustytorch::tensor::{Device, Precision};
use serde_json::{Value, json};
use std::time::Instant;

use super::args::{InvertArgs, Method};
use crate::failure::Failure;
use crate::interrupt::stop_flag;
use crate::output::OutputFolder;

/// Name of the log of the losses in the output folder.
pub const LOSS_FILE: &str = "loss.csv";

/// What any method gives.
#[derive(Debug)]
pub struct Inversion {
    /// The maps.
    pub modulus: Modulus,
    /// The fitted field, of methods that fit one.
    pub fitted: Option<Array5<Complex64>>,
    /// Training steps, of methods that train.
    pub steps: Option<usize>,
    /// Whether Ctrl-C ended it early.
    pub stopped: bool,
    /// Final losses by name.
    pub losses: Vec<(String, f64)>,
    /// Relative L2 error of the field on held-out pixels, per frequency.
    pub heldout_error: Vec<Option<f64>>,
    /// Time of the inversion alone.
    pub seconds: f64,
    /// The method's settings.
    pub settings: Value,
}

/// What a training needs to know.
#[derive(Debug)]
pub struct Training<'a> {
    /// Wave equation.
    pub equation: Equation,
    /// Frequency dependence.
    pub rheology: PinnRheology,
    /// Steps; the method's choice if absent.
    pub steps: Option<usize>,
    /// Settings other than the standard ones of the rheology.
    pub recipe: Option<Recipe>,
    /// Seed.
    pub seed: u64,
    /// Share of the pixels that are held out.
    pub holdout: f64,
    /// Side of the held-out blocks, pixels.
    pub holdout_block: usize,
    /// Whether to continue from the checkpoint.
    pub resume: bool,
    /// Where to train.
    pub device: &'a Device,
    /// Arithmetic of products.
    pub precision: Precision,
}

/// Runs the method that the flags name.
pub fn invert(
    wave: &WaveField,
    args: &InvertArgs,
    device: &Device,
    folder: &OutputFolder,
) -> Result<Inversion, Failure> {
    let started = Instant::now();
    let (modulus, settings) = match args.method {
        Method::Pinn => {
            let training = Training {
                equation: args.equation(),
                rheology: args.rheology.into(),
                steps: args.steps.map(|n| usize::try_from(n).unwrap_or(usize::MAX)),
                recipe: None,
                seed: args.seed,
                holdout: args.holdout,
                holdout_block: usize::try_from(args.holdout_block).unwrap_or(usize::MAX),
                resume: args.resume,
                device,
                precision: args.precision,
            };
            return train(wave, &training, folder);
        }
        Method::Ahi => {
            let options = AhiOptions {
                smoothing: args.smoothing.unwrap_or(AhiOptions::default().smoothing),
                ..AhiOptions::default()
            };
            let settings = json!({"smoothing_px": options.smoothing, "stencil": "compact"});
            (ahi(wave, options)?, settings)
        }
        Method::Ratio => {
            let options = RatioOptions {
                smoothing: args.smoothing.unwrap_or(RatioOptions::default().smoothing),
                window: args.window,
            };
            let settings = json!({"smoothing_px": options.smoothing, "window_px": options.window});
            (windowed_ratio(wave, options)?, settings)
        }
    };
    Ok(Inversion {
        modulus,
        fitted: None,
        steps: None,
        stopped: false,
        losses: Vec::new(),
        heldout_error: Vec::new(),
        seconds: started.elapsed().as_secs_f64(),
        settings,
    })
}

/// Trains the network with checkpoint and log in `folder`; Ctrl-C ends it early.
pub fn train(
    wave: &WaveField,
    training: &Training<'_>,
    folder: &OutputFolder,
) -> Result<Inversion, Failure> {
    let checkpoint = folder.file(CHECKPOINT);
    if training.resume && !checkpoint.is_file() {
        return Err(Failure::input(format!(
            "--resume: there is no checkpoint `{}`; leave --resume out to start anew, or give the \
             folder of the earlier run with --out",
            checkpoint.display()
        )));
    }
    let options = PinnOptions {
        equation: training.equation,
        rheology: training.rheology,
        steps: training.steps,
        seed: training.seed,
        holdout: training.holdout,
        holdout_block: training.holdout_block,
        checkpoint: Some(checkpoint),
        resume: training.resume,
        stop: stop_flag()?,
        progress: true,
        csv: Some(folder.file(LOSS_FILE)),
        device: training.device.clone(),
        precision: training.precision,
        recipe: training.recipe,
    };
    let result = pinn::invert(wave, &options)?;
    Ok(Inversion {
        modulus: result.modulus,
        fitted: Some(result.fitted),
        steps: Some(result.steps),
        stopped: result.stopped,
        losses: result.losses,
        heldout_error: result.heldout_error,
        seconds: result.seconds,
        settings: result.settings,
    })
}

/// What to say after Ctrl-C.
pub fn interrupted(inversion: &Inversion, folder: &OutputFolder) -> Failure {
    let checkpoint = folder.file(CHECKPOINT);
    let steps = inversion.steps.unwrap_or(0);
    Failure::Interrupted(if checkpoint.is_file() {
        format!(
            "stopped after {steps} steps; the state is kept in `{}`, and the same command with \
             --resume goes on from it",
            checkpoint.display()
        )
    } else {
        format!("stopped after {steps} steps, before there was a checkpoint")
    })
}
