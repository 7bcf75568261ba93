//! A compiled program on one GPU: its module, and the memory and graphs of its runs.
//!
//! Everything that a run needs is in device memory: a table with the address of every buffer, one arena with
//! inner buffers, scratch and partial sums. A single run launches the kernels one by one; many runs replay a
//! captured graph of them, in which the two sets of state buffers take turns. The host waits for nothing.

use crate::array::{CudaArray, bytes, encode};
use crate::driver::{Cache, Context, Function, Graph, Memory, Module};
use crate::source::{self, BLOCK, Extent, Geometry, Planned, RowSource, THREADS, function_name};
use crate::{Error, Result};
use rtx_compiler::{Binding, Kernel, Program, RowCounts};
use rtx_ir::{Dim, RowDomain, Value};
use rtx_runtime::{Executable, ProgramStats};
use std::ffi::c_void;
use std::sync::{Arc, Mutex, PoisonError};

/// Contraction off: fused programs agree with unfused ones.
pub(crate) const OPTIONS: &[&str] = &["--std=c++17", "--fmad=false"];
/// Rows of a block of rows: enough for full products, few enough for scratch in the second-level cache.
const BLOCK_ROWS: usize = 16;
/// Pairs of steps in the longest graph.
const UNROLLED: usize = 8;
/// Bound memories that are kept for later runs.
const KEPT: usize = 4;
/// Alignment of the parts of an arena.
const ALIGN: usize = 256;
/// Most blocks of a launch whose number does not matter.
const MOST_BLOCKS: usize = 1 << 16;

/// What a launch tells every kernel; as `struct Launch` in the prelude.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Launch {
    rows: [i64; 8],
    block_rows: i64,
    scratch: u64,
    partials: u64,
    count: i64,
}

/// A kernel that is ready to start.
enum Ready {
    Rows {
        function: Function,
        sum: Option<Function>,
        source: RowSource,
        domain: Option<Dim>,
        scratch_per_row: usize,
    },
    Whole {
        function: Function,
        count: Extent,
        geometry: Geometry,
    },
    Count,
}

/// How a row kernel is cut for a number of rows.
#[derive(Clone, Copy)]
struct Cut {
    block_rows: usize,
    grid: usize,
}

pub(crate) struct CudaProgram {
    context: Arc<Context>,
    program: Program,
    binding: Binding,
    kernels: Vec<Ready>,
    domains: Vec<RowDomain>,
    constants: Vec<(usize, CudaArray)>,
    /// Copies one array of a table to another.
    copy: Function,
    /// Why the kernels could not be kept on disk.
    warning: Option<String>,
    idle: Mutex<Vec<Bound>>,
}

/// Memory and graphs for one set of row counts.
struct Bound {
    rows: RowCounts,
    dims: Vec<Vec<usize>>,
    /// Offset in the arena of each inner buffer.
    at: Vec<Option<usize>>,
    scratch: usize,
    partials: usize,
    tables: usize,
    arena: Memory,
    /// Graphs of so many pairs of steps, longest first.
    graphs: Vec<(usize, Graph)>,
}

impl CudaProgram {
    pub(crate) fn new(
        program: Program,
        context: &Arc<Context>,
        cache: &Cache,
        arch: &str,
    ) -> Result<Self> {
        let translation = source::translate(&program)?;
        let built = cache.compile(&translation.code, "program", arch, OPTIONS)?;
        let module = Module::load(context, &built.cubin)?;
        let function = |name: &str| module.function(name);
        let mut kernels = Vec::new();
        for (n, (planned, kernel)) in translation
            .kernels
            .into_iter()
            .zip(&program.kernels)
            .enumerate()
        {
            let name = function_name(n);
            kernels.push(match (planned, kernel) {
                (Planned::Rows(source), Kernel::Rows(r)) => {
                    let f = function(&name)?;
                    if source.shared > 48 << 10 {
                        f.set_max_dynamic_shared(u32::try_from(source.shared).unwrap_or(u32::MAX))?;
                    }
                    let sum = (source.sums > 0)
                        .then(|| function(&format!("{name}_sum")))
                        .transpose()?;
                    Ready::Rows {
                        function: f,
                        sum,
                        source,
                        domain: r.domain,
                        scratch_per_row: r.scratch_per_row,
                    }
                }
                (Planned::Whole(source), _) => Ready::Whole {
                    function: function(&name)?,
                    count: source.count,
                    geometry: source.geometry,
                },
                _ => Ready::Count,
            });
        }
        let constants = program
            .constants
            .iter()
            .map(|(b, v)| Ok((*b, CudaArray::from_host(context, &v.to_host()?)?)))
            .collect::<Result<_>>()?;
        let mut binding = Binding::new(&program);
        // The host writes numbers of rows once, so they have a place of their own and are copied to an output.
        for kernel in &program.kernels {
            if let Kernel::Whole(w) = kernel
                && w.rows.is_some()
            {
                for (direct, &o) in binding.direct.iter_mut().zip(&program.outputs) {
                    *direct &= binding.base[o] != binding.base[w.output];
                }
            }
        }
        Ok(CudaProgram {
            binding,
            program,
            context: context.clone(),
            kernels,
            domains: translation.domains,
            constants,
            copy: function("rtx_copy")?,
            warning: built.warning,
            idle: Mutex::default(),
        })
    }

