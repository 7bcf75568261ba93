//! Named phantoms.

use super::config::{Axis, Disc, Face, Layer, PhantomConfig};
use super::error::SimulateError;
use super::phantom::Rheology;
use serde::{Deserialize, Serialize};
use std::str::FromStr;

/// A named phantom, the base that [`super::PhantomOverrides`] change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Preset {
    /// 3 kPa with four 10 kPa discs of radius 10, 5, 3 and 2 mm in a row: the geometry of the
    /// `fem_box` phantom of M. Ragoza and K. Batmanghelich (MRE-PINN, MICCAI 2023).
    FourTarget,
    /// 3 kPa everywhere.
    Homogeneous,
    /// 3 kPa with a layer of 6 kPa and one of 10 kPa across the direction of the wave.
    Layered,
}

impl Preset {
    /// Every preset.
    pub const ALL: [Preset; 3] = [Preset::FourTarget, Preset::Homogeneous, Preset::Layered];

    /// The phantom: 80 x 100 pixels of 1 mm, 50 to 100 Hz, Voigt with 1 Pa s, driven at the high face
    /// along x, without noise.
    pub fn config(self) -> PhantomConfig {
        let disc = |cy_mm, radius_mm| Disc {
            cx_mm: 39.8,
            cy_mm,
            radius_mm,
            modulus_kpa: 10.0,
            viscosity_pa_s: None,
        };
        let layer = |from_mm, to_mm, modulus_kpa| Layer {
            from_mm,
            to_mm,
            modulus_kpa,
            viscosity_pa_s: None,
        };
        let (layers, discs) = match self {
            Preset::FourTarget => (
                vec![],
                vec![
                    disc(73.6, 10.0),
                    disc(49.6, 5.0),
                    disc(31.8, 3.0),
                    disc(18.6, 2.0),
                ],
            ),
            Preset::Homogeneous => (vec![], vec![]),
            Preset::Layered => (
                vec![layer(19.5, 39.5, 6.0), layer(39.5, 59.5, 10.0)],
                vec![],
            ),
        };
        PhantomConfig {
            size: [80, 100],
            spacing_mm: 1.0,
            frequencies_hz: vec![50.0, 60.0, 70.0, 80.0, 90.0, 100.0],
            density: 1000.0,
            background_kpa: 3.0,
            viscosity_pa_s: 1.0,
            rheology: Rheology::Voigt,
            layer_axis: Axis::X,
            driven_face: Face::XMax,
            amplitude: 1.0,
            subsampling: 4,
            noise: 0.0,
            seed: 0,
            memory_limit_mib: 4096.0,
            layers,
            discs,
        }
    }
}

impl FromStr for Preset {
    type Err = SimulateError;

    /// Reads `four-target`, `homogeneous` or `layered`.
    fn from_str(name: &str) -> Result<Self, SimulateError> {
        match name {
            "four-target" => Ok(Preset::FourTarget),
            "homogeneous" => Ok(Preset::Homogeneous),
            "layered" => Ok(Preset::Layered),
            _ => Err(SimulateError::UnknownName {
                what: "preset",
                found: name.to_owned(),
                expected: "four-target, homogeneous, layered",
            }),
        }
    }
}
