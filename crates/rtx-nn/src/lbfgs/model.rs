//! L-BFGS on the trainable tensors of a model, through a compiled value and gradient.

use crate::{Lbfgs, Minimum, Result, cast};
use rtx_tensor::{DType, Device, Shape, Tensor, Tree, compile, value_and_grad_tree};

/// What a minimisation over a model gave.
#[derive(Clone, Debug)]
pub struct LbfgsReport<M> {
    /// The model in double precision.
    pub model: M,
    /// The model rounded to the element types it came with.
    pub rounded: M,
    /// Value, iterations, reason to stop.
    pub minimum: Minimum,
}

impl Lbfgs {
    /// Minimises `loss` over the trainable tensors of `model`. Model and inputs are converted to double
    /// precision, in which value and gradient are compiled once.
    ///
    /// # Errors
    /// A mistake inside `loss`, or a loss that is no scalar.
    pub fn minimize_model<M: Tree, I: Tree>(
        &self,
        model: &M,
        inputs: &I,
        loss: impl Fn(&M, &I) -> Result<Tensor>,
        device: &Device,
    ) -> Result<LbfgsReport<M>> {
        let types: Vec<DType> = model.leaves().iter().map(Tensor::dtype).collect();
        let model = cast(model, DType::F64)?;
        let inputs = cast(inputs, DType::F64)?;
        let mut failure = None;
        // The model is an argument, not state: it changes by the caller's hand at every evaluation.
        let program = compile(
            |(): &(), (model, inputs): &(M, I)| {
                let answer = value_and_grad_tree(
                    |m: &M| {
                        loss(m, inputs).unwrap_or_else(|e| {
                            failure.get_or_insert(e);
                            Tensor::scalar(0.0, DType::F64, device)
                        })
                    },
                    model,
                )?;
                Ok(((), answer))
            },
            &(),
            &(
                model.map("", true, &mut |_, t| t.clone()),
                inputs.map("", true, &mut |_, t| t.clone()),
            ),
            device,
        );
        if let Some(e) = failure {
            return Err(e);
        }
        let program = program?;
        let layout = Layout::of(&model)?;
        let mut arguments = (model, inputs);
        let start = layout.flatten(&arguments.0)?;
        let minimum = self.minimize(
            |x| {
                arguments.0 = layout.fill(&arguments.0, x, device);
                let ((), (value, gradients)) = program.call((), &arguments)?;
                let mut flat = Vec::with_capacity(x.len());
                for g in &gradients {
                    flat.extend(g.cast(DType::F64).to_vec::<f64>()?);
                }
                Ok((value.item()?, flat))
            },
            start,
        )?;
        let model = layout.fill(&arguments.0, &minimum.x, device);
        let mut types = types.iter();
        let rounded = model.map("", true, &mut |_, t| {
            types.next().map_or_else(|| t.clone(), |d| t.cast(*d))
        });
        let leaves = rounded.leaves();
        rtx_tensor::eval(&leaves.iter().collect::<Vec<_>>())?;
        Ok(LbfgsReport {
            model,
            rounded,
            minimum,
        })
    }
}

/// Shapes of the trainable tensors, in order.
struct Layout(Vec<Vec<usize>>);

impl Layout {
    fn of(model: &impl Tree) -> Result<Self> {
        let shapes: rtx_tensor::Result<Vec<_>> =
            model.parameters().iter().map(|(_, t)| t.shape()).collect();
        Ok(Layout(shapes?))
    }

    fn flatten(&self, model: &impl Tree) -> Result<Vec<f64>> {
        let mut flat = Vec::new();
        for (_, t) in model.parameters() {
            flat.extend(t.to_vec::<f64>()?);
        }
        Ok(flat)
    }

    fn fill<M: Tree>(&self, model: &M, x: &[f64], device: &Device) -> M {
        let mut rest = x;
        let new: Vec<Tensor> = self
            .0
            .iter()
            .map(|dims| {
                let (head, tail) = rest.split_at(dims.iter().product::<usize>().min(rest.len()));
                rest = tail;
                let shape: Shape = dims.iter().map(|&n| n.into()).collect();
                Tensor::from_f64(head, shape, DType::F64, device)
            })
            .collect();
        model.with_parameters(&new)
    }
}
