//! What a network is.

use rtx_tensor::{Tensor, Tree};

/// A function of tensors with named parameters. Derive the structure with `#[derive(Module)]`.
pub trait Module: Tree {
    /// Applies the network to rows of inputs: `[points, inputs] -> [points, outputs]`.
    fn forward(&self, x: &Tensor) -> Tensor;
}
