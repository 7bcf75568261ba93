//! Description of a phantom: fields, TOML files, overrides and their checks.

use super::dissection::predicted_bytes;
use super::error::SimulateError;
use super::phantom::Rheology;
use super::presets::Preset;
use serde::{Deserialize, Serialize};
use std::ops::RangeInclusive;
use std::path::Path;
use std::str::FromStr;

/// Cells of the computational grid that the shortest wavelength needs.
const CELLS_PER_WAVE: f64 = 8.0;
const MIB: f64 = 1024.0 * 1024.0;

/// Sizes of numbers that can be meant, in whatever unit; squares and products of others leave double precision.
const SIZES: RangeInclusive<f64> = 1e-12..=1e12;

/// An axis of the grid: x is the first index of every map, y the second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Axis {
    /// First index.
    X,
    /// Second index.
    Y,
}

/// A face of the rectangle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Face {
    /// Below the first pixel along x.
    XMin,
    /// Above the last pixel along x.
    XMax,
    /// Below the first pixel along y.
    YMin,
    /// Above the last pixel along y.
    YMax,
}

impl FromStr for Face {
    type Err = SimulateError;

    /// Reads `x-min`, `x-max`, `y-min` or `y-max`.
    fn from_str(name: &str) -> Result<Self, SimulateError> {
        match name {
            "x-min" => Ok(Face::XMin),
            "x-max" => Ok(Face::XMax),
            "y-min" => Ok(Face::YMin),
            "y-max" => Ok(Face::YMax),
            _ => Err(SimulateError::UnknownName {
                what: "driven face",
                found: name.to_owned(),
                expected: "x-min, x-max, y-min, y-max",
            }),
        }
    }
}

/// A circular inclusion. Coordinates are those of [`PhantomConfig`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Disc {
    /// Centre along x in mm.
    pub cx_mm: f64,
    /// Centre along y in mm.
    pub cy_mm: f64,
    /// Radius in mm.
    pub radius_mm: f64,
    /// Elastic modulus mu in kPa.
    pub modulus_kpa: f64,
    /// Viscosity eta in Pa s; the background's if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub viscosity_pa_s: Option<f64>,
}

/// A layer `from_mm <= coordinate < to_mm` along [`PhantomConfig::layer_axis`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Layer {
    /// Start in mm.
    pub from_mm: f64,
    /// End in mm.
    pub to_mm: f64,
    /// Elastic modulus mu in kPa.
    pub modulus_kpa: f64,
    /// Viscosity eta in Pa s; the background's if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub viscosity_pa_s: Option<f64>,
}

/// A rectangular 2-D phantom.
///
/// Pixel (i, j) is centred at (i, j) times the spacing, so the faces lie half a pixel outside the
/// first and last centres. Regions are numbered 1 (background), then the layers, then the discs, each
/// in the order of its list; a later region covers an earlier one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PhantomConfig {
    /// Pixels along x and y.
    pub size: [usize; 2],
    /// Pixel spacing in mm, the same along both axes.
    pub spacing_mm: f64,
    /// Drive frequencies in Hz.
    pub frequencies_hz: Vec<f64>,
    /// Density in kg/m3.
    pub density: f64,
    /// Elastic modulus mu of the background in kPa.
    pub background_kpa: f64,
    /// Viscosity eta in Pa s of the background and of every region that names none.
    pub viscosity_pa_s: f64,
    /// How modulus and viscosity make the complex modulus.
    pub rheology: Rheology,
    /// Axis across which the layers are stacked.
    pub layer_axis: Axis,
    /// Face with prescribed displacement; the other faces are free.
    pub driven_face: Face,
    /// Displacement of the driven face, real, in the unit that `u` shall have.
    pub amplitude: f64,
    /// Cells of the computational grid per pixel edge; the solution is averaged over each pixel.
    pub subsampling: usize,
    /// Noise power relative to the mean of |u|^2 at each frequency.
    pub noise: f64,
    /// Seed of the noise.
    pub seed: u64,
    /// Largest memory the solve may take, in MiB.
    pub memory_limit_mib: f64,
    /// Layers, below the discs.
    pub layers: Vec<Layer>,
    /// Discs, on top.
    pub discs: Vec<Disc>,
}

