//! Named point sets, and the places where a condition can hold.

use crate::error::check_finite;
use crate::{Edge, Face, PinnError, Points, Result};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Points with a name and data, as terms of a problem use them. Terms that are given clones of one set
/// share the evaluation of the fields there.
#[derive(Clone, Debug)]
pub struct PointSet {
    pub(crate) name: String,
    pub(crate) points: Arc<Points>,
    pub(crate) batch: Option<usize>,
    pub(crate) data: BTreeMap<String, Data>,
}

/// Numbers attached to points.
#[derive(Clone, Debug)]
pub(crate) struct Data {
    pub components: usize,
    pub values: Arc<Vec<f64>>,
}

impl PointSet {
    /// Names a set. Its number of points is a run-time argument of the compiled step.
    pub fn new(name: impl Into<String>, points: Points) -> PointSet {
        PointSet {
            name: name.into(),
            points: Arc::new(points),
            batch: None,
            data: BTreeMap::new(),
        }
    }

    /// Draws `n` of the points at random (with replacement) at every step, inside the compiled step.
    pub fn batch(mut self, n: usize) -> PointSet {
        self.batch = Some(n.max(1));
        self
    }

    /// Attaches numbers to the points, row-major with `components` a point; formulas read them with
    /// [`Fields::data`](crate::Fields::data).
    ///
    /// # Errors
    /// A number of values other than points times components, or values that are not finite.
    pub fn with_data(
        mut self,
        name: impl Into<String>,
        components: usize,
        values: Vec<f64>,
    ) -> Result<PointSet> {
        let name = name.into();
        let expected = self.points.len() * components;
        if components == 0 || values.len() != expected {
            return Err(PinnError::Components {
                what: format!("data '{name}' of {} points", self.points.len()),
                expected,
                found: values.len(),
            });
        }
        check_finite(&format!("data '{name}'"), &values, components)?;
        let values = Arc::new(values);
        self.data.insert(name, Data { components, values });
        Ok(self)
    }

    /// Name of the set.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The points.
    pub fn points(&self) -> &Points {
        &self.points
    }
}

/// Where a term holds.
#[derive(Clone, Debug)]
pub enum Place {
    /// So many points of the interior, from the Halton sequence.
    Interior(usize),
    /// So many points of a face.
    Face(Face, usize),
    /// Given points.
    Set(PointSet),
}

/// Points taken of a face where no number is given.
const FACE_POINTS: usize = 128;

impl Place {
    /// What the place is called in the names of terms: `interior`, `lower0`, the name of a set.
    pub fn label(&self) -> String {
        match self {
            Place::Interior(_) => "interior".into(),
            Place::Face(face, _) => face.to_string(),
            Place::Set(set) => set.name.clone(),
        }
    }
}

impl From<usize> for Place {
    fn from(n: usize) -> Place {
        Place::Interior(n)
    }
}

impl From<Edge> for Place {
    fn from(e: Edge) -> Place {
        Place::Face(e.into(), FACE_POINTS)
    }
}

impl From<Face> for Place {
    fn from(f: Face) -> Place {
        Place::Face(f, FACE_POINTS)
    }
}

impl From<(Edge, usize)> for Place {
    fn from((e, n): (Edge, usize)) -> Place {
        Place::Face(e.into(), n)
    }
}

impl From<(Face, usize)> for Place {
    fn from((f, n): (Face, usize)) -> Place {
        Place::Face(f, n)
    }
}

impl From<PointSet> for Place {
    fn from(s: PointSet) -> Place {
        Place::Set(s)
    }
}

impl From<&PointSet> for Place {
    fn from(s: &PointSet) -> Place {
        Place::Set(s.clone())
    }
}

impl From<(&str, Points)> for Place {
    fn from((name, points): (&str, Points)) -> Place {
        Place::Set(PointSet::new(name, points))
    }
}
