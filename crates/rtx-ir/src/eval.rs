//! Reference evaluation in double precision, rounded to the element type after every operation.
//! Slow and plain: what every backend is compared with, and its fall-back for rare operations.

use crate::graph::Source;
use crate::{DType, DotDims, Error, Graph, Node, Op, ReduceKind, Result, RowDomain, Storage};
use std::collections::HashMap;

/// An array in host memory, one double per element.
#[derive(Clone, Debug, PartialEq)]
pub struct HostArray {
    /// Element type that the numbers are rounded to.
    pub dtype: DType,
    /// Extents.
    pub dims: Vec<usize>,
    /// Elements in row-major order.
    pub data: Vec<f64>,
}

impl HostArray {
    /// From elements in row-major order, rounded to `dtype`.
    pub fn new(dtype: DType, dims: &[usize], mut data: Vec<f64>) -> Self {
        data.iter_mut().for_each(|v| *v = dtype.round(*v));
        HostArray {
            dtype,
            dims: dims.to_vec(),
            data,
        }
    }
}

impl Storage for HostArray {
    fn dims(&self) -> &[usize] {
        &self.dims
    }
    fn as_any(&self) -> &dyn std::any::Any {
        self
    }
    fn to_host(&self) -> Result<HostArray> {
        Ok(self.clone())
    }
}

/// What a graph needs from its caller: inputs by slot.
#[derive(Default)]
pub struct Bindings {
    /// Arrays of the program's inputs.
    pub slots: HashMap<usize, HostArray>,
}

/// Row-major strides.
fn strides(dims: &[usize]) -> Vec<usize> {
    let mut s = vec![1; dims.len()];
    for i in (0..dims.len().saturating_sub(1)).rev() {
        s[i] = s[i + 1] * dims[i + 1];
    }
    s
}

/// Calls `f(position, offset in each operand)` for every index of `dims`, in row-major order.
pub fn for_each_index<const K: usize>(
    dims: &[usize],
    steps: [&[usize]; K],
    mut f: impl FnMut(usize, [usize; K]),
) {
    let total: usize = dims.iter().product();
    let mut index = vec![0; dims.len()];
    let mut at = [0; K];
    for p in 0..total {
        f(p, at);
        for axis in (0..dims.len()).rev() {
            index[axis] += 1;
            for k in 0..K {
                at[k] += steps[k][axis];
            }
            if index[axis] < dims[axis] {
                break;
            }
            for k in 0..K {
                at[k] -= steps[k][axis] * dims[axis];
            }
            index[axis] = 0;
        }
    }
}