/// Fields that replace those of a preset: the content of a TOML file, or of command-line flags.
///
/// ```
/// use rtx_mre::simulate::PhantomOverrides;
/// let overrides = PhantomOverrides::from_toml("preset = \"four-target\"\nnoise = 1e-3").unwrap();
/// let config = overrides.into_config().unwrap();
/// assert_eq!(config.discs.len(), 4);
/// assert_eq!(config.noise, 1e-3);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PhantomOverrides {
    /// Preset to start from; `homogeneous` if absent.
    pub preset: Option<Preset>,
    /// Replaces [`PhantomConfig::size`].
    pub size: Option<[usize; 2]>,
    /// Replaces [`PhantomConfig::spacing_mm`].
    pub spacing_mm: Option<f64>,
    /// Replaces [`PhantomConfig::frequencies_hz`].
    pub frequencies_hz: Option<Vec<f64>>,
    /// Replaces [`PhantomConfig::density`].
    pub density: Option<f64>,
    /// Replaces [`PhantomConfig::background_kpa`].
    pub background_kpa: Option<f64>,
    /// Replaces [`PhantomConfig::viscosity_pa_s`].
    pub viscosity_pa_s: Option<f64>,
    /// Replaces [`PhantomConfig::rheology`].
    pub rheology: Option<Rheology>,
    /// Replaces [`PhantomConfig::layer_axis`].
    pub layer_axis: Option<Axis>,
    /// Replaces [`PhantomConfig::driven_face`].
    pub driven_face: Option<Face>,
    /// Replaces [`PhantomConfig::amplitude`].
    pub amplitude: Option<f64>,
    /// Replaces [`PhantomConfig::subsampling`].
    pub subsampling: Option<usize>,
    /// Replaces [`PhantomConfig::noise`].
    pub noise: Option<f64>,
    /// Replaces [`PhantomConfig::seed`].
    pub seed: Option<u64>,
    /// Replaces [`PhantomConfig::memory_limit_mib`].
    pub memory_limit_mib: Option<f64>,
    /// Replaces the whole list [`PhantomConfig::layers`].
    pub layers: Option<Vec<Layer>>,
    /// Replaces the whole list [`PhantomConfig::discs`].
    pub discs: Option<Vec<Disc>>,
}

/// Calls `$each!(field)` for every field that [`PhantomConfig`] and [`PhantomOverrides`] share.
macro_rules! shared_fields {
    ($each:ident) => {
        $each!(
            size,
            spacing_mm,
            frequencies_hz,
            density,
            background_kpa,
            viscosity_pa_s,
            rheology,
            layer_axis,
            driven_face,
            amplitude,
            subsampling,
            noise,
            seed,
            memory_limit_mib,
            layers,
            discs
        )
    };
}

impl PhantomOverrides {
    /// Reads TOML text; fields that are not named stay absent, unknown fields are errors.
    ///
    /// # Errors
    /// [`SimulateError::Toml`] with the line and the reason.
    pub fn from_toml(text: &str) -> Result<Self, SimulateError> {
        toml::from_str(text).map_err(|source| SimulateError::Toml {
            path: None,
            source: Box::new(source),
        })
    }

    /// Reads a TOML file.
    ///
    /// # Errors
    /// [`SimulateError::Io`] or [`SimulateError::Toml`], both with the path.
    pub fn from_toml_file(path: &Path) -> Result<Self, SimulateError> {
        let text = std::fs::read_to_string(path).map_err(|source| SimulateError::Io {
            action: "read",
            path: path.to_owned(),
            source,
        })?;
        toml::from_str(&text).map_err(|source| SimulateError::Toml {
            path: Some(path.to_owned()),
            source: Box::new(source),
        })
    }

