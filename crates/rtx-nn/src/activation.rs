//! Activation functions.

use rtx_tensor::Tensor;

/// An elementwise nonlinearity. All but `Relu` have derivatives of every order.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub enum Activation {
    /// Hyperbolic tangent.
    #[default]
    Tanh,
    /// sin(omega x), of sinusoidal networks (Sitzmann et al. 2020).
    Sin {
        /// Frequency factor.
        omega: f64,
    },
    /// 1 / (1 + e^-x)
    Sigmoid,
    /// max(x, 0)
    Relu,
    /// ln(1 + e^x)
    Softplus,
    /// x sigmoid(x)
    Silu,
    /// Gaussian error linear unit in its tanh form (Hendrycks & Gimpel 2016).
    Gelu,
    /// x
    Identity,
}

impl Activation {
    /// Applies the function.
    #[track_caller]
    pub fn apply(self, x: &Tensor) -> Tensor {
        match self {
            Activation::Tanh => x.tanh(),
            Activation::Sin { omega: 1.0 } => x.sin(),
            Activation::Sin { omega } => (x * omega).sin(),
            Activation::Sigmoid => x.sigmoid(),
            Activation::Relu => x.relu(),
            Activation::Softplus => x.softplus(),
            Activation::Silu => x * x.sigmoid(),
            Activation::Gelu => {
                let inner = (x + x.square() * x * 0.044_715) * (2.0 / std::f64::consts::PI).sqrt();
                x * 0.5 * (inner.tanh() + 1.0)
            }
            Activation::Identity => x.clone(),
        }
    }
}