    /// Blocks of rows and blocks of threads for a row kernel.
    fn cut(&self, source: &RowSource, scratch_per_row: usize, rows: usize) -> Cut {
        let processors = self.context.info().multiprocessors as usize;
        if scratch_per_row == 0 && source.sums == 0 {
            // Elementwise work: about four elements a thread, but rather all processors than full threads.
            let full = (4 * THREADS as usize / source.widest).max(1);
            let block_rows = full.min(rows.div_ceil(2 * processors)).max(1);
            let grid = rows.div_ceil(block_rows).clamp(1, MOST_BLOCKS);
            return Cut { block_rows, grid };
        }
        // Waves of equal size over the processors; rows in fours keep tiles on 16-byte boundaries.
        let waves = rows.div_ceil(processors * BLOCK_ROWS).max(1);
        let block_rows = rows
            .div_ceil(processors * waves)
            .next_multiple_of(4)
            .clamp(4, 2 * BLOCK_ROWS);
        let grid = rows.div_ceil(block_rows).clamp(1, processors);
        Cut { block_rows, grid }
    }

    fn table_bytes(&self) -> usize {
        (self.program.buffers.len() + self.program.outputs.len()) * size_of::<u64>()
    }

    fn bind(&self, rows: RowCounts) -> Result<Bound> {
        let dims = rows.dims(&self.program).map_err(Error::Graph)?;
        let mut end = 0;
        let mut place = |bytes: usize| {
            let at = end;
            end += bytes.next_multiple_of(ALIGN);
            at
        };
        let at = (0..dims.len())
            .map(|b| {
                let inner = self.binding.is_internal(&self.program, b);
                inner.then(|| place(bytes(self.program.buffers[b].dtype, &dims[b])))
            })
            .collect::<Vec<_>>();
        let (mut scratch, mut partials) = (0, 0);
        for k in &self.kernels {
            if let Ready::Rows {
                source,
                domain,
                scratch_per_row,
                ..
            } = k
            {
                let cut = self.cut(source, *scratch_per_row, rows.rows(*domain));
                scratch = scratch.max(cut.grid * cut.block_rows * scratch_per_row);
                partials = partials.max(cut.grid * source.partial_bytes);
            }
        }
        let (scratch, partials) = (place(scratch), place(partials));
        let tables = place(3 * self.table_bytes());
        let arena = self.context.alloc(end.max(ALIGN))?;
        // Numbers of rows do not change while the program is bound.
        for (k, kernel) in self.program.kernels.iter().enumerate() {
            if let (Ready::Count, Kernel::Whole(w)) = (&self.kernels[k], kernel)
                && let Some(offset) = at[self.binding.base[w.output]]
            {
                let value = encode(
                    self.program.buffers[w.output].dtype,
                    &[rows.rows(w.rows) as f64],
                );
                self.context.upload(arena.at(offset), &value)?;
            }
        }
        Ok(Bound {
            rows,
            dims,
            at,
            scratch,
            partials,
            tables,
            arena,
            graphs: Vec::new(),
        })
    }

