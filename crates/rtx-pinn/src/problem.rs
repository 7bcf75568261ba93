//! The description of a problem.

use crate::model::{FieldRule, Model, RangeMap, Rules};
use crate::network::Network;
use crate::pointset::PointSet;
use crate::term::{Formula, Term};
use crate::trainer::PinnTrainer;
use crate::{
    Field, Fields, Geometry, PinnError, Place, Points, Residual, Result, Sampling, Scaling,
    VectorField,
};
use rtx_nn::{Module, Optimizer, Schedule};
use rtx_tensor::{Device, Precision, Tensor};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// A partial differential equation with its fields, conditions and data, and what is unknown in it.
///
/// Methods chain; the first mistake is kept and returned by [`trainer`](Self::trainer).
pub struct Problem {
    pub(crate) geometry: Arc<dyn Geometry>,
    pub(crate) networks: BTreeMap<String, Network>,
    pub(crate) unknowns: BTreeMap<String, f64>,
    pub(crate) rules: Rules,
    pub(crate) sets: Vec<PointSet>,
    pub(crate) terms: Vec<Term>,
    /// Largest wavenumber that a field must represent, by field.
    pub(crate) wavenumbers: BTreeMap<String, f64>,
    /// Arithmetic of products in the training step.
    pub(crate) precision: Precision,
    /// The first mistake of the description.
    pub(crate) mistake: Option<PinnError>,
}

impl Problem {
    /// A problem on a domain. Coordinates are scaled so that its bounds become -1 and 1.
    pub fn new(geometry: impl Geometry + 'static) -> Problem {
        let bounds = geometry.bounds();
        let mistake = geometry.check().err();
        let rules = Rules {
            centre: bounds.iter().map(|[l, u]| 0.5 * (l + u)).collect(),
            half_width: bounds.iter().map(|[l, u]| 0.5 * (u - l)).collect(),
            space: geometry.space_dims(),
            ..Rules::default()
        };
        Problem {
            geometry: Arc::new(geometry),
            networks: BTreeMap::new(),
            unknowns: BTreeMap::new(),
            rules,
            sets: Vec::new(),
            terms: Vec::new(),
            wavenumbers: BTreeMap::new(),
            precision: Precision::F32,
            mistake,
        }
    }

    /// Keeps the first mistake.
    pub(crate) fn note<T>(&mut self, result: Result<T>) -> Option<T> {
        match result {
            Ok(v) => Some(v),
            Err(e) => {
                self.mistake.get_or_insert(e);
                None
            }
        }
    }

    /// A field that a network represents. The network sees the scaled coordinates.
    pub fn field(
        mut self,
        name: impl Into<String>,
        net: impl Module + Send + Sync + 'static,
    ) -> Self {
        let name = name.into();
        if self.networks.contains_key(&name) {
            self.mistake.get_or_insert(PinnError::DuplicateName {
                what: "field",
                name: name.clone(),
            });
        }
        self.networks.insert(name.clone(), Network::new(net));
        self.rules.fields.insert(name, FieldRule::default());
        self
    }

    /// A field over chosen coordinates only (a material that does not change in time, say).
    pub fn field_over(
        mut self,
        name: impl Into<String>,
        axes: &[usize],
        net: impl Module + Send + Sync + 'static,
    ) -> Self {
        let name = name.into();
        let dims = self.geometry.dims();
        if let Some(&axis) = axes.iter().find(|&&a| a >= dims) {
            self.mistake.get_or_insert(PinnError::NoFace { axis, dims });
            return self;
        }
        let mut problem = self.field(name.clone(), net);
        problem.change_rule(&name, |r| r.inputs = Some(axes.to_vec()));
        problem
    }

    fn change_rule(&mut self, field: &str, change: impl FnOnce(&mut FieldRule)) {
        match self.rules.fields.get_mut(field) {
            Some(rule) => change(rule),
            None => {
                let known = self.networks.keys().cloned().collect();
                let asked = field.into();
                self.mistake
                    .get_or_insert(PinnError::UnknownField { asked, known });
            }
        }
    }

    /// Scales the output of a field's network: `offset + scale * output`, one number for all components
    /// or one each. With it, networks of order one represent fields in physical units.
    pub fn output_scaling(mut self, field: &str, scale: &[f64], offset: &[f64]) -> Self {
        if let Some(&value) = scale.iter().find(|s| !(s.is_finite() && **s != 0.0)) {
            self.mistake.get_or_insert(PinnError::Value {
                what: format!("output scale of '{field}'"),
                value,
                rule: "not zero",
            });
        }
        self.change_rule(field, |r| {
            r.scale = scale.to_vec();
            r.offset = offset.to_vec();
        });
        self
    }

