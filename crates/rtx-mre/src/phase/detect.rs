//! Whether samples over the phase offsets are a wrapped phase, and in which scale.

use ndarray::{Array3, ArrayView4};
use std::f64::consts::TAU;

/// A full turn in the scales that scanners and converters write, and its name.
pub(super) const SCALES: [(f64, &str); 5] = [
    (TAU, "radians"),
    (360.0, "degrees"),
    (4096.0, "4096 steps"),
    (1000.0 * TAU, "milliradians"),
    (8192.0, "-4096 to 4094"),
];

/// How far the period seen in jumps may be from that of a scale.
const TOLERANCE: f64 = 0.15;
/// Rounding of a period in single precision, and that of a step at its end.
const ROUNDING: f64 = 1e-4;
/// A jump is larger than this share of the range and than so many differences beside it.
const LARGE: f64 = 0.4;
const STEEPER: f64 = 3.0;
/// Share of the jumps that must have one period.
const MOST: f64 = 0.6;
/// Fewest jumps from which a period that is no known scale is concluded.
const SEVERAL: usize = 12;
/// Share of a scale's period that raw phase with noise around the body always fills.
const FILLED: f64 = 0.97;

/// What one frequency and direction looks like.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Looks {
    /// No sign of a wrapped phase.
    Smooth,
    /// Wrapped, with the period of a known scale.
    Wrapped(f64),
    /// The range of a known scale and jumps, but not of one period: noise, most likely.
    Unclear(f64),
    /// Jumps of one period which is that of no known scale.
    UnknownPeriod(f64),
}

/// Range and jumps of the samples `[offset, x, y, z]` of one frequency and direction.
pub(super) struct Samples {
    low: f64,
    high: f64,
    /// The period that each jump between neighbours suggests.
    jumps: Vec<f64>,
}

impl Samples {
    /// Looks at the pixels `inside`.
    pub(super) fn new(block: ArrayView4<'_, f64>, inside: &Array3<bool>) -> Self {
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for field in block.outer_iter() {
            for (v, _) in field.iter().zip(inside).filter(|(_, i)| **i) {
                (low, high) = (low.min(*v), high.max(*v));
            }
        }
        let mut out = Self {
            low,
            high,
            jumps: Vec::new(),
        };
        let range = out.range();
        for field in block.outer_iter() {
            let value = |at: [usize; 3]| {
                let known = inside.get(at).copied().unwrap_or(false);
                known.then(|| field[at])
            };
            for (at, v) in field.indexed_iter() {
                if !inside[at] {
                    continue;
                }
                let at = [at.0, at.1, at.2];
                for axis in 0..3 {
                    for forward in [true, false] {
                        let step = |n: usize| {
                            let mut next = at;
                            next[axis] = match forward {
                                true => at[axis] + n,
                                false => at[axis].checked_sub(n)?,
                            };
                            value(next)
                        };
                        let (Some(near), Some(far)) = (step(1), step(2)) else {
                            continue;
                        };
                        let (jump, slope) = (near - v, far - near);
                        if jump.abs() > LARGE * range && jump.abs() > STEEPER * slope.abs() {
                            // The phase itself went on by the slope: the jump is a period less that.
                            out.jumps.push(jump.abs() - jump.signum() * slope);
                        }
                    }
                }
            }
        }
        out
    }

    fn range(&self) -> f64 {
        self.high - self.low
    }

    /// Smallest and largest sample.
    pub(super) fn ends(&self) -> (f64, f64) {
        (self.low, self.high)
    }

    /// Whether all samples fit into one period.
    pub(super) fn fit_into(&self, period: f64) -> bool {
        self.range() <= period * (1.0 + ROUNDING)
    }

    /// Jumps of about this period.
    pub(super) fn jumps_of(&self, period: f64) -> usize {
        let near = |p: &&f64| (**p - period).abs() < TOLERANCE * period;
        self.jumps.iter().filter(near).count()
    }

    /// What the samples look like.
    pub(super) fn looks(&self) -> Looks {
        if !(self.range() > 0.0 && self.range().is_finite()) || self.jumps.is_empty() {
            return Looks::Smooth;
        }
        let most = (MOST * self.jumps.len() as f64).ceil() as usize;
        let known = SCALES.iter().map(|s| s.0).filter(|p| self.fit_into(*p));
        let best = known.max_by_key(|p| self.jumps_of(*p));
        if let Some(period) = best.filter(|p| self.jumps_of(*p) >= most.max(2)) {
            return Looks::Wrapped(period);
        }
        let filled = SCALES.iter().map(|s| s.0);
        if let Some(period) = filled
            .filter(|p| self.fit_into(*p) && self.range() > FILLED * p)
            .find(|p| self.jumps_of(*p) > 0)
        {
            return Looks::Unclear(period);
        }
        let mut jumps = self.jumps.clone();
        let period = crate::inversion::quantile(&mut jumps, 0.5);
        // A wrapped phase fills its range from end to end; a slip between tissues does not.
        let fills = (self.range() / period - 1.0).abs() < TOLERANCE;
        if self.jumps.len() >= SEVERAL && self.jumps_of(period) >= most && fills {
            return Looks::UnknownPeriod(period);
        }
        Looks::Smooth
    }
}
