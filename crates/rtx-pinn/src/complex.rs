//! Complex fields: a pair of real fields behind one type.

use crate::{Field, Frame};
use rtx_tensor::Tensor;

/// A complex field of one or more components. A time-harmonic equation is written once, in complex form:
///
/// ```
/// use rtx_pinn::{Complex64, Frame};
/// use rtx_tensor::{Device, Tensor};
/// // u = exp(i k x) solves lap u + k^2 u = 0 for a complex wavenumber too.
/// let k = Complex64::new(3.0, 0.5);
/// let x = Tensor::from_vec(vec![0.1f64, 0.7], [2, 1], &Device::cpu());
/// let u = (Complex64::i() * k * Frame::physical(&x).x(0)).exp();
/// let residual = u.laplacian() + k * k * &u;
/// assert!(residual.abs2().value().to_vec::<f64>()?.iter().all(|r| *r < 1e-20));
/// # Ok::<(), rtx_tensor::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct ComplexField {
    /// Real part.
    pub re: Field,
    /// Imaginary part.
    pub im: Field,
}

impl Field {
    /// The field as a complex one, with zero imaginary part.
    #[track_caller]
    pub fn to_complex(&self) -> ComplexField {
        ComplexField::new(self.clone(), self * 0.0)
    }
}

impl ComplexField {
    /// From real and imaginary part at the same points.
    pub fn new(re: Field, im: Field) -> ComplexField {
        ComplexField { re, im }
    }

    pub(crate) fn rebuild(&self, (re, im): (Tensor, Tensor)) -> ComplexField {
        let frame = self.re.frame();
        ComplexField::new(frame.field(re), frame.field(im))
    }

    /// The coordinates.
    pub fn frame(&self) -> &Frame {
        self.re.frame()
    }

    /// Number of complex components.
    pub fn components(&self) -> usize {
        self.re.components()
    }

    /// Component `k` alone.
    #[track_caller]
    pub fn component(&self, k: usize) -> ComplexField {
        ComplexField::new(self.re.component(k), self.im.component(k))
    }

    /// The same linear, real operation on both parts.
    #[track_caller]
    pub fn map(&self, f: impl Fn(&Field) -> Field) -> ComplexField {
        ComplexField::new(f(&self.re), f(&self.im))
    }

    /// Complex conjugate.
    #[track_caller]
    pub fn conj(&self) -> ComplexField {
        ComplexField::new(self.re.clone(), -&self.im)
    }

    /// Squared modulus, a real field.
    #[track_caller]
    pub fn abs2(&self) -> Field {
        self.re.square() + self.im.square()
    }

    /// Modulus, a real field (its derivative at zero is not finite).
    #[track_caller]
    pub fn abs(&self) -> Field {
        self.abs2().sqrt()
    }

    /// Angle in radians, a real field.
    #[track_caller]
    pub fn arg(&self) -> Field {
        self.im.with(self.im.value().atan2(self.re.value()))
    }

    /// e^u
    #[track_caller]
    pub fn exp(&self) -> ComplexField {
        let r = self.re.exp();
        ComplexField::new(&r * self.im.cos(), r * self.im.sin())
    }

    /// First derivative by axis `i`.
    #[track_caller]
    pub fn dx(&self, i: usize) -> ComplexField {
        ComplexField::new(self.re.dx(i), self.im.dx(i))
    }

    /// Second derivative by axis `i`.
    #[track_caller]
    pub fn dxx(&self, i: usize) -> ComplexField {
        ComplexField::new(self.re.dxx(i), self.im.dxx(i))
    }

    /// A sum of weights times mixed partial derivatives; see [`Field::operator`].
    #[track_caller]
    pub fn operator(&self, terms: &[(&[u8], f64)]) -> ComplexField {
        ComplexField::new(self.re.operator(terms), self.im.operator(terms))
    }

    /// Laplacian over the space axes.
    #[track_caller]
    pub fn laplacian(&self) -> ComplexField {
        ComplexField::new(self.re.laplacian(), self.im.laplacian())
    }

    /// Derivatives by all space axes.
    #[track_caller]
    pub fn grad(&self) -> ComplexVector {
        let mut parts = Vec::new();
        for i in 0..self.frame().space() {
            parts.push(self.dx(i));
        }
        ComplexVector {
            parts,
            zero: self * 0.0,
        }
    }

    /// `div(coefficient grad self)`, expanded so that one jet serves it; the coefficient may be complex.
    #[track_caller]
    pub fn div_of_gradient(&self, coefficient: &ComplexField) -> ComplexField {
        coefficient * self.laplacian() + coefficient.grad().dot(&self.grad())
    }

    /// The components side by side as a real field: real parts, then imaginary parts.
    #[track_caller]
    pub fn to_real(&self) -> Field {
        self.frame()
            .field(Tensor::concat(&[self.re.value(), self.im.value()], 1))
    }
}

/// One complex field per axis.
#[derive(Clone, Debug)]
pub struct ComplexVector {
    parts: Vec<ComplexField>,
    zero: ComplexField,
}

impl ComplexVector {
    /// The fields in order of their axes.
    pub fn parts(&self) -> &[ComplexField] {
        &self.parts
    }

    /// Sum over the axes of the products, without conjugation (as in `grad G . grad u`).
    #[track_caller]
    pub fn dot(&self, other: &ComplexVector) -> ComplexField {
        let mut total = self.zero.clone();
        for (i, (a, b)) in self.parts.iter().zip(&other.parts).enumerate() {
            total = if i == 0 { a * b } else { total + a * b };
        }
        total
    }

    /// Sum of the squared moduli, a real field.
    #[track_caller]
    pub fn norm2(&self) -> Field {
        let mut total = self.zero.re.clone();
        for (i, a) in self.parts.iter().enumerate() {
            total = if i == 0 { a.abs2() } else { total + a.abs2() };
        }
        total
    }

    /// Divergence: the sum of part `i` differentiated by axis `i`.
    #[track_caller]
    pub fn div(&self) -> ComplexField {
        let mut total = self.zero.clone();
        for (i, a) in self.parts.iter().enumerate() {
            total = if i == 0 { a.dx(i) } else { total + a.dx(i) };
        }
        total
    }

    /// A function of every part.
    #[track_caller]
    pub fn map(&self, f: impl FnMut(&ComplexField) -> ComplexField) -> ComplexVector {
        ComplexVector {
            parts: self.parts.iter().map(f).collect(),
            zero: self.zero.clone(),
        }
    }
}
