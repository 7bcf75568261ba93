//! The intermediate representation of RustyTorch++.
//!
//! Everything a user writes becomes a [`Node`]: an immutable, reference-counted record of one operation
//! of a small set ([`Op`]). Derivatives ([`vjp`], [`jvp`], [`jet`](mod@jet)) are transforms from graph to graph whose
//! rules are written in the same operations, so they nest to any order. [`Graph`] is the flat,
//! single-assignment form that the compiler works on, and [`eval`](mod@eval) the reference evaluation that every
//! backend is compared with.
//!
//! No device code lives here.
//!
//! ```
//! use rtx_ir::{Node, DType, Literal, vjp};
//! let x = Node::constant(Literal::Float(3.0), DType::F64);
//! let y = x.mul(&x);
//! let g = vjp(&[y], &[None], &[x.clone()]).unwrap();
//! let value = rtx_ir::eval::evaluate(&[g[0].clone()], &rtx_ir::eval::Bindings::default()).unwrap();
//! assert_eq!(value[0].data, vec![6.0]);
//! ```

mod broadcasting;
mod build;
mod dtype;
mod error;
pub mod eval;
mod graph;
mod infer;
pub mod jet;
mod node;
mod op;
pub mod random;
mod rules;
mod shape;
mod transform;

pub use dtype::{DType, Element, Literal};
pub use error::{Error, Result};
pub use graph::{Graph, GraphInput, Instruction, Source, ValueId};
pub use node::{MAX_AXES, Node, Storage, Value};
pub use op::{BinaryOp, DotDims, Op, RandomKind, ReduceKind, UnaryOp};
pub use shape::{Dim, RowDomain, Shape};
pub use transform::{jvp, resolve_requests, substitute, vjp};
