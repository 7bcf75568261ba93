//! Structures of tensors: what a program takes, carries and returns.

use crate::Tensor;

/// What a visitor learns of a leaf.
#[derive(Clone, Copy, Debug)]
pub struct Visit<'a> {
    /// Path of field names and indices, such as `layers.0.weight`.
    pub path: &'a str,
    /// False for buffers, which no optimizer changes.
    pub trainable: bool,
}

/// A structure of tensors in a fixed order. Derive it with `#[derive(Module)]`.
pub trait Tree: Sized {
    /// Calls `f` for every tensor in order.
    fn visit(&self, path: &str, trainable: bool, f: &mut dyn FnMut(Visit<'_>, &Tensor));

    /// The same structure with every tensor replaced by what `f` returns, in the order of `visit`.
    fn map(
        &self,
        path: &str,
        trainable: bool,
        f: &mut dyn FnMut(Visit<'_>, &Tensor) -> Tensor,
    ) -> Self;

    /// All tensors in order.
    fn leaves(&self) -> Vec<Tensor> {
        let mut all = Vec::new();
        self.visit("", true, &mut |_, t| all.push(t.clone()));
        all
    }

    /// All tensors with their paths.
    fn named(&self) -> Vec<(String, Tensor)> {
        let mut all = Vec::new();
        self.visit("", true, &mut |v, t| {
            all.push((v.path.to_string(), t.clone()))
        });
        all
    }

    /// The trainable tensors with their paths.
    fn parameters(&self) -> Vec<(String, Tensor)> {
        let mut all = Vec::new();
        self.visit("", true, &mut |v, t| {
            if v.trainable {
                all.push((v.path.to_string(), t.clone()));
            }
        });
        all
    }

    /// The structure with its trainable tensors replaced, in order; too few leave the rest as it is.
    fn with_parameters(&self, new: &[Tensor]) -> Self {
        let mut next = new.iter();
        self.map("", true, &mut |v, t| {
            if v.trainable {
                next.next().unwrap_or(t).clone()
            } else {
                t.clone()
            }
        })
    }

    /// The structure with all tensors replaced, in order; too few leave the rest as it is.
    fn with_leaves(&self, new: &[Tensor]) -> Self {
        let mut next = new.iter();
        self.map("", true, &mut |_, t| next.next().unwrap_or(t).clone())
    }
}

/// Joins a path and a field name.
pub(crate) fn join(path: &str, field: &str) -> String {
    if path.is_empty() {
        field.to_string()
    } else {
        format!("{path}.{field}")
    }
}

impl Tree for Tensor {
    fn visit(&self, path: &str, trainable: bool, f: &mut dyn FnMut(Visit<'_>, &Tensor)) {
        f(Visit { path, trainable }, self);
    }
    fn map(
        &self,
        path: &str,
        trainable: bool,
        f: &mut dyn FnMut(Visit<'_>, &Tensor) -> Tensor,
    ) -> Self {
        f(Visit { path, trainable }, self)
    }
}

/// A tensor that belongs to a module but is no parameter (fixed Fourier frequencies, say).
#[derive(Clone, Debug)]
pub struct Buffer(pub Tensor);

impl Tree for Buffer {
    fn visit(&self, path: &str, _: bool, f: &mut dyn FnMut(Visit<'_>, &Tensor)) {
        f(
            Visit {
                path,
                trainable: false,
            },
            &self.0,
        );
    }
    fn map(&self, path: &str, _: bool, f: &mut dyn FnMut(Visit<'_>, &Tensor) -> Tensor) -> Self {
        Buffer(f(
            Visit {
                path,
                trainable: false,
            },
            &self.0,
        ))
    }
}

macro_rules! sequence {
    ($($t:ty, [$($g:tt)*];)*) => {$(
        impl<T: Tree, $($g)*> Tree for $t {
            fn visit(&self, path: &str, trainable: bool, f: &mut dyn FnMut(Visit<'_>, &Tensor)) {
                for (i, t) in self.iter().enumerate() {
                    t.visit(&join(path, &i.to_string()), trainable, f);
                }
            }
            fn map(&self, path: &str, trainable: bool, f: &mut dyn FnMut(Visit<'_>, &Tensor) -> Tensor) -> Self {
                let mut i = 0;
                sequence!(@map self, |t: &T| {
                    i += 1;
                    t.map(&join(path, &(i - 1).to_string()), trainable, f)
                })
            }
        }
    )*};
    (@map $s:ident, $f:expr) => { $s.each_item($f) };
}

/// Mapping of the items of a sequence into a sequence of the same kind.
trait EachItem<T> {
    fn each_item(&self, f: impl FnMut(&T) -> T) -> Self;
}

impl<T> EachItem<T> for Vec<T> {
    fn each_item(&self, f: impl FnMut(&T) -> T) -> Self {
        self.iter().map(f).collect()
    }
}

impl<T, const N: usize> EachItem<T> for [T; N] {
    fn each_item(&self, mut f: impl FnMut(&T) -> T) -> Self {
        std::array::from_fn(|i| f(&self[i]))
    }
}

sequence! {
    Vec<T>, [];
    [T; N], [const N: usize];
}

/// An optional part has the path of its field.
impl<T: Tree> Tree for Option<T> {
    fn visit(&self, path: &str, trainable: bool, f: &mut dyn FnMut(Visit<'_>, &Tensor)) {
        if let Some(t) = self {
            t.visit(path, trainable, f);
        }
    }
    fn map(
        &self,
        path: &str,
        trainable: bool,
        f: &mut dyn FnMut(Visit<'_>, &Tensor) -> Tensor,
    ) -> Self {
        self.as_ref().map(|t| t.map(path, trainable, f))
    }
}

impl<T: Tree> Tree for std::collections::BTreeMap<String, T> {
    fn visit(&self, path: &str, trainable: bool, f: &mut dyn FnMut(Visit<'_>, &Tensor)) {
        for (k, t) in self {
            t.visit(&join(path, k), trainable, f);
        }
    }
    fn map(
        &self,
        path: &str,
        trainable: bool,
        f: &mut dyn FnMut(Visit<'_>, &Tensor) -> Tensor,
    ) -> Self {
        self.iter()
            .map(|(k, t)| (k.clone(), t.map(&join(path, k), trainable, f)))
            .collect()
    }
}

macro_rules! tuple {
    ($($name:ident $i:tt),*) => {
        impl<$($name: Tree),*> Tree for ($($name,)*) {
            #[allow(unused_variables)]
            fn visit(&self, path: &str, trainable: bool, f: &mut dyn FnMut(Visit<'_>, &Tensor)) {
                $( self.$i.visit(&join(path, stringify!($i)), trainable, f); )*
            }
            #[allow(unused_variables, clippy::unused_unit)]
            fn map(&self, path: &str, trainable: bool, f: &mut dyn FnMut(Visit<'_>, &Tensor) -> Tensor) -> Self {
                ($( self.$i.map(&join(path, stringify!($i)), trainable, f), )*)
            }
        }
    };
}
tuple!();
tuple!(A 0);
tuple!(A 0, B 1);
tuple!(A 0, B 1, C 2);
tuple!(A 0, B 1, C 2, D 3);
tuple!(A 0, B 1, C 2, D 3, E 4);

macro_rules! plain {
    ($($t:ty),*) => {$(
        /// Plain data: no tensors inside, carried along.
        impl Tree for $t {
            fn visit(&self, _: &str, _: bool, _: &mut dyn FnMut(Visit<'_>, &Tensor)) {}
            fn map(&self, _: &str, _: bool, _: &mut dyn FnMut(Visit<'_>, &Tensor) -> Tensor) -> Self { self.clone() }
        }
    )*};
}
plain!(bool, u32, u64, usize, f32, f64, String);
