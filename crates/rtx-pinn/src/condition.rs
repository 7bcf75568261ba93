//! Soft conditions: boundary values, slopes, periodicity, initial values and observations.

use crate::pointset::Data;
use crate::term::{IntoTarget, Target, mean_square};
use crate::{Face, Field, Fields, Observations, PinnError, Place, Problem, Result};
use rtx_tensor::{DType, Device, Tensor, Tree};
use std::sync::Arc;

impl Problem {
    /// `u = target` at a place. The term is named `u.dirichlet.<place>`.
    pub fn dirichlet(self, field: &str, place: impl Into<Place>, target: impl IntoTarget) -> Self {
        self.condition(field, "dirichlet", place.into(), target, |f, name| {
            Ok(f.get(name))
        })
    }

    /// Derivative along the outward normal `= target` at a face. Named `u.neumann.<place>`.
    pub fn neumann(self, field: &str, place: impl Into<Place>, target: impl IntoTarget) -> Self {
        self.slope_condition(field, "neumann", place.into(), (0.0, 1.0), target)
    }

    /// `a u + b du/dn = target` at a face. Named `u.robin.<place>`.
    pub fn robin(
        self,
        field: &str,
        place: impl Into<Place>,
        a: f64,
        b: f64,
        target: impl IntoTarget,
    ) -> Self {
        self.slope_condition(field, "robin", place.into(), (a, b), target)
    }

    fn slope_condition(
        self,
        field: &str,
        kind: &str,
        place: Place,
        (a, b): (f64, f64),
        target: impl IntoTarget,
    ) -> Self {
        self.condition(field, kind, place, target, move |f, name| {
            if f.frame().normal().is_none() {
                return Err(PinnError::NoNormals {
                    what: format!("normal derivative of '{name}'"),
                });
            }
            let u = f.get(name);
            let slope = u.normal_derivative(&f.normal()) * b;
            Ok(if a == 0.0 { slope } else { u * a + slope })
        })
    }

    /// `u = target` at `n` points of the start of time. Named `u.initial`.
    pub fn initial(mut self, field: &str, n: usize, target: impl IntoTarget) -> Self {
        if !self.geometry.has_time() {
            self.mistake.get_or_insert(PinnError::NoTime);
            return self;
        }
        let start = Place::Face(Face::lower(self.geometry.dims() - 1), n);
        self.condition(field, "initial", start, target, |f, name| Ok(f.get(name)))
    }