    /// Queues one step; `table` is the number of the table that its kernels read.
    fn step(&self, bound: &Bound, table: usize) -> Result<()> {
        let base = bound.arena.pointer();
        let mut at = base + (bound.tables + table * self.table_bytes()) as u64;
        let mut launch = Launch {
            scratch: base + bound.scratch as u64,
            partials: base + bound.partials as u64,
            ..Launch::default()
        };
        let counts: Vec<usize> = self
            .domains
            .iter()
            .map(|d| bound.rows.get(*d).unwrap_or(0))
            .collect();
        for (slot, n) in launch.rows.iter_mut().zip(&counts) {
            *slot = *n as i64;
        }
        let mut start =
            |f: &Function, grid: usize, block: u32, shared: usize, mut launch: Launch| {
                let mut params = [(&raw mut at).cast::<c_void>(), (&raw mut launch).cast()];
                let grid = u32::try_from(grid).unwrap_or(u32::MAX);
                // SAFETY: the arguments are those of every generated kernel; the tables lead to arrays of the bound
                // extents, and arena and arrays outlive the work (memory is freed in the order of the stream).
                unsafe {
                    self.context
                        .launch(f, grid, block, shared as u32, &mut params)
                }
            };
        for k in &self.kernels {
            match k {
                Ready::Rows {
                    function,
                    sum,
                    source,
                    domain,
                    scratch_per_row,
                } => {
                    let cut = self.cut(source, *scratch_per_row, bound.rows.rows(*domain));
                    launch.block_rows = cut.block_rows as i64;
                    launch.count = cut.grid as i64;
                    start(function, cut.grid, THREADS, source.shared, launch)?;
                    if let Some(sum) = sum
                        && cut.grid > 1
                    {
                        start(
                            sum,
                            source.sums.div_ceil(THREADS as usize),
                            THREADS,
                            0,
                            launch,
                        )?;
                    }
                }
                Ready::Whole {
                    function,
                    count,
                    geometry,
                } => {
                    let units = match geometry {
                        Geometry::Threads => {
                            count.resolve(&counts).map(|n| n.div_ceil(BLOCK as usize))
                        }
                        Geometry::Blocks { units } => units.resolve(&counts),
                    };
                    let grid = units.unwrap_or(0).min(MOST_BLOCKS);
                    if grid > 0 {
                        start(function, grid, BLOCK, 0, launch)?;
                    }
                }
                Ready::Count => {}
            }
        }
        // Outputs that no kernel writes itself.
        let outputs = self.program.outputs.iter().enumerate();
        for (o, &b) in outputs.filter(|(o, _)| !self.binding.direct[*o]) {
            let mut from = b as i64;
            let mut to = (self.program.buffers.len() + o) as i64;
            let mut n = bytes(self.program.buffers[b].dtype, &bound.dims[b]) as i64;
            let grid = (n as usize)
                .div_ceil(16 * BLOCK as usize)
                .clamp(1, MOST_BLOCKS) as u32;
            let mut params = [
                (&raw mut at).cast::<c_void>(),
                (&raw mut from).cast(),
                (&raw mut to).cast(),
                (&raw mut n).cast(),
            ];
            // SAFETY: as above; both arrays have these bytes.
            unsafe { self.context.launch(&self.copy, grid, BLOCK, 0, &mut params) }?;
        }
        Ok(())
    }

    /// Graphs of pairs of steps, made at the first run of many steps.
    fn capture(&self, bound: &mut Bound) -> Result<()> {
        if !bound.graphs.is_empty() {
            return Ok(());
        }
        let mut graphs = Vec::new();
        for pairs in [UNROLLED, 1] {
            // SAFETY: the graphs live in `bound` beside the arena that their kernels use; what the tables lead to
            // is renewed before every replay.
            let graph = unsafe {
                Graph::capture(&self.context, || {
                    for _ in 0..pairs {
                        self.step(bound, 1)?;
                        self.step(bound, 2)?;
                    }
                    Ok(())
                })
            };
            graphs.push((pairs, graph?));
        }
        bound.graphs = graphs;
        Ok(())
    }

    fn execute(
        &self,
        inputs: Vec<Value>,
        carry: &[(usize, usize)],
        steps: usize,
    ) -> rtx_runtime::Result<Vec<Value>> {
        let typed = |v: &Value| v.as_any().downcast_ref::<CudaArray>().map(|a| a.dtype);
        let rows = RowCounts::of(&self.program, &inputs, typed)?;
        let inputs = inputs
            .iter()
            .map(|v| self.local(v))
            .collect::<Result<Vec<Value>>>()?;
        let mut bound = match self.take(&rows) {
            Some(bound) => bound,
            None => self.bind(rows)?,
        };
        let outputs = self.run(&mut bound, &inputs, carry, steps)?;
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() >= KEPT {
            idle.remove(0);
        }
        idle.push(bound);
        Ok(outputs)
    }

