//! Sets of points.

use crate::error::{PinnError, Result, check_finite};

/// Points of a geometry, with outward unit normals where they lie on a face.
#[derive(Clone, Debug, PartialEq)]
pub struct Points {
    dims: usize,
    coordinates: Vec<f64>,
    normals: Option<Vec<f64>>,
}

impl Points {
    /// From coordinates in row-major order, `dims` a point.
    ///
    /// # Errors
    /// A length that is no multiple of `dims`, no point, or coordinates that are not finite.
    pub fn new(dims: usize, coordinates: Vec<f64>) -> Result<Points> {
        if dims == 0 || !coordinates.len().is_multiple_of(dims) {
            return Err(PinnError::Dimensions {
                what: "points".into(),
                expected: dims,
                found: coordinates.len() % dims.max(1),
            });
        }
        if coordinates.is_empty() {
            return Err(PinnError::NoPoints {
                name: "points".into(),
                hint: "give at least one".into(),
            });
        }
        check_finite("coordinates", &coordinates, dims)?;
        Ok(Points {
            dims,
            coordinates,
            normals: None,
        })
    }

    /// The same points with outward unit normals (one row of `dims` a point).
    ///
    /// # Errors
    /// Another number of normals than of coordinates, or normals that are not finite.
    pub fn with_normals(mut self, normals: Vec<f64>) -> Result<Points> {
        if normals.len() != self.coordinates.len() {
            return Err(PinnError::Dimensions {
                what: "normals".into(),
                expected: self.coordinates.len(),
                found: normals.len(),
            });
        }
        check_finite("normals", &normals, self.dims)?;
        self.normals = Some(normals);
        Ok(self)
    }

    /// The points of both sets; normals are kept where both have them.
    ///
    /// # Errors
    /// Sets of different dimension.
    pub fn and(mut self, other: &Points) -> Result<Points> {
        if self.dims != other.dims {
            return Err(PinnError::Dimensions {
                what: "joined points".into(),
                expected: self.dims,
                found: other.dims,
            });
        }
        self.coordinates.extend_from_slice(&other.coordinates);
        self.normals = match (self.normals, &other.normals) {
            (Some(mut a), Some(b)) => {
                a.extend_from_slice(b);
                Some(a)
            }
            _ => None,
        };
        Ok(self)
    }

    /// Number of points.
    pub fn len(&self) -> usize {
        self.coordinates.len() / self.dims
    }

    /// True for a set without points (no constructor makes one).
    pub fn is_empty(&self) -> bool {
        self.coordinates.is_empty()
    }

    /// Coordinates a point.
    pub fn dims(&self) -> usize {
        self.dims
    }

    /// All coordinates in row-major order.
    pub fn coordinates(&self) -> &[f64] {
        &self.coordinates
    }

    /// All normals in row-major order.
    pub fn normals(&self) -> Option<&[f64]> {
        self.normals.as_deref()
    }

    /// Point by point.
    pub fn iter(&self) -> std::slice::ChunksExact<'_, f64> {
        self.coordinates.chunks_exact(self.dims)
    }

    /// A formula of the coordinates at every point.
    pub fn evaluate(&self, f: impl Fn(&[f64]) -> f64) -> Vec<f64> {
        self.iter().map(f).collect()
    }
}
