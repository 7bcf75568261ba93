//! Operations on whole arrays as CUDA kernels, one per operation.
//!
//! Most are one thread per element of the result, in a loop over the grid so that any grid is right. Sums
//! of many terms are one block per element, products of large matrices one block per tile.

mod fold;
mod layout;
mod tiled;

#[cfg(test)]
pub(crate) mod emulation;
#[cfg(test)]
mod tests;

pub(crate) use layout::Extent;

use crate::source::scalar::{c_type, cast, expression};
use layout::{Layout, indices, offset, strides};
use rtx_compiler::{BufferInfo, Primitive, Program, WholeKernel};
use rtx_ir::{DType, Op, RandomKind, RowDomain, Shape};

/// Threads of a block where the kernel asks for a certain number.
pub(crate) const BLOCK: u32 = 256;

/// Most domains that a launch has room for.
const MAX_DOMAINS: usize = 8;

/// How a whole-array kernel is started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Geometry {
    /// One thread per element of the result; any number of threads and blocks gives the same result.
    Threads,
    /// Blocks of exactly [`BLOCK`] threads, one unit of work each; any number of blocks gives the same result.
    Blocks {
        /// Units of work.
        units: Extent,
    },
}

/// A generated kernel.
#[derive(Clone, Debug)]
pub(crate) struct WholeSource {
    /// CUDA C of one `extern "C"` function `(char* const* at, Launch l)`, to follow the prelude.
    pub(crate) code: String,
    /// Elements of the result.
    pub(crate) count: Extent,
    /// How to start it.
    pub(crate) geometry: Geometry,
}

/// The kernel of one operation. Run-time row counts are read from `Launch::rows` at the position of their
/// domain in `domains`. `None` for what the host does (row counts), and for an operation, element type or
/// shape that the type rules do not admit.
pub(crate) fn whole_kernel(
    name: &str,
    kernel: &WholeKernel,
    program: &Program,
    domains: &[RowDomain],
) -> Option<WholeSource> {
    if domains.len() > MAX_DOMAINS {
        return None;
    }
    let writer = Writer::new(name, kernel, program, domains)?;
    match &kernel.op {
        Op::Reduce(kind, axes) => fold::reduce(&writer, *kind, axes),
        Op::Dot(d) => tiled::dot(&writer, d).or_else(|| fold::dot(&writer, d)),
        op => {
            let body = writer.element(op)?;
            Some(writer.threads(&body))
        }
    }
}

