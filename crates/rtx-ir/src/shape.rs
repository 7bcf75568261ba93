//! Shapes whose leading extent may be a run-time argument.

use smallvec::SmallVec;
use std::fmt;
use std::sync::{Mutex, OnceLock};

/// A named set of rows (points, samples) whose count is known only when a program runs.
///
/// Two arrays tagged with the same name must have the same number of rows.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RowDomain(u32);

fn names() -> &'static Mutex<Vec<String>> {
    static NAMES: OnceLock<Mutex<Vec<String>>> = OnceLock::new();
    NAMES.get_or_init(Mutex::default)
}

impl RowDomain {
    /// The domain of that name; the same name always gives the same domain.
    pub fn named(name: &str) -> Self {
        let mut all = names().lock().unwrap_or_else(|e| e.into_inner());
        let at = all.iter().position(|n| n == name).unwrap_or_else(|| {
            all.push(name.to_string());
            all.len() - 1
        });
        RowDomain(at as u32)
    }

    /// The name it was made with.
    pub fn name(self) -> String {
        let all = names().lock().unwrap_or_else(|e| e.into_inner());
        all.get(self.0 as usize).cloned().unwrap_or_default()
    }
}

impl fmt::Debug for RowDomain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name())
    }
}

/// One extent of a shape.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Dim {
    /// Known when the graph is built.
    Fixed(usize),
    /// The number of rows of a domain, known when the program runs. Only as the leading extent.
    Rows(RowDomain),
}

impl Dim {
    /// The extent if it is known.
    pub fn fixed(self) -> Option<usize> {
        match self {
            Dim::Fixed(n) => Some(n),
            Dim::Rows(_) => None,
        }
    }

    /// True for an extent of exactly one.
    pub fn is_one(self) -> bool {
        self == Dim::Fixed(1)
    }
}

impl From<usize> for Dim {
    fn from(n: usize) -> Self {
        Dim::Fixed(n)
    }
}

impl fmt::Display for Dim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Dim::Fixed(n) => write!(f, "{n}"),
            Dim::Rows(d) => write!(f, "{}", d.name()),
        }
    }
}

/// Extents of an array, outermost first.
#[derive(Clone, PartialEq, Eq, Hash, Default)]
pub struct Shape(SmallVec<[Dim; 4]>);

impl Shape {
    /// The shape of a scalar.
    pub fn scalar() -> Self {
        Shape::default()
    }

    /// A shape of known extents.
    pub fn of(dims: &[usize]) -> Self {
        dims.iter().map(|&n| Dim::Fixed(n)).collect()
    }

    /// The extents.
    pub fn dims(&self) -> &[Dim] {
        &self.0
    }

    /// Number of axes.
    pub fn rank(&self) -> usize {
        self.0.len()
    }

    /// The domain of the leading extent, if it is a run-time row count.
    pub fn rows(&self) -> Option<RowDomain> {
        match self.0.first() {
            Some(Dim::Rows(d)) => Some(*d),
            _ => None,
        }
    }

    /// Number of elements if every extent is known.
    pub fn elements(&self) -> Option<usize> {
        self.0
            .iter()
            .try_fold(1usize, |p, d| p.checked_mul(d.fixed()?))
    }

    /// Elements of one row: the product of all extents but a run-time leading one.
    pub fn row_elements(&self) -> usize {
        self.0.iter().filter_map(|d| d.fixed()).product()
    }

    /// All extents as numbers, with run-time rows looked up by `count`.
    pub fn resolve(&self, count: impl Fn(RowDomain) -> Option<usize>) -> Option<Vec<usize>> {
        self.0
            .iter()
            .map(|d| match d {
                Dim::Fixed(n) => Some(*n),
                Dim::Rows(r) => count(*r),
            })
            .collect()
    }

    /// A copy without the named axes.
    pub fn without(&self, axes: &[usize]) -> Shape {
        (0..self.rank())
            .filter(|a| !axes.contains(a))
            .map(|a| self.0[a])
            .collect()
    }

    /// A copy with one extent replaced.
    pub fn with(&self, axis: usize, dim: Dim) -> Shape {
        let mut s = self.clone();
        s.0[axis] = dim;
        s
    }
}

impl FromIterator<Dim> for Shape {
    fn from_iter<I: IntoIterator<Item = Dim>>(iter: I) -> Self {
        Shape(iter.into_iter().collect())
    }
}

impl<const N: usize> From<[usize; N]> for Shape {
    fn from(dims: [usize; N]) -> Self {
        Shape::of(&dims)
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[")?;
        for (i, d) in self.0.iter().enumerate() {
            if i > 0 {
                f.write_str(", ")?;
            }
            write!(f, "{d}")?;
        }
        f.write_str("]")
    }
}

impl fmt::Debug for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
