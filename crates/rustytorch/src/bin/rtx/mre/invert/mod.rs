//! `rtx mre invert`: from a file to maps and a report.

mod args;
mod method;
mod reference;
mod report;

use std::time::Instant;

use rustytorch::mre::figure::{DisplacementUnit, maps_figure};
use rustytorch::mre::inversion::{AhiOptions, ahi};
use rustytorch::mre::metrics::Truth;
use rustytorch::mre::pinn::{CHECKPOINT, RECORD};
use rustytorch::mre::verdict::Verdict;
use rustytorch::mre::{Modulus, MreError, WaveField};

pub use args::{InvertArgs, MOST_STEPS};
pub use method::{LOSS_FILE, Training, interrupted, train};

use args::Method;

use crate::devices;
use crate::failure::Failure;
use crate::output::{OutputFolder, command_line, note, say, say_json, write_json};

/// Files of an inversion; a method that does not train writes the first three.
const FILES: [&str; 6] = [
    "modulus.npz",
    "maps.png",
    "metrics.json",
    LOSS_FILE,
    CHECKPOINT,
    RECORD,
];

/// Runs the inversion.
///
/// Everything that can be refused is refused before the inversion starts; the files appear, each
/// whole, when all of it is done.
pub fn run(args: &InvertArgs) -> Result<(), Failure> {
    let started = Instant::now();
    args.check()?;
    let options = args.load_options()?;
    let device = devices::pick(args.device.as_deref())?;
    let folder = OutputFolder::prepare(&args.out, &FILES)?;
    let wave = WaveField::load(&args.input, &options)?;
    let plan = reference::Plan::load(args, &wave)?;
    let load_seconds = started.elapsed().as_secs_f64();
    wave.provenance
        .warnings
        .iter()
        .for_each(|w| note(&format!("warning: {w}")));

    // A magnitude has no loss modulus; the network looks for itself.
    if args.method == Method::Ahi {
        ahi(&wave, AhiOptions::default())?.check_loss_sign(options.time_sign)?;
    }
    if args.method == Method::Pinn {
        devices::note_precision(&device, args.precision);
    }
    let inversion = method::invert(&wave, args, &device, &folder)?;
    if inversion.stopped {
        return Err(interrupted(&inversion, &folder));
    }

    let doubt = inversion.modulus.doubt();
    if let Some(doubt) = &doubt {
        note(&format!("warning: {doubt}"));
    }

    let verdict = Verdict::new(&wave, inversion.fitted.as_ref(), &inversion.heldout_error);
    if verdict.is_bad() {
        note(&format!("warning: {}", verdict.text));
    }

    // From here on nothing changes the maps: the truth and the reference are only compared.
    let truth = known_truth(args, &inversion.modulus)?;
    let report = report::Report {
        args,
        wave: &wave,
        inversion: &inversion,
        doubt,
        verdict,
        truth: truth.as_ref(),
        reference: plan
            .map(|plan| plan.compare(&wave, &inversion.modulus))
            .transpose()?,
        device: &device,
        load_seconds,
        started,
        command: command_line(),
    };
    let title = inversion.modulus.method.clone();
    let figure = maps_figure(
        &wave,
        &inversion.modulus,
        DisplacementUnit::of(&wave),
        &title,
    )?;
    inversion
        .modulus
        .write(&folder.file("modulus.npz"), inversion.fitted.as_ref())?;
    figure.write_png(&folder.file("maps.png"))?;
    let metrics = report.json()?;
    write_json(&folder.file("metrics.json"), &metrics)?;
    if args.json {
        say_json(&metrics)?;
    } else {
        say(&report.text()?)?;
        say(&format!(
            "\nmaps and metrics are in {}",
            folder.path().display()
        ))?;
    }
    Ok(())
}

/// The truth of a phantom, if the file carries one that fits the maps.
fn known_truth(args: &InvertArgs, modulus: &Modulus) -> Result<Option<Truth>, MreError> {
    match Truth::load(&args.input) {
        Ok(Some(truth)) if truth.g.dim() == modulus.g.dim() => Ok(Some(truth)),
        Ok(Some(truth)) => {
            note(&format!(
                "warning: the truth `G` {:?} is not on the grid of the maps {:?}; not compared",
                truth.g.shape(),
                modulus.g.shape()
            ));
            Ok(None)
        }
        Ok(None) => Ok(None),
        // Arrays that only happen to be called G and region must not spoil a finished inversion.
        Err(error) => {
            note(&format!("warning: no comparison with a truth: {error}"));
            Ok(None)
        }
    }
}
