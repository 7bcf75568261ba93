//! The generated kernels on the host, access by access: what CI can say of a row kernel without a GPU.
//!
//! A program is translated, planned and started as for a GPU; only the last step differs. The text is compiled as C++
//! (`shim.h`), the threads of a block are fibers that run from barrier to barrier, and every access is checked
//! (`runtime.cpp`): bounds and alignment, two threads that meet without a barrier between them, two blocks that meet in
//! one launch, barriers that not all threads reach. Memory that nobody wrote holds NaN.

mod library;
mod memory;
#[cfg(test)]
mod tests;

pub(crate) use library::Library;
pub(crate) use memory::{Builder, Memory};

use crate::array::{bytes, decode, encode};
use crate::plan::{Layout, Plan};
use crate::source;
use crate::{Error, Result};
use rtx_compiler::{Program, RowCounts};
use rtx_ir::eval::HostArray;
use rtx_ir::{DType, Graph, Storage, Value};
use rtx_runtime::{Backend, CompileOptions, Executable, ProgramStats};
use std::sync::Arc;

/// Multiprocessors of the emulated GPU: few, so that small programs too have blocks that take several blocks of rows,
/// and partial sums of several blocks.
const PROCESSORS: usize = 3;
/// Unused bytes behind each array: an index that runs past the end meets them and not the next array.
const GAP: usize = 512;

/// The device that runs generated CUDA kernels on the host. Slow; for tests.
#[derive(Clone, Copy, Debug, Default)]
pub struct EmulatedBackend;

impl EmulatedBackend {
    /// The device.
    ///
    /// # Errors
    /// No C++ compiler, or one that cannot build the runtime.
    pub fn new() -> Result<Self> {
        Library::runtime()?;
        Ok(EmulatedBackend)
    }
}

impl Backend for EmulatedBackend {
    fn name(&self) -> &str {
        "cuda-emulate"
    }

    fn upload(&self, array: &HostArray) -> rtx_runtime::Result<Value> {
        Ok(Arc::new(Array::from_host(array)))
    }

    fn compile(
        &self,
        graph: &Graph,
        options: &CompileOptions,
    ) -> rtx_runtime::Result<Arc<dyn Executable>> {
        let program = rtx_compiler::compile(graph, options)?;
        Ok(Arc::new(EmulatedProgram::new(program, |code| code)?))
    }
}

/// An array of the device: the bytes that a GPU would hold.
struct Array {
    dtype: DType,
    dims: Vec<usize>,
    bytes: Vec<u8>,
}

impl Array {
    fn from_host(array: &HostArray) -> Self {
        Array {
            dtype: array.dtype,
            dims: array.dims.clone(),
            bytes: encode(array.dtype, &array.data),
        }
    }
}

impl Storage for Array {
    fn dims(&self) -> &[usize] {
        &self.dims
    }

    fn to_host(&self) -> rtx_ir::Result<HostArray> {
        Ok(HostArray {
            dtype: self.dtype,
            dims: self.dims.clone(),
            data: decode(self.dtype, &self.bytes),
        })
    }

    fn as_any(&self) -> &dyn std::any::Any {
        self
    }
}

/// A compiled program on the host.
pub(crate) struct EmulatedProgram {
    plan: Plan,
    library: Library,
    constants: Vec<(usize, Array)>,
}

impl EmulatedProgram {
    /// Compiles a program; `change` may spoil the text, for tests of the emulation itself.
    pub(crate) fn new(program: Program, change: impl FnOnce(String) -> String) -> Result<Self> {
        let mut translation = source::translate(&program)?;
        let code = change(std::mem::take(&mut translation.code));
        let plan = Plan::new(program, translation, PROCESSORS);
        let library = Library::build(&code)?;
        let constants = plan
            .program
            .constants
            .iter()
            .map(|(b, v)| Ok((*b, Array::from_host(&v.to_host()?))))
            .collect::<Result<_>>()?;
        Ok(EmulatedProgram {
            plan,
            library,
            constants,
        })
    }

