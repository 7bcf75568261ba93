//! Programs made of random bytes: an instruction takes operands from the values made so far and is left out
//! where it does not fit them.

use rtx_ir::eval::HostArray;
use rtx_tensor::{DType, Device, Result, Shape, Tensor, eval, value_and_grad_tree};
use std::fmt;

/// Operation and three operands or parameters.
pub type Instruction = (u8, u8, u8, u8);

/// Largest array of a program, so that tests stay fast.
const LARGEST: usize = 40_000;

/// Data of a run: points `[rows, 3]`, a column `[rows]`, an index and three parameters.
pub struct Inputs {
    rows: usize,
}

impl Inputs {
    pub fn new(rows: usize) -> Self {
        Inputs { rows }
    }
}

/// What a program computed.
pub struct Run {
    /// The last values, the gradients of their sum by points and parameters, and those of the squared
    /// length of these gradients.
    pub outputs: Vec<HostArray>,
    /// Largest magnitude among all values.
    pub largest: f64,
    /// Most terms that any sum of the program can have, times the number of sums one after the other.
    pub longest_sum: usize,
}

/// A random program.
pub struct Program {
    code: Vec<Instruction>,
    tagged: bool,
}

fn wave(n: usize, a: f64) -> Vec<f64> {
    (0..n)
        .map(|i| ((i as f64 * a + 0.3).sin() * 1024.0).round() / 1024.0)
        .collect()
}

impl Program {
    /// `tagged`: the number of rows is a run-time argument.
    pub fn new(code: Vec<Instruction>, tagged: bool) -> Self {
        Program { code, tagged }
    }

    fn rows(&self, t: Tensor) -> Result<Tensor> {
        if self.tagged {
            t.rows("random programs")
        } else {
            Ok(t)
        }
    }

    /// Runs on one device in one precision.
    pub fn run(&self, inputs: &Inputs, dtype: DType, dev: &Device) -> Result<Run> {
        let n = inputs.rows;
        let data = |v: Vec<f64>, s: &[usize]| Tensor::from_f64(&v, Shape::of(s), dtype, dev);
        let index: Vec<i64> = (0..n as i64).map(|i| (i * 5 + 2) % 4).collect();
        let index = self.rows(Tensor::from_vec(index, [n], dev))?;
        let points = self.rows(data(wave(n * 3, 1.7), &[n, 3]))?;
        let column = self.rows(data(wave(n, 0.9), &[n]))?;
        let parameters = vec![
            points,
            data(wave(12, 2.3), &[3, 4]),
            data(wave(4, 0.7), &[4]),
            data(vec![0.75], &[]),
        ];
        let values = |p: &Vec<Tensor>| {
            let mut pool = p.clone();
            pool.push(column.clone());
            for instruction in &self.code {
                let made = apply(*instruction, &pool, &index);
                pool.extend(made.filter(|t| fits(t, n)));
            }
            pool
        };
        let loss = |p: &Vec<Tensor>| {
            let pool = values(p);
            let last = pool.iter().rev().take(3);
            last.map(|t| t.tanh().sum_all())
                .reduce(|a, b| a + b)
                .unwrap_or_else(|| p[3].clone())
        };
        let pool = values(&parameters);
        let (_, gradients) = value_and_grad_tree(loss, &parameters)?;
        // Second derivatives, through the first.
        let steepness = |p: &Vec<Tensor>| match value_and_grad_tree(loss, p) {
            Ok((_, gradients)) => gradients
                .iter()
                .map(|g| g.square().sum_all())
                .fold(p[3].clone(), |a, b| a + b),
            Err(_) => p[3].clone(),
        };
        let (_, second) = value_and_grad_tree(steepness, &parameters)?;
        let asked: Vec<Tensor> = pool
            .iter()
            .rev()
            .take(3)
            .chain(&gradients)
            .chain(&second)
            .cloned()
            .collect();
        eval(&asked.iter().collect::<Vec<_>>())?;
        let outputs: Vec<HostArray> = asked.iter().map(Tensor::to_host).collect::<Result<_>>()?;
        let largest = outputs.iter().flat_map(|o| &o.data).fold(0.0, |m, v| {
            // `f64::max` would drop a NaN.
            f64::max(m, if v.is_nan() { f64::INFINITY } else { v.abs() })
        });
        let longest = outputs.iter().map(|o| o.data.len()).max().unwrap_or(1);
        Ok(Run {
            outputs,
            largest,
            longest_sum: longest.max(n) * self.code.len().max(1),
        })
    }
}