    /// Scales the coordinates: `physical = centre + half_width * scaled`. The default takes the bounds of
    /// the geometry; equal half-widths keep lengths comparable between axes.
    pub fn input_scaling(mut self, centre: &[f64], half_width: &[f64]) -> Self {
        let dims = self.geometry.dims();
        for given in [centre.len(), half_width.len()] {
            if given != dims {
                self.mistake.get_or_insert(PinnError::Dimensions {
                    what: "input scaling".into(),
                    expected: dims,
                    found: given,
                });
                return self;
            }
        }
        if let Some(&value) = half_width.iter().find(|h| !(h.is_finite() && **h > 0.0)) {
            self.mistake.get_or_insert(PinnError::Value {
                what: "half-width of the input scaling".into(),
                value,
                rule: "above zero",
            });
            return self;
        }
        self.rules.centre = centre.to_vec();
        self.rules.half_width = half_width.to_vec();
        self
    }

    /// Scales a field by what was measured of it; see [`Scaling::of`].
    pub fn scale_by(self, field: &str, scaling: &Scaling) -> Self {
        self.output_scaling(field, &scaling.spread, &scaling.mean)
    }

    /// A trainable scalar that stays inside a range, by a smooth map. Infinite ends are allowed.
    pub fn unknown(mut self, name: impl Into<String>, initial: f64, range: Range<f64>) -> Self {
        let name = name.into();
        if self.unknowns.contains_key(&name) {
            self.mistake.get_or_insert(PinnError::DuplicateName {
                what: "unknown",
                name: name.clone(),
            });
        }
        let map = RangeMap::new(&name, initial, &range);
        if let Some(map) = self.note(map) {
            self.unknowns.insert(name.clone(), map.inverse(initial));
            self.rules.unknowns.insert(name, map);
        }
        self
    }

    /// A condition that holds exactly: replaces the output of a field's network by a formula of the
    /// physical coordinates and that output, such as `x (1 - x) raw`.
    pub fn hard(
        mut self,
        field: &str,
        transform: impl Fn(&VectorField, &Field) -> Field + Send + Sync + 'static,
    ) -> Self {
        self.change_rule(field, |r| r.transform = Some(Arc::new(transform)));
        self
    }

