//! The marked cells of a regular grid, such as the pixels of an organ.

use super::{Face, Geometry};
use crate::sampling::lattice;
use crate::{PinnError, Points, Result, Sampling};
use rtx_ir::RandomKind;
use rtx_ir::random::sample;

/// The marked cells of a regular grid. The centre of cell `i` lies at `origin + i * spacing`.
#[derive(Clone, Debug)]
pub struct Mask {
    extents: Vec<usize>,
    spacing: Vec<f64>,
    origin: Vec<f64>,
    marked: Vec<bool>,
    /// Flat indices of the marked cells.
    cells: Vec<usize>,
}

impl Mask {
    /// From marks in row-major order.
    ///
    /// # Errors
    /// Lengths that do not fit `extents`, a spacing that is not positive, or no marked cell.
    pub fn new(
        extents: &[usize],
        marked: Vec<bool>,
        spacing: &[f64],
        origin: &[f64],
    ) -> Result<Mask> {
        let dims = extents.len();
        let total: usize = extents.iter().product();
        for (what, expected, found) in [
            ("mask cells", total, marked.len()),
            ("mask spacing", dims, spacing.len()),
            ("mask origin", dims, origin.len()),
        ] {
            if expected != found {
                return Err(PinnError::Dimensions {
                    what: what.into(),
                    expected,
                    found,
                });
            }
        }
        if let Some(&value) = spacing.iter().find(|s| !(s.is_finite() && **s > 0.0)) {
            return Err(PinnError::Value {
                what: "mask spacing".into(),
                value,
                rule: "above zero",
            });
        }
        let cells: Vec<usize> = (0..total).filter(|&i| marked[i]).collect();
        if cells.is_empty() {
            return Err(PinnError::NoPoints {
                name: "mask".into(),
                hint: "mark at least one cell".into(),
            });
        }
        Ok(Mask {
            extents: extents.to_vec(),
            spacing: spacing.to_vec(),
            origin: origin.to_vec(),
            marked,
            cells,
        })
    }

    /// Number of marked cells.
    pub fn len(&self) -> usize {
        self.cells.len()
    }

    /// True for a mask without marked cells (the constructor makes none).
    pub fn is_empty(&self) -> bool {
        self.cells.is_empty()
    }

    /// Flat row-major indices of the marked cells, in the order of [`points`](Self::points).
    pub fn cells(&self) -> &[usize] {
        &self.cells
    }

    /// Centres of all marked cells.
    ///
    /// # Errors
    /// An origin that is not finite.
    pub fn points(&self) -> Result<Points> {
        let all = self.cells.iter().flat_map(|&c| self.centre(c)).collect();
        Points::new(self.extents.len(), all)
    }

    fn index(&self, mut flat: usize) -> Vec<usize> {
        let mut index = vec![0; self.extents.len()];
        for (i, &e) in index.iter_mut().zip(&self.extents).rev() {
            *i = flat % e;
            flat /= e;
        }
        index
    }

    fn centre(&self, flat: usize) -> Vec<f64> {
        self.index(flat)
            .iter()
            .enumerate()
            .map(|(a, &i)| self.origin[a] + i as f64 * self.spacing[a])
            .collect()
    }

    fn stride(&self, axis: usize) -> usize {
        self.extents[axis + 1..].iter().product()
    }

    /// True if the neighbour across the face is marked too.
    fn has_neighbour(&self, flat: usize, face: Face) -> bool {
        let i = self.index(flat)[face.axis];
        let stride = self.stride(face.axis);
        if face.upper {
            i + 1 < self.extents[face.axis] && self.marked[flat + stride]
        } else {
            i > 0 && self.marked[flat - stride]
        }
    }
}

impl Geometry for Mask {
    fn dims(&self) -> usize {
        self.extents.len()
    }

    fn bounds(&self) -> Vec<[f64; 2]> {
        let mut bounds = vec![[f64::INFINITY, f64::NEG_INFINITY]; self.extents.len()];
        for &c in &self.cells {
            for (axis, x) in self.centre(c).into_iter().enumerate() {
                let half = 0.5 * self.spacing[axis];
                bounds[axis][0] = bounds[axis][0].min(x - half);
                bounds[axis][1] = bounds[axis][1].max(x + half);
            }
        }
        bounds
    }

