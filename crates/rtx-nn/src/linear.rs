//! The affine layer.

use crate::init::{Init, seed_stream, symmetric};
use crate::{self as rtx_nn, Module};
use rtx_tensor::{DType, Device, Tensor};

/// y = x W + b with W of shape [inputs, outputs] and b of shape `[outputs]`.
#[derive(Clone, Debug, rtx_nn::Module)]
pub struct Linear {
    /// Weight, [inputs, outputs].
    pub weight: Tensor,
    /// Bias, `[outputs]`.
    pub bias: Tensor,
}

impl Linear {
    /// A layer with weights from `init` and a zero bias (sinusoidal layers: uniform on ±1/sqrt(inputs)).
    /// The numbers depend on `seed` and on the position `layer` in its network only.
    pub fn new(
        inputs: usize,
        outputs: usize,
        init: Init,
        seed: u64,
        layer: u64,
        dtype: DType,
        device: &Device,
    ) -> Linear {
        let weight = init.weight(inputs, outputs, seed_stream(seed, 2 * layer), dtype, device);
        let bias = match init {
            Init::SirenFirst | Init::Siren { .. } => {
                let limit = 1.0 / (inputs.max(1) as f64).sqrt();
                symmetric(
                    [outputs],
                    limit,
                    seed_stream(seed, 2 * layer + 1),
                    dtype,
                    device,
                )
            }
            _ => Tensor::full([outputs], 0.0, dtype, device),
        };
        Linear { weight, bias }
    }
}

impl Module for Linear {
    fn forward(&self, x: &Tensor) -> Tensor {
        x.matmul(&self.weight) + &self.bias
    }
}
