//! The coordinates that fields are differentiated by.

use crate::{Field, VectorField};
use rtx_tensor::Tensor;
use std::sync::Arc;

/// Points of one set with their scaling: the physical coordinate is `centre + half_width * root`, where
/// `root` ([points, axes], about -1 to 1) is what networks see. Derivatives are requested by the columns
/// of `root` and weighted, so that all requests of a set share one jet whatever the units are.
#[derive(Clone, Debug)]
pub struct Frame(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    root: Tensor,
    centre: Vec<f64>,
    half_width: Vec<f64>,
    space: usize,
    normals: Option<Tensor>,
}

impl Frame {
    /// A frame of scaled coordinates. Axes beyond the first `space` are not part of `grad`, `div` and
    /// `laplacian` (time, frequency, parameters).
    pub fn scaled(root: &Tensor, centre: &[f64], half_width: &[f64], space: usize) -> Frame {
        Frame(Arc::new(Inner {
            root: root.watch(),
            centre: centre.to_vec(),
            half_width: half_width.to_vec(),
            space: space.min(centre.len()),
            normals: None,
        }))
    }

    /// A frame of physical coordinates ([points, axes]) without scaling; all axes are space.
    pub fn physical(coordinates: &Tensor) -> Frame {
        let axes = coordinates
            .symbolic_shape()
            .dims()
            .get(1)
            .and_then(|d| d.fixed())
            .unwrap_or(0);
        Frame::scaled(coordinates, &vec![0.0; axes], &vec![1.0; axes], axes)
    }

    /// The same points with outward unit normals ([points, axes]).
    pub(crate) fn with_normals(&self, normals: &Tensor) -> Frame {
        let i = &self.0;
        Frame(Arc::new(Inner {
            root: i.root.clone(),
            centre: i.centre.clone(),
            half_width: i.half_width.clone(),
            space: i.space,
            normals: Some(normals.clone()),
        }))
    }

    /// Number of axes.
    pub fn axes(&self) -> usize {
        self.0.centre.len()
    }

    /// Number of space axes.
    pub fn space(&self) -> usize {
        self.0.space
    }

    /// The scaled coordinates ([points, axes]).
    pub fn root(&self) -> &Tensor {
        &self.0.root
    }

    /// Physical length of one unit of scaled coordinate `axis` (1 for an axis that does not exist: the
    /// mistake is reported by the derivative that names it).
    pub(crate) fn unit(&self, axis: usize) -> f64 {
        self.0.half_width.get(axis).copied().unwrap_or(1.0)
    }

    /// A value ([points, components]) computed from this frame's coordinates, as a field.
    pub fn field(&self, value: Tensor) -> Field {
        Field::new(value, self)
    }

    /// Physical coordinate `axis` as a field.
    #[track_caller]
    pub fn x(&self, axis: usize) -> Field {
        let column = self.0.root.slice(1, axis, axis + 1);
        let centre = self.0.centre.get(axis).copied().unwrap_or(0.0);
        let unit = self.unit(axis);
        let scaled = if unit == 1.0 { column } else { column * unit };
        self.field(if centre == 0.0 {
            scaled
        } else {
            scaled + centre
        })
    }

    /// All physical coordinates.
    #[track_caller]
    pub fn coordinates(&self) -> VectorField {
        VectorField::new(self, (0..self.axes()).map(|i| self.x(i)).collect())
    }

    /// Outward unit normals, where the points have them.
    #[track_caller]
    pub fn normal(&self) -> Option<VectorField> {
        let normals = self.0.normals.as_ref()?;
        Some(VectorField::new(
            self,
            (0..self.axes())
                .map(|i| self.field(normals.slice(1, i, i + 1)))
                .collect(),
        ))
    }
}
