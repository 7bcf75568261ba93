//! The backend: programs prepared for this processor, and their runs.

use crate::buffer::{Bytes, CpuArray, write_f64};
use crate::kernel::{self, Pointers, Prepared};
use crate::whole::{Layout, Task};
use crate::workspace::Workspace;
use rtx_compiler::{Binding, Kernel, Program, RowCounts, WholeKernel};
use rtx_ir::eval::HostArray;
use rtx_ir::{Graph, Value};
use rtx_runtime::{Backend, CompileOptions, Error, Executable, ProgramStats, Result, Turns};
use std::sync::{Arc, Mutex};

/// The CPU backend with its threads.
pub struct CpuBackend {
    pool: Arc<rayon::ThreadPool>,
}

impl CpuBackend {
    /// With one thread per core, or as many as `RTX_THREADS` says.
    ///
    /// # Errors
    /// The system refuses to start threads.
    pub fn new() -> Result<Self> {
        let asked = std::env::var("RTX_THREADS")
            .ok()
            .and_then(|v| v.parse().ok())
            .unwrap_or(0);
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(asked)
            .thread_name(|k| format!("rtx-cpu-{k}"))
            .build()
            .map_err(|e| refusal(format!("cannot start threads: {e}; set RTX_THREADS=1")))?;
        Ok(CpuBackend {
            pool: Arc::new(pool),
        })
    }

    /// Number of threads.
    pub fn threads(&self) -> usize {
        self.pool.current_num_threads()
    }
}

fn refusal(message: String) -> Error {
    Error::Device {
        device: "cpu".into(),
        message,
    }
}

impl Backend for CpuBackend {
    fn name(&self) -> &str {
        "cpu"
    }

    fn upload(&self, array: &HostArray) -> Result<Value> {
        Ok(Arc::new(CpuArray::from_host(array)))
    }

    // Every tier is computed in f32: there is nothing faster here.
    fn compile(&self, graph: &Graph, options: &CompileOptions) -> Result<Arc<dyn Executable>> {
        Ok(Arc::new(CpuProgram::new(
            rtx_compiler::compile(graph, options)?,
            self.pool.clone(),
        )?))
    }
}

enum Ready {
    Rows(Prepared),
    Whole(WholeKernel),
}

/// A program ready to run.
struct CpuProgram {
    program: Program,
    kernels: Vec<Ready>,
    constants: Vec<(usize, CpuArray)>,
    binding: Binding,
    pool: Arc<rayon::ThreadPool>,
    idle: Mutex<Vec<Workspace>>,
}

impl CpuProgram {
    fn new(program: Program, pool: Arc<rayon::ThreadPool>) -> Result<Self> {
        let constants = program
            .constants
            .iter()
            .map(|(b, v)| Ok((*b, CpuArray::from_host(&v.to_host()?))))
            .collect::<Result<_>>()?;
        let kernels = program
            .kernels
            .iter()
            .enumerate()
            .map(|(n, k)| match k {
                Kernel::Rows(r) => Ready::Rows(Prepared::new(r.clone(), n, &program)),
                Kernel::Whole(w) => Ready::Whole(w.clone()),
            })
            .collect();
        Ok(CpuProgram {
            binding: Binding::new(&program),
            program,
            kernels,
            constants,
            pool,
            idle: Mutex::default(),
        })
    }

    /// The operations on whole arrays, for the extents of a run.
    fn tasks(&self, dims: &[Vec<usize>]) -> Vec<Option<Task>> {
        let layout = |b: usize| Layout {
            dtype: self.program.buffers[b].dtype,
            dims: dims[b].clone(),
        };
        let task = |k: &Ready| match k {
            Ready::Whole(k) if k.rows.is_none() => {
                let inputs: Vec<Layout> = k.inputs.iter().map(|&b| layout(b)).collect();
                Some(Task::new(&k.op, &inputs, &layout(k.output)))
            }
            _ => None,
        };
        self.kernels.iter().map(task).collect()
    }

    /// # Safety
    /// The pointers lead to arrays of the extents that the tasks were made for.
    unsafe fn step(
        &self,
        w: &mut Workspace,
        tasks: &[Option<Task>],
        rows: &RowCounts,
        pointers: &Pointers,
    ) {
        w.run += 1;
        for (k, task) in self.kernels.iter().zip(tasks) {
            // SAFETY: by the caller.
            unsafe {
                match (k, task) {
                    (Ready::Rows(p), _) => {
                        kernel::run(p, rows.rows(p.kernel.domain), pointers, w);
                    }
                    (Ready::Whole(k), Some(task)) => task.run(k, pointers, &w.whole),
                    (Ready::Whole(k), None) => {
                        let count = rows.rows(k.rows) as f64;
                        let dtype = self.program.buffers[k.output].dtype;
                        write_f64(pointers.0[k.output], dtype, &[count]);
                    }
                }
            }
        }
    }
}

