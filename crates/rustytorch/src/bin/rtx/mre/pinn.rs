//! The interface of the network inversion, until `rtx_mre::pinn` is there: then this file goes, and
//! its users import that module instead.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use ndarray::Array5;
use num_complex::Complex64;
use rustytorch::mre::{Modulus, MreError, WaveField};
use rustytorch::tensor::Device;

/// The wave equation to fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Equation {
    /// G lap(u) + rho omega^2 u = 0.
    Helmholtz,
    /// div(G grad u) + rho omega^2 u = 0.
    Hetero,
}

/// How the modulus depends on frequency.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rheology3 {
    /// One map per frequency.
    Independent,
    /// G = mu.
    Elastic,
    /// G = mu + i omega eta.
    Voigt,
}

/// Settings.
#[allow(dead_code)]
#[derive(Debug, Clone)]
pub struct PinnOptions {
    pub equation: Equation,
    pub rheology: Rheology3,
    pub steps: Option<usize>,
    pub seed: u64,
    pub holdout: f64,
    pub holdout_block: usize,
    pub checkpoint: Option<PathBuf>,
    pub resume: bool,
    pub stop: Arc<AtomicBool>,
    pub progress: bool,
    pub csv: Option<PathBuf>,
    pub device: Device,
}

/// What a training gives.
#[derive(Debug, Clone)]
pub struct PinnResult {
    pub modulus: Modulus,
    pub fitted: Array5<Complex64>,
    pub steps: usize,
    pub stopped: bool,
    pub losses: Vec<(String, f64)>,
    pub heldout_error: Vec<Option<f64>>,
    pub seconds: f64,
    pub settings: serde_json::Value,
}

/// Trains the network.
pub fn invert(wave: &WaveField, _options: &PinnOptions) -> Result<PinnResult, MreError> {
    Err(MreError::Unsupported {
        path: wave.provenance.file.clone(),
        what: "the wave field with the method pinn, which this build lacks,".into(),
        hint: "use --method ahi or --method ratio".into(),
    })
}
