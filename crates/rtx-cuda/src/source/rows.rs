//! CUDA C of row kernels: one block of threads carries a block of rows through all steps.
//!
//! The blocks of a launch share out the blocks of rows. Tiles stand in scratch of the block (`block_rows` rows each,
//! so that operands of one product stay side by side), sums over rows in partial copies that a second kernel adds in
//! order: the result depends on the number of blocks, never on which of them is faster.

use super::scalar::{c_type, expression};
use rtx_compiler::{
    Block, DotGroup, Operand, Place, Program, Rearrange, RowKernel, Source, Step, SumGroup, TileId,
};
use rtx_ir::{DType, Dim, RandomKind, ReduceKind, RowDomain};
use std::collections::HashMap;
use std::fmt::Write as _;

/// Device functions that the kernels call.
pub(crate) const HELPERS: &str = include_str!("rows.cu");
/// Threads of a block.
pub(crate) const THREADS: u32 = 256;
/// Widest side of a product that is worked on by plain loops.
const NARROW: usize = 8;
/// Elements of shared memory of a tiled product: panels of 64 x 32 and 32 x 128, as in `rows.cu`; its sums of parts and a
/// tiled sum of products need less.
const SHARED_ELEMENTS: usize = 64 * 32 + 32 * 128;

/// The source of one row kernel.
pub(crate) struct RowSource {
    /// The kernel `NAME`, and `NAME_sum` where there are sums over rows.
    pub(crate) code: String,
    /// Bytes of dynamic shared memory.
    pub(crate) shared: usize,
    /// Bytes of one block's partial sums.
    pub(crate) partial_bytes: usize,
    /// Elements of the sums over rows.
    pub(crate) sums: usize,
    /// Most elements per row of an elementwise step.
    pub(crate) widest: usize,
}

struct Writer<'a> {
    kernel: &'a RowKernel,
    program: &'a Program,
    code: String,
    shared: usize,
    widest: usize,
    /// Offset of each accumulator in a block's partial sums.
    at: Vec<usize>,
}

/// Bytes of each accumulator's part are rounded up to this.
const ALIGN: usize = 64;

/// Writes a row kernel.
pub(crate) fn row_kernel(
    name: &str,
    kernel: &RowKernel,
    program: &Program,
    domains: &[RowDomain],
) -> RowSource {
    let mut at = Vec::new();
    let mut partial_bytes = 0;
    for a in &kernel.accumulators {
        at.push(partial_bytes);
        partial_bytes += (a.elements * a.dtype.size()).next_multiple_of(ALIGN);
    }
    let mut w = Writer {
        kernel,
        program,
        code: String::new(),
        shared: 0,
        widest: 1,
        at,
    };
    let rows = match kernel.domain {
        None => "1".to_string(),
        Some(Dim::Fixed(n)) => n.to_string(),
        Some(Dim::Rows(d)) => format!(
            "l.rows[{}]",
            domains.iter().position(|x| *x == d).unwrap_or(0)
        ),
    };
    let scratch = kernel.scratch_per_row;
    w.line(&format!(
        "extern \"C\" __global__ void __launch_bounds__({THREADS}, 1) {name}(char* const* __restrict__ at, const Launch l) {{"
    ));
    w.line("extern __shared__ __align__(16) char shared[];");
    w.line("const int tid = threadIdx.x;");
    w.line(&format!("const long long rows = {rows};"));
    w.line("const int block_rows = (int)l.block_rows;");
    w.line(&format!(
        "char* const scratch = l.scratch + (long long)blockIdx.x * {scratch} * block_rows;"
    ));
    w.line("const long long blocks = (rows + block_rows - 1) / block_rows;");
    for (k, a) in kernel.accumulators.iter().enumerate() {
        let (t, at, b) = (c_type(a.dtype), w.at[k], a.buffer);
        w.line(&format!(
            "{t}* const sum{k} = ({t}*)(gridDim.x == 1 ? at[{b}] : l.partials + (long long)blockIdx.x * {partial_bytes} + {at});"
        ));
    }
    w.line("if (blockIdx.x >= blocks) {");
    for (k, a) in kernel.accumulators.iter().enumerate() {
        w.line(&format!(
            "for (int e = tid; e < {}; e += RTX_THREADS) sum{k}[e] = {};",
            a.elements,
            neutral(a.kind, c_type(a.dtype))
        ));
    }
    w.line("}");
    w.line("for (long long block = blockIdx.x; block < blocks; block += gridDim.x) {");
    w.line("const bool first = block == blockIdx.x;");
    w.line("const long long start = block * block_rows;");
    w.line("const int count = (int)(rows - start < block_rows ? rows - start : block_rows);");
    w.line("(void)scratch; (void)first; (void)shared;");
    for step in &kernel.steps {
        w.line("{");
        w.step(step);
        w.line("}");
        w.line("__syncthreads();");
    }
    w.line("}\n}");
    if !kernel.accumulators.is_empty() {
        w.sums(name, partial_bytes);
    }
    RowSource {
        code: w.code,
        shared: w.shared,
        partial_bytes,
        sums: kernel.accumulators.iter().map(|a| a.elements).sum(),
        widest: w.widest,
    }
}

