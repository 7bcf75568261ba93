//! `rtx mre demo`: the whole way on a phantom whose modulus is known.

use std::path::PathBuf;

use clap::Args;
use rustytorch::mre::figure::comparison_figure;
use rustytorch::mre::inversion::{AhiOptions, ahi};
use rustytorch::mre::metrics::{Quantity, Truth, compare};
use rustytorch::mre::pinn::{CHECKPOINT, Equation, PinnRheology, RECORD, Recipe};
use rustytorch::mre::simulate::Preset;
use rustytorch::mre::{LoadOptions, MreError, WaveField};
use rustytorch::tensor::Precision;
use serde_json::json;

use super::invert::{LOSS_FILE, MOST_STEPS, Training, interrupted, train};
use super::{simulate, truth};
use crate::devices;
use crate::failure::Failure;
use crate::output::{OutputFolder, command_line, note, say, say_json, write_json};

/// Noise power of the phantom.
const NOISE: f64 = 1e-3;
/// Frequency that the picture shows, Hz.
const SHOWN_HZ: f64 = 80.0;

/// Files of the demonstration.
const FILES: [&str; 7] = [
    "wave.npz",
    CHECKPOINT,
    RECORD,
    LOSS_FILE,
    "modulus.npz",
    "demo.png",
    "metrics.json",
];

/// Arguments of `rtx mre demo`.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  rtx mre demo --out demo\n\n\
    Simulates the phantom four-target with 0.1 % noise power, inverts it with the network and with \
    AHI, and compares both and a constant map with the truth: demo.png and a table. The inversions \
    do not see the truth.")]
pub struct DemoArgs {
    /// Folder for wave.npz, modulus.npz, demo.png and metrics.json.
    #[arg(long, value_name = "DIR", default_value = "rtx-demo")]
    out: PathBuf,
    /// Training steps [default: those of a short training, at most three minutes on two cores].
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=MOST_STEPS))]
    steps: Option<u64>,
    /// Seed of the noise and of the network.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Device to train on [default: that of RTX_DEVICE, or cpu].
    #[arg(long)]
    device: Option<String>,
    /// How exact products of float32 arrays have to be. A device without a faster way computes in float32.
    #[arg(long, default_value = "f32", value_name = "f32|bf16x3|tf32|bf16|f16")]
    precision: Precision,
    /// Print the table as JSON.
    #[arg(long)]
    json: bool,
}

/// Runs the demonstration.
pub fn run(args: &DemoArgs) -> Result<(), Failure> {
    let device = devices::pick(args.device.as_deref())?;
    let folder = OutputFolder::prepare(&args.out, &FILES)?;
    let mut config = Preset::FourTarget.config();
    (config.noise, config.seed) = (NOISE, args.seed);
    note("1/3 simulating the phantom four-target");
    let path = folder.file("wave.npz");
    simulate::solve(&config)?.write_npz(&path)?;
    let wave = WaveField::load(
        &path,
        &LoadOptions {
            variable: Some("u".into()),
            axes: Some("freq,x,y".parse()?),
            ..LoadOptions::default()
        },
    )?;

    note("2/3 training the network");
    devices::note_precision(&device, args.precision);
    let training = Training {
        equation: Equation::Hetero,
        rheology: PinnRheology::Voigt,
        steps: args.steps.map(|n| usize::try_from(n).unwrap_or(usize::MAX)),
        recipe: Some(Recipe::quick()),
        seed: args.seed,
        holdout: 0.1,
        holdout_block: 1,
        resume: false,
        device: &device,
        precision: args.precision,
    };
    let inversion = train(&wave, &training, &folder)?;
    if inversion.stopped {
        return Err(interrupted(&inversion, &folder));
    }
    inversion
        .modulus
        .write(&folder.file("modulus.npz"), inversion.fitted.as_ref())?;

    note("3/3 comparing with AHI, a constant map and the truth");
    let direct = ahi(&wave, AhiOptions::default())?;
    let truth = Truth::load(&path)?.ok_or_else(|| MreError::Missing {
        what: "the truth",
        path: path.clone(),
        why: "the simulator writes it".into(),
        option: "another folder with --out, which nothing else writes into",
    })?;
    let constant = truth::constant_map(&wave, &truth)?;
    let comparisons = [&inversion.modulus, &direct, &constant]
        .map(|map| compare(map, &truth))
        .into_iter()
        .collect::<Result<Vec<_>, _>>()?;
    let shown = wave.freq.iter().position(|f| *f == SHOWN_HZ).unwrap_or(0);
    let title = format!(
        "Four discs of 10 kPa in 3 kPa, noise power {NOISE}, {} training steps",
        inversion.steps.unwrap_or(0)
    );
    let picture = folder.file("demo.png");
    comparison_figure(
        &truth,
        &[("network", &inversion.modulus), ("AHI", &direct)],
        Quantity::Storage,
        &[shown],
        &title,
    )?
    .write_png(&picture)?;
    let summary = json!({
        "program": "rtx mre demo",
        "version": env!("CARGO_PKG_VERSION"),
        "command": command_line(),
        "noise": NOISE,
        "seed": args.seed,
        "device": device.name(),
        "precision": devices::precision_record(&device, args.precision),
        "steps": inversion.steps,
        "seconds": inversion.seconds,
        "heldout_relative_l2": inversion.heldout_error,
        "settings": inversion.settings,
        "truth": comparisons,
    });
    write_json(&folder.file("metrics.json"), &summary)?;
    if args.json {
        say_json(&summary)?;
    } else {
        say(&truth::table(&comparisons))?;
        say(&format!(
            "\nR: correlation of |G|; MAD: relative median absolute deviation of G; CTE: contrast \
             transfer efficiency;\nregions: bg background, 2 to 5 discs of 10, 5, 3 and 2 mm.\n{} \
             steps in {:.0} s; the picture is {}",
            inversion.steps.unwrap_or(0),
            inversion.seconds,
            picture.display()
        ))?;
    }
    Ok(())
}
