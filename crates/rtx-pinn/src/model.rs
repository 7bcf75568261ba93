//! What is trained, and how its raw numbers become fields and unknowns.

use crate::network::Network;
use crate::{Field, Frame, PinnError, Result, VectorField};
use rtx_tensor::{Tensor, Tree, Visit};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// The trained numbers of a problem: networks and unknown scalars by name.
#[derive(Clone)]
pub struct Model {
    pub(crate) networks: BTreeMap<String, Network>,
    /// Unknowns before their map into their range.
    pub(crate) unknowns: BTreeMap<String, Tensor>,
}

impl Tree for Model {
    fn visit(&self, path: &str, trainable: bool, f: &mut dyn FnMut(Visit<'_>, &Tensor)) {
        self.networks.visit(&join(path, "fields"), trainable, f);
        self.unknowns.visit(&join(path, "unknowns"), trainable, f);
    }

    fn map(
        &self,
        path: &str,
        trainable: bool,
        f: &mut dyn FnMut(Visit<'_>, &Tensor) -> Tensor,
    ) -> Self {
        Model {
            networks: self.networks.map(&join(path, "fields"), trainable, f),
            unknowns: self.unknowns.map(&join(path, "unknowns"), trainable, f),
        }
    }
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() {
        name.to_string()
    } else {
        format!("{path}.{name}")
    }
}

/// A hard condition: physical coordinates and raw value to the value of the field.
pub(crate) type OutputTransform = Arc<dyn Fn(&VectorField, &Field) -> Field + Send + Sync>;

/// How a network's output becomes a field.
#[derive(Clone, Default)]
pub(crate) struct FieldRule {
    /// Columns of the coordinates that the network sees; `None`: all.
    pub inputs: Option<Vec<usize>>,
    /// One scale for all components, or one each; empty is 1.
    pub scale: Vec<f64>,
    /// One offset for all components, or one each; empty is 0.
    pub offset: Vec<f64>,
    pub transform: Option<OutputTransform>,
}

impl FieldRule {
    /// The field at the points of `frame`.
    #[track_caller]
    pub fn apply(&self, net: &Network, frame: &Frame) -> Field {
        let root = frame.root();
        let raw = match &self.inputs {
            None => net.forward(root),
            Some(columns) => {
                let columns: Vec<Tensor> =
                    columns.iter().map(|&c| root.slice(1, c, c + 1)).collect();
                let refs: Vec<&Tensor> = columns.iter().collect();
                net.forward(&Tensor::concat(&refs, 1))
            }
        };
        let scaled = match row(&self.scale, 1.0, &raw) {
            Some(s) => raw * s,
            None => raw,
        };
        let value = match row(&self.offset, 0.0, &scaled) {
            Some(o) => scaled + o,
            None => scaled,
        };
        let field = frame.field(value);
        match &self.transform {
            Some(t) => t(&frame.coordinates(), &field),
            None => field,
        }
    }
}

/// Numbers as a scalar or a row beside `like`, in its element type; `None` where they change nothing.
fn row(values: &[f64], neutral: f64, like: &Tensor) -> Option<Tensor> {
    if values.iter().all(|v| *v == neutral) {
        return None;
    }
    Some(match values {
        [one] => Tensor::scalar(*one, like.dtype(), like.device()),
        many => Tensor::from_f64(many, [many.len()], like.dtype(), like.device()),
    })
}

/// A smooth map of all real numbers into an open range.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum RangeMap {
    /// Every number.
    Free,
    /// `lower + e^raw`
    Above { lower: f64 },
    /// `upper - e^raw`
    Below { upper: f64 },
    /// A logistic curve between two ends.
    Linear { lower: f64, upper: f64 },
    /// A logistic curve between the logarithms of two positive ends: for ranges over several magnitudes.
    Logarithmic { lower: f64, upper: f64 },
}

impl RangeMap {
    pub fn new(name: &str, initial: f64, range: &Range<f64>) -> Result<RangeMap> {
        let (lower, upper) = (range.start, range.end);
        if !(initial.is_finite() && lower < initial && initial < upper) {
            return Err(PinnError::Range {
                name: name.into(),
                initial,
                lower,
                upper,
            });
        }
        Ok(match (lower.is_finite(), upper.is_finite()) {
            (false, false) => RangeMap::Free,
            (true, false) => RangeMap::Above { lower },
            (false, true) => RangeMap::Below { upper },
            (true, true) if lower > 0.0 && upper > 4.0 * lower => {
                RangeMap::Logarithmic { lower, upper }
            }
            (true, true) => RangeMap::Linear { lower, upper },
        })
    }