    /// Value and slope agree on both ends of an axis, at `n` points. Named `u.periodic.<axis>`.
    pub fn periodic(mut self, field: &str, axis: usize, n: usize) -> Self {
        let Some(&[lower, upper]) = self.geometry.bounds().get(axis) else {
            let dims = self.geometry.dims();
            self.mistake.get_or_insert(PinnError::NoFace { axis, dims });
            return self;
        };
        let (field, name) = (field.to_string(), format!("{field}.periodic.{axis}"));
        let place = Place::Face(Face::lower(axis), n);
        let label = name.clone();
        self.term(
            name,
            place,
            Arc::new(move |f: &Fields<'_>| {
                let (here, there) = (f.get(&field), f.moved(axis, upper - lower).get(&field));
                // Slopes per half period, so that both equations have the unit of the field.
                let unit = 0.5 * (upper - lower);
                let slopes = (here.dx(axis) - there.dx(axis).value()) * unit;
                mean_square(&label, vec![here - there.value(), slopes])
            }),
        )
    }

    /// Measured values at points, real or complex. The misfit is divided by the root mean square of each measured
    /// component unless [`Observations::scale`] says otherwise, so the term is of order one. Named
    /// `u.observed.<place>`.
    pub fn observe(
        mut self,
        field: &str,
        place: impl Into<Place>,
        values: impl Into<Observations>,
    ) -> Self {
        let place = place.into();
        let result = self.add_observation(field, place, values.into());
        self.note(result);
        self
    }

    fn add_observation(&mut self, field: &str, place: Place, observed: Observations) -> Result<()> {
        let name = format!("{field}.observed.{}", place.label());
        self.check_term(&name)?;
        let set = self.point_set(&name, place)?;
        let available = self.field_components(field)?;
        observed.check(&name, self.sets[set].points.len(), available)?;
        let divisors = observed.divisors();
        let columns = observed.columns();
        let scaled: Vec<f64> = observed
            .values
            .iter()
            .enumerate()
            .map(|(i, v)| v / divisors[i % columns])
            .collect();
        let data = Data {
            components: columns,
            values: Arc::new(scaled),
        };
        self.sets[set].data.insert(name.clone(), data);
        let (field, key) = (field.to_string(), name.clone());
        let per_point = if observed.complex { 2.0 } else { 1.0 };
        let formula = move |f: &Fields<'_>| {
            let u = observed.select(&f.get(&field));
            let scale: Vec<f64> = divisors.iter().map(|d| 1.0 / d).collect();
            let (dtype, device) = (u.value().dtype(), u.value().device().clone());
            let scale = Tensor::from_f64(&scale, [scale.len()], dtype, &device);
            // A complex component counts with its squared modulus.
            let misfit = u * scale - f.data(&key);
            Ok(mean_square(&key, misfit)? * per_point)
        };
        self.add_term(name, set, Arc::new(formula))
    }

    /// Number of real components of a field, found by recording it at one point.
    pub(crate) fn field_components(&self, field: &str) -> Result<usize> {
        let (Some(net), Some(rule)) = (self.networks.get(field), self.rules.fields.get(field))
        else {
            return Err(PinnError::UnknownField {
                asked: field.into(),
                known: self.networks.keys().cloned().collect(),
            });
        };
        let leaves = Tree::leaves(net);
        let (dtype, device) = leaves.first().map_or((DType::F32, Device::cpu()), |t| {
            (t.dtype(), t.device().clone())
        });
        let axes = self.rules.centre.len();
        let root = Tensor::full([1, axes], 0.0, dtype, &device);
        let value = rule.apply(net, &self.rules.frame(&root));
        value.value().check()?;
        Ok(value.components())
    }

    fn condition(
        mut self,
        field: &str,
        kind: &str,
        place: Place,
        target: impl IntoTarget,
        left: impl Fn(&Fields<'_>, &str) -> Result<Field> + Send + Sync + 'static,
    ) -> Self {
        let result = self.add_condition(field, kind, place, target.into_target(), left);
        self.note(result);
        self
    }

    fn add_condition(
        &mut self,
        field: &str,
        kind: &str,
        place: Place,
        target: Target,
        left: impl Fn(&Fields<'_>, &str) -> Result<Field> + Send + Sync + 'static,
    ) -> Result<()> {
        let name = match kind {
            "initial" => format!("{field}.initial"),
            _ => format!("{field}.{kind}.{}", place.label()),
        };
        self.check_term(&name)?;
        let set = self.point_set(&name, place)?;
        if let Target::Values(values) = &target {
            let (points, components) = (self.sets[set].points.len(), self.field_components(field)?);
            if values.len() != points * components {
                return Err(PinnError::Components {
                    what: format!("{name}: values of {points} points"),
                    expected: points * components,
                    found: values.len(),
                });
            }
            crate::error::check_finite(&name, values, components)?;
            let values = Arc::new(values.clone());
            let data = Data { components, values };
            self.sets[set].data.insert(name.clone(), data);
        }
        let (field, key) = (field.to_string(), name.clone());
        let formula = move |f: &Fields<'_>| {
            let value = left(f, &field)?;
            let residual = match &target {
                Target::Constant(c) if *c == 0.0 => value,
                Target::Constant(c) => value - *c,
                Target::Values(_) => value - f.data(&key),
                Target::Formula(g) => value - g(f),
            };
            mean_square(&key, residual)
        };
        self.add_term(name, set, Arc::new(formula))
    }
}
