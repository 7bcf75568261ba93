//! The lazy graph node.

use crate::op::Type;
use crate::{DType, Error, Literal, Op, Result, Shape};
use smallvec::SmallVec;
use std::any::Any;
use std::fmt;
use std::panic::Location;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, RwLock};

/// What a backend keeps as the evaluated value of a node.
pub trait Storage: Any + Send + Sync {
    /// Extents of the array.
    fn dims(&self) -> &[usize];
    /// A copy in host memory, in double precision.
    ///
    /// # Errors
    /// [`Error::Read`]: the device was lost, or an earlier kernel failed on it.
    fn to_host(&self) -> Result<crate::eval::HostArray>;
    /// For the backend to get its own type back.
    fn as_any(&self) -> &dyn Any;
}

/// A shared evaluated value.
pub type Value = Arc<dyn Storage>;

type Inputs = SmallVec<[Node; 3]>;

/// One recorded operation; cheap to clone, immutable, `Send + Sync`.
#[derive(Clone)]
pub struct Node(Arc<Inner>);

struct Inner {
    id: u64,
    op: Op,
    dtype: DType,
    shape: Shape,
    location: &'static Location<'static>,
    /// Part of a differentiation in progress: keeps its operands even when evaluated.
    traced: bool,
    /// Depends on an input of a program that is being recorded.
    symbolic: bool,
    /// Operations on the longest way back to something that had a value when this was recorded.
    depth: u32,
    inputs: RwLock<Inputs>,
    value: OnceLock<Value>,
}

/// Most axes of an array; backends keep an index of that many on the stack.
pub const MAX_AXES: usize = 8;

static NEXT_ID: AtomicU64 = AtomicU64::new(1);

impl Node {
    /// Records an operation whose type is inferred, or an error node if it does not fit.
    /// `declared` is the type of leaves and the wanted result of reshape, broadcast and cast.
    #[track_caller]
    pub fn new(op: Op, inputs: &[&Node], declared: Option<Type>) -> Node {
        Self::new_at(op, inputs, declared, Location::caller())
    }

    pub(crate) fn new_at(
        op: Op,
        inputs: &[&Node],
        declared: Option<Type>,
        location: &'static Location<'static>,
    ) -> Node {
        if let Some(bad) = inputs.iter().find(|n| n.error().is_some()) {
            return (*bad).clone();
        }
        let types: SmallVec<[Type; 3]> = inputs
            .iter()
            .map(|n| (n.dtype(), n.shape().clone()))
            .collect();
        match crate::infer::infer(&op, &types, declared, location) {
            Ok((_, shape)) if shape.rank() > MAX_AXES => Self::failed_at(
                Error::Other {
                    op: op.name(),
                    message: format!(
                        "the result has {} axes; {MAX_AXES} is the most",
                        shape.rank()
                    ),
                    location,
                },
                location,
            ),
            Ok((dtype, shape)) => Self::raw(
                op,
                inputs.iter().map(|n| (*n).clone()).collect(),
                dtype,
                shape,
                location,
            ),
            Err(e) => Self::failed_at(e, location),
        }
    }

    fn raw(
        op: Op,
        inputs: Inputs,
        dtype: DType,
        shape: Shape,
        location: &'static Location<'static>,
    ) -> Node {
        let traced = inputs.iter().any(|n| n.0.traced);
        let symbolic = matches!(op, Op::Input(_)) || inputs.iter().any(|n| n.0.symbolic);
        let depth = depth_over(&inputs);
        Node(Arc::new(Inner {
            id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
            op,
            dtype,
            shape,
            location,
            traced,
            symbolic,
            depth,
            inputs: RwLock::new(inputs),
            value: OnceLock::new(),
        }))
    }

    /// A node that carries a mistake to the first read.
    #[track_caller]
    pub fn failed(error: Error) -> Node {
        Self::failed_at(error, Location::caller())
    }

    pub(crate) fn failed_at(error: Error, location: &'static Location<'static>) -> Node {
        Self::raw(
            Op::Error(Box::new(error)),
            Inputs::new(),
            DType::F32,
            Shape::scalar(),
            location,
        )
    }

    /// A leaf holding an evaluated value. `shape` may name the rows of the value.
    #[track_caller]
    pub fn data(value: Value, dtype: DType, shape: Shape) -> Node {
        let node = Self::raw(Op::Data, Inputs::new(), dtype, shape, Location::caller());
        let _ = node.0.value.set(value);
        node
    }

    /// Input number `slot` of a program.
    #[track_caller]
    pub fn input(slot: usize, dtype: DType, shape: Shape) -> Node {
        Self::raw(
            Op::Input(slot),
            Inputs::new(),
            dtype,
            shape,
            Location::caller(),
        )
    }