    /// Equations that hold at points; the term is their mean square (see [`Residual`]).
    pub fn residual<R: Residual>(
        self,
        name: impl Into<String>,
        place: impl Into<Place>,
        formula: impl Fn(&Fields<'_>) -> R + Send + Sync + 'static,
    ) -> Self {
        let name = name.into();
        let label = name.clone();
        self.term(
            name,
            place.into(),
            Arc::new(move |f| crate::term::mean_square(&label, formula(f))),
        )
    }

    /// A regularisation: the term is the mean of a formula over points (total variation:
    /// `(mu.grad().norm2() + eps).sqrt()`).
    pub fn penalty(
        self,
        name: impl Into<String>,
        place: impl Into<Place>,
        formula: impl Fn(&Fields<'_>) -> Field + Send + Sync + 'static,
    ) -> Self {
        self.term(
            name.into(),
            place.into(),
            Arc::new(move |f| Ok(formula(f).value().mean_all())),
        )
    }

    /// Any scalar made of the fields at points: integrals, weak forms, robust losses.
    pub fn scalar_term(
        self,
        name: impl Into<String>,
        place: impl Into<Place>,
        formula: impl Fn(&Fields<'_>) -> Tensor + Send + Sync + 'static,
    ) -> Self {
        self.term(name.into(), place.into(), Arc::new(move |f| Ok(formula(f))))
    }

    /// Adds a term of any kind.
    pub(crate) fn term(mut self, name: String, place: Place, formula: Formula) -> Self {
        let result = self
            .check_term(&name)
            .and_then(|()| self.point_set(&name, place))
            .and_then(|set| self.add_term(name, set, formula));
        self.note(result);
        self
    }

    /// Term names are unique.
    pub(crate) fn check_term(&self, name: &str) -> Result<()> {
        if self.terms.iter().all(|t| t.name != name) {
            return Ok(());
        }
        Err(PinnError::DuplicateName {
            what: "term",
            name: name.into(),
        })
    }

    pub(crate) fn add_term(&mut self, name: String, set: usize, formula: Formula) -> Result<()> {
        self.check_term(&name)?;
        self.terms.push(Term {
            name,
            set,
            weight: 1.0,
            formula,
        });
        Ok(())
    }

    /// Weight of a term in the total loss (default 1). It is an input of the compiled step.
    pub fn weight(mut self, term: &str, weight: f64) -> Self {
        let found = self.terms.iter_mut().find(|t| t.name == term);
        let result = match found {
            None => Err(PinnError::UnknownTerm {
                asked: term.into(),
                known: self.terms.iter().map(|t| t.name.clone()).collect(),
            }),
            Some(t) => check_weight(term, weight).map(|()| t.weight = weight),
        };
        self.note(result);
        self
    }

    /// Says how large the wavenumber (radians per unit of length) of a field can become; a network whose
    /// Fourier features are too slow for it then gives a [warning](PinnTrainer::warnings).
    pub fn wavenumber(mut self, field: &str, largest: f64) -> Self {
        self.change_rule(field, |_| {});
        self.wavenumbers.insert(field.into(), largest);
        self
    }

    /// Arithmetic of products of single-precision arrays in the training step (default [`Precision::F32`]).
    /// Predictions and the polish by L-BFGS are not affected.
    pub fn precision(mut self, precision: Precision) -> Self {
        self.precision = precision;
        self
    }

    /// Number of the point set of a place; a set that is there already is shared.
    pub(crate) fn point_set(&mut self, term: &str, place: Place) -> Result<usize> {
        let set = match place {
            Place::Interior(n) => {
                let name = format!("interior of {term}");
                PointSet::new(name, self.geometry.sample(n, Sampling::Halton)?)
            }
            Place::Face(face, n) => {
                let name = format!("{face} x{n}");
                if let Some(k) = self.sets.iter().position(|s| s.name == name) {
                    return Ok(k);
                }
                PointSet::new(name, self.geometry.face(face, n, Sampling::Halton)?)
            }
            Place::Set(set) => set,
        };
        let dims = self.geometry.dims();
        if set.points.dims() != dims {
            return Err(PinnError::Dimensions {
                what: format!("point set '{}'", set.name),
                expected: dims,
                found: set.points.dims(),
            });
        }
        let Some(k) = self.sets.iter().position(|s| s.name == set.name) else {
            self.sets.push(set);
            return Ok(self.sets.len() - 1);
        };
        let there = &mut self.sets[k];
        if !Arc::ptr_eq(&there.points, &set.points) || there.batch != set.batch {
            return Err(PinnError::DuplicateName {
                what: "point set",
                name: set.name,
            });
        }
        there.data.extend(set.data);
        Ok(k)
    }

    /// Compiles the training step on the device of the networks.
    ///
    /// # Errors
    /// The first mistake of the description, or one inside a formula (naming its line).
    pub fn trainer(
        mut self,
        optimizer: impl Optimizer + 'static,
        schedule: Schedule,
    ) -> Result<PinnTrainer> {
        if let Some(e) = self.mistake.take() {
            return Err(e);
        }
        let first = self
            .networks
            .values()
            .find_map(|n| rtx_tensor::Tree::leaves(n).into_iter().next());
        let Some(first) = first else {
            return Err(PinnError::Incomplete {
                what: "field",
                hint: "add one with Problem::field",
            });
        };
        if self.terms.is_empty() {
            return Err(PinnError::Incomplete {
                what: "term",
                hint: "add a residual, a condition or observations",
            });
        }
        let (dtype, device): (_, Device) = (first.dtype(), first.device().clone());
        let unknowns = self
            .unknowns
            .iter()
            .map(|(name, raw)| {
                let t = Tensor::from_f64(&[*raw], [0usize; 0], dtype, &device);
                (name.clone(), t)
            })
            .collect();
        let model = Model {
            networks: std::mem::take(&mut self.networks),
            unknowns,
        };
        PinnTrainer::new(self, model, optimizer, schedule, dtype, &device)
    }

    /// Points of the interior of the problem's domain.
    ///
    /// # Errors
    /// As [`Geometry::sample`].
    pub fn sample(&self, n: usize, sampling: Sampling) -> Result<Points> {
        self.geometry.sample(n, sampling)
    }
}

/// Weights are finite and not negative.
pub(crate) fn check_weight(term: &str, value: f64) -> Result<()> {
    if value.is_finite() && value >= 0.0 {
        return Ok(());
    }
    Err(PinnError::Value {
        what: format!("weight of '{term}'"),
        value,
        rule: "not negative",
    })
}
