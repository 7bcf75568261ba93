//! Arithmetic of a step.

use crate::workload::{FEATURES, HIDDEN, LAYERS, Workload};

/// Floating-point operations of the matrix products that one step needs. Elementwise work is left out, and
/// so is the optimizer: it does not grow with the points.
///
/// A product is needed once forward, once for the gradient of its weight and once for that of its operand
/// (which the features do not have), times the derivative channels that go through it: 1 in F and A; in B 4
/// for `u` (value, two first derivatives, Laplacian) and 3 for `mu`.
pub fn flops_per_step(workload: Workload, points: usize) -> f64 {
    let per_point: usize = match workload {
        Workload::F => features() + pass(2, 1),
        Workload::A => features() + training(1, 1),
        Workload::B => 2 * features() + training(2, 4) + training(1, 3),
    };
    (per_point * points) as f64
}

fn features() -> usize {
    2 * 2 * FEATURES
}

/// All layers of a network, forward.
fn pass(outputs: usize, channels: usize) -> usize {
    channels * 2 * HIDDEN * (LAYERS * HIDDEN + outputs)
}

fn training(outputs: usize, channels: usize) -> usize {
    3 * pass(outputs, channels) - channels * 2 * HIDDEN * HIDDEN
}
