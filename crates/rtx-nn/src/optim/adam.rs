//! Adam and AdamW.

use crate::optim::{Optimizer, zeros_like};
use rtx_tensor::Tensor;

/// Adam with bias correction (Kingma & Ba 2015); a weight decay is decoupled from the gradient (Loshchilov &
/// Hutter 2019). Slots: all first moments, then all second moments.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Adam {
    /// Decay of the first moment.
    pub beta1: f64,
    /// Decay of the second moment.
    pub beta2: f64,
    /// Added to the root of the corrected second moment.
    pub eps: f64,
    /// Share of a parameter, times the rate, that is taken away per step.
    pub weight_decay: f64,
}

impl Default for Adam {
    fn default() -> Self {
        Adam {
            beta1: 0.9,
            beta2: 0.999,
            eps: 1e-8,
            weight_decay: 0.0,
        }
    }
}

/// 1 - beta^step. Through expm1, because in single precision the plain form loses four digits at first.
fn correction(beta: f64, step: &Tensor) -> Tensor {
    -(step * beta.ln()).expm1()
}

impl Optimizer for Adam {
    fn init(&self, params: &[Tensor]) -> Vec<Tensor> {
        zeros_like(params).chain(zeros_like(params)).collect()
    }

    fn update(
        &self,
        params: &[Tensor],
        grads: &[Tensor],
        slots: &[Tensor],
        lr: &Tensor,
        step: &Tensor,
    ) -> (Vec<Tensor>, Vec<Tensor>) {
        let (first, second) = slots.split_at(params.len().min(slots.len()));
        let mut new = Vec::with_capacity(params.len());
        let (mut m, mut v) = (Vec::new(), Vec::new());
        for (((p, g), m0), v0) in params.iter().zip(grads).zip(first).zip(second) {
            let t = step.cast(p.dtype());
            let lr = lr.cast(p.dtype());
            let m1 = m0 * self.beta1 + g * (1.0 - self.beta1);
            let v1 = v0 * self.beta2 + g.square() * (1.0 - self.beta2);
            let mean = &m1 / correction(self.beta1, &t);
            let root = (&v1 / correction(self.beta2, &t)).sqrt();
            let mut direction = mean / (root + self.eps);
            if self.weight_decay != 0.0 {
                direction = direction + p * self.weight_decay;
            }
            new.push(p - direction * lr);
            m.push(m1);
            v.push(v1);
        }
        m.extend(v);
        (new, m)
    }

    fn describe(&self) -> String {
        format!(
            "adam beta1={} beta2={} eps={} weight_decay={}",
            self.beta1, self.beta2, self.eps, self.weight_decay
        )
    }
}
