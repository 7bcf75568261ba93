//! Measured values.

use crate::error::check_finite;
use crate::{Complex64, Field, PinnError, Result};
use rtx_tensor::Tensor;

/// Measured values of a field at points: real or complex, of all or of chosen components.
#[derive(Clone, Debug)]
pub struct Observations {
    pub(crate) components: usize,
    pub(crate) complex: bool,
    /// Row-major; complex rows hold the real parts of all components, then the imaginary parts.
    pub(crate) values: Vec<f64>,
    chosen: Option<Vec<usize>>,
    scale: Option<Vec<f64>>,
}

impl Observations {
    /// Real values, row-major with `components` a point.
    pub fn real(components: usize, values: Vec<f64>) -> Observations {
        Observations {
            components,
            complex: false,
            values,
            chosen: None,
            scale: None,
        }
    }

    /// Complex values, row-major with `components` a point.
    pub fn complex(components: usize, values: &[Complex64]) -> Observations {
        let mut flat = Vec::with_capacity(2 * values.len());
        for row in values.chunks(components.max(1)) {
            flat.extend(row.iter().map(|z| z.re));
            flat.extend(row.iter().map(|z| z.im));
        }
        Observations {
            components,
            complex: true,
            values: flat,
            chosen: None,
            scale: None,
        }
    }

    /// Which components of the field were measured, in the order of the values (default: all).
    pub fn of_components(mut self, components: &[usize]) -> Observations {
        self.chosen = Some(components.to_vec());
        self
    }

    /// What the misfit of each measured component is divided by (default: the root mean square of its
    /// values, so that the term is of order one).
    pub fn scale(mut self, scale: &[f64]) -> Observations {
        self.scale = Some(scale.to_vec());
        self
    }

    /// Real numbers a point.
    pub(crate) fn columns(&self) -> usize {
        self.components * if self.complex { 2 } else { 1 }
    }

    /// Checks against a number of points and of field components (real ones).
    pub(crate) fn check(&self, what: &str, points: usize, field: usize) -> Result<()> {
        let expected = points * self.columns();
        if self.components == 0 || self.values.len() != expected {
            return Err(PinnError::Components {
                what: format!("{what}: values of {points} points"),
                expected,
                found: self.values.len(),
            });
        }
        check_finite(what, &self.values, self.columns())?;
        let available = if self.complex { field / 2 } else { field };
        let chosen = self.chosen.as_deref();
        if let Some(&index) = chosen.and_then(|c| c.iter().find(|&&k| k >= available)) {
            return Err(PinnError::ComponentIndex {
                what: what.into(),
                index,
                count: available,
            });
        }
        let expected = chosen.map_or(available, <[usize]>::len);
        if expected != self.components || (self.complex && field % 2 == 1) {
            return Err(PinnError::Components {
                what: what.into(),
                expected,
                found: self.components,
            });
        }
        if let Some(scale) = &self.scale {
            if scale.len() != self.components {
                return Err(PinnError::Components {
                    what: format!("{what}: scale"),
                    expected: self.components,
                    found: scale.len(),
                });
            }
            if let Some(&value) = scale.iter().find(|s| !(s.is_finite() && **s > 0.0)) {
                return Err(PinnError::Value {
                    what: format!("{what}: scale"),
                    value,
                    rule: "above zero",
                });
            }
        }
        Ok(())
    }

    /// What each real column is divided by.
    pub(crate) fn divisors(&self) -> Vec<f64> {
        let n = self.components;
        let per_component = match &self.scale {
            Some(s) => s.clone(),
            None => (0..n).map(|k| self.rms(k)).collect(),
        };
        (0..self.columns()).map(|c| per_component[c % n]).collect()
    }

    /// Root mean square (modulus) of a component; 1 for a component that is zero everywhere.
    fn rms(&self, k: usize) -> f64 {
        let (n, columns) = (self.components, self.columns());
        let rows = (self.values.len() / columns).max(1);
        let squares = self.values.chunks_exact(columns).map(|row| {
            let im = if self.complex { row[k + n] } else { 0.0 };
            row[k] * row[k] + im * im
        });
        let rms = (squares.sum::<f64>() / rows as f64).sqrt();
        if rms > 0.0 { rms } else { 1.0 }
    }

    /// The measured columns of the field.
    #[track_caller]
    pub(crate) fn select(&self, field: &Field) -> Field {
        let Some(chosen) = &self.chosen else {
            return field.clone();
        };
        let half = field.components() / 2;
        let mut columns: Vec<usize> = chosen.clone();
        if self.complex {
            columns.extend(chosen.iter().map(|c| c + half));
        }
        let mut parts = Vec::new();
        for c in columns {
            parts.push(field.value().slice(1, c, c + 1));
        }
        let refs: Vec<&Tensor> = parts.iter().collect();
        field.with(Tensor::concat(&refs, 1))
    }
}

impl From<Vec<f64>> for Observations {
    fn from(values: Vec<f64>) -> Observations {
        Observations::real(1, values)
    }
}

impl From<Vec<Complex64>> for Observations {
    fn from(values: Vec<Complex64>) -> Observations {
        Observations::complex(1, &values)
    }
}
