//! `+ - * /` for fields: with fields, numbers and tensors ([points, components], one row, or a scalar).

use crate::{ComplexField, Field, VectorField};
use num_complex::Complex64;
use rtx_tensor::Tensor;
use std::ops::{Add, Div, Mul, Neg, Sub};

/// What may stand beside a [`Field`] in a real formula.
pub trait Operand {
    /// The operand as a tensor that broadcasts with `like`.
    #[track_caller]
    fn operand(&self, like: &Tensor) -> Tensor;
}

impl Operand for f64 {
    #[track_caller]
    fn operand(&self, like: &Tensor) -> Tensor {
        Tensor::scalar(*self, like.dtype(), like.device())
    }
}

impl Operand for Tensor {
    fn operand(&self, _: &Tensor) -> Tensor {
        self.clone()
    }
}

impl Operand for Field {
    fn operand(&self, _: &Tensor) -> Tensor {
        self.value().clone()
    }
}

impl<T: Operand> Operand for &T {
    #[track_caller]
    fn operand(&self, like: &Tensor) -> Tensor {
        (**self).operand(like)
    }
}

macro_rules! real_operator {
    ($trait:ident, $method:ident) => {
        impl<T: Operand> $trait<T> for &Field {
            type Output = Field;
            #[track_caller]
            fn $method(self, other: T) -> Field {
                let other = other.operand(self.value());
                self.with($trait::$method(self.value(), other))
            }
        }
        impl<T: Operand> $trait<T> for Field {
            type Output = Field;
            #[track_caller]
            fn $method(self, other: T) -> Field {
                $trait::$method(&self, other)
            }
        }
        real_operator!(@left $trait, $method, f64);
        real_operator!(@left $trait, $method, Tensor);
        real_operator!(@left $trait, $method, &Tensor);
    };
    (@left $trait:ident, $method:ident, $left:ty) => {
        impl $trait<Field> for $left {
            type Output = Field;
            #[track_caller]
            fn $method(self, other: Field) -> Field {
                $trait::$method(self, &other)
            }
        }
        impl $trait<&Field> for $left {
            type Output = Field;
            #[track_caller]
            fn $method(self, other: &Field) -> Field {
                let left = self.operand(other.value());
                other.with($trait::$method(left, other.value()))
            }
        }
    };
}

real_operator!(Add, add);
real_operator!(Sub, sub);
real_operator!(Mul, mul);
real_operator!(Div, div);

impl Neg for &Field {
    type Output = Field;
    #[track_caller]
    fn neg(self) -> Field {
        self.with(-self.value())
    }
}

impl Neg for Field {
    type Output = Field;
    #[track_caller]
    fn neg(self) -> Field {
        -&self
    }
}

/// What may stand beside a [`ComplexField`]: its real and, if it has one, imaginary part.
pub trait ComplexOperand {
    /// Real and imaginary part as tensors that broadcast with `like`.
    #[track_caller]
    fn parts(&self, like: &Tensor) -> (Tensor, Option<Tensor>);
}

impl ComplexOperand for f64 {
    #[track_caller]
    fn parts(&self, like: &Tensor) -> (Tensor, Option<Tensor>) {
        (self.operand(like), None)
    }
}

impl ComplexOperand for Complex64 {
    #[track_caller]
    fn parts(&self, like: &Tensor) -> (Tensor, Option<Tensor>) {
        (self.re.operand(like), Some(self.im.operand(like)))
    }
}

impl ComplexOperand for Tensor {
    fn parts(&self, _: &Tensor) -> (Tensor, Option<Tensor>) {
        (self.clone(), None)
    }
}

impl ComplexOperand for Field {
    fn parts(&self, _: &Tensor) -> (Tensor, Option<Tensor>) {
        (self.value().clone(), None)
    }
}

impl ComplexOperand for ComplexField {
    fn parts(&self, _: &Tensor) -> (Tensor, Option<Tensor>) {
        (self.re.value().clone(), Some(self.im.value().clone()))
    }
}

impl<T: ComplexOperand> ComplexOperand for &T {
    #[track_caller]
    fn parts(&self, like: &Tensor) -> (Tensor, Option<Tensor>) {
        (**self).parts(like)
    }
}

/// One complex operation on parts: (re, im) of the left, real and optional imaginary part of the right.
type Pair = (Tensor, Tensor);

#[track_caller]
fn add(a: Pair, (br, bi): (Tensor, Option<Tensor>)) -> Pair {
    let im = match bi {
        Some(bi) => a.1 + bi,
        None => a.1,
    };
    (a.0 + br, im)
}

#[track_caller]
fn sub(a: Pair, (br, bi): (Tensor, Option<Tensor>)) -> Pair {
    let im = match bi {
        Some(bi) => a.1 - bi,
        None => a.1,
    };
    (a.0 - br, im)
}

