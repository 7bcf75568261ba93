//! Networks of any kind behind one type.

use rtx_nn::{Activation, Mlp, Module};
use rtx_tensor::{Tensor, Tree, Visit};
use std::any::Any;
use std::sync::Arc;

type Visitor<'a> = &'a mut dyn FnMut(Visit<'_>, &Tensor);
type Mapper<'a> = &'a mut dyn FnMut(Visit<'_>, &Tensor) -> Tensor;

/// The object-safe side of a [`Module`].
trait AnyNetwork: Send + Sync {
    fn forward(&self, x: &Tensor) -> Tensor;
    fn visit(&self, path: &str, trainable: bool, f: Visitor<'_>);
    fn map(&self, path: &str, trainable: bool, f: Mapper<'_>) -> Network;
    fn frequencies(&self) -> Frequencies;
}

/// What a network can represent without learning high frequencies.
pub(crate) enum Frequencies {
    /// Fourier features with these frequencies ([inputs, features], cycles per unit of input).
    Features(Tensor),
    /// A plain network of a smooth activation.
    Plain,
    /// Nothing is known.
    Unknown,
}

impl<M: Module + Send + Sync + 'static> AnyNetwork for M {
    fn forward(&self, x: &Tensor) -> Tensor {
        Module::forward(self, x)
    }

    fn visit(&self, path: &str, trainable: bool, f: Visitor<'_>) {
        Tree::visit(self, path, trainable, f);
    }

    fn map(&self, path: &str, trainable: bool, f: Mapper<'_>) -> Network {
        Network::new(Tree::map(self, path, trainable, f))
    }

    fn frequencies(&self) -> Frequencies {
        match (self as &dyn Any).downcast_ref::<Mlp>() {
            Some(net) => match (&net.fourier, net.activation()) {
                (Some(f), _) => Frequencies::Features(f.frequencies().clone()),
                (None, Activation::Sin { .. }) => Frequencies::Unknown,
                (None, _) => Frequencies::Plain,
            },
            None => Frequencies::Unknown,
        }
    }
}

/// Any network; cheap to clone, the clone shares the arrays.
#[derive(Clone)]
pub struct Network(Arc<dyn AnyNetwork>);

impl Network {
    /// Wraps a network.
    pub fn new(net: impl Module + Send + Sync + 'static) -> Network {
        Network(Arc::new(net))
    }

    /// Applies it: `[points, inputs] -> [points, outputs]`.
    #[track_caller]
    pub fn forward(&self, x: &Tensor) -> Tensor {
        self.0.forward(x)
    }

    pub(crate) fn frequencies(&self) -> Frequencies {
        self.0.frequencies()
    }
}

impl Tree for Network {
    fn visit(&self, path: &str, trainable: bool, f: Visitor<'_>) {
        self.0.visit(path, trainable, f);
    }

    fn map(&self, path: &str, trainable: bool, f: Mapper<'_>) -> Self {
        self.0.map(path, trainable, f)
    }
}
