//! A step length that satisfies the strong Wolfe conditions (Nocedal & Wright 2006, algorithms 3.5 and 3.6,
//! with cubic interpolation between two points, equation 3.59).

use crate::Result;
use crate::lbfgs::history::dot;

/// Constants of the conditions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wolfe {
    /// Sufficient decrease.
    pub c1: f64,
    /// Curvature.
    pub c2: f64,
    /// Evaluations that one search may use.
    pub max_evaluations: usize,
}

/// A point on the search line.
#[derive(Clone, Debug)]
pub(crate) struct Point {
    /// Step length.
    pub alpha: f64,
    /// Value.
    pub value: f64,
    /// Derivative along the line.
    pub slope: f64,
    /// Gradient.
    pub gradient: Vec<f64>,
}

impl Point {
    fn is_finite(&self) -> bool {
        self.value.is_finite() && self.slope.is_finite()
    }
}

/// The line and what was spent on it.
pub(crate) struct LineSearch<'a, F> {
    pub objective: &'a mut F,
    pub x: &'a [f64],
    pub direction: &'a [f64],
    pub wolfe: Wolfe,
    pub evaluations: usize,
}

/// Longest step tried, as a multiple of the direction.
const LONGEST: f64 = 1e10;

impl<F: FnMut(&[f64]) -> Result<(f64, Vec<f64>)>> LineSearch<'_, F> {
    fn at(&mut self, alpha: f64) -> Result<Point> {
        let x: Vec<f64> = self
            .x
            .iter()
            .zip(self.direction)
            .map(|(x, d)| x + alpha * d)
            .collect();
        self.evaluations += 1;
        let (value, gradient) = (self.objective)(&x)?;
        Ok(Point {
            alpha,
            value,
            slope: dot(&gradient, self.direction),
            gradient,
        })
    }

    fn spent(&self) -> bool {
        self.evaluations >= self.wolfe.max_evaluations
    }

    /// True where the value is low enough for its step length. Close to a minimum the value's own rounding
    /// hides the decrease; there the slope decides (Hager & Zhang 2005, the approximate condition).
    fn decreases(&self, start: &Point, p: &Point) -> bool {
        let exact = p.value <= start.value + self.wolfe.c1 * p.alpha * start.slope;
        let noise = 4.0 * f64::EPSILON * start.value.abs();
        let approximate =
            p.value <= start.value + noise && p.slope <= (2.0 * self.wolfe.c1 - 1.0) * start.slope;
        exact || approximate
    }

    /// Searches from `start` (step 0), trying `first` first. `None` if no acceptable point was found.
    pub fn search(&mut self, start: &Point, first: f64) -> Result<Option<Point>> {
        let mut low = start.clone();
        let mut alpha = first;
        let mut tried = 0;
        while !self.spent() {
            let p = self.at(alpha)?;
            if !p.is_finite() {
                // Outside the function's domain: come back towards the last good point.
                alpha = low.alpha + 0.1 * (alpha - low.alpha);
                continue;
            }
            if !self.decreases(start, &p) || (tried > 0 && p.value >= low.value) {
                return self.zoom(start, low, p);
            }
            if p.slope.abs() <= -self.wolfe.c2 * start.slope {
                return Ok(Some(p));
            }
            if p.slope >= 0.0 {
                return self.zoom(start, p, low);
            }
            let guess = cubic_minimum(&low, &p).filter(|a| *a > p.alpha);
            let (near, far) = (p.alpha * 1.1, (p.alpha * 10.0).min(LONGEST));
            alpha = guess.unwrap_or(p.alpha * 2.0).clamp(near.min(far), far);
            if p.alpha >= LONGEST {
                return Ok(Some(p));
            }
            low = p;
            tried += 1;
        }
        Ok(Some(low).filter(|p| p.alpha > 0.0))
    }

    /// Narrows the interval between `low` (the best point that decreases enough) and `high`.
    fn zoom(&mut self, start: &Point, mut low: Point, mut high: Point) -> Result<Option<Point>> {
        while !self.spent() {
            let width = high.alpha - low.alpha;
            if width.abs() <= 1e-14 * low.alpha.abs().max(high.alpha.abs()) {
                break;
            }
            let middle = low.alpha + 0.5 * width;
            // Too close to an end the cubic makes no progress.
            let (a, b) = (low.alpha + 0.1 * width, low.alpha + 0.9 * width);
            let alpha = cubic_minimum(&low, &high)
                .filter(|c| *c >= a.min(b) && *c <= a.max(b))
                .unwrap_or(middle);
            let p = self.at(alpha)?;
            if !p.is_finite() || !self.decreases(start, &p) || p.value > low.value {
                high = p;
                continue;
            }
            if p.slope.abs() <= -self.wolfe.c2 * start.slope {
                return Ok(Some(p));
            }
            if p.slope * width >= 0.0 {
                high = low;
            }
            low = p;
        }
        Ok(Some(low).filter(|p| p.alpha > 0.0))
    }
}

/// Minimum of the cubic through the values and slopes of two points.
fn cubic_minimum(a: &Point, b: &Point) -> Option<f64> {
    let d1 = a.slope + b.slope - 3.0 * (a.value - b.value) / (a.alpha - b.alpha);
    let square = d1 * d1 - a.slope * b.slope;
    // A negative square has a root that is NaN, which the last line refuses.
    let d2 = (b.alpha - a.alpha).signum() * square.sqrt();
    let t = (b.slope + d2 - d1) / (b.slope - a.slope + 2.0 * d2);
    Some(b.alpha - (b.alpha - a.alpha) * t).filter(|v| v.is_finite())
}