    /// These overrides with those of `stronger` on top (flags over a file).
    pub fn merge(mut self, stronger: Self) -> Self {
        macro_rules! pick {
            ($($field:ident),*) => { $(self.$field = stronger.$field.or(self.$field);)* };
        }
        self.preset = stronger.preset.or(self.preset);
        shared_fields!(pick);
        self
    }

    /// The preset with these fields replaced, validated.
    ///
    /// # Errors
    /// Those of [`PhantomConfig::validate`].
    pub fn into_config(self) -> Result<PhantomConfig, SimulateError> {
        let mut config = self.preset.unwrap_or(Preset::Homogeneous).config();
        macro_rules! replace {
            ($($field:ident),*) => { $(if let Some(value) = self.$field { config.$field = value; })* };
        }
        shared_fields!(replace);
        config.validate()?;
        Ok(config)
    }
}

impl PhantomConfig {
    /// Checks every field that can be checked without painting the map.
    ///
    /// # Errors
    /// The first field found wrong, with its value and what is allowed.
    pub fn validate(&self) -> Result<(), SimulateError> {
        let [nx, ny] = self.size;
        if nx < 2 || ny < 2 {
            return Err(SimulateError::BadSize { nx, ny });
        }
        positive("spacing_mm", self.spacing_mm)?;
        positive("density", self.density)?;
        positive("background_kpa", self.background_kpa)?;
        positive("memory_limit_mib", self.memory_limit_mib)?;
        positive("subsampling", self.subsampling as f64)?;
        not_negative("viscosity_pa_s", self.viscosity_pa_s)?;
        not_negative("noise", self.noise)?;
        let size = self.amplitude.abs();
        let usable = SIZES.contains(&size);
        require(
            "amplitude",
            self.amplitude,
            usable,
            "1e-12 to 1e12, or the negative of that",
        )?;
        if self.frequencies_hz.is_empty() {
            return Err(SimulateError::NoFrequency);
        }
        for (i, &f) in self.frequencies_hz.iter().enumerate() {
            positive(&format!("frequencies_hz[{i}]"), f)?;
        }
        self.rheology.validate(self.viscosity_pa_s)?;
        self.validate_layers()?;
        self.validate_discs()?;
        self.validate_memory()?;
        self.validate_waves()
    }

    /// Faces of the phantom along both axes in mm: `[[x low, x high], [y low, y high]]`.
    pub fn bounds_mm(&self) -> [[f64; 2]; 2] {
        self.size
            .map(|n| [-0.5 * self.spacing_mm, (n as f64 - 0.5) * self.spacing_mm])
    }

    /// Cells of the computational grid; f64, so that absurd sizes cannot overflow.
    fn cells(&self) -> [f64; 2] {
        self.size.map(|n| n as f64 * self.subsampling as f64)
    }

    /// Memory that solving `frequencies_at_once` frequencies takes, in MiB, beside the arrays returned.
    pub fn predicted_mib(&self, frequencies_at_once: usize) -> f64 {
        let [nx, ny] = self.size.map(|n| n.saturating_mul(self.subsampling));
        let pixels = self.size[0] as f64 * self.size[1] as f64;
        let arrays = pixels * (48.0 * self.frequencies_hz.len() as f64 + 16.0);
        (predicted_bytes(nx, ny) * frequencies_at_once as f64 + arrays) / MIB
    }

    fn validate_memory(&self) -> Result<(), SimulateError> {
        let [nx, ny] = self.cells();
        let predicted_mib = self.predicted_mib(1);
        // Cells are numbered with 32 bits.
        if predicted_mib > self.memory_limit_mib || nx * ny >= f64::from(u32::MAX) {
            return Err(SimulateError::TooLarge {
                nx,
                ny,
                predicted_mib,
                limit_mib: self.memory_limit_mib,
            });
        }
        Ok(())
    }