    fn take(&self, rows: &RowCounts) -> Option<Bound> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let k = idle.iter().position(|b| b.rows == *rows)?;
        Some(idle.remove(k))
    }

    /// Copies an array of another device.
    fn local(&self, v: &Value) -> Result<Value> {
        let here = v.as_any().downcast_ref::<CudaArray>();
        if here.is_some_and(|a| Arc::ptr_eq(a.memory.context(), &self.context)) {
            return Ok(v.clone());
        }
        Ok(Arc::new(CudaArray::from_host(
            &self.context,
            &v.to_host()?,
        )?))
    }

    fn run(
        &self,
        bound: &mut Bound,
        inputs: &[Value],
        carry: &[(usize, usize)],
        steps: usize,
    ) -> Result<Vec<Value>> {
        let outputs = &self.program.outputs;
        let new_output =
            |o: usize| CudaArray::new(&self.context, self.program.buffers[o].dtype, &bound.dims[o]);
        let first = outputs
            .iter()
            .map(|&o| new_output(o))
            .collect::<Result<Vec<_>>>()?;
        // A second set for the state, so that a step reads one set and writes the other.
        let carried = |o: usize| steps > 1 && carry.iter().any(|(_, x)| *x == o);
        let second = (0..outputs.len())
            .map(|o| carried(o).then(|| new_output(outputs[o])).transpose())
            .collect::<Result<Vec<_>>>()?;
        let set = |k: usize, o: usize| match (&second[o], k) {
            (Some(s), 1) => s,
            _ => &first[o],
        };
        let mut tables: Vec<u8> = Vec::new();
        for (read, write) in [(None, 0), (Some(0), 1), (Some(1), 0)] {
            let state = read.map(|r| carry.iter().map(move |&(i, o)| (i, r, o)));
            let state = state.into_iter().flatten().map(|(i, r, o)| (i, set(r, o)));
            let results: Vec<&CudaArray> = (0..outputs.len()).map(|o| set(write, o)).collect();
            let table = self.table(bound, inputs, state, &results);
            tables.extend(table.iter().flat_map(|p| p.to_le_bytes()));
        }
        self.context.upload(bound.arena.at(bound.tables), &tables)?;
        self.step(bound, 0)?;
        let mut left = steps.saturating_sub(1);
        if left >= 2 {
            self.capture(bound)?;
            for (pairs, graph) in &bound.graphs {
                while left >= 2 * pairs {
                    graph.launch()?;
                    left -= 2 * pairs;
                }
            }
        }
        if left == 1 {
            self.step(bound, 1)?;
        }
        let last = (steps + 1) % 2;
        Ok(first
            .into_iter()
            .zip(second)
            .map(|(a, b)| Arc::new(if last == 1 { b.unwrap_or(a) } else { a }) as Value)
            .collect())
    }

    /// Addresses of all buffers, then of the outputs. `state` are inputs that an earlier step has left.
    fn table<'a>(
        &self,
        bound: &Bound,
        inputs: &[Value],
        state: impl Iterator<Item = (usize, &'a CudaArray)>,
        results: &[&CudaArray],
    ) -> Vec<u64> {
        let inner =
            |at: &Option<usize>| at.map_or(0, |offset| bound.arena.pointer() + offset as u64);
        let mut at: Vec<u64> = bound.at.iter().map(inner).collect();
        for (slot, v) in at.iter_mut().zip(inputs) {
            *slot = v
                .as_any()
                .downcast_ref::<CudaArray>()
                .map_or(0, |a| a.memory.pointer());
        }
        for (i, array) in state {
            at[i] = array.memory.pointer();
        }
        for (b, array) in &self.constants {
            at[*b] = array.memory.pointer();
        }
        for (o, &b) in self.program.outputs.iter().enumerate() {
            if self.binding.direct[o] {
                at[self.binding.base[b]] = results[o].memory.pointer();
            }
        }
        let mut table: Vec<u64> = self.binding.base.iter().map(|&b| at[b]).collect();
        table.extend(results.iter().map(|a| a.memory.pointer()));
        table
    }
}

impl Executable for CudaProgram {
    fn run(&self, inputs: &[Value]) -> rtx_runtime::Result<Vec<Value>> {
        self.execute(inputs.to_vec(), &[], 1)
    }

    fn run_steps(
        &self,
        inputs: Vec<Value>,
        carry: &[(usize, usize)],
        steps: usize,
    ) -> rtx_runtime::Result<Vec<Value>> {
        self.execute(inputs, carry, steps)
    }

    fn listing(&self) -> String {
        match &self.warning {
            Some(warning) => format!("{}kernels are not kept: {warning}\n", self.program),
            None => self.program.to_string(),
        }
    }

    fn stats(&self) -> ProgramStats {
        ProgramStats::of(&self.program)
    }
}
