//! Terms of the loss.

use crate::{ComplexField, Field, Fields, PinnError, Result, VectorField};
use rtx_tensor::Tensor;
use std::sync::Arc;

/// The formula of a term: a scalar from the fields at its points.
pub(crate) type Formula = Arc<dyn Fn(&Fields<'_>) -> Result<Tensor> + Send + Sync>;

/// One term of the loss.
#[derive(Clone)]
pub(crate) struct Term {
    pub name: String,
    /// Number of its point set.
    pub set: usize,
    pub weight: f64,
    pub formula: Formula,
}

/// What a residual may be: one equation or several.
pub trait Residual {
    /// The real equations. The loss of the residual is the sum over them of the mean square over points
    /// and components; a complex equation so counts with its squared modulus.
    fn equations(self) -> Vec<Field>;
}

impl Residual for Field {
    fn equations(self) -> Vec<Field> {
        vec![self]
    }
}

impl Residual for ComplexField {
    fn equations(self) -> Vec<Field> {
        vec![self.re, self.im]
    }
}

impl Residual for VectorField {
    fn equations(self) -> Vec<Field> {
        self.parts().to_vec()
    }
}

impl<R: Residual> Residual for Vec<R> {
    fn equations(self) -> Vec<Field> {
        self.into_iter().flat_map(Residual::equations).collect()
    }
}

impl<A: Residual, B: Residual> Residual for (A, B) {
    fn equations(self) -> Vec<Field> {
        let mut all = self.0.equations();
        all.extend(self.1.equations());
        all
    }
}

/// Sum over the equations of the mean square.
pub(crate) fn mean_square(name: &str, residual: impl Residual) -> Result<Tensor> {
    let mut total: Option<Tensor> = None;
    for f in residual.equations() {
        let mean = f.value().square().mean_all();
        total = Some(match total {
            Some(t) => t + mean,
            None => mean,
        });
    }
    total.ok_or_else(|| PinnError::Components {
        what: format!("residual '{name}'"),
        expected: 1,
        found: 0,
    })
}

/// What a condition asks for.
#[derive(Clone)]
pub enum Target {
    /// The same number everywhere.
    Constant(f64),
    /// Numbers per point, row-major.
    Values(Vec<f64>),
    /// A formula of coordinates, data, unknowns or other fields.
    Formula(Arc<dyn Fn(&Fields<'_>) -> Field + Send + Sync>),
}

/// Numbers and closures as [`Target`]s.
pub trait IntoTarget {
    /// The target.
    fn into_target(self) -> Target;
}

impl IntoTarget for f64 {
    fn into_target(self) -> Target {
        Target::Constant(self)
    }
}

impl IntoTarget for Vec<f64> {
    fn into_target(self) -> Target {
        Target::Values(self)
    }
}

impl<F: Fn(&Fields<'_>) -> Field + Send + Sync + 'static> IntoTarget for F {
    fn into_target(self) -> Target {
        Target::Formula(Arc::new(self))
    }
}
