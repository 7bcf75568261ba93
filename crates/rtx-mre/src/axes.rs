//! Axis names, component and frequency lists as the user writes them, and the permutation of an
//! array into the canonical order.

use std::fmt;
use std::str::FromStr;

use ndarray::{Array6, ArrayD, Axis as NdAxis, Ix6};

use crate::error::{MreError, Result, Shape};

/// The meaning of an array axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Axis {
    /// Across the image, from left to right: `x`, or `col`.
    X,
    /// Down the image: `y`, or `row`.
    Y,
    /// Through the slices: `z`, or `slice`.
    Z,
    /// The offsets of the vibration's phase: `phase`, or `offset`.
    Phase,
    /// The directions of motion encoding: `dir`, or `component`.
    Dir,
    /// The vibration frequencies: `freq`.
    Freq,
    /// An axis of length 1 without a meaning: `_`.
    Unit,
}

/// The canonical order: `[freq, dir, phase, x, y, z]`.
const CANONICAL: [Axis; 6] = [
    Axis::Freq,
    Axis::Dir,
    Axis::Phase,
    Axis::X,
    Axis::Y,
    Axis::Z,
];

impl FromStr for Axis {
    type Err = String;

    fn from_str(name: &str) -> std::result::Result<Self, String> {
        Ok(match name.to_ascii_lowercase().as_str() {
            "x" | "col" | "column" => Self::X,
            "y" | "row" => Self::Y,
            "z" | "slice" => Self::Z,
            "phase" | "offset" => Self::Phase,
            "dir" | "direction" | "component" => Self::Dir,
            "freq" | "frequency" => Self::Freq,
            "_" => Self::Unit,
            _ => return Err(format!("`{name}` is no axis name")),
        })
    }
}

impl fmt::Display for Axis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::X => "x",
            Self::Y => "y",
            Self::Z => "slice",
            Self::Phase => "phase",
            Self::Dir => "dir",
            Self::Freq => "freq",
            Self::Unit => "_",
        })
    }
}

/// The order of axes of an array, as given by `--axes`.
///
/// # Examples
/// ```
/// use rtx_mre::axes::{Axis, AxisOrder};
/// let order: AxisOrder = "x,y,slice,phase,dir,freq".parse()?;
/// assert!(order.has(Axis::Phase));
/// assert!("x,slice".parse::<AxisOrder>().is_err()); // y is missing
/// # Ok::<(), rtx_mre::MreError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AxisOrder(Vec<Axis>);

impl FromStr for AxisOrder {
    type Err = MreError;

    /// Parses names separated by commas.
    fn from_str(text: &str) -> Result<Self> {
        const KNOWN: &str = "use x (or col), y (or row), slice (or z), phase, dir, freq, _";
        let bad = |problem: String| MreError::option("--axes", text, problem);
        let names = text.split(',').map(|name| name.trim().parse::<Axis>());
        let axes = names
            .collect::<std::result::Result<Vec<_>, _>>()
            .map_err(|problem| bad(format!("{problem}; {KNOWN}")))?;
        for (i, axis) in axes.iter().enumerate() {
            if *axis != Axis::Unit && axes[..i].contains(axis) {
                return Err(bad(format!("axis `{axis}` is named twice")));
            }
        }
        for needed in [Axis::X, Axis::Y] {
            if !axes.contains(&needed) {
                return Err(bad(format!(
                    "axis `{needed}` is missing: maps have an x and a y axis"
                )));
            }
        }
        Ok(Self(axes))
    }
}

impl fmt::Display for AxisOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, axis) in self.0.iter().enumerate() {
            write!(f, "{}{axis}", if i > 0 { "," } else { "" })?;
        }
        Ok(())
    }
}

impl AxisOrder {
    /// Whether an axis is named.
    pub fn has(&self, axis: Axis) -> bool {
        self.0.contains(&axis)
    }

    /// The spatial axes alone, in the same order: the layout of a mask.
    pub fn spatial(&self) -> Self {
        let spatial = |a: &Axis| matches!(a, Axis::X | Axis::Y | Axis::Z);
        Self(self.0.iter().copied().filter(spatial).collect())
    }

