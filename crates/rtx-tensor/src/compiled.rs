//! Compiled steps: a function of state and inputs, recorded once and run many times.

use crate::execute::captured;
use crate::{Device, Error, Result, Tensor, Tree};
use rtx_ir::{Graph, Node, Value};
use rtx_runtime::{CompileOptions, Executable, Precision, ProgramStats};
use std::marker::PhantomData;
use std::sync::Arc;

/// A step `(state, inputs) -> (state, outputs)` compiled for one device. `Send + Sync`.
///
/// Tensors that the closure captured are inputs bound at compilation. Row counts of tensors tagged with
/// [`Tensor::rows`] are taken from the arguments of each call, so another number of points never
/// recompiles.
pub struct Compiled<S, I, O> {
    program: Arc<dyn Executable>,
    device: Device,
    /// Value of each graph input: bound, or number of the argument leaf it comes from.
    bound: Vec<std::result::Result<Value, usize>>,
    state: Leaves<S>,
    inputs: Leaves<I>,
    output: O,
    structure: u64,
    marker: PhantomData<fn(S, I) -> O>,
}

/// What was learnt of an argument when the step was compiled.
struct Leaves<T> {
    what: &'static str,
    types: Vec<(rtx_ir::DType, rtx_ir::Shape)>,
    marker: PhantomData<fn(T)>,
}

impl<T: Tree> Leaves<T> {
    fn of(what: &'static str, tree: &T) -> Self {
        let types = tree
            .leaves()
            .iter()
            .map(|t| (t.dtype(), t.node.shape().clone()))
            .collect();
        Leaves {
            what,
            types,
            marker: PhantomData,
        }
    }

    /// The leaves' values, checked against the types of the compilation.
    fn values(&self, tree: &T) -> Result<Vec<Value>> {
        let leaves = tree.leaves();
        let refs: Vec<&Tensor> = leaves.iter().collect();
        crate::eval(&refs)?;
        let fail = |message: String| {
            Err(Error::Tree {
                what: self.what,
                message,
            })
        };
        if leaves.len() != self.types.len() {
            return fail(format!(
                "{} tensors given, the step was compiled for {}",
                leaves.len(),
                self.types.len()
            ));
        }
        let mut values = Vec::with_capacity(leaves.len());
        for (k, (t, (dtype, shape))) in leaves.iter().zip(&self.types).enumerate() {
            let Some(v) = t.node.value() else {
                return fail(format!("tensor {k} has no value"));
            };
            let fits = v.dims().len() == shape.rank()
                && v.dims()
                    .iter()
                    .zip(shape.dims())
                    .all(|(n, d)| d.fixed().is_none_or(|f| f == *n));
            if t.dtype() != *dtype || !fits {
                return fail(format!(
                    "tensor {k} is {}{:?}, the step was compiled for {dtype}{shape}",
                    t.dtype(),
                    v.dims()
                ));
            }
            values.push(v.clone());
        }
        Ok(values)
    }
}

/// Records `f` on placeholders of the types of `state` and `inputs` and compiles it.
///
/// # Errors
/// A mistake inside `f` (naming the line), or a state that changes its type from step to step.
pub fn compile<S: Tree, I: Tree, O: Tree>(
    f: impl FnOnce(&S, &I) -> Result<(S, O)>,
    state: &S,
    inputs: &I,
    device: &Device,
) -> Result<Compiled<S, I, O>> {
    compile_with(&CompileOptions::default(), f, state, inputs, device)
}

