//! Elements that are each made from many: reductions, products, scattered sums.

use super::layout::{offset, strides};
use super::{BLOCK, Extent, Geometry, WholeSource, Writer};
use crate::source::scalar::c_type;
use rtx_ir::{DType, Dim, DotDims, ReduceKind};

/// Terms from which on a sum of floats is carried in runs.
const LONG_SUM: usize = 64;
/// Terms from which on a block works on one element, unless the elements fill the machine anyway.
const BLOCK_TERMS: usize = 512;
/// Elements that fill the machine with one thread each.
const MANY_ELEMENTS: usize = 1 << 16;

/// Name of the reduction in the prelude.
fn functor(kind: ReduceKind) -> &'static str {
    match kind {
        ReduceKind::Sum => "rtx_sum",
        ReduceKind::Prod => "rtx_prod",
        ReduceKind::Max => "rtx_largest",
        ReduceKind::Min => "rtx_smallest",
    }
}

/// One result element: `term` is called for every index `r0`, `r1`, ... of `dims`, in row-major order.
struct Fold<'a> {
    kind: ReduceKind,
    dims: Vec<Dim>,
    /// Statement that feeds the accumulator `s`.
    term: String,
    /// Terms for each index.
    repeat: usize,
    writer: &'a Writer<'a>,
}

impl Fold<'_> {
    /// Number of terms, if known.
    fn terms(&self) -> Option<usize> {
        self.dims
            .iter()
            .try_fold(self.repeat, |p, d| p.checked_mul(d.fixed()?))
    }

    fn accumulator(&self) -> String {
        accumulator(self.kind, self.writer.out_dtype(), self.terms())
    }

    fn source(&self) -> Option<WholeSource> {
        let long = self.terms().is_none_or(|n| n >= BLOCK_TERMS);
        let few = self.writer.count.domain.is_none() && self.writer.count.factor < MANY_ELEMENTS;
        if long && few {
            self.by_block()
        } else {
            self.by_thread()
        }
    }

    fn by_thread(&self) -> Option<WholeSource> {
        let index = self.writer.layout.index();
        let mut body = format!("        {} s;\n", self.accumulator());
        for (k, d) in self.dims.iter().enumerate() {
            let n = self.writer.layout.extent(*d)?;
            body += &format!("        for ({index} r{k} = 0; r{k} < {n}; ++r{k})\n");
        }
        body += &format!(
            "        {{\n{}        }}\n        y[e] = s.total();\n",
            self.term
        );
        Some(self.writer.threads(&body))
    }

    /// The threads of a block share the terms and combine their results by a tree.
    fn by_block(&self) -> Option<WholeSource> {
        let w = self.writer;
        let index = w.layout.index();
        let extents: Vec<String> = self
            .dims
            .iter()
            .map(|d| w.layout.extent(*d))
            .collect::<Option<_>>()?;
        // Extents of zero leave no terms; a division by a literal zero would not compile.
        let divisor = |k: usize| match self.dims[k] {
            Dim::Fixed(0) => "1".to_string(),
            _ => extents[k].clone(),
        };
        let mut body = format!(
            "    __shared__ {} part[{BLOCK}];\n    const long long terms = 1ll{};\n",
            w.out_type(),
            extents
                .iter()
                .map(|n| format!(" * {n}"))
                .collect::<String>(),
        );
        body += &format!(
            "    for (long long e = blockIdx.x; e < {}; e += gridDim.x) {{\n",
            w.count.text()
        );
        body += &super::indices(w.out_shape(), index, &self.term);
        body += &format!(
            "        {} s;\n        for (long long r = threadIdx.x; r < terms; r += {BLOCK}) {{\n            {index} rest = ({index})r;\n",
            self.accumulator()
        );
        for k in (0..extents.len()).rev() {
            if k == 0 {
                body += &format!("            const {index} r0 = rest;\n");
            } else {
                let n = divisor(k);
                body += &format!(
                    "            const {index} r{k} = rest % {n};\n            rest /= {n};\n"
                );
            }
        }
        body += &format!(
            "{}        }}\n        const {} all = rtx_block_fold<{}>(s.total(), part);\n        if (threadIdx.x == 0) y[e] = all;\n    }}\n",
            self.term,
            w.out_type(),
            functor(self.kind),
        );
        Some(WholeSource {
            code: w.function(&body),
            count: w.count,
            geometry: Geometry::Blocks { units: w.count },
        })
    }
}

fn accumulator(kind: ReduceKind, dtype: DType, terms: Option<usize>) -> String {
    let t = c_type(dtype);
    let long = terms.is_none_or(|n| n > LONG_SUM);
    if kind == ReduceKind::Sum && dtype.is_float() && long {
        format!("rtx_cascade<{t}>")
    } else {
        format!("rtx_serial<{}, {t}>", functor(kind))
    }
}

