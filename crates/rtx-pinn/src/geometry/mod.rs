//! Domains: where points come from, and which way is out.

mod cuboid;
mod mask;

pub use cuboid::{Cuboid, Interval, Rectangle};
pub use mask::Mask;

use crate::{PinnError, Points, Result, Sampling};
use std::fmt;

/// A face of a domain: the lower or upper end of an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Face {
    /// Axis that the face is perpendicular to.
    pub axis: usize,
    /// The upper end.
    pub upper: bool,
}

impl Face {
    /// The lower end of an axis.
    pub fn lower(axis: usize) -> Face {
        Face { axis, upper: false }
    }

    /// The upper end of an axis.
    pub fn upper(axis: usize) -> Face {
        Face { axis, upper: true }
    }

    /// Component of the outward normal along the axis.
    pub(crate) fn sign(self) -> f64 {
        if self.upper { 1.0 } else { -1.0 }
    }
}

impl fmt::Display for Face {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = if self.upper { "upper" } else { "lower" };
        write!(f, "{end}{}", self.axis)
    }
}

/// The faces of an interval or rectangle by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Edge {
    /// Lower end of axis 0.
    Left,
    /// Upper end of axis 0.
    Right,
    /// Lower end of axis 1.
    Bottom,
    /// Upper end of axis 1.
    Top,
}

impl From<Edge> for Face {
    fn from(e: Edge) -> Face {
        match e {
            Edge::Left => Face::lower(0),
            Edge::Right => Face::upper(0),
            Edge::Bottom => Face::lower(1),
            Edge::Top => Face::upper(1),
        }
    }
}

/// A domain of space, or of space and time with time as the last axis.
pub trait Geometry: fmt::Debug + Send + Sync {
    /// Number of axes, time included.
    fn dims(&self) -> usize;

    /// Lower and upper end of every axis.
    fn bounds(&self) -> Vec<[f64; 2]>;

    /// True where the last axis is time.
    fn has_time(&self) -> bool {
        false
    }

    /// True for a point of the closed domain.
    fn contains(&self, point: &[f64]) -> bool;

    /// Points of the interior.
    ///
    /// # Errors
    /// No points asked for, or bounds that make no sense.
    fn sample(&self, n: usize, sampling: Sampling) -> Result<Points>;

    /// Points of a face with outward normals.
    ///
    /// # Errors
    /// As [`sample`](Self::sample), or an axis that does not exist.
    fn face(&self, face: Face, n: usize, sampling: Sampling) -> Result<Points>;

    /// Number of space axes.
    fn space_dims(&self) -> usize {
        self.dims() - usize::from(self.has_time())
    }

    /// Points at the start of time.
    ///
    /// # Errors
    /// As [`face`](Self::face), or a domain without time.
    fn initial(&self, n: usize, sampling: Sampling) -> Result<Points> {
        if !self.has_time() {
            return Err(PinnError::NoTime);
        }
        self.face(Face::lower(self.dims() - 1), n, sampling)
    }

    /// Points of all space faces, `n` on each.
    ///
    /// # Errors
    /// As [`face`](Self::face).
    fn boundary(&self, n: usize, sampling: Sampling) -> Result<Points> {
        let mut all: Option<Points> = None;
        for axis in 0..self.space_dims() {
            for upper in [false, true] {
                let p = self.face(Face { axis, upper }, n, sampling)?;
                all = Some(match all {
                    Some(a) => a.and(&p)?,
                    None => p,
                });
            }
        }
        all.ok_or(PinnError::NoFace { axis: 0, dims: 0 })
    }

    /// `Err` if the bounds make no sense.
    ///
    /// # Errors
    /// The first axis whose bounds are not finite and increasing.
    fn check(&self) -> Result<()> {
        for (axis, [lower, upper]) in self.bounds().into_iter().enumerate() {
            if !(lower.is_finite() && upper.is_finite() && lower < upper) {
                return Err(PinnError::Bounds { axis, lower, upper });
            }
        }
        Ok(())
    }
}
