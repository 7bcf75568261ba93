//! The complex wave field: what every inversion starts from.

mod load;

use std::path::{Path, PathBuf};

use ndarray::{Array3, Array5};
use num_complex::Complex64;
use serde::{Serialize, Serializer};

use crate::axes::{AxisOrder, Component, ComponentSelection};
use crate::error::Result;
use crate::harmonic::TimeSign;
use crate::mask::AutoMask;
use crate::phase::{UnwrappedPhase, Unwrapping};

/// A time-harmonic displacement field, u(x, t) = Re(u(x) exp(+i omega t)).
#[derive(Debug, Clone)]
pub struct WaveField {
    /// Displacement `[freq, component, x, y, z]`, in metres or arbitrary units; zero where the
    /// data were NaN outside the mask.
    pub u: Array5<Complex64>,
    /// Vibration frequencies, Hz.
    pub freq: Vec<f64>,
    /// The components along the second axis.
    pub components: Vec<Component>,
    /// Voxel size along x, y, z, m.
    pub spacing: [f64; 3],
    /// Tissue `[x, y, z]`.
    pub mask: Array3<bool>,
    /// Noise over signal in the mask, per frequency: root mean square of the second harmonic over
    /// that of the first. White noise makes the two errors equal; motion that is not sinusoidal
    /// adds to it, so it is an upper bound. `None` without four phase offsets.
    pub noise: Vec<Option<f64>>,
    /// Where the field came from and what was decided on the way.
    pub provenance: Provenance,
}

/// Record of how a [`WaveField`] was made, for reports.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Provenance {
    /// The file.
    #[serde(serialize_with = "as_text")]
    pub file: PathBuf,
    /// The array in it.
    pub variable: String,
    /// Its shape as stored.
    pub shape: Vec<usize>,
    /// Its axes, as named by the user.
    pub axes: String,
    /// The time convention of the data, `+` or `-`.
    pub time_sign: char,
    /// Number of phase offsets; `None` when the file held the harmonic.
    pub phase_offsets: Option<usize>,
    /// Components in use, with signs.
    pub components: Vec<String>,
    /// Where the voxel size comes from: the option or the file.
    pub spacing_from: String,
    /// Where the frequencies come from: the option or the file.
    pub freq_from: String,
    /// Where the mask comes from.
    pub mask_from: String,
    /// Pixels in the mask.
    pub mask_pixels: usize,
    /// What was unwrapped; `None` when the samples were no wrapped phase.
    pub unwrapped: Option<UnwrappedPhase>,
    /// Remarks that a report should show.
    pub warnings: Vec<String>,
}

/// A path need not be UTF-8, a report must be.
fn as_text<S: Serializer>(path: &Path, serializer: S) -> std::result::Result<S::Ok, S::Error> {
    serializer.collect_str(&path.display())
}

/// Where the mask comes from.
#[derive(Debug, Clone, PartialEq)]
pub enum MaskSource {
    /// From the amplitude of the wave.
    Auto(AutoMask),
    /// Every pixel.
    All,
    /// An array (non-zero is tissue) with the spatial axes of the data, in the same order.
    Array {
        /// Its file; `None` for the file of the data.
        file: Option<PathBuf>,
        /// Its name; `None` when the file holds one array.
        variable: Option<String>,
    },
}

impl Default for MaskSource {
    fn default() -> Self {
        Self::Auto(AutoMask::default())
    }
}

/// What the user says about a file; what is `None` must come from the file itself.
#[derive(Debug, Clone, Default)]
pub struct LoadOptions {
    /// Name of the array (`--var`).
    pub variable: Option<String>,
    /// Meaning of its axes (`--axes`).
    pub axes: Option<AxisOrder>,
    /// Vibration frequencies in hertz (`--freq`).
    pub freq: Option<Vec<f64>>,
    /// Voxel size in metres along x, y, z (`--spacing-mm`, after conversion); a NaN along z stands for a thickness that
    /// is not known, which only a single slice can do without.
    pub spacing: Option<[f64; 3]>,
    /// Directions of motion (`--components`).
    pub components: Option<ComponentSelection>,
    /// Time convention of the data (`--time-sign`).
    pub time_sign: TimeSign,
    /// What to do about wrapped phase (`--unwrap`).
    pub unwrapping: Unwrapping,
    /// Where the mask comes from.
    pub mask: MaskSource,
    /// Layers of pixels to take off the mask.
    pub erode: usize,
}

impl WaveField {
    /// Reads a wave field.
    ///
    /// A complex array without a `phase` axis is the harmonic itself. Arrays `freq` (Hz) and `spacing`
    /// (m; one number, or one per spatial axis) of an `.npz` or `.mat` count as given, those beside the field in a
    /// structure first; options go before them. Samples that are a wrapped phase are unwrapped, and the warnings say
    /// so.
    ///
    /// # Errors
    /// Those of [`ArrayFile`](crate::io::ArrayFile); and when axes, frequencies or the voxel size are not known, when
    /// counts disagree, for fewer than three phase offsets, for a wrapped phase that cannot be unwrapped, for NaN in
    /// a given mask, an all-zero component, or an empty mask.
    pub fn load(path: &Path, options: &LoadOptions) -> Result<Self> {
        load::load(path, options)
    }

    /// Extents `[freq, component, x, y, z]`.
    pub fn dim(&self) -> (usize, usize, usize, usize, usize) {
        self.u.dim()
    }

    /// Angular frequency of index `f`, rad/s.
    pub fn omega(&self, f: usize) -> f64 {
        std::f64::consts::TAU * self.freq[f]
    }

    /// The field under the other time convention.
    pub fn conjugated(mut self) -> Self {
        self.u.mapv_inplace(|value| value.conj());
        let warning = "the field was conjugated after loading".to_string();
        self.provenance.warnings.push(warning);
        self
    }
}
