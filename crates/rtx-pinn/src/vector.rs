//! Vectors of fields.

use crate::{Field, Frame};
use rtx_ir::{Error, Node};
use rtx_tensor::Tensor;
use std::panic::Location;

/// One field per axis; each may have several components (a gradient of a field of k components holds
/// k components per axis).
#[derive(Clone, Debug)]
pub struct VectorField {
    parts: Vec<Field>,
    frame: Frame,
}

impl VectorField {
    /// From one field per axis, all at the points of `frame`.
    pub fn new(frame: &Frame, parts: Vec<Field>) -> VectorField {
        VectorField {
            parts,
            frame: frame.clone(),
        }
    }

    /// The fields in order of their axes.
    pub fn parts(&self) -> &[Field] {
        &self.parts
    }

    /// The field along `axis`; an axis that does not exist gives a field that carries the mistake.
    #[track_caller]
    pub fn axis(&self, axis: usize) -> Field {
        match self.parts.get(axis) {
            Some(f) => f.clone(),
            None => {
                let message = format!("axis {axis} of a vector with {} axes", self.parts.len());
                self.mistake("axis", message)
            }
        }
    }

    /// Sum over the axes of the products.
    #[track_caller]
    pub fn dot(&self, other: &VectorField) -> Field {
        if self.parts.len() != other.parts.len() {
            let message = format!(
                "vectors with {} and {} axes",
                self.parts.len(),
                other.parts.len()
            );
            return self.mistake("dot", message);
        }
        let mut terms = Vec::new();
        for (a, b) in self.parts.iter().zip(&other.parts) {
            terms.push(a * b);
        }
        self.sum(terms)
    }

    /// Squared length.
    #[track_caller]
    pub fn norm2(&self) -> Field {
        let mut terms = Vec::new();
        for f in &self.parts {
            terms.push(f.square());
        }
        self.sum(terms)
    }

    /// Divergence: the sum of part `i` differentiated by axis `i`.
    #[track_caller]
    pub fn div(&self) -> Field {
        let mut terms = Vec::new();
        for (i, f) in self.parts.iter().enumerate() {
            terms.push(f.dx(i));
        }
        self.sum(terms)
    }

    /// A function of every part.
    #[track_caller]
    pub fn map(&self, f: impl FnMut(&Field) -> Field) -> VectorField {
        VectorField::new(&self.frame, self.parts.iter().map(f).collect())
    }

    /// Other parts at the same points.
    pub(crate) fn rebuild(&self, parts: Vec<Field>) -> VectorField {
        VectorField::new(&self.frame, parts)
    }

    #[track_caller]
    fn sum(&self, terms: Vec<Field>) -> Field {
        let mut terms = terms.into_iter();
        let Some(mut total) = terms.next() else {
            return self.mistake("sum", "a vector without axes".into());
        };
        for t in terms {
            total = total + t;
        }
        total
    }

    #[track_caller]
    fn mistake(&self, op: &'static str, message: String) -> Field {
        let node = Node::failed(Error::Other {
            op,
            message,
            location: Location::caller(),
        });
        self.frame
            .field(Tensor::from_node(node, self.frame.root().device()))
    }
}
