//! The tensor: a node of the lazy graph and the device it lives on.

use crate::{DType, Device, Element, Error, Result};
use rtx_ir::eval::HostArray;
use rtx_ir::{Node, RowDomain, Shape};
use std::fmt;

/// Operations that may wait one behind the other. More would make one large program of a loop, which takes longer to
/// compile than to run, and memory for every step.
const LONGEST_PENDING: u32 = 4096;

/// A lazy n-dimensional array. Cheap to clone, immutable, `Send + Sync`.
#[derive(Clone)]
pub struct Tensor {
    pub(crate) node: Node,
    pub(crate) device: Device,
}

impl Tensor {
    /// The result of an operation. What is pending stays bounded: a long chain is evaluated on the way, and a mistake
    /// in that is returned by the read.
    pub(crate) fn wrap(&self, node: Node) -> Tensor {
        let made = Tensor {
            node,
            device: self.device.clone(),
        };
        if made.node.pending_depth() >= LONGEST_PENDING {
            let _ = crate::eval(&[&made]);
        }
        made
    }

    /// A tensor of a graph node; for crates that extend the graph.
    pub fn from_node(node: Node, device: &Device) -> Tensor {
        Tensor {
            node,
            device: device.clone(),
        }
    }

    /// The graph node.
    pub fn node(&self) -> &Node {
        &self.node
    }

    /// The device.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Element type.
    pub fn dtype(&self) -> DType {
        self.node.dtype()
    }

    /// Extents. Rows that are a run-time argument are known once the tensor holds a value.
    ///
    /// # Errors
    /// The mistake that the tensor carries, or rows that are not known yet.
    pub fn shape(&self) -> Result<Vec<usize>> {
        self.node.check()?;
        if let Some(v) = self.node.value() {
            return Ok(v.dims().to_vec());
        }
        self.node.shape().resolve(|_| None).ok_or_else(|| {
            let domain = self
                .node
                .shape()
                .rows()
                .map(RowDomain::name)
                .unwrap_or_default();
            rtx_ir::Error::UnknownRows { domain }.into()
        })
    }

    /// The shape as recorded, with the names of run-time rows.
    pub fn symbolic_shape(&self) -> &Shape {
        self.node.shape()
    }

    /// Number of axes.
    pub fn rank(&self) -> usize {
        self.node.shape().rank()
    }

    /// `Err` if a mistake was made on the way to this tensor; runs nothing.
    ///
    /// # Errors
    /// That mistake.
    pub fn check(&self) -> Result<()> {
        Ok(self.node.check()?)
    }

    /// Reads all elements in row-major order.
    ///
    /// # Errors
    /// A mistake on the way to this tensor, another element type, or the device's refusal.
    pub fn to_vec<T: Element>(&self) -> Result<Vec<T>> {
        self.check()?;
        if T::DTYPE != self.dtype() {
            return Err(Error::ElementType {
                asked: T::DTYPE,
                found: self.dtype(),
            });
        }
        Ok(self.to_host()?.data.into_iter().map(T::from_f64).collect())
    }

    /// Reads a scalar, converted to double precision.
    ///
    /// # Errors
    /// As [`to_vec`](Self::to_vec), or more than one element.
    pub fn item(&self) -> Result<f64> {
        let a = self.to_host()?;
        match a.data.as_slice() {
            [v] => Ok(*v),
            _ => Err(rtx_ir::Error::NotScalar {
                shape: self.node.shape().clone(),
                location: self.node.location(),
            }
            .into()),
        }
    }

    /// Reads extents and elements.
    ///
    /// # Errors
    /// As [`to_vec`](Self::to_vec).
    pub fn to_host(&self) -> Result<HostArray> {
        crate::eval(&[self])?;
        match self.node.value() {
            Some(v) => Ok(v.to_host().map_err(rtx_runtime::Error::from)?),
            None => Err(Error::Runtime(rtx_runtime::Error::Device {
                device: self.device.name().into(),
                message: "the value was not produced".into(),
            })),
        }
    }

    /// The same values with the leading axis named as a set of rows whose count is a run-time argument:
    /// programs that use it are compiled once for every number of rows. Reads the value if it is pending.
    ///
    /// # Errors
    /// A scalar, or a mistake on the way to this tensor.
    #[track_caller]
    pub fn rows(&self, name: &str) -> Result<Tensor> {
        crate::eval(&[self])?;
        let shape = self.node.shape();
        match self.node.value() {
            Some(v) if shape.rank() > 0 => {
                let shape = shape.with(0, rtx_ir::Dim::Rows(RowDomain::named(name)));
                Ok(self.wrap(Node::data(v.clone(), self.dtype(), shape)))
            }
            _ => Err(rtx_ir::Error::Axis {
                op: "rows",
                axis: 0,
                shape: shape.clone(),
                location: self.node.location(),
            }
            .into()),
        }
    }

    /// The same value as a fresh variable to differentiate by.
    #[track_caller]
    pub fn watch(&self) -> Tensor {
        self.wrap(self.node.watch())
    }

    /// The same value, through which no derivative passes.
    #[track_caller]
    pub fn stop_gradient(&self) -> Tensor {
        self.wrap(self.node.stop_gradient())
    }
}

impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Tensor({}{} on {}, {})",
            self.dtype(),
            self.node.shape(),
            self.device.name(),
            self.node.op().name()
        )
    }
}

const _: () = {
    const fn shared<T: Send + Sync>() {}
    shared::<Tensor>();
};