/// What the text of one kernel is made from.
struct Writer<'a> {
    name: &'a str,
    inputs: Vec<(usize, &'a BufferInfo)>,
    output: (usize, &'a BufferInfo),
    layout: Layout<'a>,
    count: Extent,
}

impl<'a> Writer<'a> {
    fn new(
        name: &'a str,
        kernel: &WholeKernel,
        program: &'a Program,
        domains: &'a [RowDomain],
    ) -> Option<Self> {
        let buffer = |b: usize| program.buffers.get(b).map(|info| (b, info));
        let inputs: Vec<_> = kernel
            .inputs
            .iter()
            .map(|&b| buffer(b))
            .collect::<Option<_>>()?;
        let output = buffer(kernel.output)?;
        let shapes = inputs.iter().map(|x| &x.1.shape).chain([&output.1.shape]);
        let layout = Layout::new(shapes, domains)?;
        let count = layout.count(&output.1.shape)?;
        Some(Writer {
            name,
            inputs,
            output,
            layout,
            count,
        })
    }

    fn shape(&self, operand: usize) -> Option<&'a Shape> {
        self.inputs.get(operand).map(|x| &x.1.shape)
    }

    fn dtype(&self, operand: usize) -> Option<DType> {
        self.inputs.get(operand).map(|x| x.1.dtype)
    }

    fn out_shape(&self) -> &'a Shape {
        &self.output.1.shape
    }

    fn out_dtype(&self) -> DType {
        self.output.1.dtype
    }

    /// The C type of the result.
    fn out_type(&self) -> &'static str {
        c_type(self.out_dtype())
    }

    /// The function around `body`: operands are `x0`, `x1`, ..., the result is `y`.
    fn function(&self, body: &str) -> String {
        let mut code = format!(
            "extern \"C\" __global__ void {}(char* const* __restrict__ at, const Launch l) {{\n",
            self.name
        );
        for (k, (b, info)) in self.inputs.iter().enumerate() {
            let t = c_type(info.dtype);
            code += &format!("    const {t}* __restrict__ x{k} = (const {t}*)at[{b}];\n");
        }
        let (b, t) = (self.output.0, self.out_type());
        code += &format!("    {t}* __restrict__ y = ({t}*)at[{b}];\n");
        code + body + "}\n"
    }

    /// A kernel of one thread per element: `body` sets `y[e]` for element `o`, whose index is `i0`, `i1`, ...
    fn threads(&self, body: &str) -> WholeSource {
        let index = self.layout.index();
        let looped = format!(
            "    const long long n = {};
    for (long long e = blockIdx.x * (long long)blockDim.x + threadIdx.x; e < n; e += (long long)gridDim.x * blockDim.x) {{
{}{body}    }}
",
            self.count.text(),
            indices(self.out_shape(), index, body),
        );
        WholeSource {
            code: self.function(&looped),
            count: self.count,
            geometry: Geometry::Threads,
        }
    }

    /// The statement that makes one element of the result.
    fn element(&self, op: &Op) -> Option<String> {
        let value = match op {
            Op::Unary(u) => self.elementwise(Primitive::Unary(*u), 0)?,
            Op::Binary(b) => self.elementwise(Primitive::Binary(*b), 0)?,
            Op::Select => self.elementwise(Primitive::Select, 1)?,
            Op::Cast => self.elementwise(Primitive::Cast, 0)?,
            Op::Identity { .. } | Op::Reshape => self.elementwise(Primitive::Move, 0)?,
            Op::Iota(axis) => self.number(&format!("i{axis}")),
            Op::Random(kind) => self.random(*kind)?,
            Op::ArgMax(axis) => return fold::argmax(self, *axis),
            Op::Broadcast(axes) => {
                let from = self.shape(0)?;
                let steps = strides(from)?;
                let terms = axes
                    .iter()
                    .zip(from.dims())
                    .zip(&steps)
                    .filter(|((_, d), _)| !d.is_one())
                    .map(|((a, _), &s)| (format!("i{a}"), s));
                format!("x0[{}]", offset(terms, 0))
            }
            Op::Permute(perm) => {
                let steps = strides(self.shape(0)?)?;
                let terms = perm.iter().enumerate();
                let terms = terms.map(|(i, &p)| (format!("i{i}"), steps[p]));
                format!("x0[{}]", offset(terms, 0))
            }
            Op::Slice { axis, start, .. } => {
                let steps = strides(self.shape(0)?)?;
                let terms = steps.iter().enumerate();
                let terms = terms.map(|(i, &s)| (format!("i{i}"), s));
                format!("x0[{}]", offset(terms, start * steps.get(*axis)?))
            }
            Op::Pad { axis, before, .. } => {
                let from = self.shape(0)?;
                let own = from.dims().get(*axis)?.fixed()?;
                let inside = self.part(0, *axis, *before)?;
                format!(
                    "i{axis} >= {before} && i{axis} < {} ? {inside} : ({})0",
                    before + own,
                    self.out_type()
                )
            }
            Op::Concat(axis) => self.concat(*axis)?,
            Op::Gather => self.gather()?,
            Op::ScatterAdd => return fold::scatter_add(self),
            // Leaves are buffers already, row counts are the host's, and the rest never reaches a program.
            _ => return None,
        };
        Some(format!("        y[e] = {value};\n"))
    }

    /// One primitive on the same element of all operands.
    fn elementwise(&self, primitive: Primitive, typed: usize) -> Option<String> {
        let operands: Vec<String> = (0..self.inputs.len()).map(|k| format!("x{k}[o]")).collect();
        expression(primitive, self.dtype(typed)?, self.out_dtype(), &operands)
    }

    /// An index as an element of the result.
    fn number(&self, index: &str) -> String {
        cast(DType::I64, self.out_dtype(), &format!("(long long){index}"))
    }

    fn random(&self, kind: RandomKind) -> Option<String> {
        let key = cast(self.dtype(0)?, DType::I64, "x0[0]");
        let function = match kind {
            RandomKind::Uniform => "rtx_random_uniform",
            RandomKind::Normal => "rtx_random_normal",
        };
        self.out_dtype().is_float().then(|| {
            let t = self.out_type();
            format!("{function}<{t}>((unsigned long long){key}, (unsigned long long)e)")
        })
    }

    /// The element of operand `k` at the index of the result, with `shift` taken off along `axis`.
    fn part(&self, k: usize, axis: usize, shift: usize) -> Option<String> {
        let steps = strides(self.shape(k)?)?;
        let terms = steps.iter().enumerate().map(|(i, &s)| {
            if i == axis {
                (format!("(i{i} - {shift})"), s)
            } else {
                (format!("i{i}"), s)
            }
        });
        Some(format!("x{k}[{}]", offset(terms, 0)))
    }

    fn concat(&self, axis: usize) -> Option<String> {
        let mut text = String::new();
        let mut at = 0;
        for k in 0..self.inputs.len() {
            let part = self.part(k, axis, at)?;
            at += self.shape(k)?.dims().get(axis)?.fixed()?;
            if k + 1 < self.inputs.len() {
                text += &format!("i{axis} < {at} ? {part} : ");
            } else {
                text += &part;
            }
        }
        Some(text)
    }

    fn gather(&self) -> Option<String> {
        let table = self.shape(0)?;
        let rows = self.layout.extent(*table.dims().first()?)?;
        let width = strides(table)?[0];
        let index = self.layout.index();
        // Without elements in a row there is no element to make.
        let w = width.max(1);
        Some(format!(
            "x0[({index})rtx_row(x1[o / {w}], {rows}) * {width} + o % {w}]"
        ))
    }
}
