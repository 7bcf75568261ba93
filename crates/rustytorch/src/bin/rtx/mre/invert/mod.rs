//! `rtx mre invert`: from a file to maps and a report.

mod args;
mod method;
mod reference;
mod report;

use std::time::Instant;

use rustytorch::mre::figure::{DisplacementUnit, maps_figure};
use rustytorch::mre::metrics::Truth;
use rustytorch::mre::{Modulus, MreError, WaveField};
use rustytorch::tensor::Device;

pub use args::InvertArgs;
pub use method::{Training, interrupted, train};

use crate::failure::Failure;
use crate::output::{OutputFolder, command_line, note, say, say_json, write_json};

/// Runs the inversion.
///
/// Everything that can be refused is refused before the inversion starts; the files appear, each
/// whole, when all of it is done.
pub fn run(args: &InvertArgs) -> Result<(), Failure> {
    let started = Instant::now();
    args.check()?;
    let options = args.load_options()?;
    let device = Device::named(&args.device)?;
    let folder = OutputFolder::prepare(&args.out)?;
    let wave = WaveField::load(&args.input, &options)?;
    let plan = reference::Plan::load(args, &wave)?;
    let load_seconds = started.elapsed().as_secs_f64();
    wave.provenance
        .warnings
        .iter()
        .for_each(|w| note(&format!("warning: {w}")));

    let inversion = method::invert(&wave, args, &device, &folder)?;
    if inversion.stopped {
        return Err(interrupted(&inversion, &folder));
    }
    inversion.modulus.check_loss_sign(options.time_sign)?;

    // From here on nothing changes the maps: the truth and the reference are only compared.
    let truth = known_truth(args, &inversion.modulus)?;
    let report = report::Report {
        args,
        wave: &wave,
        inversion: &inversion,
        truth: truth.as_ref(),
        reference: plan
            .map(|plan| plan.compare(&wave, &inversion.modulus))
            .transpose()?,
        device: device.name(),
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
        say_json(&metrics);
    } else {
        say(&report.text()?);
        say(&format!(
            "\nmaps and metrics are in {}",
            folder.path().display()
        ));
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
