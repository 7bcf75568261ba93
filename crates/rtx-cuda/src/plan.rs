//! How a program runs on a device of this family: what lies where in memory, which kernels start in which order, how
//! large. Nothing here touches a device: the GPU and the emulation on the host carry out the same plan.

use crate::array::bytes;
use crate::source::{BLOCK, Geometry, Planned, RowSource, THREADS, Translation, function_name};
use crate::{Error, Result};
use rtx_compiler::{Binding, Kernel, Program, RowCounts};
use rtx_ir::{Dim, RowDomain};

/// Rows of a block of rows: enough for full products, few enough for scratch in the second-level cache.
const BLOCK_ROWS: usize = 16;
/// Alignment of the parts of an arena.
const ALIGN: usize = 256;
/// Most blocks of a launch whose number does not matter.
const MOST_BLOCKS: usize = 1 << 16;
/// Tables of addresses: the first step, and those that read one set of state and write the other.
const TABLES: usize = 3;

/// What a launch tells every kernel; as `struct Launch` in the prelude.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Launch {
    rows: [i64; 8],
    block_rows: i64,
    scratch: u64,
    partials: u64,
    count: i64,
}

#[cfg(test)]
impl Launch {
    /// A launch that tells these row counts and nothing else.
    pub(crate) fn of_rows(rows: &[usize]) -> Self {
        let mut launch = Launch::default();
        for (slot, n) in launch.rows.iter_mut().zip(rows) {
            *slot = *n as i64;
        }
        launch
    }
}

/// A function of the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Callee {
    /// Kernel `n` of the program.
    Kernel(usize),
    /// The kernel that adds the partial sums of row kernel `n`.
    Sum(usize),
    /// The kernel that copies one array of a table to another.
    Copy,
}

impl Callee {
    /// Its name in the text.
    pub(crate) fn name(self) -> String {
        match self {
            Callee::Kernel(n) => function_name(n),
            Callee::Sum(n) => format!("{}_sum", function_name(n)),
            Callee::Copy => "rtx_copy".to_string(),
        }
    }
}

/// What follows the table in a kernel's arguments.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Arguments {
    /// Those of every generated kernel.
    Launch(Launch),
    /// Those of the copy: positions in the table, bytes.
    Copy { from: i64, to: i64, bytes: i64 },
}

/// One kernel start.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Start {
    pub(crate) callee: Callee,
    /// Blocks.
    pub(crate) grid: usize,
    /// Threads of a block.
    pub(crate) block: u32,
    /// Bytes of dynamic shared memory.
    pub(crate) shared: usize,
    pub(crate) arguments: Arguments,
}

#[cfg(any(test, feature = "emulate"))]
impl Start {
    /// True for kernels that make partial sums, false for those that add them up.
    pub(crate) fn fills_partials(&self) -> bool {
        matches!(self.callee, Callee::Kernel(_))
    }
}

/// A number of rows that the host writes when a program is bound.
pub(crate) struct Count {
    /// Offset in the arena.
    pub(crate) offset: usize,
    /// The buffer, for its element type.
    pub(crate) buffer: usize,
    pub(crate) rows: usize,
}

/// The arena of one set of row counts. Offsets are bytes.
pub(crate) struct Layout {
    pub(crate) rows: RowCounts,
    /// Extents of every buffer.
    pub(crate) dims: Vec<Vec<usize>>,
    /// Offset of each inner buffer.
    pub(crate) at: Vec<Option<usize>>,
    pub(crate) scratch: Part,
    pub(crate) partials: Part,
    pub(crate) tables: Part,
    /// Bytes of the arena.
    pub(crate) end: usize,
}

/// A part of the arena.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Part {
    pub(crate) offset: usize,
    pub(crate) bytes: usize,
}

/// How a row kernel is cut for a number of rows.
#[derive(Clone, Copy)]
struct Cut {
    block_rows: usize,
    grid: usize,
}

/// A translated program, ready to be laid out for row counts.
pub(crate) struct Plan {
    pub(crate) program: Program,
    pub(crate) binding: Binding,
    kernels: Vec<Planned>,
    domains: Vec<RowDomain>,
    processors: usize,
}

