//! A compiled program on one GPU: its module, and the memory and graphs of its runs.
//!
//! Everything that a run needs is in device memory: a table with the address of every buffer, one arena with
//! inner buffers, scratch and partial sums. A single run launches the kernels one by one; many runs replay a
//! captured graph of them, in which the two sets of state buffers take turns. The host waits for nothing.

use crate::array::{CudaArray, encode};
use crate::driver::{Cache, Context, Function, Graph, Memory, Module};
use crate::plan::{Arguments, Callee, Layout, Plan};
use crate::source;
use crate::{Error, Result};
use rtx_compiler::{Program, RowCounts};
use rtx_ir::{DType, Value};
use rtx_runtime::{Executable, ProgramStats, Turns};
use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::{Arc, Mutex, PoisonError};

/// Contraction off: fused programs agree with unfused ones.
pub(crate) const OPTIONS: &[&str] = &["--std=c++17", "--fmad=false"];
/// Pairs of steps in the longest graph.
const UNROLLED: usize = 8;
/// Bound memories that are kept for later runs.
const KEPT: usize = 4;

pub(crate) struct CudaProgram {
    context: Arc<Context>,
    plan: Plan,
    functions: HashMap<Callee, Function>,
    constants: Vec<(usize, CudaArray)>,
    /// Why the kernels could not be kept on disk.
    warning: Option<String>,
    idle: Mutex<Vec<Bound>>,
    /// Arrays of the state that the last run left, whatever its row counts: one set, not one for each bound memory.
    spare: Mutex<Vec<Value>>,
}

/// Memory and graphs for one set of row counts.
struct Bound {
    layout: Layout,
    arena: Memory,
    /// Graphs of so many pairs of steps, longest first.
    graphs: Vec<(usize, Graph)>,
}

