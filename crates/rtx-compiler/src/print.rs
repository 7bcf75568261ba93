//! The readable listing of a program.

use crate::{Kernel, Place, Precision, Program, Step};
use std::fmt;

/// Names of the steps with what matters of them.
fn step(s: &Step) -> String {
    match s {
        Step::Elementwise(b) => {
            format!(
                "fused {} operations x {} columns, {} registers",
                b.operations.len(),
                b.columns,
                b.registers
            )
        }
        Step::Dot(d) => format!(
            "dot {} x [{} x {}] {:?} -> {:?}",
            d.lhs.len(),
            d.k,
            d.n,
            d.lhs,
            d.out
        ),
        Step::SumDot(d) => format!(
            "sum_dot {} x [{} x {}] into {}",
            d.x.len(),
            d.m,
            d.n,
            d.into
        ),
        Step::SumRows { tile, into } => format!("sum_rows {tile} into {into}"),
        Step::Reduce { from, to, axes, .. } => format!("reduce {from} axes {axes:?} -> {to}"),
        Step::Copy(c) => format!("copy {:?} -> {}", c.dims, c.to),
        Step::Gather { index, to, .. } => format!("gather by {index} -> {to}"),
        Step::Iota { to, .. } => format!("iota -> {to}"),
        Step::Random { to, .. } => format!("random -> {to}"),
    }
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fixed: usize = self.buffers[self.inputs..]
            .iter()
            .map(|b| b.shape.elements().unwrap_or(0) * b.dtype.size())
            .sum();
        writeln!(
            f,
            "program: {} kernels, {} inputs, {} buffers, {fixed} bytes beside the inputs and run-time rows",
            self.kernels.len(),
            self.inputs,
            self.buffers.len()
        )?;
        if !self.carry.is_empty() {
            writeln!(f, "{} arrays go on to the next step", self.carry.len())?;
        }
        if self.precision != Precision::F32 {
            writeln!(f, "products of f32 in {}", self.precision)?;
        }
        for (n, k) in self.kernels.iter().enumerate() {
            match k {
                Kernel::Whole(w) => {
                    let b = &self.buffers[w.output];
                    writeln!(
                        f,
                        "kernel {n}: {} {:?} -> b{} {}{}",
                        w.op, w.inputs, w.output, b.dtype, b.shape
                    )?;
                }
                Kernel::Rows(r) => {
                    let domain = r
                        .domain
                        .map_or("scalars".to_string(), |d| format!("rows {d}"));
                    let scratch = r
                        .tiles
                        .iter()
                        .filter(|t| matches!(t.place, Place::Scratch(_)))
                        .count();
                    writeln!(
                        f,
                        "kernel {n}: {domain}, {} steps, {scratch} scratch tiles in {} bytes/row, {} sums, {:.0} flop/row",
                        r.steps.len(),
                        r.scratch_per_row,
                        r.accumulators.len(),
                        r.flops_per_row
                    )?;
                    for s in &r.steps {
                        writeln!(f, "    {}", step(s))?;
                    }
                }
            }
        }
        writeln!(f, "return {:?}", self.outputs)
    }
}