/// Copies an input of another backend.
fn local(v: Value) -> Result<Value> {
    if v.as_any().is::<CpuArray>() {
        return Ok(v);
    }
    Ok(Arc::new(CpuArray::from_host(&v.to_host()?)))
}

fn pointer(v: &Value) -> *mut u8 {
    v.as_any()
        .downcast_ref::<CpuArray>()
        .map_or(std::ptr::null_mut(), |a| a.bytes.ptr())
}

impl Executable for CpuProgram {
    fn run(&self, inputs: &[Value]) -> Result<Vec<Value>> {
        self.run_steps(inputs.to_vec(), 1)
    }

    fn run_steps(&self, inputs: Vec<Value>, steps: usize) -> Result<Vec<Value>> {
        let carry = &self.program.carry;
        let typed = |v: &Value| v.as_any().downcast_ref::<CpuArray>().map(|a| a.dtype);
        let rows = RowCounts::of(&self.program, &inputs, typed)?;
        let mut inputs = inputs
            .into_iter()
            .map(local)
            .collect::<Result<Vec<Value>>>()?;
        let dims = rows.dims(&self.program)?;
        let bytes =
            |b: usize| dims[b].iter().product::<usize>() * self.program.buffers[b].dtype.size();
        let idle = self.idle.lock().unwrap_or_else(|e| e.into_inner()).pop();
        let mut w = idle.unwrap_or_else(|| {
            Workspace::new(self.program.buffers.len(), self.pool.current_num_threads())
        });
        for k in &self.kernels {
            if let Ready::Rows(p) = k {
                w.ensure(p, p.groups(rows.rows(p.kernel.domain)));
            }
        }
        let outputs = &self.program.outputs;
        let dtype = |o: usize| self.program.buffers[outputs[o]].dtype;
        let turns = Turns::new(
            &mut inputs,
            carry,
            outputs.len(),
            steps,
            &mut w.spare,
            |v, o| v.dims() == dims[outputs[o]] && typed(v) == Some(dtype(o)),
            |o| Ok(Arc::new(CpuArray::new(dtype(o), &dims[outputs[o]]))),
        )?;
        let tasks = self.tasks(&dims);
        let threads = self.pool.current_num_threads();
        let scratch = tasks.iter().flatten().map(|t| t.scratch(threads)).max();
        w.whole.ensure(scratch.unwrap_or(0));
        for b in 0..dims.len() {
            if self.binding.is_internal(&self.program, b) {
                w.buffers[b].ensure(bytes(b));
            }
        }
        // Where a step reads its state (`None`: the caller's arrays) and where it writes it.
        let table = |read: Option<usize>, write: usize| {
            let mut at: Vec<*mut u8> = (0..self.binding.base.len())
                .map(|b| w.buffers[b].ptr())
                .collect();
            for (k, v) in inputs.iter().enumerate() {
                at[k] = pointer(v);
            }
            if let Some(r) = read {
                for &(i, o) in carry {
                    at[i] = pointer(turns.array(r, o));
                }
            }
            for (c, a) in &self.constants {
                at[*c] = a.bytes.ptr();
            }
            for (o, &b) in self.program.outputs.iter().enumerate() {
                if self.binding.direct[o] {
                    at[self.binding.base[b]] = pointer(turns.array(write, o));
                }
            }
            for b in 0..at.len() {
                at[b] = at[self.binding.base[b]];
            }
            Pointers(at)
        };
        let tables = [table(None, 0), table(Some(0), 1), table(Some(1), 0)];
        let pool = self.pool.clone();
        pool.install(|| {
            for s in 0..steps {
                let t = &tables[if s == 0 { 0 } else { 1 + (s + 1) % 2 }];
                // SAFETY: the tables lead to arrays of `dims`, and this run alone uses the workspace.
                unsafe {
                    self.step(&mut w, &tasks, &rows, t);
                    for (o, &b) in self
                        .program
                        .outputs
                        .iter()
                        .enumerate()
                        .filter(|(o, _)| !self.binding.direct[*o])
                    {
                        std::ptr::copy(t.0[b], pointer(turns.array(s, o)), bytes(b));
                    }
                }
            }
        });
        let (last, free) = turns.finish(steps);
        w.spare = free;
        self.idle.lock().unwrap_or_else(|e| e.into_inner()).push(w);
        Ok(last)
    }

    fn listing(&self) -> String {
        self.program.to_string()
    }

    fn stats(&self) -> ProgramStats {
        ProgramStats::of(&self.program)
    }
}

/// Bytes are owned memory; programs are shared between threads.
const _: () = {
    const fn shared<T: Send + Sync>() {}
    shared::<CpuProgram>();
    shared::<Bytes>();
};