    /// The number that is mapped to `value`.
    pub fn inverse(self, value: f64) -> f64 {
        let logit = |s: f64| (s / (1.0 - s)).ln();
        match self {
            RangeMap::Free => value,
            RangeMap::Above { lower } => (value - lower).ln(),
            RangeMap::Below { upper } => (upper - value).ln(),
            RangeMap::Linear { lower, upper } => logit((value - lower) / (upper - lower)),
            RangeMap::Logarithmic { lower, upper } => {
                logit((value / lower).ln() / (upper / lower).ln())
            }
        }
    }

    /// The map as a graph.
    #[track_caller]
    pub fn apply(self, raw: &Tensor) -> Tensor {
        match self {
            RangeMap::Free => raw.clone(),
            RangeMap::Above { lower } => raw.exp() + lower,
            RangeMap::Below { upper } => upper - raw.exp(),
            RangeMap::Linear { lower, upper } => raw.sigmoid() * (upper - lower) + lower,
            RangeMap::Logarithmic { lower, upper } => {
                (raw.sigmoid() * (upper / lower).ln() + lower.ln()).exp()
            }
        }
    }
}

/// The rules of a problem: what is not trained.
#[derive(Clone, Default)]
pub(crate) struct Rules {
    pub fields: BTreeMap<String, FieldRule>,
    pub unknowns: BTreeMap<String, RangeMap>,
    /// Scaling of the coordinates.
    pub centre: Vec<f64>,
    pub half_width: Vec<f64>,
    /// Number of space axes.
    pub space: usize,
}

impl Rules {
    /// Scaled coordinates of physical ones, row-major.
    pub fn scale_points(&self, coordinates: &[f64]) -> Vec<f64> {
        let axes = self.centre.len().max(1);
        coordinates
            .iter()
            .enumerate()
            .map(|(i, x)| (x - self.centre[i % axes]) / self.half_width[i % axes])
            .collect()
    }

    pub fn frame(&self, root: &Tensor) -> Frame {
        Frame::scaled(root, &self.centre, &self.half_width, self.space)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rtx_tensor::{DType, Device};

    #[test]
    fn range_maps_are_inverted_and_stay_inside() {
        let inf = f64::INFINITY;
        for (initial, range) in [
            (0.3, -inf..inf),
            (2.0, 1.0..inf),
            (-3.0, -inf..1.0),
            (0.25, -1.0..1.0),
            (0.7, 0.01..100.0),
        ] {
            let map = RangeMap::new("c", initial, &range).unwrap();
            let at = |raw: f64| {
                let raw = Tensor::scalar(raw, DType::F64, &Device::cpu());
                map.apply(&raw).item().unwrap()
            };
            assert!(
                (at(map.inverse(initial)) - initial).abs() < 1e-12,
                "{map:?}"
            );
            for raw in [-20.0, -1.0, 0.0, 3.0, 20.0] {
                let v = at(raw);
                assert!(range.start <= v && v <= range.end, "{map:?} {raw} {v}");
            }
        }
        let outside = RangeMap::new("c", 2.0, &(0.0..1.0));
        assert!(matches!(outside, Err(PinnError::Range { .. })));
    }
}
