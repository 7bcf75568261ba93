//! The flags of `rtx mre invert`, and what they mean to the library.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use rustytorch::mre::axes::parse_frequencies;
use rustytorch::mre::pinn::{Equation, PinnRheology};
use rustytorch::mre::wave::MaskSource;
use rustytorch::mre::{LoadOptions, MreError};
use rustytorch::tensor::Precision;
use serde::Serialize;

use crate::failure::Failure;
use crate::output::{as_name, as_text};

/// How to invert.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// A physics-informed network: field and modulus fitted together.
    Pinn,
    /// Algebraic Helmholtz inversion, pixel by pixel.
    Ahi,
    /// Windowed ratio of |u| to |lap u|: magnitude only.
    Ratio,
}

/// The wave equation that the network obeys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum EquationArg {
    /// G lap(u) + rho omega^2 u = 0: the modulus is locally constant.
    Helmholtz,
    /// div(G grad u) + rho omega^2 u = 0: the modulus may vary.
    Hetero,
}

impl From<EquationArg> for Equation {
    fn from(equation: EquationArg) -> Self {
        match equation {
            EquationArg::Helmholtz => Self::Helmholtz,
            EquationArg::Hetero => Self::Hetero,
        }
    }
}

/// How the modulus depends on the frequency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RheologyArg {
    /// A map of its own for every frequency.
    Independent,
    /// G = mu, the same at all frequencies.
    Elastic,
    /// G = mu + i omega eta.
    Voigt,
}

impl From<RheologyArg> for PinnRheology {
    fn from(rheology: RheologyArg) -> Self {
        match rheology {
            RheologyArg::Independent => Self::Independent,
            RheologyArg::Elastic => Self::Elastic,
            RheologyArg::Voigt => Self::Voigt,
        }
    }
}

/// Training steps that can be meant.
pub const MOST_STEPS: u64 = 1_000_000_000;

/// Layers of rim pixels, part tissue and part fluid, that measured data lose by default.
const RIM: usize = 3;

/// Arguments of `rtx mre invert`.
#[derive(Debug, Args, Serialize)]
#[command(
    allow_negative_numbers = true,
    after_help = "Examples:\n  \
    rtx mre invert phantom/wave.npz --var u --axes freq,x,y --rheology voigt --out result\n  \
    rtx mre invert brain.mat --var displacement --axes x,y,slice,phase,dir,freq \\\n      \
    --freq 30,40,50,60 --spacing-mm 0.9375 --components z --out out/brain\n  \
    rtx mre invert wave.npz --var u --axes freq,x,y --method ahi --smoothing 2 --out ahi\n\n\
    Ctrl-C keeps a checkpoint; the same command with --resume goes on from it. A truth in the file \
    (arrays G and region) is compared with the result and never used for it.\n\
    Exit codes: 0 done, 1 failed, 2 bad input, 130 stopped by Ctrl-C."
)]
pub struct InvertArgs {
    /// A .mat (v5 to v7), .npy or .npz file; `rtx mre info FILE` lists what it holds.
    #[serde(serialize_with = "as_text")]
    pub input: PathBuf,
    /// Folder for modulus.npz, maps.png, metrics.json and, for the network, loss.csv and
    /// checkpoint.safetensors.
    #[arg(long, value_name = "DIR")]
    #[serde(serialize_with = "as_text")]
    pub out: PathBuf,
    /// How to invert.
    #[arg(long, value_enum, default_value_t = Method::Pinn)]
    pub method: Method,
    /// Print the metrics as JSON on the standard output.
    #[arg(long)]
    #[serde(skip)]
    pub json: bool,

