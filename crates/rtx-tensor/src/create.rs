//! Constructors.

use crate::{DType, Device, Element, Tensor};
use rtx_ir::eval::HostArray;
use rtx_ir::{Error, Literal, MAX_AXES, Node, RandomKind, Shape};
use std::panic::Location;

impl Tensor {
    /// From elements in row-major order.
    #[track_caller]
    pub fn from_vec<T: Element>(data: Vec<T>, shape: impl Into<Shape>, device: &Device) -> Tensor {
        let data: Vec<f64> = data.into_iter().map(T::to_f64).collect();
        Tensor::from_f64(&data, shape, T::DTYPE, device)
    }

    /// From doubles in row-major order, rounded to `dtype`.
    #[track_caller]
    pub fn from_f64(
        data: &[f64],
        shape: impl Into<Shape>,
        dtype: DType,
        device: &Device,
    ) -> Tensor {
        let shape = shape.into();
        match shape.resolve(|_| None) {
            Some(dims) => Tensor::from_host(HostArray::new(dtype, &dims, data.to_vec()), device),
            None => Tensor::from_node(wrong_count(data.len(), shape), device),
        }
    }

    /// From an array in host memory, whose numbers must be values of its element type; the counterpart of
    /// [`to_host`](Tensor::to_host).
    #[track_caller]
    pub fn from_host(array: HostArray, device: &Device) -> Tensor {
        let shape = Shape::of(&array.dims);
        let mut extents = array.dims.iter();
        let count = extents.try_fold(1usize, |n, &extent| n.checked_mul(extent));
        if count != Some(array.data.len()) {
            return Tensor::from_node(wrong_count(array.data.len(), shape), device);
        }
        let location = Location::caller();
        let failed = |message| {
            Node::failed(Error::Other {
                op: "from_vec",
                message,
                location,
            })
        };
        let node = if shape.rank() > MAX_AXES {
            failed(format!("{} axes; {MAX_AXES} is the most", array.dims.len()))
        } else {
            match device.backend().upload(&array) {
                Ok(value) => Node::data(value, array.dtype, shape),
                Err(e) => failed(e.to_string()),
            }
        };
        Tensor::from_node(node, device)
    }

    /// A scalar.
    #[track_caller]
    pub fn scalar(value: f64, dtype: DType, device: &Device) -> Tensor {
        let literal = if dtype.is_float() {
            Literal::Float(value)
        } else {
            Literal::Int(value as i64)
        };
        Tensor::from_node(Node::constant(literal, dtype), device)
    }

    /// One value everywhere.
    #[track_caller]
    pub fn full(shape: impl Into<Shape>, value: f64, dtype: DType, device: &Device) -> Tensor {
        let s = Tensor::scalar(value, dtype, device);
        s.wrap(s.node.broadcast_to(&shape.into()))
    }

    /// Single-precision zeros.
    #[track_caller]
    pub fn zeros(shape: impl Into<Shape>, device: &Device) -> Tensor {
        Tensor::full(shape, 0.0, DType::F32, device)
    }

    /// Single-precision ones.
    #[track_caller]
    pub fn ones(shape: impl Into<Shape>, device: &Device) -> Tensor {
        Tensor::full(shape, 1.0, DType::F32, device)
    }

    /// 0, 1, .., n-1.
    #[track_caller]
    pub fn arange(n: usize, dtype: DType, device: &Device) -> Tensor {
        Tensor::from_node(Node::iota(&Shape::of(&[n]), 0, dtype), device)
    }

    /// Single-precision uniform numbers in [0, 1), another stream at every call (process-wide counter,
    /// started at 0: a program that makes the same calls gets the same numbers).
    #[track_caller]
    pub fn rand(shape: impl Into<Shape>, device: &Device) -> Tensor {
        Tensor::random_uniform(shape, next_stream(), DType::F32, device)
    }

    /// Single-precision standard normal numbers; streams as for [`rand`](Self::rand).
    #[track_caller]
    pub fn randn(shape: impl Into<Shape>, device: &Device) -> Tensor {
        Tensor::random_normal(shape, next_stream(), DType::F32, device)
    }

    /// Uniform numbers in [0, 1) of the stream `seed` (below 2^53).
    #[track_caller]
    pub fn random_uniform(
        shape: impl Into<Shape>,
        seed: u64,
        dtype: DType,
        device: &Device,
    ) -> Tensor {
        let key = Tensor::scalar(seed as f64, DType::I64, device);
        key.random(RandomKind::Uniform, shape, dtype)
    }

    /// Standard normal numbers of the stream `seed` (below 2^53).
    #[track_caller]
    pub fn random_normal(
        shape: impl Into<Shape>,
        seed: u64,
        dtype: DType,
        device: &Device,
    ) -> Tensor {
        let key = Tensor::scalar(seed as f64, DType::I64, device);
        key.random(RandomKind::Normal, shape, dtype)
    }

    /// Random numbers of the stream named by this integer scalar; inside a compiled step the key can be
    /// part of the state, so that every step draws anew.
    #[track_caller]
    pub fn random(&self, kind: RandomKind, shape: impl Into<Shape>, dtype: DType) -> Tensor {
        self.wrap(Node::random(kind, &self.node, &shape.into(), dtype))
    }
}

#[track_caller]
fn wrong_count(found: usize, shape: Shape) -> Node {
    Node::failed(Error::Shape {
        op: "from_vec",
        shapes: vec![Shape::of(&[found]), shape],
        location: Location::caller(),
        hint: "the number of elements must be the product of the extents".into(),
    })
}

fn next_stream() -> u64 {
    use std::sync::atomic::{AtomicU64, Ordering};
    static STREAM: AtomicU64 = AtomicU64::new(0);
    STREAM.fetch_add(1, Ordering::Relaxed)
}