    /// Permutes an array into `[freq, dir, phase, x, y, z]`; axes that are not named get length 1.
    ///
    /// # Errors
    /// [`MreError::AxesCount`] when the number of names is not the rank;
    /// [`MreError::BadOption`] when an axis `_` is longer than 1.
    pub fn canonical<T>(&self, variable: &str, data: ArrayD<T>) -> Result<Array6<T>> {
        if self.0.len() != data.ndim() {
            return Err(MreError::AxesCount {
                axes: self.to_string(),
                named: self.0.len(),
                variable: variable.into(),
                rank: data.ndim(),
                shape: Shape::new(data.shape()),
            });
        }
        let found = data.shape().to_vec();
        let mut view = data;
        let mut names = self.0.clone();
        for at in (0..names.len()).rev().filter(|&i| self.0[i] == Axis::Unit) {
            if view.len_of(NdAxis(at)) != 1 {
                return Err(MreError::option(
                    "--axes",
                    self.to_string(),
                    format!(
                        "axis {} of `{variable}` {} is `_`, which needs length 1",
                        at + 1,
                        Shape::new(view.shape())
                    ),
                ));
            }
            view = view.index_axis_move(NdAxis(at), 0);
            names.remove(at);
        }
        for axis in CANONICAL {
            if !names.contains(&axis) {
                names.push(axis);
                let end = view.ndim();
                view = view.insert_axis(NdAxis(end));
            }
        }
        let order: Vec<usize> = CANONICAL
            .iter()
            .filter_map(|axis| names.iter().position(|n| n == axis))
            .collect();
        view.permuted_axes(order)
            .into_dimensionality::<Ix6>()
            .map_err(|_| MreError::shape("axes of an array", &[6], &found))
    }
}

/// An example of `--axes` for an array of this rank, for error messages.
pub(crate) fn example_axes(rank: usize, is_complex: bool) -> &'static str {
    match (rank, is_complex) {
        (0..=2, _) => "x,y",
        (3, true) => "freq,x,y",
        (3, false) => "x,y,phase",
        (4, true) => "freq,x,y,slice",
        (4, false) => "x,y,slice,phase",
        (5, _) => "x,y,slice,phase,freq",
        _ => "x,y,slice,phase,dir,freq",
    }
}

/// The directions of motion to use, with signs, as given by `--components`: `z`, `+z`, `-x,+y`.
///
/// A sign of minus turns the axis of motion around, for scanners whose gradient axis points
/// against the image axis.
#[derive(Debug, Clone, PartialEq)]
pub struct ComponentSelection {
    parts: Vec<Component>,
}

/// One direction of motion.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Component {
    /// Index along the `dir` axis: 0 for x, 1 for y, 2 for z.
    pub index: usize,
    /// Factor of the displacement: 1 or -1.
    pub sign: f64,
}

impl Component {
    /// `x`, `y`, `z`, or the index counted from 1, with a minus sign where the axis is turned.
    pub fn label(&self) -> String {
        let name = ["x", "y", "z"]
            .get(self.index)
            .map_or_else(|| (self.index + 1).to_string(), |name| (*name).to_string());
        if self.sign < 0.0 {
            format!("-{name}")
        } else {
            name
        }
    }
}

impl FromStr for ComponentSelection {
    type Err = MreError;

    /// Parses names separated by commas, each with an optional sign.
    fn from_str(text: &str) -> Result<Self> {
        let bad = |problem: String| MreError::option("--components", text, problem);
        let mut parts: Vec<Component> = Vec::new();
        for item in text.split(',').map(str::trim) {
            let (sign, name) = match item.strip_prefix('-') {
                Some(name) => (-1.0, name),
                None => (1.0, item.strip_prefix('+').unwrap_or(item)),
            };
            let index = match name.to_ascii_lowercase().as_str() {
                "x" => 0,
                "y" => 1,
                "z" => 2,
                other => match other.parse::<usize>() {
                    Ok(number @ 1..) => number - 1,
                    _ => {
                        return Err(bad(format!(
                            "`{item}` is no component; use x, y, z or a number from 1, with an \
                             optional sign, as in -x,+z"
                        )));
                    }
                },
            };
            if parts.iter().any(|p| p.index == index) {
                return Err(bad(format!("component `{name}` is named twice")));
            }
            parts.push(Component { index, sign });
        }
        Ok(Self { parts })
    }
}

impl ComponentSelection {
    /// All components of an axis of this length, with sign +1.
    pub fn all(extent: usize) -> Self {
        Self {
            parts: (0..extent)
                .map(|index| Component { index, sign: 1.0 })
                .collect(),
        }
    }

    /// The components in the order given.
    pub fn parts(&self) -> &[Component] {
        &self.parts
    }