/// As [`compile`] with options: the precision of the products, say.
///
/// ```
/// use rtx_tensor::{Device, Precision, Tensor, compile_with};
/// let dev = Device::cpu();
/// let a = Tensor::from_vec(vec![1.0f32, 2.0, 3.0, 4.0], [2, 2], &dev);
/// let step = compile_with(&Precision::Tf32.into(), |(): &(), a: &Tensor| Ok(((), a.matmul(a))), &(), &a, &dev)?;
/// let ((), square) = step.call((), &a)?;
/// assert_eq!(square.to_vec::<f32>()?, [7.0, 10.0, 15.0, 22.0]);
/// # Ok::<(), rtx_tensor::Error>(())
/// ```
///
/// # Errors
/// As [`compile`].
pub fn compile_with<S: Tree, I: Tree, O: Tree>(
    options: &CompileOptions,
    f: impl FnOnce(&S, &I) -> Result<(S, O)>,
    state: &S,
    inputs: &I,
    device: &Device,
) -> Result<Compiled<S, I, O>> {
    let mut slot = 0;
    let mut placeholder = |t: &Tensor| {
        let node = Node::input(slot, t.dtype(), t.node.shape().clone());
        slot += 1;
        Tensor::from_node(node, device)
    };
    let traced_state = state.map("", true, &mut |_, t| placeholder(t));
    let traced_inputs = inputs.map("", true, &mut |_, t| placeholder(t));
    let (new_state, output) = f(&traced_state, &traced_inputs)?;
    let old = traced_state.leaves();
    let new = new_state.leaves();
    if old.len() != new.len() {
        let message = format!(
            "the step returns {} tensors for {} given",
            new.len(),
            old.len()
        );
        return Err(Error::Tree {
            what: "state",
            message,
        });
    }
    for (k, (a, b)) in old.iter().zip(&new).enumerate() {
        b.check()?;
        if a.dtype() != b.dtype() || a.node.shape() != b.node.shape() {
            let message = format!(
                "tensor {k} goes in as {}{} and comes out as {}{}",
                a.dtype(),
                a.node.shape(),
                b.dtype(),
                b.node.shape()
            );
            return Err(Error::Tree {
                what: "state",
                message,
            });
        }
    }
    let outputs: Vec<Node> = new
        .iter()
        .chain(&output.leaves())
        .map(|t| t.node.clone())
        .collect();
    let mut graph = Graph::from_nodes(&outputs, false)?;
    let slots = graph.inputs.iter().enumerate();
    let carry = slots.filter_map(|(k, i)| match i.source {
        rtx_ir::Source::Slot(s) if s < old.len() => Some((k, s)),
        _ => None,
    });
    graph.carry = carry.collect();
    let program = device.backend().compile(&graph, options)?;
    let values = captured(&graph, device)?;
    let bound: Vec<std::result::Result<Value, usize>> = graph
        .inputs
        .iter()
        .zip(values)
        .map(|(i, v)| match (v, &i.source) {
            (Some(v), _) => Ok(v),
            (None, rtx_ir::Source::Slot(s)) => Err(*s),
            (None, _) => Err(usize::MAX),
        })
        .collect();
    Ok(Compiled {
        program,
        device: device.clone(),
        bound,
        state: Leaves::of("state", state),
        inputs: Leaves::of("inputs", inputs),
        output,
        structure: structure_hash(&graph, options),
        marker: PhantomData,
    })
}

/// The default precision adds nothing, so that checkpoints of older versions still know their program.
fn structure_hash(graph: &Graph, options: &CompileOptions) -> u64 {
    let mut text = graph.structure();
    if options.precision != Precision::default() {
        text.push_str(&format!("|precision {}", options.precision));
    }
    fnv1a(text.as_bytes())
}

/// 64-bit FNV-1a: the same number in every process and version of the standard library.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |h, b| {
        (h ^ u64::from(*b)).wrapping_mul(0x0100_0000_01b3)
    })
}

impl<S: Tree, I: Tree, O: Tree> Compiled<S, I, O> {
    /// One step. The state is donated: where nobody else holds its arrays, they are written over by a later step, so
    /// that the state is in memory twice, and the arrays that are left over serve the next call.
    ///
    /// # Errors
    /// Arguments of other types than at compilation, or the device's refusal.
    pub fn call(&self, state: S, inputs: &I) -> Result<(S, O)> {
        self.run(state, inputs, 1)
    }

    /// `steps` steps on the same inputs without reading anything in between; returns the last outputs.
    ///
    /// # Errors
    /// As [`call`](Self::call).
    pub fn run(&self, state: S, inputs: &I, steps: usize) -> Result<(S, O)> {
        let mut leaves = self.state.values(&state)?;
        leaves.extend(self.inputs.values(inputs)?);
        let values: Vec<Value> = self
            .bound
            .iter()
            .map(|b| match b {
                Ok(v) => Ok(v.clone()),
                Err(slot) => leaves.get(*slot).cloned().ok_or_else(|| Error::Tree {
                    what: "inputs",
                    message: format!("argument {slot} is missing"),
                }),
            })
            .collect::<Result<_>>()?;
        drop(leaves);
        // The structure keeps its plain data; its tensors give up their buffers to the program.
        let shape = state.map("", true, &mut |_, t| {
            Tensor::scalar(0.0, t.dtype(), &self.device)
        });
        drop(state);
        let out = self.program.run_steps(values, steps.max(1))?;
        let mut next = out.into_iter();
        let types = self.state.types.iter();
        let mut types = types.cloned();
        let new_state = shape.map("", true, &mut |_, t| match (next.next(), types.next()) {
            (Some(v), Some((d, s))) => Tensor::from_node(Node::data(v, d, s), &self.device),
            _ => t.clone(),
        });
        let output = self.output.map("", true, &mut |_, t| match next.next() {
            Some(v) => Tensor::from_node(
                Node::data(v, t.dtype(), t.node.shape().clone()),
                &self.device,
            ),
            None => t.clone(),
        });
        Ok((new_state, output))
    }

    /// A number that is equal for steps of equal structure: operations, constants, types, wiring and
    /// precision, but neither arrays nor row counts. It stays the same from run to run, so files can carry it.
    pub fn structure_hash(&self) -> u64 {
        self.structure
    }

    /// The program: kernels, buffers, bytes, flops.
    pub fn listing(&self) -> String {
        self.program.listing()
    }

    /// The listing in numbers.
    pub fn stats(&self) -> ProgramStats {
        self.program.stats()
    }
}
