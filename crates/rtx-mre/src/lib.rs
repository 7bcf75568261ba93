//! Magnetic resonance elastography: data, classical inversions, PINN inversion, phantoms

pub mod simulate;