    /// Where each component sits along a `dir` axis of this length.
    ///
    /// Data without a `dir` axis hold one component, whichever it is called.
    ///
    /// # Errors
    /// [`MreError::BadOption`] when the array has fewer directions than a name needs.
    pub fn positions(&self, extent: usize, has_axis: bool) -> Result<Vec<usize>> {
        if !has_axis && self.parts.len() == 1 {
            return Ok(vec![0]);
        }
        let labels = || {
            self.parts
                .iter()
                .map(Component::label)
                .collect::<Vec<_>>()
                .join(",")
        };
        match self.parts.iter().find(|part| part.index >= extent) {
            Some(part) => Err(MreError::option(
                "--components",
                labels(),
                format!(
                    "`{}` is direction {}, but the data hold {extent}; number them from 1 if they \
                     are not x, y, z",
                    part.label(),
                    part.index + 1
                ),
            )),
            None => Ok(self.parts.iter().map(|part| part.index).collect()),
        }
    }
}

/// Parses a list of frequencies in hertz, such as `30,40,50,60`.
///
/// # Errors
/// [`MreError::BadOption`] when an entry is not a positive, finite number.
pub fn parse_frequencies(text: &str) -> Result<Vec<f64>> {
    text.split(',')
        .map(|item| match item.trim().parse::<f64>() {
            Ok(f) if f.is_finite() && f > 0.0 => Ok(f),
            _ => Err(MreError::option(
                "--freq",
                text,
                format!("`{}` is not a positive number of hertz", item.trim()),
            )),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::{Array, IxDyn};

    #[test]
    fn axes_are_permuted_into_the_canonical_order() {
        let order: AxisOrder = "row, col, _, Phase, freq".parse().unwrap();
        let data = Array::from_shape_fn(IxDyn(&[4, 3, 1, 5, 2]), |i| [i[0], i[1], i[3], i[4]]);
        let out = order.canonical("u", data).unwrap();
        assert_eq!(out.shape(), [2, 1, 5, 3, 4, 1]);
        assert_eq!(out[[1, 0, 4, 2, 3, 0]], [3, 2, 4, 1]);
        assert_eq!(order.spatial().to_string(), "y,x");
    }

    #[test]
    fn a_wrong_number_of_axes_names_both() {
        let order: AxisOrder = "x,y,phase".parse().unwrap();
        let error = order
            .canonical("u", ArrayD::<f64>::zeros(IxDyn(&[2, 3])))
            .unwrap_err();
        let text = error.to_string();
        assert!(text.contains("x,y,phase names 3 axes"), "{text}");
        assert!(text.contains("`u` has 2: its shape is [2, 3]"), "{text}");
        let order: AxisOrder = "x,_"
            .parse::<AxisOrder>()
            .unwrap_or(AxisOrder(vec![Axis::X, Axis::Unit]));
        assert!(
            order
                .canonical("u", ArrayD::<f64>::zeros(IxDyn(&[2, 3])))
                .is_err()
        );
    }

    #[test]
    fn bad_lists_say_what_is_wrong() {
        for (text, says) in [
            ("x,y,time", "`time` is no axis name"),
            ("x,x,y", "`x` is named twice"),
            ("x,slice", "`y` is missing"),
        ] {
            let error = text.parse::<AxisOrder>().unwrap_err();
            assert!(error.to_string().contains(says), "{error}");
        }
        for text in ["w", "+", "z,z", "0"] {
            assert!(text.parse::<ComponentSelection>().is_err(), "{text}");
        }
        for text in ["", "30,-40", "30,,40", "nan", "inf"] {
            assert!(
                parse_frequencies(text).unwrap_err().is_input_error(),
                "{text}"
            );
        }
        assert_eq!(parse_frequencies("30, 40.5").unwrap(), [30.0, 40.5]);
    }

    #[test]
    fn components_carry_signs() {
        let selection: ComponentSelection = "-x,+z".parse().unwrap();
        assert_eq!(
            selection.parts()[0],
            Component {
                index: 0,
                sign: -1.0
            }
        );
        assert_eq!(selection.positions(3, true).unwrap(), [0, 2]);
        assert!(
            selection
                .positions(2, true)
                .unwrap_err()
                .to_string()
                .contains("hold 2")
        );
        let one: ComponentSelection = "z".parse().unwrap();
        assert_eq!(one.positions(1, false).unwrap(), [0]);
        assert!(one.positions(1, true).is_err());
    }
}