impl Plan {
    /// The plan of a program and its translation for a device of so many multiprocessors.
    pub(crate) fn new(program: Program, translation: Translation, processors: usize) -> Self {
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
        Plan {
            program,
            binding,
            kernels: translation.kernels,
            domains: translation.domains,
            processors: processors.max(1),
        }
    }

    /// Every function that a run may start, with its bytes of dynamic shared memory.
    pub(crate) fn callees(&self) -> Vec<(Callee, usize)> {
        let mut all = vec![(Callee::Copy, 0)];
        for (n, k) in self.kernels.iter().enumerate() {
            match k {
                Planned::Rows(source) => {
                    all.push((Callee::Kernel(n), source.shared));
                    if source.sums > 0 {
                        all.push((Callee::Sum(n), 0));
                    }
                }
                Planned::Whole(_) => all.push((Callee::Kernel(n), 0)),
                Planned::Count => {}
            }
        }
        all
    }

    /// Row kernels: their source, row domain and bytes of scratch per row.
    fn row_kernels(&self) -> impl Iterator<Item = (usize, &RowSource, Option<Dim>, usize)> {
        let pairs = self.kernels.iter().zip(&self.program.kernels).enumerate();
        pairs.filter_map(|(n, (planned, kernel))| match (planned, kernel) {
            (Planned::Rows(s), Kernel::Rows(r)) => Some((n, s, r.domain, r.scratch_per_row)),
            _ => None,
        })
    }