    fn contains(&self, point: &[f64]) -> bool {
        if point.len() != self.extents.len() {
            return false;
        }
        let mut flat = 0;
        for (axis, &x) in point.iter().enumerate() {
            let i = ((x - self.origin[axis]) / self.spacing[axis]).round();
            if !(i >= 0.0 && i < self.extents[axis] as f64) {
                return false;
            }
            flat = flat * self.extents[axis] + i as usize;
        }
        self.marked[flat]
    }

    /// `Grid` takes cell centres, evenly thinned to at most `n`; the others put points anywhere in
    /// marked cells.
    fn sample(&self, n: usize, sampling: Sampling) -> Result<Points> {
        if n == 0 {
            return Err(PinnError::NoPoints {
                name: "interior".into(),
                hint: "ask for at least one".into(),
            });
        }
        let d = self.dims();
        if sampling == Sampling::Grid {
            let all = thin(&self.cells, n).flat_map(|c| self.centre(c)).collect();
            return Points::new(d, all);
        }
        // One number chooses the cell, the others the place in it.
        let unit = sampling.unit(n, d + 1);
        let mut all = Vec::with_capacity(n * d);
        for u in unit.chunks_exact(d + 1) {
            let k = (u[0] * self.cells.len() as f64) as usize;
            let centre = self.centre(self.cells[k.min(self.cells.len() - 1)]);
            for axis in 0..d {
                all.push(centre[axis] + (u[axis + 1] - 0.5) * self.spacing[axis]);
            }
        }
        Points::new(d, all)
    }

    /// Centres of the outer cell faces that look this way: all of them, or `n` chosen ones.
    fn face(&self, face: Face, n: usize, sampling: Sampling) -> Result<Points> {
        let d = self.dims();
        if face.axis >= d {
            return Err(PinnError::NoFace {
                axis: face.axis,
                dims: d,
            });
        }
        let outer: Vec<usize> = self
            .cells
            .iter()
            .copied()
            .filter(|&c| !self.has_neighbour(c, face))
            .collect();
        let chosen: Vec<usize> = match sampling {
            Sampling::Random(seed) if n < outer.len() => {
                // A counter-based shuffle: the cells with the smallest random keys.
                let mut keyed: Vec<(f64, usize)> = outer
                    .iter()
                    .map(|&c| (sample(RandomKind::Uniform, seed, c as u64, false), c))
                    .collect();
                keyed.sort_by(|a, b| a.0.total_cmp(&b.0));
                keyed.into_iter().take(n).map(|(_, c)| c).collect()
            }
            _ => thin(&outer, n).collect(),
        };
        let (mut coordinates, mut normals) = (Vec::new(), Vec::new());
        for c in chosen {
            let mut x = self.centre(c);
            x[face.axis] += 0.5 * face.sign() * self.spacing[face.axis];
            coordinates.extend(x);
            normals.extend((0..d).map(|a| if a == face.axis { face.sign() } else { 0.0 }));
        }
        Points::new(d, coordinates)?.with_normals(normals)
    }
}

/// At most `n` elements at even distances.
fn thin(all: &[usize], n: usize) -> impl Iterator<Item = usize> + '_ {
    let count = n.min(all.len());
    (0..count).map(move |i| all[i * all.len() / count])
}

/// A mask of all cells of a grid.
impl Mask {
    /// Every cell of a grid that fulfils a condition on its centre.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn of(
        extents: &[usize],
        spacing: &[f64],
        origin: &[f64],
        inside: impl Fn(&[f64]) -> bool,
    ) -> Result<Mask> {
        let dims = extents.len();
        if spacing.len() != dims || origin.len() != dims {
            return Mask::new(extents, Vec::new(), spacing, origin);
        }
        let marked = lattice(extents)
            .chunks_exact(dims.max(1))
            .map(|i| {
                let x: Vec<f64> = (0..dims)
                    .map(|a| origin[a] + i[a] as f64 * spacing[a])
                    .collect();
                inside(&x)
            })
            .collect();
        Mask::new(extents, marked, spacing, origin)
    }
}
