//! The minimiser of functions of flat vectors.

use crate::Result;
use crate::lbfgs::history::{History, dot};
use crate::lbfgs::line_search::{LineSearch, Point, Wolfe};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// L-BFGS (Liu & Nocedal 1989) with a strong-Wolfe line search, in double precision.
#[derive(Clone, Debug)]
pub struct Lbfgs {
    pub(crate) history: usize,
    pub(crate) max_iter: usize,
    pub(crate) gradient_tolerance: f64,
    pub(crate) value_tolerance: f64,
    wolfe: Wolfe,
    stop: Option<Arc<AtomicBool>>,
}

impl Default for Lbfgs {
    fn default() -> Self {
        Lbfgs {
            history: 20,
            max_iter: 1000,
            gradient_tolerance: 1e-10,
            value_tolerance: 1e-15,
            wolfe: Wolfe {
                c1: 1e-4,
                c2: 0.9,
                max_evaluations: 30,
            },
            stop: None,
        }
    }
}

/// Why a minimisation ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum StopReason {
    /// The largest gradient component is at or below the tolerance.
    Gradient {
        /// Largest magnitude of a gradient component.
        largest: f64,
        /// The tolerance.
        tolerance: f64,
    },
    /// The value decreased by less than the tolerance, relative to its magnitude, in ten iterations running.
    Value {
        /// The tolerance.
        tolerance: f64,
    },
    /// The number of iterations is used up.
    Iterations(usize),
    /// No point along the steepest descent is lower: rounding hides any further decrease.
    LineSearch {
        /// Largest magnitude of a gradient component.
        largest: f64,
    },
    /// The value or its gradient at the starting point is not a finite number.
    NotFinite,
    /// The stop flag was set.
    Stopped,
}

impl fmt::Display for StopReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StopReason::Gradient { largest, tolerance } => write!(
                f,
                "converged: the largest gradient component, {largest:.2e}, is at most {tolerance:.0e}"
            ),
            StopReason::Value { tolerance } => write!(
                f,
                "converged: the value decreased by less than {tolerance:.0e} of itself in ten iterations running"
            ),
            StopReason::Iterations(n) => {
                write!(f, "not converged: the limit of {n} iterations is reached")
            }
            StopReason::LineSearch { largest } => write!(
                f,
                "no lower point along the steepest descent: rounding hides any further decrease \
                 (largest gradient component {largest:.2e})"
            ),
            StopReason::NotFinite => {
                f.write_str("the value or its gradient at the starting point is NaN or infinite")
            }
            StopReason::Stopped => f.write_str("stopped on request"),
        }
    }
}

/// Where a minimisation ended.
#[derive(Clone, Debug)]
pub struct Minimum {
    /// The point.
    pub x: Vec<f64>,
    /// The value there.
    pub value: f64,
    /// The gradient there.
    pub gradient: Vec<f64>,
    /// Finished iterations.
    pub iterations: usize,
    /// Evaluations of value and gradient.
    pub evaluations: usize,
    /// Why it ended.
    pub reason: StopReason,
    /// Value at the start and after every iteration.
    pub values: Vec<f64>,
}

/// Iterations without progress that end a minimisation.
const PATIENCE: usize = 10;

impl Lbfgs {
    /// The default: 20 pairs of history, at most 1000 iterations.
    pub fn f64() -> Self {
        Lbfgs::default()
    }

    /// Largest number of iterations.
    pub fn max_iter(mut self, n: usize) -> Self {
        self.max_iter = n;
        self
    }

    /// Pairs of the history.
    pub fn history(mut self, pairs: usize) -> Self {
        self.history = pairs.max(1);
        self
    }

    /// Stops where the largest gradient component is at most this (default 1e-10).
    pub fn gradient_tolerance(mut self, tolerance: f64) -> Self {
        self.gradient_tolerance = tolerance;
        self
    }

    /// Stops where ten iterations running lower the value by less than this share of it (default 1e-15).
    pub fn value_tolerance(mut self, tolerance: f64) -> Self {
        self.value_tolerance = tolerance;
        self
    }

    /// A flag that ends the minimisation after the iteration in which somebody sets it.
    pub fn stop_flag(mut self, flag: Arc<AtomicBool>) -> Self {
        self.stop = Some(flag);
        self
    }