#[track_caller]
fn mul((ar, ai): Pair, (br, bi): (Tensor, Option<Tensor>)) -> Pair {
    match bi {
        None => (ar * &br, ai * &br),
        Some(bi) => (&ar * &br - &ai * &bi, ar * bi + ai * br),
    }
}

#[track_caller]
fn div((ar, ai): Pair, (br, bi): (Tensor, Option<Tensor>)) -> Pair {
    match bi {
        None => (ar / &br, ai / &br),
        Some(bi) => {
            let norm = br.square() + bi.square();
            ((&ar * &br + &ai * &bi) / &norm, (ai * br - ar * bi) / &norm)
        }
    }
}

macro_rules! complex_operator {
    ($trait:ident, $method:ident) => {
        impl<T: ComplexOperand> $trait<T> for &ComplexField {
            type Output = ComplexField;
            #[track_caller]
            fn $method(self, other: T) -> ComplexField {
                let other = other.parts(self.re.value());
                let left = (self.re.value().clone(), self.im.value().clone());
                self.rebuild($method(left, other))
            }
        }
        impl<T: ComplexOperand> $trait<T> for ComplexField {
            type Output = ComplexField;
            #[track_caller]
            fn $method(self, other: T) -> ComplexField {
                $trait::$method(&self, other)
            }
        }
        complex_operator!(@left $trait, $method, f64);
        complex_operator!(@left $trait, $method, Complex64);
        complex_operator!(@left $trait, $method, Tensor);
        complex_operator!(@left $trait, $method, &Tensor);
        complex_operator!(@left $trait, $method, Field);
        complex_operator!(@left $trait, $method, &Field);
        complex_operator!(@number $trait, $method, Field);
        complex_operator!(@number $trait, $method, &Field);
    };
    (@number $trait:ident, $method:ident, $left:ty) => {
        impl $trait<Complex64> for $left {
            type Output = ComplexField;
            #[track_caller]
            fn $method(self, other: Complex64) -> ComplexField {
                $trait::$method(self.to_complex(), other)
            }
        }
        impl $trait<$left> for Complex64 {
            type Output = ComplexField;
            #[track_caller]
            fn $method(self, other: $left) -> ComplexField {
                $trait::$method(self, other.to_complex())
            }
        }
    };
    (@left $trait:ident, $method:ident, $left:ty) => {
        impl $trait<ComplexField> for $left {
            type Output = ComplexField;
            #[track_caller]
            fn $method(self, other: ComplexField) -> ComplexField {
                $trait::$method(self, &other)
            }
        }
        impl $trait<&ComplexField> for $left {
            type Output = ComplexField;
            #[track_caller]
            fn $method(self, other: &ComplexField) -> ComplexField {
                let like = other.re.value();
                let (re, im) = self.parts(like);
                let im = im.unwrap_or_else(|| Tensor::scalar(0.0, like.dtype(), like.device()));
                let right = (like.clone(), Some(other.im.value().clone()));
                other.rebuild($method((re, im), right))
            }
        }
    };
}

complex_operator!(Add, add);
complex_operator!(Sub, sub);
complex_operator!(Mul, mul);
complex_operator!(Div, div);

impl Neg for &ComplexField {
    type Output = ComplexField;
    #[track_caller]
    fn neg(self) -> ComplexField {
        ComplexField::new(-&self.re, -&self.im)
    }
}

impl Neg for ComplexField {
    type Output = ComplexField;
    #[track_caller]
    fn neg(self) -> ComplexField {
        -&self
    }
}

macro_rules! vector_operator {
    ($trait:ident, $method:ident) => {
        impl $trait<&VectorField> for &VectorField {
            type Output = VectorField;
            #[track_caller]
            fn $method(self, other: &VectorField) -> VectorField {
                if self.parts().len() != other.parts().len() {
                    // The product of vectors that do not fit carries the mistake.
                    return self.rebuild(vec![self.dot(other); self.parts().len()]);
                }
                let mut parts = Vec::new();
                for (a, b) in self.parts().iter().zip(other.parts()) {
                    parts.push($trait::$method(a, b));
                }
                self.rebuild(parts)
            }
        }
    };
}

vector_operator!(Add, add);
vector_operator!(Sub, sub);

impl<T: Operand> Mul<T> for &VectorField {
    type Output = VectorField;
    #[track_caller]
    fn mul(self, factor: T) -> VectorField {
        let mut parts = Vec::new();
        for f in self.parts() {
            parts.push(f * &factor);
        }
        self.rebuild(parts)
    }
}

impl Mul<&VectorField> for &Field {
    type Output = VectorField;
    #[track_caller]
    fn mul(self, vector: &VectorField) -> VectorField {
        let mut parts = Vec::new();
        for f in vector.parts() {
            parts.push(self * f);
        }
        vector.rebuild(parts)
    }
}
