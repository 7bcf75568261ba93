//! The flat, single-assignment form of a graph that the compiler works on.

use crate::{DType, Error, Literal, Node, Op, Result, Shape, Value};
use smallvec::SmallVec;
use std::collections::HashMap;
use std::fmt::Write as _;
use std::panic::Location;

/// Number of an instruction of a [`Graph`], and of the value it makes.
pub type ValueId = usize;

/// One operation with its operands and type.
#[derive(Clone, Debug)]
pub struct Instruction {
    /// What is done. Leaves are `Op::Input(k)` with `k` an index into [`Graph::inputs`], or constants.
    pub op: Op,
    /// Operands, all with smaller numbers.
    pub inputs: SmallVec<[ValueId; 3]>,
    /// Element type of the result.
    pub dtype: DType,
    /// Shape of the result.
    pub shape: Shape,
    /// User's line.
    pub location: &'static Location<'static>,
}

/// Where an input of a graph comes from.
#[derive(Clone)]
pub enum Source {
    /// Given by the caller at every run, by number.
    Slot(usize),
    /// A captured array.
    Captured(Value),
    /// A scalar of the user's code, kept out of the program's structure.
    Scalar(f64),
}

/// An input of a graph.
#[derive(Clone)]
pub struct GraphInput {
    /// Where it comes from.
    pub source: Source,
    /// Element type.
    pub dtype: DType,
    /// Shape.
    pub shape: Shape,
}

/// A graph in single-assignment form, operands before users.
#[derive(Clone, Default)]
pub struct Graph {
    /// Instructions in order.
    pub instructions: Vec<Instruction>,
    /// Inputs; `Op::Input(k)` refers to them.
    pub inputs: Vec<GraphInput>,
    /// Values that the caller asked for.
    pub outputs: Vec<ValueId>,
    /// State from step to step: pairs of an input and the output (position in `outputs`) that it becomes.
    pub carry: Vec<(usize, usize)>,
}

/// Scalars that become inputs. A few floating-point ones stay part of the structure: they enable rewrites and appear
/// in every formula. Integers are indices, counters and seeds, of which a loop makes many.
fn is_argument(c: Literal, dtype: DType) -> bool {
    match c {
        Literal::Float(v) => ![0.0, 0.5, 1.0, 2.0].contains(&v.abs()),
        Literal::Int(v) => dtype != DType::Bool && v.unsigned_abs() < 1 << f64::MANTISSA_DIGITS,
    }
}

/// Most operations of one program: more come from a loop that was unrolled, and would take minutes to compile.
const MOST_OPERATIONS: usize = 100_000;

impl Graph {
    /// Lowers the nodes that `outputs` need. Evaluated nodes become captured inputs. With
    /// `lift_scalars`, scalar constants become inputs, so that programs that differ in them
    /// only share one structure.
    ///
    /// # Errors
    /// The first error node met, a derivative request that cannot be resolved, or more operations than a program may
    /// have.
    pub fn from_nodes(outputs: &[Node], lift_scalars: bool) -> Result<Graph> {
        let outputs = crate::resolve_requests(outputs)?;
        let mut g = Graph::default();
        let mut ids: HashMap<u64, ValueId> = HashMap::new();
        let nodes = needed(&outputs);
        if let (true, Some(last)) = (nodes.len() > MOST_OPERATIONS, nodes.last()) {
            return Err(Error::Other {
                op: last.op().name(),
                message: format!(
                    "{} operations for one program, {MOST_OPERATIONS} is the most; read values on the way, or compile \
                     one turn of the loop and run it many times",
                    nodes.len()
                ),
                location: last.location(),
            });
        }
        for n in nodes {
            n.check()?;
            // Operands first: another thread that reads this node stores the value before it drops them.
            let operands = n.inputs();
            let mut inputs = SmallVec::new();
            let op = if let Some(v) = n.value() {
                g.input(Source::Captured(v.clone()), &n)
            } else {
                match n.op() {
                    Op::Input(slot) => g.input(Source::Slot(*slot), &n),
                    Op::Constant(c) if lift_scalars && is_argument(*c, n.dtype()) => {
                        g.input(Source::Scalar(c.to_f64()), &n)
                    }
                    op => {
                        inputs = operands
                            .iter()
                            .filter_map(|i| ids.get(&i.id()).copied())
                            .collect();
                        op.clone()
                    }
                }
            };
            ids.insert(n.id(), g.instructions.len());
            g.instructions.push(Instruction {
                op,
                inputs,
                dtype: n.dtype(),
                shape: n.shape().clone(),
                location: n.location(),
            });
        }
        g.outputs = outputs
            .iter()
            .filter_map(|o| ids.get(&o.id()).copied())
            .collect();
        g.verify("lowering")?;
        Ok(g)
    }

