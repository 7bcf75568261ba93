//! What the user chooses, what follows from it, and what comes back.

use crate::inversion::Modulus;
use crate::wave::WaveField;
use ndarray::Array5;
use num_complex::Complex64;
use rtx_tensor::{Device, Precision};
use serde::Serialize;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Wave equation of the residual.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Equation {
    /// G lap u + rho omega^2 u = 0: locally constant modulus.
    Helmholtz,
    /// div(G grad u) + rho omega^2 u = 0.
    Hetero,
}

impl std::fmt::Display for Equation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Equation::Helmholtz => "Helmholtz equation",
            Equation::Hetero => "heterogeneous wave equation",
        })
    }
}

/// How the modulus depends on frequency.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PinnRheology {
    /// A complex modulus for each frequency.
    Independent,
    /// One real modulus.
    Elastic,
    /// mu(x) + i omega eta with one viscosity eta.
    Voigt,
}

/// Settings of the training. All are frozen beforehand; none is taken from a true map.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Recipe {
    /// Steps of Adam.
    pub steps: usize,
    /// Pixels drawn at each step.
    pub points: usize,
    /// Largest learning rate: reached after 2 % of the steps, it falls to zero by half a cosine.
    pub learning_rate: f64,
    /// Fourier features of u and of the modulus.
    pub features: [usize; 2],
    /// Width of the hidden layers of u and of the modulus.
    pub width: [usize; 2],
    /// Hidden layers of u and of the modulus.
    pub depth: [usize; 2],
    /// Standard deviation of the features' angular frequency over the largest wavenumber, for u and the modulus.
    pub bandwidth: [f64; 2],
    /// Weight of the wave equation against the data.
    pub equation_weight: f64,
    /// Part of the training over which that weight rises from zero.
    pub ramp: f64,
    /// Frequencies count by their noise to the power of minus twice this.
    pub noise_power: f64,
    /// Weight of the total variation of the log modulus (per half extent of the mask).
    pub variation_weight: f64,
    /// Smoothing of the total variation.
    pub variation_floor: f64,
    /// The residual is divided by |G / G0| to this power.
    pub residual_power: f64,
    /// Loss over storage modulus at the start, for [`PinnRheology::Voigt`].
    pub initial_viscosity: f64,
}

impl Recipe {
    /// Several frequencies that share one modulus map.
    pub fn joint() -> Self {
        Recipe {
            steps: 12_000,
            points: 1024,
            learning_rate: 6e-3,
            features: [64, 32],
            width: [128, 64],
            depth: [3, 2],
            bandwidth: [0.8, 0.8],
            equation_weight: 0.1,
            ramp: 0.2,
            noise_power: 0.0,
            variation_weight: 2e-4,
            variation_floor: 0.1,
            residual_power: 0.5,
            initial_viscosity: 0.05,
        }
    }

    /// One complex modulus map for each frequency: fewer data for more unknowns, so a softer equation.
    pub fn independent() -> Self {
        Recipe {
            steps: 4000,
            learning_rate: 2e-3,
            features: [32, 32],
            bandwidth: [0.35, 0.5],
            equation_weight: 5e-3,
            ramp: 0.1,
            noise_power: 0.5,
            variation_weight: 3e-5,
            ..Recipe::joint()
        }
    }

    /// A short training for demonstrations: smaller networks, fewer points.
    pub fn quick() -> Self {
        Recipe {
            steps: 6000,
            points: 512,
            features: [32, 32],
            width: [96, 64],
            ..Recipe::joint()
        }
    }
}

/// Settings of [`invert`](super::invert).
#[derive(Clone, Debug)]
pub struct PinnOptions {
    /// Wave equation.
    pub equation: Equation,
    /// Dependence on frequency.
    pub rheology: PinnRheology,
    /// Steps of training; `None` for the recipe's.
    pub steps: Option<usize>,
    /// Seed of weights, draws and held-out pixels.
    pub seed: u64,
    /// Fraction of the pixels that the data term does not see, 0 to 0.9.
    pub holdout: f64,
    /// Side of the held-out blocks in pixels; 0 or 1 for scattered pixels.
    pub holdout_block: usize,
    /// Where checkpoints go; `None` for none.
    pub checkpoint: Option<PathBuf>,
    /// Continue from the checkpoint.
    pub resume: bool,
    /// Ends the training at the next read when set.
    pub stop: Arc<AtomicBool>,
    /// Show a progress bar.
    pub progress: bool,
    /// Log of the losses.
    pub csv: Option<PathBuf>,
    /// Device that trains.
    pub device: Device,
    /// Arithmetic of products in the training step.
    pub precision: Precision,
    /// Settings other than the standard ones of the rheology.
    pub recipe: Option<Recipe>,
}

impl Default for PinnOptions {
    fn default() -> Self {
        PinnOptions {
            equation: Equation::Hetero,
            rheology: PinnRheology::Voigt,
            steps: None,
            seed: 0,
            holdout: 0.2,
            holdout_block: 1,
            checkpoint: None,
            resume: false,
            stop: Arc::default(),
            progress: false,
            csv: None,
            device: Device::best(),
            precision: Precision::F32,
            recipe: None,
        }
    }
}

impl PinnOptions {
    pub(super) fn recipe(&self, _: &WaveField) -> Recipe {
        self.recipe.unwrap_or(match self.rheology {
            PinnRheology::Independent => Recipe::independent(),
            _ => Recipe::joint(),
        })
    }
}

/// What an inversion gives.
#[derive(Clone, Debug)]
pub struct PinnResult {
    /// Maps of the modulus.
    pub modulus: Modulus,
    /// The network's field, [freq, component, x, y, z], in the units of the data; NaN outside the mask.
    pub fitted: Array5<Complex64>,
    /// Steps done in all.
    pub steps: usize,
    /// True if the stop flag ended the training early.
    pub stopped: bool,
    /// The last losses by name.
    pub losses: Vec<(String, f64)>,
    /// Relative L2 error of u at the held-out pixels, per frequency.
    pub heldout_error: Vec<Option<f64>>,
    /// Wall time, s.
    pub seconds: f64,
    /// Every setting and scale, for the record.
    pub settings: serde_json::Value,
}
