//! Magnetic resonance elastography (MRE): from measured displacement to maps of the complex shear
//! modulus.
//!
//! The data path, in order:
//! 1. [`io`] reads arrays from `.mat` (v5), `.npy` and `.npz` files;
//! 2. [`axes`] puts their axes, named by the user, into one canonical order;
//! 3. [`phase`] unwraps samples that are a wrapped phase, [`harmonic`] reduces the phase offsets of a vibration cycle to the complex first harmonic;
//! 4. [`wave`] joins these into a [`WaveField`] with mask, frequencies and voxel size;
//! 5. [`inversion`] holds the classical (direct) inversions, which give a [`Modulus`];
//! 6. [`pinn`] trains a physics-informed network instead;
//! 7. [`metrics`] compares maps with a truth, [`holdout`] draws held-out pixels, [`verdict`] says what their error means;
//! 8. [`figure`] draws panels of maps.
//!
//! [`simulate`] makes phantoms, wave fields with a known modulus.
//!
//! Units are SI throughout: displacement in metres (or arbitrary units: the inversions are
//! scale-free in it), lengths in metres, frequencies in hertz, moduli in pascals.

pub mod axes;
pub mod error;
pub mod figure;
pub mod harmonic;
pub mod holdout;
pub mod inversion;
pub mod io;
pub mod mask;
pub mod metrics;
pub mod phase;
pub mod pinn;
pub mod simulate;
pub mod verdict;
pub mod wave;

pub use error::{MreError, Result};
pub use inversion::Modulus;
pub use wave::{LoadOptions, WaveField};
