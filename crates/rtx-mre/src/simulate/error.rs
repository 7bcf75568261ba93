//! What can go wrong in a simulation.

use std::path::PathBuf;
use thiserror::Error;

/// Error of the phantom simulator.
#[derive(Debug, Error)]
pub enum SimulateError {
    /// A number that must be positive and finite (or not negative, as `need` says) is not.
    #[error("{field} is {found:?}, but it must be {need}")]
    BadNumber {
        /// Name of the field, as in the TOML file.
        field: String,
        /// The value given.
        found: f64,
        /// What is allowed.
        need: &'static str,
    },
    /// The grid has fewer than two pixels along an axis.
    #[error("size is {nx} x {ny} pixels, but each axis needs at least 2")]
    BadSize {
        /// Pixels along x.
        nx: usize,
        /// Pixels along y.
        ny: usize,
    },
    /// The list of frequencies is empty.
    #[error("frequencies_hz is empty: give at least one drive frequency in Hz")]
    NoFrequency,
    /// A disc leaves the phantom.
    #[error(
        "disc {index} (centre ({cx_mm}, {cy_mm}) mm, radius {radius_mm} mm) leaves the phantom, which spans \
         {min_mm} to {max_x_mm} mm along x and {min_mm} to {max_y_mm} mm along y: move or shrink the disc, \
         or enlarge `size`"
    )]
    DiscOutside {
        /// Position in the list of discs, from 0.
        index: usize,
        /// Centre along x in mm.
        cx_mm: f64,
        /// Centre along y in mm.
        cy_mm: f64,
        /// Radius in mm.
        radius_mm: f64,
        /// Low face of both axes in mm (half a pixel below the first pixel centre).
        min_mm: f64,
        /// High face along x in mm.
        max_x_mm: f64,
        /// High face along y in mm.
        max_y_mm: f64,
    },
    /// A layer is empty or lies outside the phantom.
    #[error(
        "layer {index} spans {from_mm} to {to_mm} mm, but it must have from_mm < to_mm and meet the phantom, \
         which spans {min_mm} to {max_mm} mm along that axis"
    )]
    BadLayer {
        /// Position in the list of layers, from 0.
        index: usize,
        /// Start of the layer in mm.
        from_mm: f64,
        /// End of the layer in mm.
        to_mm: f64,
        /// Low face of the phantom in mm.
        min_mm: f64,
        /// High face of the phantom in mm.
        max_mm: f64,
    },
    /// A disc or layer covers no pixel, so the truth map would not show it.
    #[error(
        "{what} {index} covers no pixel (hidden by later regions, or smaller than the spacing of {spacing_mm} mm): \
         enlarge it, lower `spacing_mm`, or leave it out"
    )]
    EmptyRegion {
        /// `disc` or `layer`.
        what: &'static str,
        /// Position in its list, from 0.
        index: usize,
        /// Pixel spacing in mm.
        spacing_mm: f64,
    },
    /// The computational grid cannot carry the shortest shear wave.
    #[error(
        "the shear wave of {wavelength_mm:.3} mm at {frequency_hz} Hz has {cells:.1} cells of the computational \
         grid, but at least {needed} are needed: raise `subsampling` to {subsampling} or lower `spacing_mm`"
    )]
    WaveUnresolved {
        /// Frequency in Hz.
        frequency_hz: f64,
        /// Shortest shear wavelength in mm.
        wavelength_mm: f64,
        /// Cells per wavelength.
        cells: f64,
        /// Cells per wavelength needed.
        needed: f64,
        /// The subsampling factor that would do.
        subsampling: usize,
    },
    /// The solve would take more memory than allowed.
    #[error(
        "a computational grid of {nx} x {ny} cells (size times subsampling) would take about {predicted_mib:.0} MiB, \
         more than memory_limit_mib = {limit_mib}: lower `size` or `subsampling`, or raise `memory_limit_mib`"
    )]
    TooLarge {
        /// Cells along x.
        nx: f64,
        /// Cells along y.
        ny: f64,
        /// Predicted memory in MiB.
        predicted_mib: f64,
        /// Allowed memory in MiB.
        limit_mib: f64,
    },
    /// The system is singular, or too nearly so, at this frequency.
    #[error(
        "the wave equation could not be solved at {frequency_hz} Hz: {reason}. An undamped phantom has no bounded \
         response at a resonance; give it viscosity or move the frequency"
    )]
    Unsolvable {
        /// Frequency in Hz.
        frequency_hz: f64,
        /// What was seen.
        reason: String,
    },
    /// A name that is not in the list.
    #[error("unknown {what} `{found}`: use one of {expected}")]
    UnknownName {
        /// What was named.
        what: &'static str,
        /// The name given.
        found: String,
        /// The names known.
        expected: &'static str,
    },
    /// The TOML text is not a phantom description.
    #[error("cannot read the phantom description{}: {source}", at(.path))]
    Toml {
        /// File, if it came from one.
        path: Option<PathBuf>,
        /// Line and reason.
        source: Box<toml::de::Error>,
    },
    /// A file could not be read or written.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// `read` or `write`.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// Reason given by the system.
        source: std::io::Error,
    },
}

fn at(path: &Option<PathBuf>) -> String {
    path.as_ref()
        .map(|path| format!(" {}", path.display()))
        .unwrap_or_default()
}
