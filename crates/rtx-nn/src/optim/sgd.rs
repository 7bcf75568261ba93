//! Stochastic gradient descent.

use crate::optim::{Optimizer, zeros_like};
use rtx_tensor::Tensor;

/// Gradient descent with heavy-ball momentum: v <- momentum v + g, p <- p - lr v (Polyak 1964).
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub struct Sgd {
    /// Share of the last direction that is kept; 0 needs no slots.
    pub momentum: f64,
}

impl Optimizer for Sgd {
    fn init(&self, params: &[Tensor]) -> Vec<Tensor> {
        if self.momentum == 0.0 {
            return Vec::new();
        }
        zeros_like(params).collect()
    }

    fn update(
        &self,
        params: &[Tensor],
        grads: &[Tensor],
        slots: &[Tensor],
        lr: &Tensor,
        _: &Tensor,
    ) -> (Vec<Tensor>, Vec<Tensor>) {
        let new_slots: Vec<Tensor> = slots
            .iter()
            .zip(grads)
            .map(|(v, g)| v * self.momentum + g)
            .collect();
        let directions = if new_slots.is_empty() {
            grads
        } else {
            &new_slots
        };
        let new = params
            .iter()
            .zip(directions)
            .map(|(p, d)| p - d * lr.cast(p.dtype()))
            .collect();
        (new, new_slots)
    }

    fn describe(&self) -> String {
        format!("sgd momentum={}", self.momentum)
    }
}