    /// Blocks of rows and blocks of threads for a row kernel.
    fn cut(&self, source: &RowSource, scratch_per_row: usize, rows: usize) -> Cut {
        let processors = self.processors;
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

    /// Places everything that a run with these row counts needs besides inputs, constants and outputs, with at least
    /// `gap` unused bytes behind each part.
    ///
    /// # Errors
    /// A domain whose rows are not known.
    pub(crate) fn layout(&self, rows: RowCounts, gap: usize) -> Result<Layout> {
        let dims = rows.dims(&self.program).map_err(Error::Graph)?;
        let mut end = 0;
        let mut place = |bytes: usize| {
            let offset = end;
            end += (bytes + gap).next_multiple_of(ALIGN);
            Part { offset, bytes }
        };
        let at = (0..dims.len())
            .map(|b| {
                let inner = self.binding.is_internal(&self.program, b);
                inner.then(|| place(bytes(self.program.buffers[b].dtype, &dims[b])).offset)
            })
            .collect::<Vec<_>>();
        let (mut scratch, mut partials) = (0, 0);
        for (_, source, domain, scratch_per_row) in self.row_kernels() {
            let cut = self.cut(source, scratch_per_row, rows.rows(domain));
            scratch = scratch.max(cut.grid * cut.block_rows * scratch_per_row);
            partials = partials.max(cut.grid * source.partial_bytes);
        }
        let (scratch, partials) = (place(scratch), place(partials));
        let tables = place(TABLES * self.table_bytes());
        Ok(Layout {
            rows,
            dims,
            at,
            scratch,
            partials,
            tables,
            end: end.max(ALIGN),
        })
    }

    /// The numbers of rows that the host writes into the arena.
    pub(crate) fn counts(&self, layout: &Layout) -> Vec<Count> {
        let pairs = self.kernels.iter().zip(&self.program.kernels);
        pairs
            .filter_map(|(planned, kernel)| match (planned, kernel) {
                (Planned::Count, Kernel::Whole(w)) => Some(Count {
                    offset: layout.at[self.binding.base[w.output]]?,
                    buffer: w.output,
                    rows: layout.rows.rows(w.rows),
                }),
                _ => None,
            })
            .collect()
    }

    /// Address of table `table` in an arena at `base`.
    pub(crate) fn table_at(&self, layout: &Layout, base: u64, table: usize) -> u64 {
        base + (layout.tables.offset + table * self.table_bytes()) as u64
    }

    /// The kernels of one step in an arena at `base`, in order.
    pub(crate) fn starts(&self, layout: &Layout, base: u64) -> Vec<Start> {
        let mut launch = Launch {
            scratch: base + layout.scratch.offset as u64,
            partials: base + layout.partials.offset as u64,
            ..Launch::default()
        };
        let counts: Vec<usize> = self
            .domains
            .iter()
            .map(|d| layout.rows.get(*d).unwrap_or(0))
            .collect();
        for (slot, n) in launch.rows.iter_mut().zip(&counts) {
            *slot = *n as i64;
        }
        let mut starts = Vec::new();
        for (n, (planned, kernel)) in self.kernels.iter().zip(&self.program.kernels).enumerate() {
            match (planned, kernel) {
                (Planned::Rows(source), Kernel::Rows(r)) => {
                    let cut = self.cut(source, r.scratch_per_row, layout.rows.rows(r.domain));
                    launch.block_rows = cut.block_rows as i64;
                    launch.count = cut.grid as i64;
                    starts.push(Start {
                        callee: Callee::Kernel(n),
                        grid: cut.grid,
                        block: THREADS,
                        shared: source.shared,
                        arguments: Arguments::Launch(launch),
                    });
                    if source.sums > 0 && cut.grid > 1 {
                        starts.push(Start {
                            callee: Callee::Sum(n),
                            grid: source.sums.div_ceil(THREADS as usize),
                            block: THREADS,
                            shared: 0,
                            arguments: Arguments::Launch(launch),
                        });
                    }
                }
                (Planned::Whole(source), _) => {
                    let units = match source.geometry {
                        Geometry::Threads => {
                            let count = source.count.resolve(&counts);
                            count.map(|n| n.div_ceil(BLOCK as usize))
                        }
                        Geometry::Blocks { units } => units.resolve(&counts),
                    };
                    let grid = units.unwrap_or(0).min(MOST_BLOCKS);
                    if grid > 0 {
                        starts.push(Start {
                            callee: Callee::Kernel(n),
                            grid,
                            block: BLOCK,
                            shared: 0,
                            arguments: Arguments::Launch(launch),
                        });
                    }
                }
                _ => {}
            }
        }
        // Outputs that no kernel writes itself.
        let outputs = self.program.outputs.iter().enumerate();
        for (o, &b) in outputs.filter(|(o, _)| !self.binding.direct[*o]) {
            let n = bytes(self.program.buffers[b].dtype, &layout.dims[b]);
            starts.push(Start {
                callee: Callee::Copy,
                grid: n.div_ceil(16 * BLOCK as usize).clamp(1, MOST_BLOCKS),
                block: BLOCK,
                shared: 0,
                arguments: Arguments::Copy {
                    from: b as i64,
                    to: (self.program.buffers.len() + o) as i64,
                    bytes: n as i64,
                },
            });
        }
        starts
    }

    /// The bytes of all tables for an arena at `base`. `inputs` and `constants` are addresses; `set(k, o)` is that of
    /// output `o` in set `k`. The first step reads the inputs and writes set 0; the second and third table read the set
    /// that the other wrote, where the program's carry says so, and write the other one.
    pub(crate) fn tables(
        &self,
        layout: &Layout,
        base: u64,
        inputs: &[u64],
        constants: &[(usize, u64)],
        set: impl Fn(usize, usize) -> u64,
    ) -> Vec<u8> {
        let mut all = Vec::with_capacity(layout.tables.bytes);
        for (read, write) in [(None, 0), (Some(0), 1), (Some(1), 0)] {
            let inner = |at: &Option<usize>| at.map_or(0, |offset| base + offset as u64);
            let mut at: Vec<u64> = layout.at.iter().map(inner).collect();
            at[..inputs.len()].copy_from_slice(inputs);
            if let Some(read) = read {
                for &(i, o) in &self.program.carry {
                    at[i] = set(read, o);
                }
            }
            for (b, pointer) in constants {
                at[*b] = *pointer;
            }
            for (o, &b) in self.program.outputs.iter().enumerate() {
                if self.binding.direct[o] {
                    at[self.binding.base[b]] = set(write, o);
                }
            }
            let buffers = self.binding.base.iter().map(|&b| at[b]);
            let outputs = (0..self.program.outputs.len()).map(|o| set(write, o));
            all.extend(buffers.chain(outputs).flat_map(u64::to_le_bytes));
        }
        all
    }
}