    fn execute(&self, inputs: &[Value], steps: usize) -> Result<Vec<Value>> {
        let typed = |v: &Value| v.as_any().downcast_ref::<Array>().map(|a| a.dtype);
        let program = &self.plan.program;
        let rows = RowCounts::of(program, inputs, typed)?;
        let layout = self.plan.layout(rows, GAP)?;
        let mut builder = Builder::default();
        let base = builder.arena(&layout, program);
        let mut contents = Vec::new();
        let mut given = Vec::new();
        for (k, v) in inputs.iter().enumerate() {
            let data = match v.as_any().downcast_ref::<Array>() {
                Some(a) => a.bytes.clone(),
                None => Array::from_host(&v.to_host()?).bytes,
            };
            let offset = builder.add(&format!("input {k}"), data.len());
            given.push(offset);
            contents.push((offset, data));
        }
        let mut constants = Vec::new();
        for (b, a) in &self.constants {
            let offset = builder.add(&format!("constant {b}"), a.bytes.len());
            constants.push((*b, offset));
            contents.push((offset, a.bytes.clone()));
        }
        // A second set for the state, so that a step reads one set and writes the other.
        let carried = |o: usize| steps > 1 && program.carry.iter().any(|(_, x)| *x == o);
        let mut sets = Vec::new();
        for (o, &b) in program.outputs.iter().enumerate() {
            let size = bytes(program.buffers[b].dtype, &layout.dims[b]);
            let first = builder.add(&format!("output {o}"), size);
            let second = carried(o).then(|| builder.add(&format!("output {o} again"), size));
            sets.push((first, second.unwrap_or(first), size));
        }
        for count in self.plan.counts(&layout) {
            let dtype = program.buffers[count.buffer].dtype;
            contents.push((base + count.offset, encode(dtype, &[count.rows as f64])));
        }
        let mut memory = builder.build();
        for (offset, data) in &contents {
            memory.write(*offset, data);
        }
        let address = |offset: usize| memory.address(offset);
        let given: Vec<u64> = given.iter().map(|&o| address(o)).collect();
        let constants: Vec<_> = constants.iter().map(|&(b, o)| (b, address(o))).collect();
        let tables = self
            .plan
            .tables(&layout, address(base), &given, &constants, |k, o| {
                address(if k == 1 { sets[o].1 } else { sets[o].0 })
            });
        memory.write(base + layout.tables.offset, &tables);
        for step in 0..steps {
            let table = if step == 0 { 0 } else { 2 - step % 2 };
            self.step(&mut memory, &layout, base, table)?;
        }
        for (offset, data) in &contents {
            if memory.read(*offset, data.len()) != data {
                return Err(Error::Emulation {
                    kernel: "program".into(),
                    found: format!("{} was overwritten", memory.part(*offset)),
                });
            }
        }
        let last = steps.is_multiple_of(2);
        let outputs = program.outputs.iter().zip(&sets);
        Ok(outputs
            .map(|(&b, &(first, second, size))| {
                Arc::new(Array {
                    dtype: program.buffers[b].dtype,
                    dims: layout.dims[b].clone(),
                    bytes: memory
                        .read(if last { second } else { first }, size)
                        .to_vec(),
                }) as Value
            })
            .collect())
    }

    /// Runs one step.
    fn step(&self, memory: &mut Memory, layout: &Layout, base: usize, table: usize) -> Result<()> {
        let table = self.plan.table_at(layout, memory.address(base), table);
        let buffers = &self.plan.program.buffers;
        let counts = self.plan.counts(layout);
        for (b, at) in layout.at.iter().enumerate() {
            if let Some(offset) = at
                && counts.iter().all(|c| c.offset != *offset)
            {
                let size = bytes(buffers[b].dtype, &layout.dims[b]);
                memory.forget(base + offset, size);
            }
        }
        for start in self.plan.starts(layout, memory.address(base)) {
            // What the last kernel left must not stand in for what this one forgot.
            memory.forget(base + layout.scratch.offset, layout.scratch.bytes);
            if start.fills_partials() {
                memory.forget(base + layout.partials.offset, layout.partials.bytes);
            }
            self.library.launch(memory, &start, table)?;
        }
        Ok(())
    }
}

impl Executable for EmulatedProgram {
    fn run(&self, inputs: &[Value]) -> rtx_runtime::Result<Vec<Value>> {
        Ok(self.execute(inputs, 1)?)
    }

    fn run_steps(&self, inputs: Vec<Value>, steps: usize) -> rtx_runtime::Result<Vec<Value>> {
        Ok(self.execute(&inputs, steps)?)
    }

    fn listing(&self) -> String {
        self.plan.program.to_string()
    }

    fn stats(&self) -> ProgramStats {
        ProgramStats::of(&self.plan.program)
    }
}