/// The reduction's functions in the prelude.
fn kind_name(kind: ReduceKind) -> &'static str {
    match kind {
        ReduceKind::Sum => "rtx_sum",
        ReduceKind::Prod => "rtx_prod",
        ReduceKind::Max => "rtx_largest",
        ReduceKind::Min => "rtx_smallest",
    }
}

fn neutral(kind: ReduceKind, t: &str) -> String {
    format!("{}::neutral<{t}>()", kind_name(kind))
}

fn combine(kind: ReduceKind) -> String {
    format!("{}::combine", kind_name(kind))
}

/// `base + i0 * step0 + ...` with the indices of `dims` read off the linear index `i`.
fn offset(i: &str, dims: &[usize], steps: &[usize], base: usize) -> String {
    let mut text = base.to_string();
    let mut below = 1;
    for (n, step) in dims.iter().zip(steps).rev() {
        if *step != 0 && *n > 1 {
            let _ = write!(text, " + {i} / {below} % {n} * {step}");
        }
        below *= n;
    }
    text
}

/// Values that are loaded once each.
struct Loads {
    prefix: &'static str,
    names: HashMap<String, String>,
    code: String,
}

impl Loads {
    fn new(prefix: &'static str) -> Self {
        Loads {
            prefix,
            names: HashMap::new(),
            code: String::new(),
        }
    }

    /// Name of the value of an expression of type `t`.
    fn name(&mut self, t: &str, expression: String) -> String {
        if let Some(name) = self.names.get(&expression) {
            return name.clone();
        }
        let name = format!("{}{}", self.prefix, self.names.len());
        let _ = writeln!(self.code, "const {t} {name} = {expression};");
        self.names.insert(expression, name.clone());
        name
    }
}

