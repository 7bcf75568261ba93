//! The multilayer perceptron, with Fourier features in front where wanted.

use crate::init::Init;
use crate::{self as rtx_nn, Activation, FourierFeatures, FrequencyScale, Linear, Module};
use rtx_tensor::{DType, Device, Tensor, Tree};

/// What is applied to the last layer.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub enum Output {
    /// Nothing.
    #[default]
    Linear,
    /// e^x: positive, of any magnitude.
    Exp,
    /// ln(1 + e^x): positive, linear where large.
    Softplus,
}

impl Output {
    /// Applies the function.
    #[track_caller]
    pub fn apply(self, x: &Tensor) -> Tensor {
        match self {
            Output::Linear => x.clone(),
            Output::Exp => x.exp(),
            Output::Softplus => Activation::Softplus.apply(x),
        }
    }
}

/// Optional Fourier features, then affine layers with an activation between them. Cheap to clone: the
/// clone shares the arrays.
#[derive(Clone, Debug, rtx_nn::Module)]
pub struct Mlp {
    /// Features of the inputs.
    pub fourier: Option<FourierFeatures>,
    /// Affine layers, the last one without activation.
    pub layers: Vec<Linear>,
    #[module(skip)]
    activation: Activation,
    #[module(skip)]
    output: Output,
}

impl Mlp {
    /// Describes a network from `inputs` to `outputs` columns; see [`MlpBuilder`].
    #[allow(clippy::new_ret_no_self)]
    pub fn new(inputs: usize, outputs: usize) -> MlpBuilder {
        MlpBuilder {
            inputs,
            outputs,
            hidden: vec![64; 2],
            activation: Activation::Tanh,
            init: None,
            siren: false,
            output: Output::Linear,
            fourier: None,
            seed: 0,
            dtype: DType::F32,
        }
    }

    /// The activation between layers.
    pub fn activation(&self) -> Activation {
        self.activation
    }

    /// The function applied to the last layer.
    pub fn output(&self) -> Output {
        self.output
    }
}

impl Module for Mlp {
    fn forward(&self, x: &Tensor) -> Tensor {
        let mut h = match &self.fourier {
            Some(f) => f.forward(x),
            None => x.clone(),
        };
        for (k, layer) in self.layers.iter().enumerate() {
            if k > 0 {
                h = self.activation.apply(&h);
            }
            h = layer.forward(&h);
        }
        self.output.apply(&h)
    }
}

/// Description of an [`Mlp`]: two hidden layers of 64, tanh and seed 0 in single precision unless told
/// otherwise.
#[derive(Clone, Debug)]
pub struct MlpBuilder {
    inputs: usize,
    outputs: usize,
    hidden: Vec<usize>,
    activation: Activation,
    init: Option<Init>,
    siren: bool,
    output: Output,
    fourier: Option<(usize, FrequencyScale, bool)>,
    seed: u64,
    dtype: DType,
}

impl MlpBuilder {
    /// Widths of the hidden layers; none makes a linear model.
    pub fn hidden(mut self, widths: &[usize]) -> Self {
        self.hidden = widths.to_vec();
        self
    }

    /// Activation between layers.
    pub fn activation(mut self, activation: Activation) -> Self {
        self.activation = activation;
        self.siren = false;
        self
    }

    /// Distribution of the weights (default: He for a rectifier, else Glorot-uniform).
    pub fn init(mut self, init: Init) -> Self {
        self.init = Some(init);
        self
    }

    /// Fixed random Fourier features: `features` frequencies with standard deviation `std` (one number, or
    /// one per input).
    pub fn fourier(mut self, features: usize, std: impl Into<FrequencyScale>) -> Self {
        self.fourier = Some((features, std.into(), false));
        self
    }

    /// Fourier features whose frequencies are trained.
    pub fn learnable_fourier(mut self, features: usize, std: impl Into<FrequencyScale>) -> Self {
        self.fourier = Some((features, std.into(), true));
        self
    }

    /// A sinusoidal network: activation sin(omega0 x) and the matching weights (Sitzmann et al. 2020).
    pub fn siren(mut self, omega0: f64) -> Self {
        self.activation = Activation::Sin { omega: omega0 };
        self.siren = true;
        self
    }

    /// Function of the last layer.
    pub fn output(mut self, output: Output) -> Self {
        self.output = output;
        self
    }

    /// Positive outputs through a softplus.
    pub fn positive(self) -> Self {
        self.output(Output::Softplus)
    }

    /// Seed of the initial weights.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Element type of the parameters.
    pub fn dtype(mut self, dtype: DType) -> Self {
        self.dtype = dtype;
        self
    }

    fn layer_init(&self, layer: usize) -> Init {
        match (self.init, self.activation) {
            (Some(init), _) => init,
            (None, Activation::Sin { .. }) if self.siren && layer == 0 => Init::SirenFirst,
            (None, Activation::Sin { omega }) if self.siren => Init::Siren { omega },
            (None, Activation::Relu) => Init::He,
            _ => Init::GlorotUniform,
        }
    }

    /// Draws the parameters. A mistake in the description (a list of frequency scales of the wrong length)
    /// travels with them and surfaces at the first read.
    #[track_caller]
    pub fn build(&self, device: &Device) -> Mlp {
        let fourier = self.fourier.as_ref().map(|(features, scale, learnable)| {
            let (seed, dtype) = (self.seed, self.dtype);
            FourierFeatures::new(
                self.inputs,
                *features,
                scale,
                *learnable,
                seed,
                dtype,
                device,
            )
        });
        let first = self.fourier.as_ref().map_or(self.inputs, |f| 2 * f.0);
        let mut widths = vec![first];
        widths.extend(&self.hidden);
        widths.push(self.outputs);
        let layers = widths
            .windows(2)
            .enumerate()
            .map(|(k, w)| {
                let init = self.layer_init(k);
                Linear::new(w[0], w[1], init, self.seed, k as u64, self.dtype, device)
            })
            .collect();
        let net = Mlp {
            fourier,
            layers,
            activation: self.activation,
            output: self.output,
        };
        // Drawn once here rather than by every program that uses them; a mistake stays in the tensors.
        let leaves = net.leaves();
        let _ = rtx_tensor::eval(&leaves.iter().collect::<Vec<_>>());
        net
    }
}
