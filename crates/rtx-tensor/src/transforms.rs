//! Function transforms.

use crate::{MultiIndex, Result, Tensor, Tree};
use rtx_ir::Node;

/// Gradient of a scalar function; the result is a function of tensors again, so `grad(grad(..))` works.
/// A mistake inside (an operation without a rule, a non-scalar) becomes an error tensor.
pub fn grad(f: impl Fn(&Tensor) -> Tensor) -> impl Fn(&Tensor) -> Tensor {
    let both = value_and_grad(f);
    move |x| both(x).1
}

/// Value and gradient of a scalar function.
pub fn value_and_grad(f: impl Fn(&Tensor) -> Tensor) -> impl Fn(&Tensor) -> (Tensor, Tensor) {
    move |x| {
        let x = x.watch();
        let y = f(&x);
        let g = match rtx_ir::vjp(
            std::slice::from_ref(&y.node),
            &[None],
            std::slice::from_ref(&x.node),
        ) {
            Ok(g) => x.wrap(g[0].clone()),
            Err(e) => x.wrap(Node::failed(e)),
        };
        (y, g)
    }
}

/// Value of a scalar function of a structure, and its gradients by the trainable tensors in order.
///
/// # Errors
/// An operation without a rule, a non-scalar value, or a mistake on the way to it.
pub fn value_and_grad_tree<T: Tree>(
    f: impl FnOnce(&T) -> Tensor,
    x: &T,
) -> Result<(Tensor, Vec<Tensor>)> {
    let mut watched = Vec::new();
    let x = x.map("", true, &mut |v, t| {
        if v.trainable {
            watched.push(t.watch());
            watched[watched.len() - 1].clone()
        } else {
            t.clone()
        }
    });
    let y = f(&x);
    let wrt: Vec<Node> = watched.iter().map(|t| t.node.clone()).collect();
    let g = rtx_ir::vjp(std::slice::from_ref(&y.node), &[None], &wrt)?;
    Ok((y.clone(), g.into_iter().map(|n| y.wrap(n)).collect()))
}

/// Value of `f` at `x` and the product of a cotangent with its Jacobian.
///
/// # Errors
/// An operation without a rule, or a cotangent of another shape.
pub fn vjp(
    f: impl Fn(&Tensor) -> Tensor,
    x: &Tensor,
    cotangent: &Tensor,
) -> Result<(Tensor, Tensor)> {
    let x = x.watch();
    let y = f(&x);
    let g = rtx_ir::vjp(
        std::slice::from_ref(&y.node),
        &[Some(cotangent.node.clone())],
        std::slice::from_ref(&x.node),
    )?;
    Ok((y, x.wrap(g[0].clone())))
}

/// Value of `f` at `x` and its derivative along `tangent`.
///
/// # Errors
/// An operation without a rule, or a tangent of another shape.
pub fn jvp(
    f: impl Fn(&Tensor) -> Tensor,
    x: &Tensor,
    tangent: &Tensor,
) -> Result<(Tensor, Tensor)> {
    let x = x.watch();
    let y = f(&x);
    let t = rtx_ir::jvp(
        std::slice::from_ref(&y.node),
        std::slice::from_ref(&x.node),
        std::slice::from_ref(&tangent.node),
    )?;
    Ok((y.clone(), y.wrap(t[0].clone())))
}

/// The linear map that `f` is near one point.
pub struct Linearized {
    x: Tensor,
    y: Tensor,
}

/// Records `f` at `x` once; products with its Jacobian and the transpose share that record.
pub fn linearize(f: impl Fn(&Tensor) -> Tensor, x: &Tensor) -> Linearized {
    let x = x.watch();
    let y = f(&x);
    Linearized { x, y }
}

impl Linearized {
    /// Value at the point.
    pub fn value(&self) -> &Tensor {
        &self.y
    }

    /// Jacobian times a tangent.
    ///
    /// # Errors
    /// As [`jvp`].
    pub fn apply(&self, tangent: &Tensor) -> Result<Tensor> {
        let t = rtx_ir::jvp(
            std::slice::from_ref(&self.y.node),
            std::slice::from_ref(&self.x.node),
            std::slice::from_ref(&tangent.node),
        )?;
        Ok(self.y.wrap(t[0].clone()))
    }

    /// Transposed Jacobian times a cotangent.
    ///
    /// # Errors
    /// As [`vjp`].
    pub fn transpose(&self, cotangent: &Tensor) -> Result<Tensor> {
        let g = rtx_ir::vjp(
            std::slice::from_ref(&self.y.node),
            &[Some(cotangent.node.clone())],
            std::slice::from_ref(&self.x.node),
        )?;
        Ok(self.x.wrap(g[0].clone()))
    }
}

/// All partial derivatives of `f` by the columns of `x` ([points, dimensions]), point by point, up to a
/// total order.
///
/// # Errors
/// An operation without a rule, or a function that mixes the points.
pub fn jet(
    f: impl Fn(&Tensor) -> Tensor,
    x: &Tensor,
    order: usize,
) -> Result<Vec<(MultiIndex, Tensor)>> {
    let x = x.watch();
    let y = f(&x);
    let parts = rtx_ir::jet::jet(&y.node, &x.node, order)?;
    Ok(parts.into_iter().map(|(i, n)| (i, y.wrap(n))).collect())
}