impl Writer<'_> {
    fn line(&mut self, text: &str) {
        self.code.push_str(text);
        self.code.push('\n');
    }

    fn dtype(&self, t: TileId) -> DType {
        self.kernel.tiles[t].dtype
    }

    /// Pointer to the first row of a tile.
    fn tile(&self, t: TileId) -> String {
        let tile = &self.kernel.tiles[t];
        let c = c_type(tile.dtype);
        match tile.place {
            Place::Buffer(b) => format!("(({c}*)at[{b}] + start * {})", tile.columns),
            Place::Scratch(at) => format!("({c}*)(scratch + (long long){at} * block_rows)"),
            Place::Registers => format!("({c}*)scratch"),
        }
    }

    fn bind(&mut self, name: &str, t: TileId) {
        let (c, p) = (c_type(self.dtype(t)), self.tile(t));
        self.line(&format!("{c}* {name} = {p};"));
    }

    fn each(&mut self, per_row: usize, body: &str) {
        if per_row == 0 {
            return;
        }
        self.line(&format!(
            "for (int e = tid; e < count * {per_row}; e += RTX_THREADS) {{ {body} }}"
        ));
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Elementwise(b) => self.elementwise(b),
            Step::Dot(d) => self.dot(d),
            Step::SumDot(d) => self.sum_dot(d),
            Step::SumRows { tile, into } => self.sum_rows(*tile, *into),
            Step::Reduce {
                kind,
                from,
                to,
                dims,
                axes,
            } => self.reduce(*kind, *from, *to, dims, axes),
            Step::Copy(c) => self.copy(c),
            Step::Gather {
                table,
                index,
                to,
                width,
            } => {
                self.bind("index", *index);
                self.bind("to", *to);
                let rows = self.program.buffers[*table]
                    .shape
                    .dims()
                    .first()
                    .and_then(|d| d.fixed())
                    .unwrap_or(0);
                let (columns, t) = (self.kernel.tiles[*index].columns, c_type(self.dtype(*to)));
                self.line(&format!("const {t}* table = (const {t}*)at[{table}];"));
                self.each(
                    columns * width,
                    &format!(
                        "long long i = index[e / {width}]; i = i < 0 ? 0 : i > {last} ? {last} : i; to[e] = table[i * {width} + e % {width}];",
                        last = rows.saturating_sub(1)
                    ),
                );
            }
            Step::Iota { to, inner } => {
                self.bind("to", *to);
                let (columns, t) = (self.kernel.tiles[*to].columns, c_type(self.dtype(*to)));
                let value = match inner {
                    None => format!("start + e / {columns}"),
                    Some((step, period)) => format!("e % {columns} / {step} % {period}"),
                };
                self.each(columns, &format!("to[e] = ({t})({value});"));
            }
            Step::Random { kind, key, to } => {
                self.bind("to", *to);
                let (columns, t) = (self.kernel.tiles[*to].columns, c_type(self.dtype(*to)));
                let f = match kind {
                    RandomKind::Uniform => "rtx_random_uniform",
                    RandomKind::Normal => "rtx_random_normal",
                };
                self.line(&format!(
                    "const unsigned long long key = *(const unsigned long long*)at[{key}];"
                ));
                self.each(
                    columns,
                    &format!("to[e] = {f}<{t}>(key, (unsigned long long)(start * {columns} + e));"),
                );
            }
        }
    }

    fn elementwise(&mut self, b: &Block) {
        let columns = b.columns;
        self.widest = self.widest.max(columns);
        if columns == 0 {
            return;
        }
        let mut tiles: Vec<TileId> = Vec::new();
        for o in &b.operations {
            for x in o.from.iter().chain([&o.to]) {
                if let Operand::Tile(t) | Operand::RowScalar(t) = x
                    && !tiles.contains(t)
                {
                    tiles.push(*t);
                }
            }
        }
        for t in tiles {
            let c = c_type(self.dtype(t));
            let p = self.tile(t);
            self.line(&format!("{c}* __restrict__ t{t} = {p};"));
        }
        // Names of the values that registers and tiles hold by now.
        let mut held = vec![String::new(); b.registers];
        let mut stored: HashMap<TileId, String> = HashMap::new();
        let (mut scalars, mut loads) = (Loads::new("s"), Loads::new("x"));
        let mut body = String::new();
        for (n, o) in b.operations.iter().enumerate() {
            let select = matches!(o.primitive, rtx_compiler::Primitive::Select);
            let mut operand = |i: usize, x: &Operand| {
                let dtype = if select && i == 0 {
                    DType::Bool
                } else {
                    o.dtype
                };
                let t = c_type(dtype);
                match x {
                    Operand::Register(r) => held[*r].clone(),
                    Operand::Tile(k) => match stored.get(k) {
                        Some(value) => value.clone(),
                        None => loads.name(t, format!("t{k}[e]")),
                    },
                    Operand::RowScalar(k) => match stored.get(k) {
                        Some(value) if columns == 1 => value.clone(),
                        _ => {
                            let width = self.kernel.tiles[*k].columns;
                            loads.name(t, format!("t{k}[e / {columns} * {width}]"))
                        }
                    },
                    Operand::Row(b) => {
                        loads.name(t, format!("((const {t}*)at[{b}])[e % {columns}]"))
                    }
                    Operand::Scalar(b) => scalars.name(t, format!("*(const {t}*)at[{b}]")),
                }
            };
            let operands: Vec<String> = o
                .from
                .iter()
                .enumerate()
                .map(|(i, x)| operand(i, x))
                .collect();
            let value = expression(o.primitive, o.dtype, o.out_dtype, &operands)
                .unwrap_or_else(|| operands[0].clone());
            let _ = writeln!(body, "const {} v{n} = {value};", c_type(o.out_dtype));
            match o.to {
                Operand::Register(r) => held[r] = format!("v{n}"),
                Operand::Tile(t) => {
                    let _ = writeln!(body, "t{t}[e] = v{n};");
                    stored.insert(t, format!("v{n}"));
                }
                _ => {}
            }
        }
        // All loads before the first store: they wait for memory together, not one after the other.
        self.code += &scalars.code;
        self.line("#pragma unroll 1");
        self.line(&format!(
            "for (int e = tid; e < count * {columns}; e += RTX_THREADS) {{"
        ));
        self.code += &loads.code;
        self.code += &body;
        self.line("}");
    }

    /// Runs of operands that stand side by side.
    fn runs(&self, d: &DotGroup) -> Vec<(usize, usize)> {
        let at = |t: TileId| match self.kernel.tiles[t].place {
            Place::Scratch(at) => Some(at),
            _ => None,
        };
        let follows = |a: TileId, b: TileId, n: usize| {
            let size = n * d.inner * self.dtype(a).size();
            at(a).zip(at(b)).is_some_and(|(x, y)| x + size == y)
        };
        let mut runs: Vec<(usize, usize)> = Vec::new();
        for k in 0..d.lhs.len() {
            match runs.last_mut() {
                Some((_, end))
                    if follows(d.lhs[k - 1], d.lhs[k], d.k)
                        && follows(d.out[k - 1], d.out[k], d.n) =>
                {
                    *end = k + 1;
                }
                _ => runs.push((k, k + 1)),
            }
        }
        runs
    }

    fn dot(&mut self, d: &DotGroup) {
        let dtype = self.dtype(d.lhs[0]);
        let t = c_type(dtype);
        let (k, n, (ks, ns)) = (d.k, d.n, d.strides);
        for (start, end) in self.runs(d) {
            let (out, a) = (self.tile(d.out[start]), self.tile(d.lhs[start]));
            // A single operand has `count` rows; side by side, the rows between are worked on too, and not read.
            let m = if end - start == 1 {
                format!("count * {}", d.inner)
            } else {
                format!("block_rows * {}", d.inner * (end - start))
            };
            let tiled = k % 4 == 0 && n % 4 == 0 && k > NARROW && n > NARROW;
            let w = format!("(const {t}*)at[{}]", d.rhs);
            let call = if tiled {
                self.shared = self.shared.max(SHARED_ELEMENTS * dtype.size());
                format!("rtx_dot_tiled({out}, {a}, {w}, {m}, {k}, {n}, {ks}, {ns}, ({t}*)shared);")
            } else if n <= NARROW && k > 32 {
                format!("rtx_dot_few_columns<{t}, {n}>({out}, {a}, {w}, {m}, {k}, {ks}, {ns});")
            } else {
                format!("rtx_dot_plain({out}, {a}, {w}, {m}, {k}, {n}, {ks}, {ns});")
            };
            self.line(&call);
            if tiled && end < d.lhs.len() {
                self.line("__syncthreads();");
            }
        }
    }

    fn sum_dot(&mut self, d: &SumGroup) {
        let dtype = self.dtype(d.x[0]);
        let (t, pairs) = (c_type(dtype), d.x.len());
        let list = |tiles: &[TileId]| {
            tiles
                .iter()
                .map(|&x| self.tile(x))
                .collect::<Vec<_>>()
                .join(", ")
        };
        let (x, y) = (list(&d.x), list(&d.y));
        self.line(&format!("const {t}* const x[] = {{ {x} }};"));
        self.line(&format!("const {t}* const y[] = {{ {y} }};"));
        let (m, n, into, rows) = (d.m, d.n, d.into, format!("count * {}", d.inner));
        if m % 4 == 0 && n % 4 == 0 && m > NARROW && n > NARROW {
            self.shared = self.shared.max(SHARED_ELEMENTS * dtype.size());
            self.line(&format!(
                "rtx_sum_dot_tiled(sum{into}, x, y, {m}, {n}, {pairs}, {rows}, first, ({t}*)shared);"
            ));
        } else {
            self.line(&format!(
                "rtx_sum_dot_plain(sum{into}, x, y, {m}, {n}, {pairs}, {rows}, first);"
            ));
        }
    }

    fn sum_rows(&mut self, tile: TileId, into: usize) {
        let a = self.kernel.accumulators[into];
        let (t, n, f) = (c_type(a.dtype), a.elements, combine(a.kind));
        self.bind("from", tile);
        self.line(&format!(
            "for (int e = tid; e < {n}; e += RTX_THREADS) {{ {t} s = from[e]; for (int r = 1; r < count; ++r) s = {f}(s, from[r * {n} + e]); sum{into}[e] = first ? s : {f}(sum{into}[e], s); }}"
        ));
    }

    fn reduce(
        &mut self,
        kind: ReduceKind,
        from: TileId,
        to: TileId,
        dims: &[usize],
        axes: &[usize],
    ) {
        self.bind("from", from);
        self.bind("to", to);
        let mut steps = vec![1; dims.len()];
        for k in (0..dims.len().saturating_sub(1)).rev() {
            steps[k] = steps[k + 1] * dims[k + 1];
        }
        let columns: usize = dims.iter().product();
        let pick = |reduced: bool, of: &[usize]| -> Vec<usize> {
            (0..dims.len())
                .filter(|k| axes.contains(k) == reduced)
                .map(|k| of[k])
                .collect()
        };
        let kept: usize = pick(false, dims).iter().product();
        let terms: usize = pick(true, dims).iter().product();
        let base = offset("o", &pick(false, dims), &pick(false, &steps), 0);
        let term = offset("i", &pick(true, dims), &pick(true, &steps), 0);
        let (t, f) = (c_type(self.dtype(to)), combine(kind));
        let neutral = neutral(kind, t);
        self.each(
            kept,
            &format!(
                "const int o = e % {kept}; const {t}* x = from + e / {kept} * {columns} + ({base}); {t} s = {neutral}; for (int i = 0; i < {terms}; ++i) s = {f}(s, x[{term}]); to[e] = s;"
            ),
        );
    }

    fn copy(&mut self, c: &Rearrange) {
        let columns = self.kernel.tiles[c.to].columns;
        self.bind("to", c.to);
        let t = c_type(self.dtype(c.to));
        let row = match c.from {
            Source::Tile(x) => {
                self.bind("from", x);
                self.kernel.tiles[x].columns
            }
            Source::Array(b) => {
                self.line(&format!("const {t}* from = (const {t}*)at[{b}];"));
                0
            }
        };
        if c.clear {
            self.each(columns, "to[e] = 0;");
            self.line("__syncthreads();");
        }
        let n: usize = c.dims.iter().product();
        let (from, to) = (
            offset("i", &c.dims, &c.step_from, c.base_from),
            offset("i", &c.dims, &c.step_to, c.base_to),
        );
        if n > 0 {
            self.each(
                n,
                &format!("const int r = e / {n}, i = e % {n}; to[r * {columns} + {to}] = from[r * {row} + {from}]; (void)i;"),
            );
        }
    }

    /// The kernel that adds the blocks' partial sums in order.
    fn sums(&mut self, name: &str, partial_bytes: usize) {
        self.line(&format!(
            "extern \"C\" __global__ void __launch_bounds__({THREADS}) {name}_sum(char* const* __restrict__ at, const Launch l) {{"
        ));
        self.line("long long e = blockIdx.x * (long long)blockDim.x + threadIdx.x;");
        for (k, a) in self.kernel.accumulators.iter().enumerate() {
            let (t, n, f, at, b) = (
                c_type(a.dtype),
                a.elements,
                combine(a.kind),
                self.at[k],
                a.buffer,
            );
            self.code.push_str(&format!(
                "if (e < {n}) {{ const char* p = l.partials + {at} + e * sizeof({t}); {t} s = *(const {t}*)p;\n#pragma unroll 8\n\
                 for (long long g = 1; g < l.count; ++g) s = {f}(s, *(const {t}*)(p + g * {partial_bytes})); (({t}*)at[{b}])[e] = s; return; }}\ne -= {n};\n"
            ));
        }
        self.line("}");
    }
}
