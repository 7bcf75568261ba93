//! Real fields and their differential operators.

use crate::{ComplexField, Frame, VectorField};
use rtx_tensor::Tensor;

/// Values of a field at the points of one set: [points, components], with the coordinates they depend
/// on. Formulas are written with `+ - * /`, which broadcast over components; mistakes travel with the
/// value and surface when the problem is compiled or the value is read.
///
/// Derivatives are taken point by point by physical coordinates. They are *requests*: all requests of
/// a program are gathered and propagated together, so a residual pays for what it asks for and no more.
///
/// ```
/// use rtx_pinn::Frame;
/// use rtx_tensor::{Device, Tensor};
/// let x = Tensor::from_vec(vec![0.1f64, 0.2, 0.3, 0.4], [2, 2], &Device::cpu());
/// let at = Frame::physical(&x);
/// let u = at.x(0).powi(3) * at.x(1);          // x^3 y
/// let v = u.laplacian().value().to_vec::<f64>()?;
/// assert!((v[1] - 6.0 * 0.3 * 0.4).abs() < 1e-12);
/// # Ok::<(), rtx_tensor::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Field {
    value: Tensor,
    frame: Frame,
}

impl Field {
    /// A value computed from the coordinates of `frame`; see [`Frame::field`].
    pub(crate) fn new(value: Tensor, frame: &Frame) -> Field {
        Field {
            value,
            frame: frame.clone(),
        }
    }

    /// The values, [points, components].
    pub fn value(&self) -> &Tensor {
        &self.value
    }

    /// The coordinates.
    pub fn frame(&self) -> &Frame {
        &self.frame
    }

    /// Number of components.
    pub fn components(&self) -> usize {
        self.value
            .symbolic_shape()
            .dims()
            .get(1)
            .and_then(|d| d.fixed())
            .unwrap_or(1)
    }

    /// Component `k` alone: [points, 1].
    #[track_caller]
    pub fn component(&self, k: usize) -> Field {
        self.with(self.value.slice(1, k, k + 1))
    }

    /// Components `start..end`.
    #[track_caller]
    pub fn slice(&self, start: usize, end: usize) -> Field {
        self.with(self.value.slice(1, start, end))
    }

    /// The components as a vector.
    #[track_caller]
    pub fn vector(&self) -> VectorField {
        let mut parts = Vec::new();
        for k in 0..self.components() {
            parts.push(self.component(k));
        }
        VectorField::new(&self.frame, parts)
    }

    /// The first half of the components as real parts, the second half as imaginary parts.
    #[track_caller]
    pub fn complex(&self) -> ComplexField {
        let n = self.components();
        ComplexField::new(self.slice(0, n / 2), self.slice(n / 2, n))
    }

    /// The fields side by side as components of one. An empty list gives `None`.
    #[track_caller]
    pub fn stack(fields: &[Field]) -> Option<Field> {
        let first = fields.first()?;
        let values: Vec<&Tensor> = fields.iter().map(Field::value).collect();
        Some(first.frame.field(Tensor::concat(&values, 1)))
    }

    /// A function of the values, point by point.
    #[track_caller]
    pub fn map(&self, f: impl FnOnce(&Tensor) -> Tensor) -> Field {
        self.with(f(&self.value))
    }

    /// Another value at the same points.
    pub(crate) fn with(&self, value: Tensor) -> Field {
        Field::new(value, &self.frame)
    }

    /// A sum of weights times mixed partial derivatives by physical coordinates: `orders[i]` times by
    /// axis `i`. Sums of one order above the first cost a single channel.
    #[track_caller]
    pub fn operator(&self, terms: &[(&[u8], f64)]) -> Field {
        let scaled: Vec<(&[u8], f64)> = terms
            .iter()
            .map(|(orders, w)| {
                let units = orders
                    .iter()
                    .enumerate()
                    .map(|(axis, &o)| self.frame.unit(axis).powi(i32::from(o)))
                    .product::<f64>();
                (*orders, w / units)
            })
            .collect();
        self.with(self.value.operator(self.frame.root(), &scaled))
    }