/// Evaluates one operation. `dims` are the extents of the result.
pub fn eval_op(op: &Op, x: &[&HostArray], dtype: DType, dims: &[usize]) -> HostArray {
    let total: usize = dims.iter().product();
    let data: Vec<f64> = match op {
        Op::Constant(c) => vec![c.to_f64()],
        Op::Iota(axis) => {
            let s = strides(dims);
            (0..total)
                .map(|p| (p / s[*axis] % dims[*axis]) as f64)
                .collect()
        }
        Op::Random(kind) => {
            let key = x[0].data[0] as i64 as u64;
            (0..total)
                .map(|p| crate::random::sample(*kind, key, p as u64, dtype == DType::F32))
                .collect()
        }
        Op::RowCount => vec![x[0].dims[0] as f64],
        Op::Unary(u) => x[0].data.iter().map(|&v| u.eval(v)).collect(),
        Op::Binary(b) => x[0]
            .data
            .iter()
            .zip(&x[1].data)
            .map(|(&a, &c)| b.eval(a, c))
            .collect(),
        Op::Select => (0..total)
            .map(|p| {
                if x[0].data[p] != 0.0 {
                    x[1].data[p]
                } else {
                    x[2].data[p]
                }
            })
            .collect(),
        Op::Reduce(kind, axes) => reduce(*kind, axes, x[0], dims),
        Op::ArgMax(axis) => argmax(*axis, x[0], dims),
        Op::Dot(d) => dot(d, x[0], x[1], dims),
        Op::Broadcast(axes) => {
            let s = strides(&x[0].dims);
            let mut step = vec![0; dims.len()];
            for (i, &a) in axes.iter().enumerate() {
                step[a] = if x[0].dims[i] == 1 { 0 } else { s[i] };
            }
            gather_elements(&x[0].data, dims, &step, 0)
        }
        Op::Permute(perm) => {
            let s = strides(&x[0].dims);
            let step: Vec<usize> = perm.iter().map(|&p| s[p]).collect();
            gather_elements(&x[0].data, dims, &step, 0)
        }
        Op::Slice { axis, start, .. } => {
            let s = strides(&x[0].dims);
            gather_elements(&x[0].data, dims, &s, start * s[*axis])
        }
        Op::Pad { axis, before, .. } => {
            let mut out = vec![0.0; total];
            let s = strides(dims);
            let own = strides(&x[0].dims);
            for_each_index(&x[0].dims, [&s, &own], |_, [o, i]| {
                out[o + before * s[*axis]] = x[0].data[i]
            });
            out
        }
        Op::Concat(axis) => {
            let mut out = vec![0.0; total];
            let s = strides(dims);
            let mut at = 0;
            for part in x {
                for_each_index(&part.dims, [&s], |p, [o]| {
                    out[o + at * s[*axis]] = part.data[p]
                });
                at += part.dims[*axis];
            }
            out
        }
        Op::Gather => {
            let width: usize = x[0].dims[1..].iter().product();
            let last = x[0].dims[0].saturating_sub(1) as f64;
            let mut out = Vec::with_capacity(total);
            for &i in &x[1].data {
                let row = i.clamp(0.0, last) as usize;
                out.extend_from_slice(&x[0].data[row * width..(row + 1) * width]);
            }
            out
        }
        Op::ScatterAdd => {
            let width: usize = dims[1..].iter().product();
            let last = dims[0].saturating_sub(1) as f64;
            let mut out = vec![0.0; total];
            for (k, &i) in x[1].data.iter().enumerate() {
                let row = i.clamp(0.0, last) as usize;
                for c in 0..width {
                    out[row * width + c] += x[0].data[k * width + c];
                }
            }
            out
        }
        Op::Data | Op::Input(_) | Op::Identity { .. } | Op::Cast | Op::Reshape => x[0].data.clone(),
        Op::Derivative(_) | Op::Error(_) => vec![f64::NAN; total],
    };
    HostArray::new(dtype, dims, data)
}

fn gather_elements(data: &[f64], dims: &[usize], step: &[usize], base: usize) -> Vec<f64> {
    let mut out = Vec::with_capacity(dims.iter().product());
    for_each_index(dims, [step], |_, [i]| out.push(data[base + i]));
    out
}

fn reduce(kind: ReduceKind, axes: &[usize], x: &HostArray, dims: &[usize]) -> Vec<f64> {
    let (start, f): (f64, fn(f64, f64) -> f64) = match kind {
        ReduceKind::Sum => (0.0, |a, b| a + b),
        ReduceKind::Prod => (1.0, |a, b| a * b),
        ReduceKind::Max => (
            f64::NEG_INFINITY,
            |a, b| if b > a || b.is_nan() { b } else { a },
        ),
        ReduceKind::Min => (
            f64::INFINITY,
            |a, b| if b < a || b.is_nan() { b } else { a },
        ),
    };
    let mut out = vec![start; dims.iter().product()];
    let s = strides(dims);
    let mut step = vec![0; x.dims.len()];
    let mut k = 0;
    for a in 0..x.dims.len() {
        if !axes.contains(&a) {
            step[a] = s[k];
            k += 1;
        }
    }
    for_each_index(&x.dims, [&step], |p, [o]| out[o] = f(out[o], x.data[p]));
    out
}

fn argmax(axis: usize, x: &HostArray, dims: &[usize]) -> Vec<f64> {
    let s = strides(&x.dims);
    let step: Vec<usize> = (0..x.dims.len())
        .filter(|a| *a != axis)
        .map(|a| s[a])
        .collect();
    let mut out = Vec::new();
    for_each_index(dims, [&step], |_, [base]| {
        let mut best = 0;
        for k in 1..x.dims[axis] {
            if x.data[base + k * s[axis]] > x.data[base + best * s[axis]] {
                best = k;
            }
        }
        out.push(best as f64);
    });
    out
}