    fn input(&mut self, source: Source, n: &Node) -> Op {
        self.inputs.push(GraphInput {
            source,
            dtype: n.dtype(),
            shape: n.shape().clone(),
        });
        Op::Input(self.inputs.len() - 1)
    }

    /// A text that is equal for graphs of equal structure: operations, types and wiring, no values.
    pub fn structure(&self) -> String {
        let mut s = String::new();
        for i in &self.instructions {
            let _ = write!(s, "{}:{:?}:{}{:?};", i.op.key(), i.inputs, i.dtype, i.shape);
        }
        let _ = write!(s, "->{:?}", self.outputs);
        for i in &self.inputs {
            match i.source {
                Source::Slot(k) => {
                    let _ = write!(s, "s{k},");
                }
                _ => s.push_str("c,"),
            }
        }
        s
    }

    /// Checks every rule of the representation: operands before users, types as the op's rule infers them.
    ///
    /// # Errors
    /// [`Error::Verify`] naming the pass that broke a rule.
    pub fn verify(&self, pass: &'static str) -> Result<()> {
        let bad = |message: String| Error::Verify { pass, message };
        for (k, i) in self.instructions.iter().enumerate() {
            if let Some(late) = i.inputs.iter().find(|&&x| x >= k) {
                return Err(bad(format!("%{k} uses %{late}, which comes later")));
            }
            if let Op::Input(n) = i.op {
                let fits = self
                    .inputs
                    .get(n)
                    .is_some_and(|x| x.dtype == i.dtype && x.shape == i.shape);
                if !fits {
                    return Err(bad(format!("%{k} has another type than input {n}")));
                }
            }
            let types: Vec<_> = i
                .inputs
                .iter()
                .map(|&x| {
                    (
                        self.instructions[x].dtype,
                        self.instructions[x].shape.clone(),
                    )
                })
                .collect();
            let declared = Some((i.dtype, i.shape.clone()));
            let t = crate::infer::infer(&i.op, &types, declared, i.location)
                .map_err(|e| bad(format!("%{k} {}: {e}", i.op)))?;
            if t != (i.dtype, i.shape.clone()) {
                return Err(bad(format!(
                    "%{k} {} has type {}{} but its rule gives {}{}",
                    i.op, i.dtype, i.shape, t.0, t.1
                )));
            }
        }
        if let Some(o) = self.outputs.iter().find(|&&o| o >= self.instructions.len()) {
            return Err(bad(format!("output %{o} does not exist")));
        }
        for &(i, o) in &self.carry {
            let from = self.outputs.get(o).map(|&o| &self.instructions[o]);
            let same = |x: &GraphInput, y: &Instruction| x.dtype == y.dtype && x.shape == y.shape;
            let fits = self
                .inputs
                .get(i)
                .zip(from)
                .is_some_and(|(x, y)| same(x, y));
            if !fits {
                return Err(bad(format!("output {o} cannot become input {i}")));
            }
        }
        Ok(())
    }
}

/// Nodes to lower: evaluated ones hide their history.
fn needed(outputs: &[Node]) -> Vec<Node> {
    let mut seen = std::collections::HashSet::new();
    let mut stack: Vec<Node> = outputs.to_vec();
    let mut all = Vec::new();
    while let Some(n) = stack.pop() {
        if seen.insert(n.id()) {
            if n.value().is_none() {
                stack.extend(n.inputs());
            }
            all.push(n);
        }
    }
    all.sort_by_key(Node::id);
    all
}

impl std::fmt::Display for Graph {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (k, i) in self.instructions.iter().enumerate() {
            write!(f, "%{k} = {}", i.op)?;
            for x in &i.inputs {
                write!(f, " %{x}")?;
            }
            writeln!(
                f,
                " : {}{}  // {}:{}",
                i.dtype,
                i.shape,
                i.location.file(),
                i.location.line()
            )?;
        }
        writeln!(f, "return {:?}", self.outputs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_output_of_the_same_type_becomes_an_input() {
        let x = Node::input(0, DType::F32, Shape::of(&[2]));
        let outputs = [x.mul(&x), x.reduce(crate::ReduceKind::Sum, &[0])];
        let mut graph = Graph::from_nodes(&outputs, false).unwrap();
        graph.carry = vec![(0, 0)];
        graph.verify("test").unwrap();
        for wrong in [(0, 1), (1, 0), (0, 2)] {
            graph.carry = vec![wrong];
            assert!(
                matches!(graph.verify("test"), Err(Error::Verify { .. })),
                "{wrong:?}"
            );
        }
    }
}
