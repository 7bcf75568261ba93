//! Initial values of weights: deterministic in (seed, layer), whatever the device.

use rtx_tensor::{DType, Device, Tensor};

/// Distribution of initial weights.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Init {
    /// All zeros.
    Zeros,
    /// Uniform on ±sqrt(6 / (inputs + outputs)) (Glorot & Bengio 2010).
    GlorotUniform,
    /// Normal with variance 2 / inputs, for rectifiers (He et al. 2015).
    He,
    /// Uniform on ±1 / inputs: first layer of a sinusoidal network (Sitzmann et al. 2020).
    SirenFirst,
    /// Uniform on ±sqrt(6 / inputs) / omega: later layers of a sinusoidal network.
    Siren {
        /// Frequency factor of the activation.
        omega: f64,
    },
    /// Uniform on ±limit.
    Uniform {
        /// Largest magnitude.
        limit: f64,
    },
}

impl Init {
    /// A weight of shape [inputs, outputs] from random stream number `stream` (see [`seed_stream`]).
    pub fn weight(
        self,
        inputs: usize,
        outputs: usize,
        stream: u64,
        dtype: DType,
        device: &Device,
    ) -> Tensor {
        let n = inputs.max(1) as f64;
        let limit = match self {
            Init::Zeros => return Tensor::full([inputs, outputs], 0.0, dtype, device),
            Init::He => {
                let z = Tensor::random_normal([inputs, outputs], stream, dtype, device);
                return z * (2.0 / n).sqrt();
            }
            Init::GlorotUniform => (6.0 / (inputs + outputs).max(1) as f64).sqrt(),
            Init::SirenFirst => 1.0 / n,
            Init::Siren { omega } => (6.0 / n).sqrt() / omega,
            Init::Uniform { limit } => limit,
        };
        symmetric([inputs, outputs], limit, stream, dtype, device)
    }
}

/// Uniform numbers on ±limit.
pub(crate) fn symmetric<const N: usize>(
    shape: [usize; N],
    limit: f64,
    stream: u64,
    dtype: DType,
    device: &Device,
) -> Tensor {
    (Tensor::random_uniform(shape, stream, dtype, device) * 2.0 - 1.0) * limit
}

/// Number of the random stream of part `index` of a network with that seed: well mixed (the finalizer of
/// SplitMix64, Steele et al. 2014) and below 2^53, so that every backend holds it exactly.
pub fn seed_stream(seed: u64, index: u64) -> u64 {
    let mut z = mix(seed).wrapping_add(mix(index.wrapping_add(0x9e37_79b9_7f4a_7c15)));
    z = mix(z);
    z >> 11
}

fn mix(mut z: u64) -> u64 {
    z = z.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