fn dot(d: &DotDims, a: &HostArray, b: &HostArray, dims: &[usize]) -> Vec<f64> {
    let (sa, sb) = (strides(&a.dims), strides(&b.dims));
    let free = |rank: usize, x: &[usize], y: &[usize]| -> Vec<usize> {
        (0..rank)
            .filter(|i| !x.contains(i) && !y.contains(i))
            .collect()
    };
    let (lf, rf) = (
        free(a.dims.len(), &d.lhs_batch, &d.lhs_contract),
        free(b.dims.len(), &d.rhs_batch, &d.rhs_contract),
    );
    let step_a: Vec<usize> = d
        .lhs_batch
        .iter()
        .chain(&lf)
        .map(|&i| sa[i])
        .chain(rf.iter().map(|_| 0))
        .collect();
    let step_b: Vec<usize> = d
        .rhs_batch
        .iter()
        .map(|&i| sb[i])
        .chain(lf.iter().map(|_| 0))
        .chain(rf.iter().map(|&i| sb[i]))
        .collect();
    let sum_dims: Vec<usize> = d.lhs_contract.iter().map(|&i| a.dims[i]).collect();
    let (ca, cb): (Vec<usize>, Vec<usize>) = (
        d.lhs_contract.iter().map(|&i| sa[i]).collect(),
        d.rhs_contract.iter().map(|&i| sb[i]).collect(),
    );
    let mut out = Vec::new();
    for_each_index(dims, [&step_a, &step_b], |_, [pa, pb]| {
        let mut sum = 0.0;
        for_each_index(&sum_dims, [&ca, &cb], |_, [i, j]| {
            sum += a.data[pa + i] * b.data[pb + j]
        });
        out.push(sum);
    });
    out
}

/// Evaluates `outputs` with the reference rules.
///
/// # Errors
/// An error node, a missing input, or row counts that differ within one domain.
pub fn evaluate(outputs: &[Node], bindings: &Bindings) -> Result<Vec<HostArray>> {
    evaluate_graph(&Graph::from_nodes(outputs, false)?, bindings)
}

/// Evaluates a lowered graph with the reference rules.
///
/// # Errors
/// As [`evaluate`].
pub fn evaluate_graph(graph: &Graph, bindings: &Bindings) -> Result<Vec<HostArray>> {
    let mut inputs = Vec::new();
    for (k, i) in graph.inputs.iter().enumerate() {
        inputs.push(match &i.source {
            Source::Captured(v) => v.to_host()?,
            Source::Scalar(v) => HostArray::new(i.dtype, &[], vec![*v]),
            Source::Slot(s) => bindings.slots.get(s).cloned().ok_or_else(|| Error::Input {
                slot: *s,
                message: format!("not given (graph input {k})"),
            })?,
        });
    }
    let mut rows: HashMap<RowDomain, usize> = HashMap::new();
    for (i, a) in graph.inputs.iter().zip(&inputs) {
        if let Some(d) = i.shape.rows() {
            let n = a.dims.first().copied().unwrap_or(0);
            let first = *rows.entry(d).or_insert(n);
            if first != n {
                return Err(Error::RowCount {
                    domain: d.name(),
                    first,
                    second: n,
                });
            }
        }
    }
    let mut values: Vec<HostArray> = Vec::with_capacity(graph.instructions.len());
    for i in &graph.instructions {
        let dims =
            i.shape
                .resolve(|d| rows.get(&d).copied())
                .ok_or_else(|| Error::UnknownRows {
                    domain: i.shape.rows().map(RowDomain::name).unwrap_or_default(),
                })?;
        let v = match i.op {
            Op::Input(k) => inputs[k].clone(),
            _ => {
                let x: Vec<&HostArray> = i.inputs.iter().map(|&k| &values[k]).collect();
                eval_op(&i.op, &x, i.dtype, &dims)
            }
        };
        values.push(v);
    }
    Ok(graph.outputs.iter().map(|&o| values[o].clone()).collect())
}