    /// Uses `flag` unless a flag was given.
    pub(crate) fn or_stop_flag(mut self, flag: &Arc<AtomicBool>) -> Self {
        self.stop.get_or_insert_with(|| flag.clone());
        self
    }

    /// Minimises a function that gives value and gradient, from `x`.
    ///
    /// # Errors
    /// Those of `objective`.
    pub fn minimize<F>(&self, mut objective: F, x: Vec<f64>) -> Result<Minimum>
    where
        F: FnMut(&[f64]) -> Result<(f64, Vec<f64>)>,
    {
        let (value, gradient) = objective(&x)?;
        let mut m = Minimum {
            x,
            value,
            gradient,
            iterations: 0,
            evaluations: 1,
            reason: StopReason::NotFinite,
            values: vec![value],
        };
        if !m.value.is_finite() || m.gradient.iter().any(|g| !g.is_finite()) {
            return Ok(m);
        }
        let mut history = History::new(self.history);
        let mut idle = 0;
        loop {
            if let Some(reason) = self.finished(&m, idle) {
                m.reason = reason;
                return Ok(m);
            }
            let Some(next) = self.step(&mut objective, &mut m, &mut history)? else {
                m.reason = StopReason::LineSearch {
                    largest: largest(&m.gradient),
                };
                return Ok(m);
            };
            let small = m.value - next.value <= self.value_tolerance * m.value.abs();
            idle = if small { idle + 1 } else { 0 };
            m.value = next.value;
            m.gradient = next.gradient;
            m.iterations += 1;
            m.values.push(m.value);
        }
    }

    fn finished(&self, m: &Minimum, idle: usize) -> Option<StopReason> {
        let largest = largest(&m.gradient);
        if largest <= self.gradient_tolerance {
            let tolerance = self.gradient_tolerance;
            return Some(StopReason::Gradient { largest, tolerance });
        }
        if idle >= PATIENCE {
            let tolerance = self.value_tolerance;
            return Some(StopReason::Value { tolerance });
        }
        if m.iterations >= self.max_iter {
            return Some(StopReason::Iterations(self.max_iter));
        }
        let stop = self
            .stop
            .as_ref()
            .is_some_and(|s| s.load(Ordering::Relaxed));
        stop.then_some(StopReason::Stopped)
    }

    /// One iteration: moves `m.x` and returns what was found there. A failed search is tried once more
    /// along the steepest descent with an empty history.
    fn step<F>(&self, f: &mut F, m: &mut Minimum, history: &mut History) -> Result<Option<Point>>
    where
        F: FnMut(&[f64]) -> Result<(f64, Vec<f64>)>,
    {
        loop {
            let mut direction = history.direction(&m.gradient);
            let mut slope = dot(&direction, &m.gradient);
            let descends = slope < 0.0;
            if !descends {
                history.clear();
                direction = history.direction(&m.gradient);
                slope = dot(&direction, &m.gradient);
            }
            let start = Point {
                alpha: 0.0,
                value: m.value,
                slope,
                gradient: m.gradient.clone(),
            };
            // Without history the direction has no scale; the first step then has length at most one.
            let first = if history.is_empty() {
                (1.0 / m.gradient.iter().map(|g| g.abs()).sum::<f64>()).min(1.0)
            } else {
                1.0
            };
            let mut line = LineSearch {
                objective: f,
                x: &m.x,
                direction: &direction,
                wolfe: self.wolfe,
                evaluations: 0,
            };
            let found = line.search(&start, first)?;
            m.evaluations += line.evaluations;
            match found {
                Some(p) => {
                    let s: Vec<f64> = direction.iter().map(|d| d * p.alpha).collect();
                    let y = p.gradient.iter().zip(&m.gradient).map(|(a, b)| a - b);
                    m.x.iter_mut()
                        .zip(&direction)
                        .for_each(|(x, d)| *x += p.alpha * d);
                    history.push(s, y.collect());
                    return Ok(Some(p));
                }
                None if history.is_empty() => return Ok(None),
                None => history.clear(),
            }
        }
    }
}

fn largest(v: &[f64]) -> f64 {
    v.iter().fold(0.0, |m, x| m.max(x.abs()))
}
