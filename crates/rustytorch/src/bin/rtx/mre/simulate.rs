//! `rtx mre simulate`.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Instant;

use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use rustytorch::mre::simulate::{
    Disc, Face, Layer, Phantom, PhantomConfig, PhantomOverrides, Preset, Rheology, simulate,
};
use serde_json::json;

use crate::failure::Failure;
use crate::output::{OutputFolder, command_line, say, say_json, write_json};

/// Arguments of `rtx mre simulate`.
#[derive(Debug, Args)]
#[command(
    allow_negative_numbers = true,
    after_help = "Examples:\n  \
    rtx mre simulate --preset four-target --noise 1e-3 --seed 1 --out phantom\n  \
    rtx mre simulate --preset homogeneous --size 60,60 --freq 60,80 --disc 30,30,6,8 --out one-disc\n  \
    rtx mre simulate --config phantom.toml --noise 1e-2 --out noisy\n\n\
    The file wave.npz holds `u` and the truth `G` [freq, x, y], `region` [x, y], `freq` (Hz) and \
    `spacing` (m). Flags go before the TOML file, which goes before the preset."
)]
pub struct SimulateArgs {
    /// Folder for wave.npz and phantom.json.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Phantom to start from: four-target, homogeneous or layered [default: four-target without --config].
    #[arg(long)]
    preset: Option<String>,
    /// TOML file with the fields of the phantom (those of phantom.json).
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Noise power relative to the mean of |u|^2 at each frequency [preset: 0].
    #[arg(long, value_name = "POWER")]
    noise: Option<f64>,
    /// Seed of the noise [preset: 0].
    #[arg(long)]
    seed: Option<u64>,
    /// Pixels along x and y [preset: 80,100].
    #[arg(long, value_name = "NX,NY", allow_hyphen_values = true)]
    size: Option<String>,
    /// Pixel spacing, mm [preset: 1].
    #[arg(long, value_name = "MM")]
    spacing_mm: Option<f64>,
    /// Drive frequencies, Hz [preset: 50,60,70,80,90,100].
    #[arg(long, value_name = "HZ,...", allow_hyphen_values = true)]
    freq: Option<String>,
    /// Elastic modulus of the background, kPa [preset: 3].
    #[arg(long, value_name = "KPA")]
    background_kpa: Option<f64>,
    /// Viscosity where no disc or layer names its own, Pa s [preset: 1].
    #[arg(long, value_name = "PA_S")]
    viscosity: Option<f64>,
    /// elastic, voigt or springpot:ALPHA with ALPHA between 0 and 1 [preset: voigt].
    #[arg(long)]
    rheology: Option<String>,
    /// A disc: centre x, y and radius in mm, modulus in kPa, and its viscosity in Pa s if it has its
    /// own. May be repeated; replaces the preset's discs.
    #[arg(
        long = "disc",
        value_name = "X,Y,R,KPA[,ETA]",
        allow_hyphen_values = true
    )]
    discs: Vec<String>,
    /// A layer: start and end in mm, modulus in kPa, and its viscosity. May be repeated; replaces the
    /// preset's layers.
    #[arg(
        long = "layer",
        value_name = "FROM,TO,KPA[,ETA]",
        allow_hyphen_values = true
    )]
    layers: Vec<String>,
    /// Face that is shaken: x-min, x-max, y-min or y-max [preset: x-max].
    #[arg(long, value_name = "FACE")]
    driven_face: Option<String>,
    /// Displacement of that face, in the unit that u shall have [preset: 1].
    #[arg(long, allow_hyphen_values = true)]
    amplitude: Option<f64>,
    /// Cells of the computational grid per pixel edge [preset: 4].
    #[arg(long, value_name = "CELLS")]
    subsampling: Option<usize>,
    /// Largest memory the solution may take, MiB [preset: 4096].
    #[arg(long, value_name = "MIB")]
    memory_limit_mib: Option<f64>,
    /// Print a JSON summary.
    #[arg(long)]
    json: bool,
}

/// Simulates and writes a phantom.
pub fn run(args: &SimulateArgs) -> Result<(), Failure> {
    let started = Instant::now();
    let config = config(args)?;
    let folder = OutputFolder::prepare(&args.out, &["wave.npz", "phantom.json"])?;
    let phantom = solve(&config)?;
    let path = folder.file("wave.npz");
    phantom.write_npz(&path)?;
    let as_json = serde_json::to_value(&config).map_err(|e| Failure::Other(e.to_string()))?;
    let summary = json!({
        "file": path.display().to_string(),
        "phantom": as_json,
        "seconds": started.elapsed().as_secs_f64(),
        "version": env!("CARGO_PKG_VERSION"),
        "command": command_line(),
    });
    write_json(&folder.file("phantom.json"), &summary)?;
    if args.json {
        say_json(&summary)?;
    } else {
        let [nx, ny] = config.size;
        say(&format!(
            "{}: {nx} x {ny} pixels of {} mm, {} frequencies, noise power {}, seed {}\n\
             invert it with: rtx mre invert {} --var u --axes freq,x,y --out DIR",
            path.display(),
            config.spacing_mm,
            config.frequencies_hz.len(),
            config.noise,
            config.seed,
            path.display(),
        ))?;
    }
    Ok(())
}

