//! Random Fourier features.

use crate::Module;
use crate::init::seed_stream;
use rtx_tensor::{Buffer, DType, Device, Tensor, Tree, Visit};
use std::f64::consts::PI;

/// Standard deviation of the frequencies, in cycles per unit of an input.
#[derive(Clone, Debug, PartialEq)]
pub enum FrequencyScale {
    /// The same for all inputs.
    Same(f64),
    /// One per input.
    PerInput(Vec<f64>),
}

impl From<f64> for FrequencyScale {
    fn from(std: f64) -> Self {
        FrequencyScale::Same(std)
    }
}

impl From<&[f64]> for FrequencyScale {
    fn from(std: &[f64]) -> Self {
        FrequencyScale::PerInput(std.to_vec())
    }
}

impl<const N: usize> From<[f64; N]> for FrequencyScale {
    fn from(std: [f64; N]) -> Self {
        FrequencyScale::PerInput(std.to_vec())
    }
}

/// The map x -> [sin(2 pi x B), cos(2 pi x B)] with random frequencies B (Tancik et al. 2020).
#[derive(Clone, Debug)]
pub enum FourierFeatures {
    /// Frequencies that stay as drawn; [inputs, features].
    Fixed(Buffer),
    /// Frequencies that are trained; [inputs, features].
    Learnable(Tensor),
}

impl FourierFeatures {
    /// Draws B ~ N(0, std²) of shape [inputs, features]; the result has `2 * features` columns. A list of
    /// deviations of another length than `inputs` gives an error tensor.
    #[track_caller]
    pub fn new(
        inputs: usize,
        features: usize,
        scale: &FrequencyScale,
        learnable: bool,
        seed: u64,
        dtype: DType,
        device: &Device,
    ) -> FourierFeatures {
        // Layers use streams from 0 upwards; features get one that no layer reaches.
        let z = Tensor::random_normal(
            [inputs, features],
            seed_stream(seed, u64::MAX),
            dtype,
            device,
        );
        let b = match scale {
            FrequencyScale::Same(std) => z * *std,
            FrequencyScale::PerInput(std) => z * Tensor::from_f64(std, [inputs, 1], dtype, device),
        };
        if learnable {
            FourierFeatures::Learnable(b)
        } else {
            FourierFeatures::Fixed(Buffer(b))
        }
    }

    /// The frequencies, [inputs, features].
    pub fn frequencies(&self) -> &Tensor {
        match self {
            FourierFeatures::Fixed(Buffer(b)) | FourierFeatures::Learnable(b) => b,
        }
    }
}

impl Module for FourierFeatures {
    fn forward(&self, x: &Tensor) -> Tensor {
        let phase = x.matmul(self.frequencies()) * (2.0 * PI);
        let last = phase.rank().saturating_sub(1);
        Tensor::concat(&[&phase.sin(), &phase.cos()], last)
    }
}

fn path_of(path: &str) -> String {
    if path.is_empty() {
        "frequencies".to_string()
    } else {
        format!("{path}.frequencies")
    }
}

impl Tree for FourierFeatures {
    fn visit(&self, path: &str, trainable: bool, f: &mut dyn FnMut(Visit<'_>, &Tensor)) {
        match self {
            FourierFeatures::Fixed(b) => b.visit(&path_of(path), trainable, f),
            FourierFeatures::Learnable(b) => b.visit(&path_of(path), trainable, f),
        }
    }

    fn map(
        &self,
        path: &str,
        trainable: bool,
        f: &mut dyn FnMut(Visit<'_>, &Tensor) -> Tensor,
    ) -> Self {
        let path = path_of(path);
        match self {
            FourierFeatures::Fixed(b) => FourierFeatures::Fixed(b.map(&path, trainable, f)),
            FourierFeatures::Learnable(b) => FourierFeatures::Learnable(b.map(&path, trainable, f)),
        }
    }
}
