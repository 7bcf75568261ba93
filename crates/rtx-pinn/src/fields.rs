//! What the formulas of a problem see.

use crate::model::{Model, Rules};
use crate::{ComplexField, Field, Frame, PinnError, VectorField};
use rtx_ir::{Error, Node};
use rtx_tensor::Tensor;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::panic::Location;

/// Fields, unknowns and data at the points of one set. A name that does not exist gives a field that
/// carries the mistake; making the trainer then fails with the names that exist.
pub struct Fields<'a> {
    model: &'a Model,
    rules: &'a Rules,
    frame: Frame,
    data: BTreeMap<String, Tensor>,
    cache: RefCell<BTreeMap<String, Field>>,
    mistake: &'a RefCell<Option<PinnError>>,
}

impl<'a> Fields<'a> {
    pub(crate) fn new(
        model: &'a Model,
        rules: &'a Rules,
        frame: Frame,
        data: BTreeMap<String, Tensor>,
        mistake: &'a RefCell<Option<PinnError>>,
    ) -> Self {
        Fields {
            model,
            rules,
            frame,
            data,
            cache: RefCell::default(),
            mistake,
        }
    }

    /// A field by name.
    #[track_caller]
    pub fn get(&self, name: &str) -> Field {
        if let Some(f) = self.cache.borrow().get(name) {
            return f.clone();
        }
        let (Some(net), Some(rule)) = (self.model.networks.get(name), self.rules.fields.get(name))
        else {
            return self.fail(PinnError::UnknownField {
                asked: name.into(),
                known: self.model.networks.keys().cloned().collect(),
            });
        };
        let field = rule.apply(net, &self.frame);
        self.cache.borrow_mut().insert(name.into(), field.clone());
        field
    }

    /// A complex field by name: real parts in the first half of its components, imaginary in the second.
    #[track_caller]
    pub fn complex(&self, name: &str) -> ComplexField {
        let field = self.get(name);
        if field.components() % 2 == 1 && field.value().check().is_ok() {
            let bad = self.fail(PinnError::Components {
                what: format!("complex field '{name}'"),
                expected: field.components() + 1,
                found: field.components(),
            });
            return ComplexField::new(bad.clone(), bad);
        }
        field.complex()
    }

    /// An unknown scalar by name, inside its range.
    #[track_caller]
    pub fn unknown(&self, name: &str) -> Tensor {
        match (self.model.unknowns.get(name), self.rules.unknowns.get(name)) {
            (Some(raw), Some(map)) => map.apply(raw),
            _ => {
                let known = self.model.unknowns.keys().cloned().collect();
                let asked = name.into();
                self.fail(PinnError::UnknownScalar { asked, known })
                    .value()
                    .clone()
            }
        }
    }

    /// Physical coordinate `axis`.
    #[track_caller]
    pub fn x(&self, axis: usize) -> Field {
        self.frame.x(axis)
    }

    /// The last coordinate, where time is.
    #[track_caller]
    pub fn t(&self) -> Field {
        self.frame.x(self.frame.axes().saturating_sub(1))
    }

    /// All physical coordinates.
    #[track_caller]
    pub fn coordinates(&self) -> VectorField {
        self.frame.coordinates()
    }

    /// Outward unit normals of the points.
    #[track_caller]
    pub fn normal(&self) -> VectorField {
        match self.frame.normal() {
            Some(n) => n,
            None => {
                let what = "a formula that uses normals".into();
                let bad = self.fail(PinnError::NoNormals { what });
                VectorField::new(&self.frame, vec![bad; self.frame.axes()])
            }
        }
    }

    /// Data attached to the points with [`PointSet::with_data`](crate::PointSet::with_data).
    #[track_caller]
    pub fn data(&self, name: &str) -> Field {
        match self.data.get(name) {
            Some(t) => self.frame.field(t.clone()),
            None => self.fail(PinnError::UnknownData {
                asked: name.into(),
                known: self.data.keys().cloned().collect(),
            }),
        }
    }

    /// The coordinates that the fields are differentiated by.
    pub fn frame(&self) -> &Frame {
        &self.frame
    }

    /// The same fields at points moved by `distance` (physical) along an axis.
    #[track_caller]
    pub fn moved(&self, axis: usize, distance: f64) -> Fields<'a> {
        let root = self.frame.root();
        let mut step = vec![0.0; self.frame.axes()];
        if let Some(s) = step.get_mut(axis) {
            *s = distance / self.frame.unit(axis);
        }
        let step = Tensor::from_f64(&step, [step.len()], root.dtype(), root.device());
        let frame = self.rules.frame(&(root + step));
        Fields::new(self.model, self.rules, frame, BTreeMap::new(), self.mistake)
    }

    /// Keeps the first mistake for the caller and returns a field that carries it.
    #[track_caller]
    fn fail(&self, error: PinnError) -> Field {
        let node = Node::failed(Error::Other {
            op: "field",
            message: error.to_string(),
            location: Location::caller(),
        });
        self.mistake.borrow_mut().get_or_insert(error);
        self.frame
            .field(Tensor::from_node(node, self.frame.root().device()))
    }
}
