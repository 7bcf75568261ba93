//! The wave field of one frequency: div(G grad u) + rho omega^2 u = 0 by cell-centred finite volumes.
//!
//! The flux through a face between two cells uses the harmonic mean of their moduli, which keeps
//! displacement and stress continuous where the modulus jumps. On the driven face u is prescribed,
//! half a cell from the outermost cell centres; the other faces carry no stress.

use super::config::Face;
use super::dissection::Plan;
use super::error::SimulateError;
use super::stencil::Stencil;
use ndarray::{Array2, ArrayView2, s};
use num_complex::Complex64;

/// Largest accepted backward error |b - A u| / (|A| |u| + |b|) after one step of refinement.
const BACKWARD_ERROR: f64 = 1e-12;

/// One frequency on the computational grid.
pub(super) struct WaveProblem {
    /// Complex modulus in Pa, `[nx, ny]`.
    pub modulus: Array2<Complex64>,
    /// Edge of a cell in m.
    pub cell: f64,
    /// Density in kg/m3.
    pub density: f64,
    /// Frequency in Hz.
    pub frequency_hz: f64,
    /// The face with prescribed displacement.
    pub driven: Face,
    /// That displacement.
    pub amplitude: f64,
}

impl WaveProblem {
    /// The equations times the cell area, and the coupling 2 G of each cell to the driven face
    /// (zero elsewhere).
    fn assemble(&self) -> (Stencil, Array2<Complex64>) {
        let g = &self.modulus;
        let (nx, ny) = g.dim();
        let harmonic = |a: Complex64, b: Complex64| 2.0 * a * b / (a + b);
        let along_x =
            Array2::from_shape_fn((nx - 1, ny), |(i, j)| harmonic(g[[i, j]], g[[i + 1, j]]));
        let along_y =
            Array2::from_shape_fn((nx, ny - 1), |(i, j)| harmonic(g[[i, j]], g[[i, j + 1]]));

        let mut drive = Array2::from_elem((nx, ny), Complex64::new(0.0, 0.0));
        let face = match self.driven {
            Face::XMin => s![..1, ..],
            Face::XMax => s![nx - 1.., ..],
            Face::YMin => s![.., ..1],
            Face::YMax => s![.., ny - 1..],
        };
        drive
            .slice_mut(face)
            .assign(&g.slice(face).mapv(|g| 2.0 * g));

        let omega = std::f64::consts::TAU * self.frequency_hz;
        let inertia = self.density * omega * omega * self.cell * self.cell;
        let mut diagonal = drive.mapv(|coupling| inertia - coupling);
        for ((i, j), &coupling) in along_x.indexed_iter() {
            diagonal[[i, j]] -= coupling;
            diagonal[[i + 1, j]] -= coupling;
        }
        for ((i, j), &coupling) in along_y.indexed_iter() {
            diagonal[[i, j]] -= coupling;
            diagonal[[i, j + 1]] -= coupling;
        }
        (
            Stencil {
                diagonal,
                along_x,
                along_y,
            },
            drive,
        )
    }

    /// The displacement at the cell centres, `[nx, ny]`, and the backward error reached.
    ///
    /// # Errors
    /// [`SimulateError::Unsolvable`] where the system is singular to working precision.
    pub fn solve(&self, plan: &Plan) -> Result<(Array2<Complex64>, f64), SimulateError> {
        let unsolvable = |reason: String| SimulateError::Unsolvable {
            frequency_hz: self.frequency_hz,
            reason,
        };
        let (stencil, drive) = self.assemble();
        let rhs = drive.mapv(|coupling| -coupling * self.amplitude);
        let factor = stencil
            .factor(plan)
            .map_err(|zero| unsolvable(format!("met the pivot {}", zero.pivot)))?;
        let mut u = factor.solve(&rhs);
        u += &factor.solve(&(&rhs - &stencil.apply(u.view())));

        let residual = norm((&rhs - &stencil.apply(u.view())).view());
        let error = residual / (stencil.norm() * norm(u.view()) + norm(rhs.view()));
        if error <= BACKWARD_ERROR {
            Ok((u, error))
        } else {
            Err(unsolvable(format!(
                "the backward error is {error:.1e}, above {BACKWARD_ERROR:.0e}"
            )))
        }
    }
}