/// Solves a phantom under a progress bar.
pub fn solve(config: &PhantomConfig) -> Result<Phantom, Failure> {
    let bar = ProgressBar::new(config.frequencies_hz.len() as u64);
    if let Ok(style) = ProgressStyle::with_template("{msg} [{bar:30}] {pos}/{len} {elapsed}") {
        bar.set_style(style);
    }
    bar.set_message("solving the wave equation");
    let phantom = simulate(config, |step| bar.set_position(step.done as u64));
    bar.finish_and_clear();
    Ok(phantom?)
}

fn config(args: &SimulateArgs) -> Result<PhantomConfig, Failure> {
    let base = match &args.config {
        Some(path) => PhantomOverrides::from_toml_file(path)?,
        None => PhantomOverrides {
            preset: Some(Preset::FourTarget),
            ..PhantomOverrides::default()
        },
    };
    let numbers = |option: &str, text: &String| parse_list::<f64>(option, text);
    let discs = args.discs.iter().map(|text| disc(text));
    let layers = args.layers.iter().map(|text| layer(text));
    let (discs, layers) = (
        discs.collect::<Result<Vec<_>, _>>()?,
        layers.collect::<Result<Vec<_>, _>>()?,
    );
    let flags = PhantomOverrides {
        preset: args.preset.as_deref().map(Preset::from_str).transpose()?,
        size: args.size.as_ref().map(|text| size(text)).transpose()?,
        spacing_mm: args.spacing_mm,
        frequencies_hz: args
            .freq
            .as_ref()
            .map(|text| numbers("--freq", text))
            .transpose()?,
        background_kpa: args.background_kpa,
        viscosity_pa_s: args.viscosity,
        rheology: args
            .rheology
            .as_deref()
            .map(Rheology::from_str)
            .transpose()?,
        driven_face: args
            .driven_face
            .as_deref()
            .map(Face::from_str)
            .transpose()?,
        amplitude: args.amplitude,
        subsampling: args.subsampling,
        noise: args.noise,
        seed: args.seed,
        memory_limit_mib: args.memory_limit_mib,
        layers: (!layers.is_empty()).then_some(layers),
        discs: (!discs.is_empty()).then_some(discs),
        ..PhantomOverrides::default()
    };
    Ok(base.merge(flags).into_config()?)
}

fn parse_list<T: FromStr>(option: &str, text: &str) -> Result<Vec<T>, Failure> {
    text.split(',')
        .map(|item| {
            item.trim().parse().map_err(|_| {
                Failure::input(format!(
                    "{option} {text}: `{}` is not a {}number",
                    item.trim(),
                    if option == "--size" {
                        "whole, positive "
                    } else {
                        ""
                    }
                ))
            })
        })
        .collect()
}

fn size(text: &str) -> Result<[usize; 2], Failure> {
    <[usize; 2]>::try_from(parse_list("--size", text)?).map_err(|found| {
        Failure::input(format!(
            "--size {text}: {} numbers; give pixels along x and y, for example --size 80,100",
            found.len()
        ))
    })
}

fn disc(text: &str) -> Result<Disc, Failure> {
    match parse_list("--disc", text)?[..] {
        [cx_mm, cy_mm, radius_mm, modulus_kpa, ref eta @ ..] if eta.len() < 2 => Ok(Disc {
            cx_mm,
            cy_mm,
            radius_mm,
            modulus_kpa,
            viscosity_pa_s: eta.first().copied(),
        }),
        ref found => Err(Failure::input(format!(
            "--disc {text}: {} numbers; give X,Y,RADIUS in mm and the modulus in kPa, and perhaps a \
             viscosity in Pa s, for example --disc 40,50,5,10",
            found.len()
        ))),
    }
}

fn layer(text: &str) -> Result<Layer, Failure> {
    match parse_list("--layer", text)?[..] {
        [from_mm, to_mm, modulus_kpa, ref eta @ ..] if eta.len() < 2 => Ok(Layer {
            from_mm,
            to_mm,
            modulus_kpa,
            viscosity_pa_s: eta.first().copied(),
        }),
        ref found => Err(Failure::input(format!(
            "--layer {text}: {} numbers; give FROM,TO in mm and the modulus in kPa, and perhaps a \
             viscosity in Pa s, for example --layer 20,40,6",
            found.len()
        ))),
    }
}
