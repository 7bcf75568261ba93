//! Op-by-op execution with the reference rules: the yardstick of the conformance suite, and `RTX_EAGER=1`.

use rtx_ir::eval::{Bindings, HostArray, evaluate_graph};
use rtx_ir::{Graph, Source, Value};
use rtx_runtime::{Backend, CompileOptions, Executable, ProgramStats, Result};
use std::sync::Arc;

/// Runs graphs with [`rtx_ir::eval`]: slow, double precision rounded after each operation.
pub struct ReferenceBackend;

struct ReferenceProgram(Graph);

impl Backend for ReferenceBackend {
    fn name(&self) -> &str {
        "reference"
    }

    fn upload(&self, array: &HostArray) -> Result<Value> {
        Ok(Arc::new(array.clone()))
    }

    // The yardstick is exact in every tier.
    fn compile(&self, graph: &Graph, _: &CompileOptions) -> Result<Arc<dyn Executable>> {
        let mut graph = graph.clone();
        for (k, input) in graph.inputs.iter_mut().enumerate() {
            input.source = Source::Slot(k);
        }
        Ok(Arc::new(ReferenceProgram(graph)))
    }
}

impl Executable for ReferenceProgram {
    fn run(&self, inputs: &[Value]) -> Result<Vec<Value>> {
        let slots = inputs
            .iter()
            .enumerate()
            .map(|(k, v)| Ok((k, v.to_host()?)))
            .collect::<Result<_>>()?;
        let out = evaluate_graph(&self.0, &Bindings { slots })?;
        Ok(out.into_iter().map(|a| Arc::new(a) as Value).collect())
    }

    fn run_steps(&self, mut inputs: Vec<Value>, steps: usize) -> Result<Vec<Value>> {
        let mut out = Vec::new();
        for step in 0..steps {
            out = self.run(&inputs)?;
            if step + 1 < steps {
                for &(i, o) in &self.0.carry {
                    inputs[i] = out[o].clone();
                }
            }
        }
        Ok(out)
    }

    fn listing(&self) -> String {
        self.0.to_string()
    }

    fn stats(&self) -> ProgramStats {
        ProgramStats {
            kernels: self.0.instructions.len(),
            ..ProgramStats::default()
        }
    }
}
