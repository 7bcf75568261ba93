//! A complex symmetric five-point stencil on a rectangular grid, and its sparse LDL^T factorisation.
//!
//! Multifrontal method (I. Duff, J. Reid, ACM Trans. Math. Softw. 9, 1983) in the order of
//! [`super::dissection`]. The grid is known, so no general-purpose sparse library is needed.

use super::dissection::Plan;
use super::front::Front;
use ndarray::{Array2, ArrayView2};
use num_complex::Complex64;

/// `(A u)[i,j] = diagonal[i,j] u[i,j] + sum of along * neighbour` over the four neighbours.
#[derive(Debug)]
pub(super) struct Stencil {
    /// `[nx, ny]`.
    pub diagonal: Array2<Complex64>,
    /// Coupling of cells (i, j) and (i + 1, j), `[nx - 1, ny]`.
    pub along_x: Array2<Complex64>,
    /// Coupling of cells (i, j) and (i, j + 1), `[nx, ny - 1]`.
    pub along_y: Array2<Complex64>,
}

impl Stencil {
    /// The product A u, `[nx, ny]`.
    pub fn apply(&self, u: ArrayView2<Complex64>) -> Array2<Complex64> {
        let mut out = &self.diagonal * &u;
        for ((i, j), &a) in self.along_x.indexed_iter() {
            out[[i, j]] += a * u[[i + 1, j]];
            out[[i + 1, j]] += a * u[[i, j]];
        }
        for ((i, j), &a) in self.along_y.indexed_iter() {
            out[[i, j]] += a * u[[i, j + 1]];
            out[[i, j + 1]] += a * u[[i, j]];
        }
        out
    }

    /// Largest absolute row sum.
    pub fn norm(&self) -> f64 {
        let mut sums = self.diagonal.mapv(Complex64::norm);
        for ((i, j), a) in self.along_x.indexed_iter() {
            sums[[i, j]] += a.norm();
            sums[[i + 1, j]] += a.norm();
        }
        for ((i, j), a) in self.along_y.indexed_iter() {
            sums[[i, j]] += a.norm();
            sums[[i, j + 1]] += a.norm();
        }
        sums.fold(0.0, |largest, &sum| f64::max(largest, sum))
    }

    /// Factorises A in the order of `plan`, which must be of the same grid.
    ///
    /// # Errors
    /// The cell and the pivot where the elimination broke down.
    pub fn factor<'p>(&self, plan: &'p Plan) -> Result<Factor<'p>, ZeroPivot> {
        debug_assert_eq!(self.diagonal.dim(), (plan.nx, plan.ny));
        let mut place = vec![0_u32; plan.order.len()];
        let mut front = Front::default();
        let mut pending: Vec<(&[u32], Vec<Complex64>)> = Vec::new();
        let mut panels = Vec::with_capacity(plan.nodes.len());
        for node in &plan.nodes {
            let own = &plan.order[node.own.clone()];
            let (count, size) = (own.len(), own.len() + node.ring.len());
            front.reset(size);
            for (at, &cell) in own.iter().chain(&node.ring).enumerate() {
                place[cell as usize] = at as u32;
            }
            self.assemble(plan, own, &place, &mut front);
            for _ in 0..if node.has_children { 2 } else { 0 } {
                if let Some((ring, schur)) = pending.pop() {
                    extend_add(&mut front, ring, &schur, &place);
                }
            }
            front
                .eliminate(count)
                .map_err(|pivot| ZeroPivot { pivot })?;
            panels.push(lower(&front, 0..count, size));
            if count < size {
                pending.push((&node.ring, lower(&front, count..size, size)));
            }
        }
        Ok(Factor { plan, panels })
    }

    /// Adds the entries of A between `own` cells and cells that are eliminated later.
    fn assemble(&self, plan: &Plan, own: &[u32], place: &[u32], front: &mut Front) {
        let ny = plan.ny;
        for &cell in own {
            let cell = cell as usize;
            let (i, j) = (cell / ny, cell % ny);
            let at = place[cell] as usize;
            front.add(at, at, self.diagonal[[i, j]]);
            let mut couple = |other: usize, value: Complex64| {
                if plan.rank[other] > plan.rank[cell] {
                    front.add(at, place[other] as usize, value);
                }
            };
            if i > 0 {
                couple(cell - ny, self.along_x[[i - 1, j]]);
            }
            if i + 1 < plan.nx {
                couple(cell + ny, self.along_x[[i, j]]);
            }
            if j > 0 {
                couple(cell - 1, self.along_y[[i, j - 1]]);
            }
            if j + 1 < ny {
                couple(cell + 1, self.along_y[[i, j]]);
            }
        }
    }
}

/// The pivot that was zero or not finite.
#[derive(Debug)]
pub(super) struct ZeroPivot {
    pub pivot: Complex64,
}