/// Euclidean norm.
fn norm(field: ArrayView2<Complex64>) -> f64 {
    field.iter().map(Complex64::norm_sqr).sum::<f64>().sqrt()
}

/// Mean over blocks of `cells` times `cells`, `[nx / cells, ny / cells]`.
pub(super) fn block_mean(field: ArrayView2<Complex64>, cells: usize) -> Array2<Complex64> {
    let (nx, ny) = (field.nrows() / cells, field.ncols() / cells);
    let area = (cells * cells) as f64;
    Array2::from_shape_fn((nx, ny), |(i, j)| {
        let block = s![i * cells..(i + 1) * cells, j * cells..(j + 1) * cells];
        field.slice(block).iter().sum::<Complex64>() / area
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(driven: Face) -> WaveProblem {
        let modulus = Array2::from_shape_fn((24, 37), |(i, j)| {
            let stiff = (i as f64 - 10.0).powi(2) + (j as f64 - 20.0).powi(2) < 36.0;
            Complex64::new(if stiff { 10e3 } else { 3e3 }, 300.0 + 10.0 * j as f64)
        });
        WaveProblem {
            modulus,
            cell: 1e-3,
            density: 1000.0,
            frequency_hz: 80.0,
            driven,
            amplitude: 1.5,
        }
    }

    /// The work done at the driven face over a cycle equals what the loss modulus dissipates inside.
    #[test]
    fn input_power_equals_dissipated_power() {
        for driven in [Face::XMin, Face::XMax, Face::YMin, Face::YMax] {
            let problem = problem(driven);
            let (u, _) = problem.solve(&Plan::new(24, 37)).unwrap();
            let (stencil, drive) = problem.assemble();
            let mut input = 0.0;
            let mut dissipated = 0.0;
            for ((i, j), &coupling) in drive.indexed_iter() {
                let jump = problem.amplitude - u[[i, j]];
                input += (coupling * jump * problem.amplitude).im;
                dissipated += coupling.im * jump.norm_sqr();
            }
            for ((i, j), coupling) in stencil.along_x.indexed_iter() {
                dissipated += coupling.im * (u[[i + 1, j]] - u[[i, j]]).norm_sqr();
            }
            for ((i, j), coupling) in stencil.along_y.indexed_iter() {
                dissipated += coupling.im * (u[[i, j + 1]] - u[[i, j]]).norm_sqr();
            }
            assert!(input > 0.0, "{driven:?}");
            assert!(
                (input - dissipated).abs() < 1e-10 * input,
                "{driven:?}: {input} {dissipated}"
            );
        }
    }

    /// A force at a seen at b equals a force at b seen at a.
    #[test]
    fn the_response_is_reciprocal() {
        let plan = Plan::new(24, 37);
        let (stencil, _) = problem(Face::YMin).assemble();
        let factor = stencil.factor(&plan).unwrap();
        let response = |source: [usize; 2], at: [usize; 2]| {
            let mut force = Array2::from_elem((24, 37), Complex64::new(0.0, 0.0));
            force[source] = Complex64::new(1.0, 0.0);
            factor.solve(&force)[at]
        };
        let (there, back) = (response([3, 5], [20, 30]), response([20, 30], [3, 5]));
        assert!(
            (there - back).norm() < 1e-11 * there.norm(),
            "{there} {back}"
        );
    }

    #[test]
    fn block_mean_averages_pixels() {
        let field = Array2::from_shape_fn((4, 6), |(i, j)| Complex64::new(i as f64, j as f64));
        let mean = block_mean(field.view(), 2);
        assert_eq!(mean.dim(), (2, 3));
        assert_eq!(mean[[1, 2]], Complex64::new(2.5, 4.5));
    }
}
