//! The inverse Hessian of limited memory.

use std::collections::VecDeque;

/// Dot product in a fixed order.
pub(crate) fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

/// The last steps `s` and gradient differences `y`.
pub(crate) struct History {
    pairs: VecDeque<Pair>,
    capacity: usize,
}

struct Pair {
    s: Vec<f64>,
    y: Vec<f64>,
    /// 1 / (s . y)
    rho: f64,
}

impl History {
    pub fn new(capacity: usize) -> Self {
        History {
            pairs: VecDeque::new(),
            capacity: capacity.max(1),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }

    pub fn clear(&mut self) {
        self.pairs.clear();
    }

    /// Keeps a pair if its curvature is positive beyond rounding; anything else would break the
    /// positive definiteness of the matrix.
    pub fn push(&mut self, s: Vec<f64>, y: Vec<f64>) {
        let sy = dot(&s, &y);
        let size = (dot(&s, &s) * dot(&y, &y)).sqrt();
        let curved = sy > f64::EPSILON * size;
        if !curved {
            return;
        }
        if self.pairs.len() == self.capacity {
            self.pairs.pop_front();
        }
        let rho = 1.0 / sy;
        self.pairs.push_back(Pair { s, y, rho });
    }

    /// Minus the inverse Hessian times `gradient`, by the two-loop recursion (Nocedal & Wright 2006,
    /// algorithm 7.4, with the scaling of equation 7.20).
    pub fn direction(&self, gradient: &[f64]) -> Vec<f64> {
        let mut q: Vec<f64> = gradient.iter().map(|g| -g).collect();
        let mut alphas = Vec::with_capacity(self.pairs.len());
        for p in self.pairs.iter().rev() {
            let alpha = p.rho * dot(&p.s, &q);
            q.iter_mut().zip(&p.y).for_each(|(q, y)| *q -= alpha * y);
            alphas.push(alpha);
        }
        if let Some(p) = self.pairs.back() {
            let gamma = 1.0 / (p.rho * dot(&p.y, &p.y));
            q.iter_mut().for_each(|q| *q *= gamma);
        }
        for (p, alpha) in self.pairs.iter().zip(alphas.iter().rev()) {
            let beta = p.rho * dot(&p.y, &q);
            q.iter_mut()
                .zip(&p.s)
                .for_each(|(q, s)| *q += (alpha - beta) * s);
        }
        q
    }
}
