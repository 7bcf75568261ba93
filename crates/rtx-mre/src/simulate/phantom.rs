//! Geometry and rheology: which material lies where, and its complex modulus.

use super::config::{Axis, PhantomConfig};
use super::error::SimulateError;
use ndarray::Array2;
use num_complex::Complex64;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// How the complex shear modulus depends on the angular frequency omega, for exp(+i omega t).
///
/// In text (TOML, flags): `elastic`, `voigt`, `springpot:ALPHA`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Rheology {
    /// G = mu; the viscosity is not used.
    Elastic,
    /// G = mu + i omega eta.
    Voigt,
    /// G = mu^(1 - alpha) (i omega eta)^alpha.
    Springpot {
        /// Between 0 (spring) and 1 (dashpot).
        alpha: f64,
    },
}

impl Rheology {
    /// The complex shear modulus in Pa at `omega` in rad/s.
    ///
    /// ```
    /// use rtx_mre::simulate::{Material, Rheology};
    /// let g = Rheology::Voigt.modulus(Material { mu: 3000.0, eta: 1.0 }, 200.0);
    /// assert_eq!((g.re, g.im), (3000.0, 200.0));
    /// ```
    pub fn modulus(self, material: Material, omega: f64) -> Complex64 {
        let Material { mu, eta } = material;
        match self {
            Rheology::Elastic => Complex64::new(mu, 0.0),
            Rheology::Voigt => Complex64::new(mu, omega * eta),
            Rheology::Springpot { alpha } => Complex64::from_polar(
                mu.powf(1.0 - alpha) * (omega * eta).powf(alpha),
                alpha * std::f64::consts::FRAC_PI_2,
            ),
        }
    }

    /// Checks alpha, and that a springpot has viscosity (its modulus would vanish).
    pub(super) fn validate(self, viscosity_pa_s: f64) -> Result<(), SimulateError> {
        let Rheology::Springpot { alpha } = self else {
            return Ok(());
        };
        let bad = |field: &str, found, need| {
            Err(SimulateError::BadNumber {
                field: field.to_owned(),
                found,
                need,
            })
        };
        if !(alpha > 0.0 && alpha < 1.0) {
            return bad("the alpha of rheology springpot", alpha, "between 0 and 1");
        }
        if viscosity_pa_s <= 0.0 {
            return bad(
                "viscosity_pa_s",
                viscosity_pa_s,
                "positive where the rheology is springpot",
            );
        }
        Ok(())
    }
}

impl fmt::Display for Rheology {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Rheology::Elastic => f.write_str("elastic"),
            Rheology::Voigt => f.write_str("voigt"),
            Rheology::Springpot { alpha } => write!(f, "springpot:{alpha}"),
        }
    }
}

impl FromStr for Rheology {
    type Err = SimulateError;

    fn from_str(name: &str) -> Result<Self, SimulateError> {
        let unknown = || SimulateError::UnknownName {
            what: "rheology",
            found: name.to_owned(),
            expected: "elastic, voigt, springpot:ALPHA (for example springpot:0.3)",
        };
        match name.split_once(':') {
            None if name == "elastic" => Ok(Rheology::Elastic),
            None if name == "voigt" => Ok(Rheology::Voigt),
            Some(("springpot", alpha)) => alpha
                .trim()
                .parse()
                .map(|alpha| Rheology::Springpot { alpha })
                .map_err(|_| unknown()),
            _ => Err(unknown()),
        }
    }
}

impl TryFrom<String> for Rheology {
    type Error = SimulateError;

    fn try_from(name: String) -> Result<Self, SimulateError> {
        name.parse()
    }
}

impl From<Rheology> for String {
    fn from(rheology: Rheology) -> Self {
        rheology.to_string()
    }
}

/// What a region is made of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Material {
    /// Elastic modulus mu in Pa.
    pub mu: f64,
    /// Viscosity eta in Pa s.
    pub eta: f64,
}

impl PhantomConfig {
    /// Materials of the regions; region r is made of entry r - 1.
    pub fn materials(&self) -> Vec<Material> {
        let material = |modulus_kpa: f64, eta: Option<f64>| Material {
            mu: modulus_kpa * 1e3,
            eta: eta.unwrap_or(self.viscosity_pa_s),
        };
        let background = std::iter::once(material(self.background_kpa, None));
        let layers = self
            .layers
            .iter()
            .map(|l| material(l.modulus_kpa, l.viscosity_pa_s));
        let discs = self
            .discs
            .iter()
            .map(|d| material(d.modulus_kpa, d.viscosity_pa_s));
        background.chain(layers).chain(discs).collect()
    }

    /// Region at a point in mm.
    fn region_at(&self, x_mm: f64, y_mm: f64) -> usize {
        let across = if self.layer_axis == Axis::X {
            x_mm
        } else {
            y_mm
        };
        let disc = self.discs.iter().rposition(|disc| {
            let (dx, dy) = (x_mm - disc.cx_mm, y_mm - disc.cy_mm);
            dx * dx + dy * dy < disc.radius_mm * disc.radius_mm
        });
        let layer = || {
            self.layers
                .iter()
                .rposition(|l| l.from_mm <= across && across < l.to_mm)
        };
        match disc {
            Some(index) => 2 + self.layers.len() + index,
            None => layer().map_or(1, |index| 2 + index),
        }
    }

    /// Regions at the centres of a grid with `cells` cells per pixel edge, `[cells nx, cells ny]`.
    pub(super) fn paint(&self, cells: usize) -> Array2<usize> {
        // Pixel i is centred at i, so its first cell begins at i - 1/2.
        let centre = |i: usize| ((i as f64 + 0.5) / cells as f64 - 0.5) * self.spacing_mm;
        let [nx, ny] = self.size;
        Array2::from_shape_fn((nx * cells, ny * cells), |(i, j)| {
            self.region_at(centre(i), centre(j))
        })
    }

    /// Regions at the pixel centres, `[nx, ny]`: 1 background, then layers, then discs.
    ///
    /// # Errors
    /// [`SimulateError::EmptyRegion`] if a layer or a disc covers no pixel centre.
    pub fn regions(&self) -> Result<Array2<i64>, SimulateError> {
        let painted = self.paint(1);
        let mut seen = vec![false; 1 + self.layers.len() + self.discs.len()];
        for &region in &painted {
            seen[region - 1] = true;
        }
        // A background that is wholly covered is no mistake.
        if let Some(hidden) = seen.iter().skip(1).position(|&seen| !seen) {
            let (what, index) = match hidden.checked_sub(self.layers.len()) {
                Some(index) => ("disc", index),
                None => ("layer", hidden),
            };
            return Err(SimulateError::EmptyRegion {
                what,
                index,
                spacing_mm: self.spacing_mm,
            });
        }
        Ok(painted.mapv(|region| region as i64))
    }

    /// The modulus in Pa of each region at one frequency in Hz.
    pub(super) fn moduli(&self, frequency_hz: f64) -> Vec<Complex64> {
        let omega = std::f64::consts::TAU * frequency_hz;
        self.materials()
            .iter()
            .map(|&material| self.rheology.modulus(material, omega))
            .collect()
    }
}
