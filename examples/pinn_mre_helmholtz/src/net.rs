//! Fourier features and an MLP.

use crate::numbers::{array, normal, symmetric};
use crate::workload::{FEATURES, HIDDEN, LAYERS};
use rtx_nn::Module;
use rtx_tensor::{Buffer, DType, Device, Tensor};
use std::f64::consts::PI;

/// `x -> [sin 2 pi x B, cos 2 pi x B] -> 4 x (128, tanh) -> outputs`.
#[derive(Clone, Debug, Module)]
pub struct Net {
    /// Fixed frequencies, `[2, 64]`.
    pub frequencies: Buffer,
    /// Weight `[inputs, outputs]` and bias `[outputs]` of each layer.
    pub layers: Vec<(Tensor, Tensor)>,
}

impl Net {
    /// Glorot-uniform weights and zero biases from the streams `10 seed` to `10 seed + 5`.
    pub fn new(outputs: usize, seed: u64, dtype: DType, device: &Device) -> Net {
        let stream = 10 * seed;
        let frequencies = array(&normal(stream, 2 * FEATURES), &[2, FEATURES], dtype, device);
        let layers = (0..=LAYERS)
            .map(|i| {
                let out = if i == LAYERS { outputs } else { HIDDEN };
                let limit = (6.0 / (HIDDEN + out) as f64).sqrt();
                let weight = symmetric(stream + 1 + i as u64, HIDDEN * out, limit);
                (
                    array(&weight, &[HIDDEN, out], dtype, device),
                    array(&vec![0.0; out], &[out], dtype, device),
                )
            })
            .collect();
        Net {
            frequencies: Buffer(frequencies),
            layers,
        }
    }
}

impl Module for Net {
    /// `[points, 2] -> [points, outputs]`.
    fn forward(&self, x: &Tensor) -> Tensor {
        let z = x.matmul(&self.frequencies.0) * (2.0 * PI);
        let mut h = Tensor::concat(&[&z.sin(), &z.cos()], 1);
        let last = self.layers.len().saturating_sub(1);
        for (i, (weight, bias)) in self.layers.iter().enumerate() {
            let y = h.matmul(weight) + bias;
            h = if i < last { y.tanh() } else { y };
        }
        h
    }
}
