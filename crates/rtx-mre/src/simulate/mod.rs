//! 2-D viscoelastic phantoms with known truth.
//!
//! A rectangle of complex modulus G = G' + iG'' is shaken at one face; the scalar displacement obeys
//! `div(G grad u) + rho omega^2 u = 0` for the time dependence exp(+i omega t). The equation is solved
//! on a grid `subsampling` times finer than the pixels, and a pixel shows the mean of its cells, as a
//! voxel does.
//!
//! ```
//! use rtx_mre::simulate::{Preset, simulate};
//! let mut config = Preset::Homogeneous.config();
//! config.size = [20, 16];
//! config.frequencies_hz = vec![100.0];
//! let phantom = simulate(&config, |step| println!("{} Hz", step.frequency_hz)).unwrap();
//! assert_eq!(phantom.u.dim(), (1, 20, 16));
//! ```

mod config;
mod dissection;
mod error;
mod front;
mod noise;
mod output;
mod phantom;
mod presets;
mod solver;
mod stencil;

pub use config::{Axis, Disc, Face, Layer, PhantomConfig, PhantomOverrides};
pub use error::SimulateError;
pub use phantom::{Material, Rheology};
pub use presets::Preset;

use dissection::Plan;
use ndarray::{Array2, Array3};
use num_complex::Complex64;
use solver::{WaveProblem, block_mean};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::Instant;

/// A simulated measurement with its truth. Maps have the axes (frequency, x, y) or (x, y).
#[derive(Clone, Debug)]
pub struct Phantom {
    /// Measured displacement: `u_clean` plus noise.
    pub u: Array3<Complex64>,
    /// Displacement without noise, in the unit of the drive amplitude.
    pub u_clean: Array3<Complex64>,
    /// True complex modulus in Pa at the pixel centres.
    pub g: Array3<Complex64>,
    /// Regions at the pixel centres: 1 background, then layers, then discs.
    pub region: Array2<i64>,
    /// Frequencies in Hz.
    pub freq: Vec<f64>,
    /// Pixel spacing in m.
    pub spacing: f64,
    /// Noise power relative to the mean of |u|^2.
    pub noise: f64,
}

/// One frequency that has been solved.
#[derive(Clone, Copy, Debug)]
pub struct SolveProgress {
    /// Frequencies solved so far, this one included.
    pub done: usize,
    /// Frequencies in all.
    pub total: usize,
    /// This frequency in Hz.
    pub frequency_hz: f64,
    /// Time this frequency took, in seconds.
    pub seconds: f64,
    /// Backward error of its linear system.
    pub backward_error: f64,
}

/// Solves a phantom and adds its noise. `progress` is called on the calling thread after each
/// frequency, in the order in which they finish; the result does not depend on that order nor on the
/// number of threads.
///
/// # Errors
/// Those of [`PhantomConfig::validate`] and [`PhantomConfig::regions`], before anything is solved;
/// [`SimulateError::Unsolvable`] where an undamped phantom is at a resonance.
pub fn simulate(
    config: &PhantomConfig,
    mut progress: impl FnMut(SolveProgress),
) -> Result<Phantom, SimulateError> {
    config.validate()?;
    let region = config.regions()?;
    let cells = config.subsampling;
    let painted = config.paint(cells);
    let plan = Plan::new(painted.nrows(), painted.ncols());
    let solve = |index: usize| -> Result<Solved, SimulateError> {
        let started = Instant::now();
        let frequency_hz = config.frequencies_hz[index];
        let moduli = config.moduli(frequency_hz);
        let problem = WaveProblem {
            modulus: painted.mapv(|region| moduli[region - 1]),
            cell: config.spacing_mm * 1e-3 / cells as f64,
            density: config.density,
            frequency_hz,
            driven: config.driven_face,
            amplitude: config.amplitude,
        };
        let (u, backward_error) = problem.solve(&plan)?;
        let u = block_mean(u.view(), cells);
        Ok(Solved {
            index,
            u,
            backward_error,
            seconds: started.elapsed().as_secs_f64(),
        })
    };

    let total = config.frequencies_hz.len();
    let [nx, ny] = config.size;
    let mut u_clean = Array3::from_elem((total, nx, ny), Complex64::new(0.0, 0.0));
    let next = AtomicUsize::new(0);
    let (sender, results) = mpsc::channel();
    std::thread::scope(|scope| {
        for _ in 0..threads(config) {
            let (sender, next, solve) = (sender.clone(), &next, &solve);
            scope.spawn(move || {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    if index >= total || sender.send(solve(index)).is_err() {
                        break;
                    }
                }
            });
        }
        drop(sender);
        // An early return drops `results`, and the workers stop at their next frequency.
        for (done, solved) in results.into_iter().enumerate() {
            let Solved {
                index,
                u,
                backward_error,
                seconds,
            } = solved?;
            u_clean.index_axis_mut(ndarray::Axis(0), index).assign(&u);
            let frequency_hz = config.frequencies_hz[index];
            progress(SolveProgress {
                done: done + 1,
                total,
                frequency_hz,
                seconds,
                backward_error,
            });
        }
        Ok(())
    })?;

    let mut g = Array3::from_elem((total, nx, ny), Complex64::new(0.0, 0.0));
    for (mut map, &frequency_hz) in g.outer_iter_mut().zip(&config.frequencies_hz) {
        let moduli = config.moduli(frequency_hz);
        map.zip_mut_with(&region, |g, &region| *g = moduli[region as usize - 1]);
    }
    Ok(Phantom {
        u: noise::add_noise(u_clean.view(), config.noise, config.seed),
        u_clean,
        g,
        region,
        freq: config.frequencies_hz.clone(),
        spacing: config.spacing_mm * 1e-3,
        noise: config.noise,
    })
}

/// What a worker sends back.
struct Solved {
    index: usize,
    u: Array2<Complex64>,
    backward_error: f64,
    seconds: f64,
}

/// As many threads as there are cores, frequencies and room in the memory limit.
fn threads(config: &PhantomConfig) -> usize {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let wanted = cores.min(config.frequencies_hz.len());
    (1..=wanted)
        .rev()
        .find(|&n| config.predicted_mib(n) <= config.memory_limit_mib)
        .unwrap_or(1)
}