pub(super) fn reduce(w: &Writer<'_>, kind: ReduceKind, axes: &[usize]) -> Option<WholeSource> {
    let from = w.shape(0)?;
    if w.out_dtype() == DType::Bool {
        return None;
    }
    let steps = strides(from)?;
    let (mut kept, mut dims, mut terms) = (0, Vec::new(), Vec::new());
    for (axis, &d) in from.dims().iter().enumerate() {
        if axes.contains(&axis) {
            terms.push((format!("r{}", dims.len()), steps[axis]));
            dims.push(d);
        } else {
            terms.push((format!("i{kept}"), steps[axis]));
            kept += 1;
        }
    }
    let term = format!("            s.add(x0[{}]);\n", offset(terms.into_iter(), 0));
    Fold {
        kind,
        dims,
        term,
        repeat: 1,
        writer: w,
    }
    .source()
}

/// A general product, or the sum of several with the same axes (operands `x0 . x1 + x2 . x3 + ...`).
pub(super) fn dot(w: &Writer<'_>, d: &DotDims) -> Option<WholeSource> {
    let (left, right) = (w.shape(0)?, w.shape(1)?);
    if !w.inputs.len().is_multiple_of(2) || w.out_dtype() == DType::Bool {
        return None;
    }
    let free = |rank: usize, batch: &[usize], contract: &[usize]| -> Vec<usize> {
        (0..rank)
            .filter(|a| !batch.contains(a) && !contract.contains(a))
            .collect()
    };
    let left_free = free(left.rank(), &d.lhs_batch, &d.lhs_contract);
    let right_free = free(right.rank(), &d.rhs_batch, &d.rhs_contract);
    let batch = d.lhs_batch.len();
    let place = |steps: &[usize],
                 batch_axes: &[usize],
                 free: &[usize],
                 first: usize,
                 contract: &[usize]| {
        let batch = batch_axes
            .iter()
            .enumerate()
            .map(|(n, &a)| (format!("i{n}"), steps[a]));
        let free = free
            .iter()
            .enumerate()
            .map(|(n, &a)| (format!("i{}", first + n), steps[a]));
        let summed = contract
            .iter()
            .enumerate()
            .map(|(n, &a)| (format!("r{n}"), steps[a]));
        offset(batch.chain(free).chain(summed), 0)
    };
    let at_left = place(
        &strides(left)?,
        &d.lhs_batch,
        &left_free,
        batch,
        &d.lhs_contract,
    );
    let at_right = place(
        &strides(right)?,
        &d.rhs_batch,
        &right_free,
        batch + left_free.len(),
        &d.rhs_contract,
    );
    let pairs = w.inputs.len() / 2;
    let term = (0..pairs)
        .map(|p| {
            format!(
                "            s.fma(x{}[{at_left}], x{}[{at_right}]);\n",
                2 * p,
                2 * p + 1
            )
        })
        .collect();
    Fold {
        kind: ReduceKind::Sum,
        dims: d.lhs_contract.iter().map(|&a| left.dims()[a]).collect(),
        term,
        repeat: pairs,
        writer: w,
    }
    .source()
}

/// Index of the first element that no later one exceeds. A NaN exceeds nothing and nothing exceeds it.
pub(super) fn argmax(w: &Writer<'_>, axis: usize) -> Option<String> {
    let from = w.shape(0)?;
    let steps = strides(from)?;
    let n = from.dims().get(axis)?.fixed()?;
    let (index, t) = (w.layout.index(), c_type(w.dtype(0)?));
    if n == 0 {
        return Some("        y[e] = 0;\n".into());
    }
    let kept = (0..from.rank()).filter(|a| *a != axis).enumerate();
    let base = offset(kept.map(|(k, a)| (format!("i{k}"), steps[a])), 0);
    let step = steps[axis];
    Some(format!(
        "        const {index} base = {base};
        {t} best = x0[base];
        {index} first = 0;
        for ({index} k = 1; k < {n}; ++k) {{
            const {t} v = x0[base + k * {step}];
            if (v > best) {{
                best = v;
                first = k;
            }}
        }}
        y[e] = {};
",
        w.number("first")
    ))
}

/// Each element of the table looks for its updates in the order of the indices: no atomics, so the same
/// bits every time.
pub(super) fn scatter_add(w: &Writer<'_>) -> Option<String> {
    let updates = w.layout.count(w.shape(1)?)?;
    let table = w.out_shape();
    let rows = w.layout.extent(*table.dims().first()?)?;
    let width = strides(table)?[0];
    let index = w.layout.index();
    let many = Extent::fixed(updates.factor);
    let terms = (updates == many).then_some(updates.factor);
    let s = accumulator(ReduceKind::Sum, w.out_dtype(), terms);
    let divisor = width.max(1);
    Some(format!(
        "        const {index} row = o / {divisor}, column = o % {divisor};
        {s} s;
        for ({index} k = 0; k < {}; ++k)
            if (rtx_row(x1[k], {rows}) == row) s.add(x0[k * {width} + column]);
        y[e] = s.total();
",
        updates.text()
    ))
}
