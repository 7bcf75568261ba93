//! Intervals, rectangles and boxes of any dimension.

use super::{Face, Geometry};
use crate::sampling::lattice;
use crate::{PinnError, Points, Result, Sampling};

/// A box of any dimension; with [`in_time`](Cuboid::in_time) the last axis is time.
#[derive(Clone, Debug, PartialEq)]
pub struct Cuboid {
    bounds: Vec<[f64; 2]>,
    time: bool,
}

impl Cuboid {
    /// From the lower and upper corner. Bounds that make no sense are reported when points are taken.
    pub fn new<const N: usize>(lower: [f64; N], upper: [f64; N]) -> Cuboid {
        Cuboid {
            bounds: lower.iter().zip(&upper).map(|(&l, &u)| [l, u]).collect(),
            time: false,
        }
    }

    /// The same space over a time span, time as the last axis.
    pub fn in_time(mut self, start: f64, end: f64) -> Cuboid {
        self.bounds.push([start, end]);
        self.time = true;
        self
    }

    /// A regular lattice with both ends of every axis, `counts[i]` points along axis `i` (one: the
    /// middle), the last axis fastest.
    ///
    /// # Errors
    /// Another number of counts than of axes, or a count of zero.
    pub fn lattice(&self, counts: &[usize]) -> Result<Points> {
        self.check()?;
        if counts.len() != self.bounds.len() {
            return Err(PinnError::Dimensions {
                what: "lattice counts".into(),
                expected: self.bounds.len(),
                found: counts.len(),
            });
        }
        let at = |i: usize, count: usize, [l, u]: [f64; 2]| match count {
            1 => 0.5 * (l + u),
            _ if i + 1 == count => u,
            _ => l + (u - l) * i as f64 / (count - 1) as f64,
        };
        let coordinates = lattice(counts)
            .chunks_exact(counts.len())
            .flat_map(|index| {
                index
                    .iter()
                    .zip(counts)
                    .zip(&self.bounds)
                    .map(|((&i, &c), &b)| at(i, c, b))
            })
            .collect();
        Points::new(self.bounds.len(), coordinates)
    }
}

impl Geometry for Cuboid {
    fn dims(&self) -> usize {
        self.bounds.len()
    }

    fn bounds(&self) -> Vec<[f64; 2]> {
        self.bounds.clone()
    }

    fn has_time(&self) -> bool {
        self.time
    }

    fn contains(&self, point: &[f64]) -> bool {
        point.len() == self.bounds.len()
            && point
                .iter()
                .zip(&self.bounds)
                .all(|(x, [l, u])| l <= x && x <= u)
    }

    fn sample(&self, n: usize, sampling: Sampling) -> Result<Points> {
        self.check()?;
        if n == 0 {
            return Err(PinnError::NoPoints {
                name: "interior".into(),
                hint: "ask for at least one".into(),
            });
        }
        let d = self.dims();
        let coordinates = sampling
            .unit(n, d)
            .chunks_exact(d)
            .flat_map(|p| {
                p.iter()
                    .zip(&self.bounds)
                    .map(|(t, [l, u])| l + t * (u - l))
            })
            .collect();
        Points::new(d, coordinates)
    }

    fn face(&self, face: Face, n: usize, sampling: Sampling) -> Result<Points> {
        self.check()?;
        let d = self.dims();
        if face.axis >= d {
            return Err(PinnError::NoFace {
                axis: face.axis,
                dims: d,
            });
        }
        if n == 0 {
            return Err(PinnError::NoPoints {
                name: format!("face {face}"),
                hint: "ask for at least one".into(),
            });
        }
        // The ends of an interval are single points: more of them would be copies.
        let count = if d == 1 { 1 } else { sampling.count(n, d - 1) };
        let unit = sampling.unit(n, d - 1);
        let (mut coordinates, mut normals) = (Vec::new(), Vec::new());
        for i in 0..count {
            let mut along = unit.iter().skip(i * (d - 1));
            for (axis, [l, u]) in self.bounds.iter().enumerate() {
                if axis == face.axis {
                    coordinates.push(if face.upper { *u } else { *l });
                    normals.push(face.sign());
                } else {
                    let t = along.next().copied().unwrap_or(0.5);
                    coordinates.push(l + t * (u - l));
                    normals.push(0.0);
                }
            }
        }
        Points::new(d, coordinates)?.with_normals(normals)
    }
}

/// Declares a box of fixed dimension by its own name.
macro_rules! named_box {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq)]
        pub struct $name(Cuboid);

        impl $name {
            /// The same space over a time span, time as the last axis.
            pub fn in_time(self, start: f64, end: f64) -> Cuboid {
                self.0.in_time(start, end)
            }

            /// See [`Cuboid::lattice`].
            ///
            /// # Errors
            /// As there.
            pub fn lattice(&self, counts: &[usize]) -> Result<Points> {
                self.0.lattice(counts)
            }
        }

        impl Geometry for $name {
            fn dims(&self) -> usize {
                self.0.dims()
            }
            fn bounds(&self) -> Vec<[f64; 2]> {
                self.0.bounds()
            }
            fn contains(&self, point: &[f64]) -> bool {
                self.0.contains(point)
            }
            fn sample(&self, n: usize, sampling: Sampling) -> Result<Points> {
                self.0.sample(n, sampling)
            }
            fn face(&self, face: Face, n: usize, sampling: Sampling) -> Result<Points> {
                self.0.face(face, n, sampling)
            }
        }
    };
}

named_box! {
    /// A stretch of a line.
    Interval
}

named_box! {
    /// A rectangle of the plane.
    Rectangle
}

impl Interval {
    /// From its ends.
    pub fn new(lower: f64, upper: f64) -> Interval {
        Interval(Cuboid::new([lower], [upper]))
    }
}

impl Rectangle {
    /// From its lower left and upper right corner.
    pub fn new(lower: [f64; 2], upper: [f64; 2]) -> Rectangle {
        Rectangle(Cuboid::new(lower, upper))
    }
}