/// Element type of an array of this backend.
fn typed(v: &Value) -> Option<DType> {
    v.as_any().downcast_ref::<CudaArray>().map(|a| a.dtype)
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
        let processors = context.info().multiprocessors as usize;
        let plan = Plan::new(program, translation, processors);
        let mut functions = HashMap::new();
        for (callee, shared) in plan.callees() {
            let f = module.function(&callee.name())?;
            if shared > 48 << 10 {
                f.set_max_dynamic_shared(u32::try_from(shared).unwrap_or(u32::MAX))?;
            }
            functions.insert(callee, f);
        }
        let constants = plan
            .program
            .constants
            .iter()
            .map(|(b, v)| Ok((*b, CudaArray::from_host(context, &v.to_host()?)?)))
            .collect::<Result<_>>()?;
        Ok(CudaProgram {
            plan,
            context: context.clone(),
            functions,
            constants,
            warning: built.warning,
            idle: Mutex::default(),
            spare: Mutex::default(),
        })
    }

    fn bind(&self, rows: RowCounts) -> Result<Bound> {
        let layout = self.plan.layout(rows, 0)?;
        let arena = self.context.alloc(layout.end)?;
        // Numbers of rows do not change while the program is bound.
        for count in self.plan.counts(&layout) {
            let dtype = self.plan.program.buffers[count.buffer].dtype;
            let value = encode(dtype, &[count.rows as f64]);
            self.context.upload(arena.at(count.offset), &value)?;
        }
        Ok(Bound {
            layout,
            arena,
            graphs: Vec::new(),
        })
    }

    /// Queues one step; `table` is the number of the table that its kernels read.
    fn step(&self, bound: &Bound, table: usize) -> Result<()> {
        let base = bound.arena.pointer();
        let mut at = self.plan.table_at(&bound.layout, base, table);
        for start in self.plan.starts(&bound.layout, base) {
            let f = self
                .functions
                .get(&start.callee)
                .ok_or_else(|| Error::Misuse {
                    call: "launch",
                    detail: format!("the module has no {}", start.callee.name()),
                })?;
            let table = (&raw mut at).cast::<c_void>();
            let grid = u32::try_from(start.grid).unwrap_or(u32::MAX);
            let shared = start.shared as u32;
            // SAFETY: the arguments are those of the kernel; the tables lead to arrays of the bound extents, and
            // arena and arrays outlive the work (memory is freed in the order of the stream).
            match start.arguments {
                Arguments::Launch(mut launch) => unsafe {
                    let mut params = [table, (&raw mut launch).cast()];
                    self.context
                        .launch(f, grid, start.block, shared, &mut params)
                },
                Arguments::Copy {
                    mut from,
                    mut to,
                    mut bytes,
                } => unsafe {
                    let mut params = [
                        table,
                        (&raw mut from).cast(),
                        (&raw mut to).cast(),
                        (&raw mut bytes).cast(),
                    ];
                    self.context
                        .launch(f, grid, start.block, shared, &mut params)
                },
            }?;
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

    fn execute(&self, inputs: Vec<Value>, steps: usize) -> rtx_runtime::Result<Vec<Value>> {
        let rows = RowCounts::of(&self.plan.program, &inputs, typed)?;
        let inputs = inputs
            .into_iter()
            .map(|v| self.local(v))
            .collect::<Result<Vec<Value>>>()?;
        let mut bound = match self.take(&rows) {
            Some(bound) => bound,
            None => self.bind(rows)?,
        };
        let outputs = self.run(&mut bound, inputs, steps)?;
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() >= KEPT {
            idle.remove(0);
        }
        idle.push(bound);
        Ok(outputs)
    }

    fn take(&self, rows: &RowCounts) -> Option<Bound> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let k = idle.iter().position(|b| b.layout.rows == *rows)?;
        Some(idle.remove(k))
    }

    /// Copies an array of another device.
    fn local(&self, v: Value) -> Result<Value> {
        let here = v.as_any().downcast_ref::<CudaArray>();
        if here.is_some_and(|a| Arc::ptr_eq(a.memory.context(), &self.context)) {
            return Ok(v);
        }
        Ok(Arc::new(CudaArray::from_host(
            &self.context,
            &v.to_host()?,
        )?))
    }

    fn run(
        &self,
        bound: &mut Bound,
        mut inputs: Vec<Value>,
        steps: usize,
    ) -> rtx_runtime::Result<Vec<Value>> {
        let program = &self.plan.program;
        let outputs = &program.outputs;
        let dims = &bound.layout.dims;
        let dtype = |o: usize| program.buffers[outputs[o]].dtype;
        let kept = || self.spare.lock().unwrap_or_else(PoisonError::into_inner);
        let mut spare = std::mem::take(&mut *kept());
        let turns = Turns::new(
            &mut inputs,
            &program.carry,
            outputs.len(),
            steps,
            &mut spare,
            |v, o| v.dims() == dims[outputs[o]] && typed(v) == Some(dtype(o)),
            |o| {
                let array = CudaArray::new(&self.context, dtype(o), &dims[outputs[o]])?;
                Ok(Arc::new(array) as Value)
            },
        )?;
        let pointer = |a: &CudaArray| a.memory.pointer();
        let address = |v: &Value| v.as_any().downcast_ref::<CudaArray>().map_or(0, pointer);
        let given: Vec<u64> = inputs.iter().map(address).collect();
        let constants: Vec<_> = self
            .constants
            .iter()
            .map(|(b, a)| (*b, pointer(a)))
            .collect();
        let (layout, base) = (&bound.layout, bound.arena.pointer());
        let tables = self.plan.tables(layout, base, &given, &constants, |k, o| {
            address(turns.array(k, o))
        });
        self.context
            .upload(bound.arena.at(layout.tables.offset), &tables)?;
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
        let (last, free) = turns.finish(steps);
        *kept() = free;
        Ok(last)
    }
}

impl Executable for CudaProgram {
    fn run(&self, inputs: &[Value]) -> rtx_runtime::Result<Vec<Value>> {
        self.execute(inputs.to_vec(), 1)
    }

    fn run_steps(&self, inputs: Vec<Value>, steps: usize) -> rtx_runtime::Result<Vec<Value>> {
        self.execute(inputs, steps)
    }

    fn listing(&self) -> String {
        match &self.warning {
            Some(warning) => format!("{}kernels are not kept: {warning}\n", self.plan.program),
            None => self.plan.program.to_string(),
        }
    }

    fn stats(&self) -> ProgramStats {
        ProgramStats::of(&self.plan.program)
    }
}