    fn validate_layers(&self) -> Result<(), SimulateError> {
        let [x, y] = self.bounds_mm();
        let [min_mm, max_mm] = if self.layer_axis == Axis::X { x } else { y };
        for (index, layer) in self.layers.iter().enumerate() {
            positive(&format!("layers[{index}].modulus_kpa"), layer.modulus_kpa)?;
            if let Some(eta) = layer.viscosity_pa_s {
                not_negative(&format!("layers[{index}].viscosity_pa_s"), eta)?;
                self.rheology.validate(eta)?;
            }
            let (from_mm, to_mm) = (layer.from_mm, layer.to_mm);
            let meets = from_mm < to_mm && from_mm < max_mm && to_mm > min_mm;
            if !meets {
                return Err(SimulateError::BadLayer {
                    index,
                    from_mm,
                    to_mm,
                    min_mm,
                    max_mm,
                });
            }
        }
        Ok(())
    }

    fn validate_discs(&self) -> Result<(), SimulateError> {
        let [[min_mm, max_x_mm], [_, max_y_mm]] = self.bounds_mm();
        for (index, disc) in self.discs.iter().enumerate() {
            positive(&format!("discs[{index}].radius_mm"), disc.radius_mm)?;
            positive(&format!("discs[{index}].modulus_kpa"), disc.modulus_kpa)?;
            if let Some(eta) = disc.viscosity_pa_s {
                not_negative(&format!("discs[{index}].viscosity_pa_s"), eta)?;
                self.rheology.validate(eta)?;
            }
            let Disc {
                cx_mm,
                cy_mm,
                radius_mm,
                ..
            } = *disc;
            let fits =
                |c: f64, max: f64| c - radius_mm >= min_mm - 1e-9 && c + radius_mm <= max + 1e-9;
            if !(fits(cx_mm, max_x_mm) && fits(cy_mm, max_y_mm)) {
                return Err(SimulateError::DiscOutside {
                    index,
                    cx_mm,
                    cy_mm,
                    radius_mm,
                    min_mm,
                    max_x_mm,
                    max_y_mm,
                });
            }
        }
        Ok(())
    }

    fn validate_waves(&self) -> Result<(), SimulateError> {
        let cell_mm = self.spacing_mm / self.subsampling as f64;
        for &frequency_hz in &self.frequencies_hz {
            let omega = std::f64::consts::TAU * frequency_hz;
            let longest_k = (self.materials().iter())
                .map(|&m| (self.density / self.rheology.modulus(m, omega)).sqrt().re * omega)
                .fold(0.0, f64::max);
            let wavelength_mm = 1e3 * std::f64::consts::TAU / longest_k;
            let cells = wavelength_mm / cell_mm;
            if cells < CELLS_PER_WAVE {
                return Err(SimulateError::WaveUnresolved {
                    frequency_hz,
                    wavelength_mm,
                    cells,
                    needed: CELLS_PER_WAVE,
                    subsampling: (CELLS_PER_WAVE * self.spacing_mm / wavelength_mm).ceil() as usize,
                });
            }
        }
        Ok(())
    }
}

fn positive(field: &str, found: f64) -> Result<(), SimulateError> {
    require(
        field,
        found,
        SIZES.contains(&found),
        "positive, 1e-12 to 1e12",
    )
}

fn not_negative(field: &str, found: f64) -> Result<(), SimulateError> {
    let ok = found == 0.0 || SIZES.contains(&found);
    require(field, found, ok, "zero or positive, 1e-12 to 1e12")
}

fn require(field: &str, found: f64, ok: bool, need: &'static str) -> Result<(), SimulateError> {
    if ok {
        Ok(())
    } else {
        Err(SimulateError::BadNumber {
            field: field.to_owned(),
            found,
            need,
        })
    }
}