    /// A mixed partial derivative: `orders[i]` times by axis `i`.
    #[track_caller]
    pub fn partial(&self, orders: &[u8]) -> Field {
        self.operator(&[(orders, 1.0)])
    }

    /// First derivative by axis `i`.
    #[track_caller]
    pub fn dx(&self, i: usize) -> Field {
        self.partial(&unit_order(i, 1))
    }

    /// Second derivative by axis `i`.
    #[track_caller]
    pub fn dxx(&self, i: usize) -> Field {
        self.partial(&unit_order(i, 2))
    }

    /// First derivative by the last axis, where time is.
    #[track_caller]
    pub fn dt(&self) -> Field {
        self.dx(self.frame.axes().saturating_sub(1))
    }

    /// Derivatives by all space axes.
    #[track_caller]
    pub fn grad(&self) -> VectorField {
        self.slopes(self.frame.space())
    }

    #[track_caller]
    fn slopes(&self, axes: usize) -> VectorField {
        let mut parts = Vec::new();
        for i in 0..axes {
            parts.push(self.dx(i));
        }
        VectorField::new(&self.frame, parts)
    }

    /// Divergence of the components over the space axes.
    #[track_caller]
    pub fn div(&self) -> Field {
        self.vector().div()
    }

    /// Laplacian over the space axes, as a single channel.
    #[track_caller]
    pub fn laplacian(&self) -> Field {
        let orders: Vec<Vec<u8>> = (0..self.frame.space()).map(|i| unit_order(i, 2)).collect();
        let terms: Vec<(&[u8], f64)> = orders.iter().map(|o| (o.as_slice(), 1.0)).collect();
        self.operator(&terms)
    }

    /// `div(coefficient grad self)`, expanded so that one jet serves it.
    #[track_caller]
    pub fn div_of_gradient(&self, coefficient: &Field) -> Field {
        coefficient * self.laplacian() + coefficient.grad().dot(&self.grad())
    }

    /// Derivative along the outward normal of the points, over all axes.
    #[track_caller]
    pub fn normal_derivative(&self, normal: &VectorField) -> Field {
        self.slopes(self.frame.axes()).dot(normal)
    }

    /// The same values, through which no derivative passes.
    #[track_caller]
    pub fn stop_gradient(&self) -> Field {
        self.with(self.value.stop_gradient())
    }

    /// The field to a small whole power.
    #[track_caller]
    pub fn powi(&self, exponent: u32) -> Field {
        self.with(self.value.powi(exponent))
    }

    /// The field to a constant power.
    #[track_caller]
    pub fn powf(&self, exponent: f64) -> Field {
        self.with(self.value.powf(exponent))
    }

    /// Sum of the components: [points, 1].
    #[track_caller]
    pub fn sum_components(&self) -> Field {
        let mut total = self.component(0);
        for k in 1..self.components() {
            total = total + self.component(k);
        }
        total
    }
}

fn unit_order(axis: usize, order: u8) -> Vec<u8> {
    let mut orders = vec![0; axis + 1];
    orders[axis] = order;
    orders
}

macro_rules! functions {
    ($($(#[$doc:meta])* $name:ident;)*) => {
        impl Field { $(
            $(#[$doc])*
            #[track_caller]
            pub fn $name(&self) -> Field { self.with(self.value.$name()) }
        )* }
    };
}

functions! {
    /// |u|
    abs;
    /// u u
    square;
    /// Square root
    sqrt;
    /// e^u
    exp;
    /// Natural logarithm
    log;
    /// Sine
    sin;
    /// Cosine
    cos;
    /// Hyperbolic tangent
    tanh;
    /// Hyperbolic sine
    sinh;
    /// Hyperbolic cosine
    cosh;
    /// Logistic function
    sigmoid;
    /// ln(1 + e^u)
    softplus;
    /// 1/u
    recip;
}