fn fits(t: &Tensor, rows: usize) -> bool {
    t.check().is_ok()
        && t.symbolic_shape().resolve(|_| Some(rows)).is_some_and(|d| {
            let n: usize = d.iter().product();
            (1..=LARGEST).contains(&n)
        })
}

/// The result of one instruction, `None` or an error tensor where it does not fit its operands.
fn apply((op, a, b, c): Instruction, pool: &[Tensor], index: &Tensor) -> Option<Tensor> {
    let pick = |k: u8| &pool[pool.len() - 1 - usize::from(k) % pool.len()];
    let (x, y) = (pick(a), pick(b));
    let dims = x.symbolic_shape().dims().to_vec();
    let rank = dims.len();
    let tagged = x.symbolic_shape().rows().is_some();
    // An axis of known extent.
    let axis = || -> Option<usize> {
        let first = usize::from(tagged);
        (rank > first).then(|| first + usize::from(c) % (rank - first))
    };
    let extent = |axis: usize| dims[axis].fixed().unwrap_or(1);
    Some(match op % 28 {
        0 => x.sin(),
        1 => x.tanh() * 1.5,
        2 => x.abs() - 0.25,
        3 => (x.cos() + 1.5).recip(),
        4 => (x * x + 0.5).sqrt(),
        5 => x.tanh().exp(),
        6 => (x + y) * 0.5,
        7 => x - y,
        8 => x * y,
        9 => x / (y * y + 1.0),
        10 => x.maximum(y),
        11 => x.minimum(y),
        12 => x.lt(&(x * 0.0 + 0.1)).select(&x.sin(), &(x * 0.3)),
        13 | 14 => {
            let k = dims.last()?.fixed()?;
            let n = 1 + usize::from(c) % 5;
            let w = Tensor::from_f64(&wave(k * n, 3.1), [k, n], x.dtype(), x.device());
            x.matmul(&(w * pick(3)))
        }
        15 => x.matmul(pick(b)) * 0.5,
        16 => x.sum(&[axis()?]) * 0.5,
        17 => x.mean(&[usize::from(c) % rank.max(1)]),
        18 => x.max(&[axis()?]),
        19 => x - broadcast_back(&x.mean(&[rank.checked_sub(1)?]), x),
        20 => {
            let k = axis()?;
            let n = extent(k);
            let start = usize::from(b) % n;
            x.slice(k, start, n)
        }
        21 => x.pad(axis()?, usize::from(b) % 2, 1),
        22 => Tensor::concat(&[x, y, x], axis()?),
        23 => {
            let mut order: Vec<usize> = (0..rank).collect();
            order[usize::from(tagged)..].reverse();
            x.permute(&order)
        }
        24 => {
            // One axis more, or the inner axes as one.
            let lead: Vec<_> = dims.iter().take(1).copied().collect();
            let rest: usize = dims.iter().skip(1).filter_map(|d| d.fixed()).product();
            let shape: Shape = match c % 3 {
                0 => lead.into_iter().chain([rest.into()]).collect(),
                1 => lead.into_iter().chain([rest.into(), 1.into()]).collect(),
                _ => lead.into_iter().chain([1.into(), rest.into()]).collect(),
            };
            x.reshape(shape)
        }
        25 => {
            let lead = *dims.first()?;
            let table = (rank == 2 && lead == rtx_tensor::Dim::Fixed(4)).then(|| x.clone());
            table
                .unwrap_or_else(|| {
                    Tensor::from_f64(&wave(8, 1.1), [4, 2], x.dtype(), x.device()) * pick(c)
                })
                .gather(index)
        }
        26 => x.sum_all() * 0.25,
        _ => x.sum(&[0]) * 0.25,
    })
}

/// Repeats a mean over the last axis along it.
fn broadcast_back(mean: &Tensor, like: &Tensor) -> Tensor {
    let shape: Shape = mean
        .symbolic_shape()
        .dims()
        .iter()
        .copied()
        .chain([1.into()])
        .collect();
    mean.reshape(shape)
        .broadcast_to(like.symbolic_shape().clone())
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "program {:?}, tagged rows: {}", self.code, self.tagged)
    }
}