/// Copies `columns` of the lower triangle, column by column from the diagonal down.
fn lower(front: &Front, columns: std::ops::Range<usize>, size: usize) -> Vec<Complex64> {
    let entries = columns.clone().map(|c| size - c).sum();
    let mut packed = Vec::with_capacity(entries);
    for column in columns {
        packed.extend((column..size).map(|row| front.get(row, column)));
    }
    packed
}

/// Adds a child's Schur complement, whose rows are the cells `ring`, into its parent's front.
fn extend_add(front: &mut Front, ring: &[u32], schur: &[Complex64], place: &[u32]) {
    let mut entries = schur.iter();
    for (c, &column) in ring.iter().enumerate() {
        let column = place[column as usize] as usize;
        for (&row, &value) in ring[c..].iter().zip(&mut entries) {
            front.add(place[row as usize] as usize, column, value);
        }
    }
}

/// The factors of A = P L D L^T P^T.
#[derive(Debug)]
pub(super) struct Factor<'p> {
    plan: &'p Plan,
    /// Per node the columns of L from the diagonal down, with D in place of the unit diagonal.
    panels: Vec<Vec<Complex64>>,
}

impl Factor<'_> {
    /// Solves A u = `rhs`, both `[nx, ny]`.
    pub fn solve(&self, rhs: &Array2<Complex64>) -> Array2<Complex64> {
        let plan = self.plan;
        let mut x: Vec<Complex64> = rhs.iter().copied().collect();
        let mut rows = Vec::new();
        for (node, panel) in plan.nodes.iter().zip(&self.panels) {
            gather_rows(plan, node, &mut rows);
            let mut start = 0;
            for column in 0..node.own.len() {
                let value = x[rows[column]];
                let below = &panel[start + 1..start + rows.len() - column];
                for (&row, l) in rows[column + 1..].iter().zip(below) {
                    x[row] -= l * value;
                }
                x[rows[column]] = value / panel[start];
                start += rows.len() - column;
            }
        }
        for (node, panel) in plan.nodes.iter().zip(&self.panels).rev() {
            gather_rows(plan, node, &mut rows);
            let mut end = panel.len();
            for column in (0..node.own.len()).rev() {
                let start = end - (rows.len() - column);
                let mut value = x[rows[column]];
                for (&row, l) in rows[column + 1..].iter().zip(&panel[start + 1..end]) {
                    value -= l * x[row];
                }
                x[rows[column]] = value;
                end = start;
            }
        }
        Array2::from_shape_fn((plan.nx, plan.ny), |(i, j)| x[i * plan.ny + j])
    }
}

fn gather_rows(plan: &Plan, node: &super::dissection::Node, rows: &mut Vec<usize>) {
    rows.clear();
    rows.extend(
        plan.order[node.own.clone()]
            .iter()
            .chain(&node.ring)
            .map(|&c| c as usize),
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(nx: usize, ny: usize) -> Stencil {
        let wave = |i: usize, j: usize, a: f64| {
            Complex64::new((a + 1.3 * i as f64 + 0.7 * j as f64).sin(), 0.4 + a)
        };
        Stencil {
            diagonal: Array2::from_shape_fn((nx, ny), |(i, j)| wave(i, j, 0.1) - 2.0),
            along_x: Array2::from_shape_fn((nx - 1, ny), |(i, j)| 0.3 * wave(i, j, 0.5)),
            along_y: Array2::from_shape_fn((nx, ny - 1), |(i, j)| 0.3 * wave(i, j, 0.9)),
        }
    }

    #[test]
    fn the_factor_solves_grids_of_odd_shapes() {
        for (nx, ny) in [(1, 1), (1, 70), (70, 1), (5, 6), (23, 34), (90, 41)] {
            let stencil = sample(nx, ny);
            let plan = Plan::new(nx, ny);
            let truth =
                Array2::from_shape_fn((nx, ny), |(i, j)| Complex64::new(i as f64, 1.0 - j as f64));
            let rhs = stencil.apply(truth.view());
            let found = stencil.factor(&plan).unwrap().solve(&rhs);
            let error = (&found - &truth).mapv(|z| z.norm_sqr()).sum().sqrt();
            let norm = truth.mapv(|z| z.norm_sqr()).sum().sqrt();
            assert!(error < 1e-10 * norm, "{nx} x {ny}: {error} of {norm}");
        }
    }

    #[test]
    fn a_zero_matrix_is_refused() {
        let zero = Complex64::new(0.0, 0.0);
        let stencil = Stencil {
            diagonal: Array2::from_elem((4, 4), zero),
            along_x: Array2::from_elem((3, 4), zero),
            along_y: Array2::from_elem((4, 3), zero),
        };
        assert!(stencil.factor(&Plan::new(4, 4)).is_err());
    }
}