    /// A scalar constant.
    #[track_caller]
    pub fn constant(value: Literal, dtype: DType) -> Node {
        Self::raw(
            Op::Constant(value),
            Inputs::new(),
            dtype,
            Shape::scalar(),
            Location::caller(),
        )
    }

    /// The same value as a fresh variable to differentiate by; results that depend on it keep their
    /// history even when they are read.
    #[track_caller]
    pub fn watch(&self) -> Node {
        if self.error().is_some() {
            return self.clone();
        }
        let inputs: Inputs = std::iter::once(self.clone()).collect();
        Node(Arc::new(Inner {
            id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
            op: Op::Identity { stop: false },
            dtype: self.dtype(),
            shape: self.shape().clone(),
            location: Location::caller(),
            traced: true,
            symbolic: self.0.symbolic,
            depth: depth_over(&inputs),
            inputs: RwLock::new(inputs),
            value: OnceLock::new(),
        }))
    }

    /// Number of the node; operands always have smaller numbers.
    pub fn id(&self) -> u64 {
        self.0.id
    }

    /// The operation.
    pub fn op(&self) -> &Op {
        &self.0.op
    }

    /// Element type.
    pub fn dtype(&self) -> DType {
        self.0.dtype
    }

    /// Shape.
    pub fn shape(&self) -> &Shape {
        &self.0.shape
    }

    /// Where the user made it.
    pub fn location(&self) -> &'static Location<'static> {
        self.0.location
    }

    /// The operands (none once the value of an untraced node is known).
    pub fn inputs(&self) -> SmallVec<[Node; 3]> {
        self.0
            .inputs
            .read()
            .unwrap_or_else(|e| e.into_inner())
            .clone()
    }

    /// True for a node that depends on a watched variable.
    pub fn is_traced(&self) -> bool {
        self.0.traced
    }

    /// Operations on the longest way back to a value, for whoever bounds what is pending; zero for a value, for a
    /// mistake and inside a program that is being recorded, where nothing can be evaluated.
    pub fn pending_depth(&self) -> u32 {
        if self.0.symbolic || self.0.value.get().is_some() || self.error().is_some() {
            return 0;
        }
        self.0.depth
    }

    /// True where the operands were dropped because the value is known.
    pub(crate) fn is_cut(&self) -> bool {
        !self.0.traced && self.0.value.get().is_some() && !matches!(self.0.op, Op::Data)
    }

    /// The evaluated value, if it is known.
    pub fn value(&self) -> Option<&Value> {
        self.0.value.get()
    }

    /// Stores the evaluated value and lets go of the operands.
    pub fn set_value(&self, value: Value) {
        if self.0.value.set(value).is_ok() && !self.0.traced {
            let old =
                std::mem::take(&mut *self.0.inputs.write().unwrap_or_else(|e| e.into_inner()));
            drop(old);
        }
    }

    /// The mistake this node carries, if any.
    pub fn error(&self) -> Option<&Error> {
        match &self.0.op {
            Op::Error(e) => Some(e),
            _ => None,
        }
    }

    /// `Err` if the node carries a mistake.
    pub fn check(&self) -> Result<()> {
        self.error().map_or(Ok(()), |e| Err(e.clone()))
    }

    /// Same node, by identity.
    pub fn is(&self, other: &Node) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Every node that the outputs need, operands before users.
    pub fn topological(outputs: &[Node]) -> Vec<Node> {
        let mut seen = std::collections::HashSet::new();
        let mut stack: Vec<Node> = outputs.to_vec();
        let mut all = Vec::new();
        while let Some(n) = stack.pop() {
            if seen.insert(n.id()) {
                stack.extend(n.inputs());
                all.push(n);
            }
        }
        all.sort_by_key(Node::id);
        all
    }
}

fn depth_over(inputs: &Inputs) -> u32 {
    let pending = inputs.iter().filter(|n| n.0.value.get().is_none());
    pending.map(|n| n.0.depth + 1).max().unwrap_or(0)
}

/// Long chains are taken apart with a list instead of recursion, which would overflow the stack.
impl Drop for Inner {
    fn drop(&mut self) {
        let mut stack: Vec<Node> = match self.inputs.get_mut() {
            Ok(v) => v.drain(..).collect(),
            Err(e) => e.into_inner().drain(..).collect(),
        };
        while let Some(node) = stack.pop() {
            if let Some(mut inner) = Arc::into_inner(node.0) {
                match inner.inputs.get_mut() {
                    Ok(v) => stack.extend(v.drain(..)),
                    Err(e) => stack.extend(e.into_inner().drain(..)),
                }
            }
        }
    }
}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "%{} = {} : {}{}",
            self.id(),
            self.op(),
            self.dtype(),
            self.shape()
        )
    }
}