    /// Array to read; needed where the file holds several.
    #[arg(long, help_heading = "Data")]
    pub var: Option<String>,
    /// Meaning of the array's axes, in its order: x (or col), y (or row), slice (or z), phase, dir,
    /// freq, and _ for an axis of length 1.
    #[arg(long, help_heading = "Data", value_name = "NAME,...")]
    pub axes: Option<String>,
    /// Vibration frequencies, Hz, one per entry of the freq axis.
    #[arg(
        long,
        help_heading = "Data",
        value_name = "HZ,...",
        allow_hyphen_values = true
    )]
    pub freq: Option<String>,
    /// Voxel size, mm: one number, or one each for x, y and, with several slices, slice.
    #[arg(
        long,
        help_heading = "Data",
        value_name = "MM",
        allow_hyphen_values = true
    )]
    pub spacing_mm: Option<String>,
    /// Directions of motion to use, with signs: z, +z, -x,+y, or numbers from 1 [default: all].
    #[arg(
        long,
        help_heading = "Data",
        value_name = "NAME,...",
        allow_hyphen_values = true
    )]
    pub components: Option<String>,
    /// Sign of i omega t in the time convention of the data.
    #[arg(
        long,
        help_heading = "Data",
        value_name = "+|-",
        default_value = "+",
        allow_hyphen_values = true
    )]
    pub time_sign: String,
    /// What to do about wrapped phase: auto (unwrap what is recognised), off, or the number that stands for a full turn.
    #[arg(
        long,
        help_heading = "Data",
        value_name = "auto|off|TURN",
        default_value = "auto"
    )]
    pub unwrap: String,
    /// auto (from the amplitude), all, an array of the input by name, or a file (FILE or FILE:NAME)
    /// whose non-zero pixels are tissue.
    #[arg(long, help_heading = "Data", default_value = "auto")]
    pub mask: String,
    /// Layers of pixels to take off the mask [default: 3 for measured data, 0 for a harmonic].
    #[arg(long, help_heading = "Data", value_name = "PIXELS")]
    pub erode: Option<usize>,

    /// Wave equation of the network [default: helmholtz for independent frequencies, else hetero].
    #[arg(long, help_heading = "Network", value_enum)]
    pub equation: Option<EquationArg>,
    /// How the modulus depends on the frequency.
    #[arg(long, help_heading = "Network", value_enum, default_value_t = RheologyArg::Independent)]
    pub rheology: RheologyArg,
    /// Training steps [default: chosen by the method].
    #[arg(long, help_heading = "Network", value_parser = clap::value_parser!(u64).range(1..=MOST_STEPS))]
    pub steps: Option<u64>,
    /// Seed of the weights, the sampled points and the held-out pixels.
    #[arg(long, help_heading = "Network", default_value_t = 0)]
    pub seed: u64,
    /// Device to train on; `rtx devices` lists them [default: that of RTX_DEVICE, or cpu].
    #[arg(long, help_heading = "Network")]
    pub device: Option<String>,
    /// How exact products of float32 arrays have to be: f32, bf16x3 (1e-5), tf32 (1e-3), bf16 (1e-2) or f16 (1e-3, with
    /// loss scaling). A device without a faster way computes in float32.
    #[arg(
        long,
        help_heading = "Network",
        default_value = "f32",
        value_name = "NAME"
    )]
    #[serde(serialize_with = "as_name")]
    pub precision: Precision,
    /// Share of the pixels that the training never sees, for the error of the fitted field.
    #[arg(
        long,
        help_heading = "Network",
        default_value_t = 0.2,
        allow_hyphen_values = true
    )]
    pub holdout: f64,
    /// Side of the held-out blocks, pixels; 1 scatters single pixels.
    #[arg(long, help_heading = "Network", value_name = "PIXELS", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    pub holdout_block: u64,
    /// Continue from the checkpoint in the output folder.
    #[arg(long, help_heading = "Network")]
    pub resume: bool,

    /// Standard deviation of the Gaussian that smooths the field, pixels [default: 2 for ahi, 1.5 for
    /// ratio].
    #[arg(
        long,
        help_heading = "Classical inversions",
        value_name = "PIXELS",
        allow_hyphen_values = true
    )]
    pub smoothing: Option<f64>,
    /// Standard deviation of the window of the ratio, pixels.
    #[arg(
        long,
        help_heading = "Classical inversions",
        value_name = "PIXELS",
        default_value_t = 2.0,
        allow_hyphen_values = true
    )]
    pub window: f64,

    /// Array of the input with a reference map of |G|, axes as in --axes without phase. It is
    /// compared with the result at the very end, and used for nothing else.
    #[arg(long, help_heading = "Comparison", value_name = "NAME")]
    pub reference_var: Option<String>,
    /// Unit of the reference map.
    #[arg(long, help_heading = "Comparison", value_name = "UNIT", value_parser = ["kPa", "Pa"], default_value = "kPa")]
    pub reference_unit: String,
    /// Layers of pixels to take off for that comparison, beside the rim where no Laplacian exists.
    #[arg(
        long,
        help_heading = "Comparison",
        value_name = "PIXELS",
        default_value_t = 3
    )]
    pub reference_erode: usize,
}

