//! Unwrapping in space by sorting edges by reliability.
//!
//! Source: M. A. Herraez, D. R. Burton, M. J. Lalor, M. A. Gdeisat, Applied Optics 41 (2002), 7437-7444; for volumes
//! with second differences and edges along the third axis as well, as in H. S. Abdul-Rahman et al., Applied Optics
//! 46 (2007), 6623-6635.

use ndarray::{Array3, ArrayView3};

/// `value` less the nearest multiple of `period`.
pub(super) fn wrap(value: f64, period: f64) -> f64 {
    value - period * (value / period).round()
}

/// Groups of pixels whose whole periods relative to each other are known.
struct Groups {
    parent: Vec<usize>,
    size: Vec<usize>,
    /// Periods to add to a pixel beside those of its parent.
    periods: Vec<i64>,
}

impl Groups {
    fn new(pixels: usize) -> Self {
        Self {
            parent: (0..pixels).collect(),
            size: vec![1; pixels],
            periods: vec![0; pixels],
        }
    }

    /// The root of a pixel and the pixel's periods relative to it. Union by size keeps the way short.
    fn find(&self, mut at: usize) -> (usize, i64) {
        let mut periods = 0;
        while self.parent[at] != at {
            periods += self.periods[at];
            at = self.parent[at];
        }
        (at, periods)
    }

    /// Joins two pixels, `periods` being those of `b` less those of `a`.
    fn join(&mut self, a: usize, b: usize, periods: i64) {
        let ((root_a, from_a), (root_b, from_b)) = (self.find(a), self.find(b));
        if root_a == root_b {
            return;
        }
        let relative = from_a + periods - from_b;
        let (child, root, relative) = match self.size[root_a] >= self.size[root_b] {
            true => (root_b, root_a, relative),
            false => (root_a, root_b, -relative),
        };
        self.parent[child] = root;
        self.periods[child] = relative;
        self.size[root] += self.size[child];
    }
}

/// An unwrapped field and the connected part that each pixel belongs to.
pub(super) struct Unwrapped {
    /// The field; whole periods are right within a part. NaN outside.
    pub(super) field: Array3<f64>,
    /// The part of each pixel; `usize::MAX` outside.
    pub(super) part: Array3<usize>,
}

/// Unwraps the pixels `inside`, which must be finite.
pub(super) fn unwrap(field: ArrayView3<'_, f64>, inside: &Array3<bool>, period: f64) -> Unwrapped {
    let (nx, ny, nz) = field.dim();
    let index = |(x, y, z): (usize, usize, usize)| (x * ny + y) * nz + z;
    let reliability = reliability(field, inside, period);
    let mut edges: Vec<(f64, usize, usize, i64)> = Vec::new();
    for (at, _) in inside.indexed_iter().filter(|(_, i)| **i) {
        let (x, y, z) = at;
        for next in [(x + 1, y, z), (x, y + 1, z), (x, y, z + 1)] {
            if next.0 >= nx || next.1 >= ny || next.2 >= nz || !inside[next] {
                continue;
            }
            let difference = field[next] - field[at];
            let periods = -(difference / period).round() as i64;
            edges.push((
                reliability[at] + reliability[next],
                index(at),
                index(next),
                periods,
            ));
        }
    }
    edges.sort_by(|a, b| b.0.total_cmp(&a.0));
    let mut groups = Groups::new(nx * ny * nz);
    for (_, a, b, periods) in edges {
        groups.join(a, b, periods);
    }
    let mut out = Array3::from_elem(field.dim(), f64::NAN);
    let mut part = Array3::from_elem(field.dim(), usize::MAX);
    for (at, _) in inside.indexed_iter().filter(|(_, i)| **i) {
        let (root, periods) = groups.find(index(at));
        out[at] = field[at] + periods as f64 * period;
        part[at] = root;
    }
    Unwrapped { field: out, part }
}

/// One over the root of the summed squares of the second differences; zero at a rim.
fn reliability(field: ArrayView3<'_, f64>, inside: &Array3<bool>, period: f64) -> Array3<f64> {
    let (_, _, nz) = field.dim();
    const IN_PLANE: [[isize; 3]; 4] = [[1, 0, 0], [0, 1, 0], [1, 1, 0], [1, -1, 0]];
    const THROUGH: [[isize; 3]; 5] = [[1, 0, 0], [0, 1, 0], [1, 1, 0], [1, -1, 0], [0, 0, 1]];
    let lines: &[[isize; 3]] = if nz > 2 { &THROUGH } else { &IN_PLANE };
    let value = |at: (usize, usize, usize), step: [isize; 3]| {
        let x = at.0.checked_add_signed(step[0])?;
        let y = at.1.checked_add_signed(step[1])?;
        let z = at.2.checked_add_signed(step[2])?;
        (*inside.get((x, y, z))?).then(|| field[(x, y, z)])
    };
    Array3::from_shape_fn(field.dim(), |at| {
        if !inside[at] {
            return 0.0;
        }
        let mut sum = 0.0;
        for &line in lines {
            let (Some(before), Some(after)) = (value(at, line.map(|s| -s)), value(at, line)) else {
                return 0.0;
            };
            sum += (wrap(before - field[at], period) - wrap(field[at] - after, period)).powi(2);
        }
        // A perfectly flat neighbourhood is the most reliable one, not an infinity.
        1.0 / sum.sqrt().max(1e-12 * period)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::f64::consts::TAU;

    #[test]
    fn a_dome_of_many_periods_comes_back_around_a_hole() {
        for nz in [1, 4] {
            let truth = Array3::from_shape_fn((30, 26, nz), |(x, y, z)| {
                let r2 = (x as f64 - 12.0).powi(2) + (y as f64 - 14.0).powi(2);
                25.0 * (-r2 / 200.0).exp() + 0.5 * z as f64
            });
            let mut inside = Array3::from_elem((30, 26, nz), true);
            for x in 5..9 {
                for y in 8..11 {
                    inside[[x, y, 0]] = false;
                }
            }
            let out = unwrap(truth.mapv(|v| wrap(v, TAU)).view(), &inside, TAU);
            let base = out.field[[0, 0, 0]] - truth[[0, 0, 0]];
            for (at, _) in inside.indexed_iter().filter(|(_, i)| **i) {
                let error = out.field[at] - truth[at] - base;
                assert!(error.abs() < 1e-9, "{at:?}: {error}");
                assert_eq!(out.part[at], out.part[[0, 0, 0]]);
            }
            assert!(out.field[[6, 9, 0]].is_nan());
        }
    }
}