impl InvertArgs {
    /// Refuses values that no method can use.
    ///
    /// # Errors
    /// [`Failure::Input`] naming the flag.
    pub fn check(&self) -> Result<(), Failure> {
        let refuse = |message: String| Err(Failure::input(message));
        if !(0.0..=0.9).contains(&self.holdout) {
            return refuse(format!(
                "--holdout {}: give a share between 0 and 0.9, for example 0.2",
                self.holdout
            ));
        }
        for (flag, value) in [
            ("--smoothing", self.smoothing.unwrap_or(0.0)),
            ("--window", self.window),
        ] {
            if !(0.0..=50.0).contains(&value) {
                return refuse(format!("{flag} {value}: give pixels between 0 and 50"));
            }
        }
        if self.resume && self.method != Method::Pinn {
            return refuse(
                "--resume continues a training, and only --method pinn trains".to_string(),
            );
        }
        Ok(())
    }

    /// The wave equation asked for, or the one that suits the rheology.
    pub fn equation(&self) -> Equation {
        match (self.equation, self.rheology) {
            (Some(equation), _) => equation.into(),
            (None, RheologyArg::Independent) => Equation::Helmholtz,
            (None, _) => Equation::Hetero,
        }
    }

    /// What the flags say about the file.
    ///
    /// # Errors
    /// [`MreError::BadOption`] for a list that cannot be understood.
    pub fn load_options(&self) -> Result<LoadOptions, MreError> {
        let measured = self.axes.as_deref().is_some_and(|a| a.contains("phase"));
        Ok(LoadOptions {
            variable: self.var.clone(),
            axes: self.axes.as_deref().map(str::parse).transpose()?,
            freq: self.freq.as_deref().map(parse_frequencies).transpose()?,
            spacing: self.spacing_mm.as_deref().map(spacing).transpose()?,
            components: self.components.as_deref().map(str::parse).transpose()?,
            time_sign: self.time_sign.parse()?,
            unwrapping: self.unwrap.parse()?,
            mask: mask_source(&self.mask),
            erode: self.erode.unwrap_or(if measured { RIM } else { 0 }),
        })
    }
}

fn spacing(text: &str) -> Result<[f64; 3], MreError> {
    let bad = |problem: &str| MreError::BadOption {
        option: "--spacing-mm",
        given: text.into(),
        problem: problem.into(),
    };
    let numbers = text
        .split(',')
        .map(|item| match item.trim().parse::<f64>() {
            Ok(mm) if mm.is_finite() && mm > 0.0 => Ok(mm * 1e-3),
            _ => Err(bad(
                "the voxel size must be a positive number of millimetres",
            )),
        })
        .collect::<Result<Vec<_>, _>>()?;
    match numbers[..] {
        [all] => Ok([all; 3]),
        // NaN is no thickness: only a field of one slice does without it.
        [x, y] => Ok([x, y, f64::NAN]),
        [x, y, z] => Ok([x, y, z]),
        _ => Err(bad(
            "give one number, two for x and y of a single slice, or three for x, y and slice",
        )),
    }
}

/// `auto`, `all`, the name of an array of the input, or a file with an optional array name.
fn mask_source(text: &str) -> MaskSource {
    let array = |file: Option<&str>, variable: Option<&str>| MaskSource::Array {
        file: file.map(PathBuf::from),
        variable: variable.map(str::to_owned),
    };
    let is_file = |text: &str| {
        let name = text.to_ascii_lowercase();
        [".npy", ".npz", ".mat"].iter().any(|e| name.ends_with(e)) || text.contains('/')
    };
    match (text, text.rsplit_once(':')) {
        ("auto", _) => MaskSource::default(),
        ("all", _) => MaskSource::All,
        (_, Some((file, name))) if is_file(file) => array(Some(file), Some(name)),
        _ if is_file(text) => array(Some(text), None),
        _ => array(None, Some(text)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_are_named_in_four_ways() {
        let array = |file: Option<&str>, variable: Option<&str>| MaskSource::Array {
            file: file.map(PathBuf::from),
            variable: variable.map(String::from),
        };
        assert_eq!(mask_source("auto"), MaskSource::default());
        assert_eq!(mask_source("all"), MaskSource::All);
        assert_eq!(mask_source("brain"), array(None, Some("brain")));
        assert_eq!(mask_source("m.npy"), array(Some("m.npy"), None));
        assert_eq!(
            mask_source("d/m.npz:mask"),
            array(Some("d/m.npz"), Some("mask"))
        );
    }

    #[test]
    fn the_voxel_size_is_in_millimetres() {
        assert_eq!(spacing("2").unwrap(), [2e-3; 3]);
        assert_eq!(spacing("1, 2,4").unwrap(), [1e-3, 2e-3, 4e-3]);
        assert_eq!(spacing("1,2").unwrap()[..2], [1e-3, 2e-3]);
        for bad in ["", "0", "-1", "1,,2", "nan", "1,2,3,4"] {
            assert!(spacing(bad).is_err(), "{bad}");
        }
    }
}
