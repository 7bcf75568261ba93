//! Values of trained fields at any points.

use crate::model::{Model, Rules};
use crate::{Complex64, Field, Fields, PinnError, Points, Result};
use rtx_tensor::{Compiled, DType, Device, Tensor, compile};
use std::cell::RefCell;
use std::collections::BTreeMap;

/// Rows per call: enough to fill the machine, few enough to bound the memory.
const CHUNK: usize = 8192;

/// Values of a field at points.
#[derive(Clone, Debug, PartialEq)]
pub struct Prediction {
    /// Real components a point.
    pub components: usize,
    /// Values in row-major order.
    pub values: Vec<f64>,
}

impl Prediction {
    /// All values of one component.
    pub fn component(&self, k: usize) -> Vec<f64> {
        self.values
            .iter()
            .skip(k)
            .step_by(self.components.max(1))
            .copied()
            .collect()
    }

    /// The values of a complex field, row-major with half as many components a point.
    pub fn complex(&self) -> Vec<Complex64> {
        let half = self.components / 2;
        self.values
            .chunks_exact(self.components.max(1))
            .flat_map(|row| (0..half).map(move |k| Complex64::new(row[k], row[k + half])))
            .collect()
    }
}

pub(crate) type Program = Compiled<(), (Model, Tensor), Tensor>;

/// Compiled predictions by field.
#[derive(Default)]
pub(crate) struct Predictor(BTreeMap<String, Program>);

impl Predictor {
    pub fn field(
        &mut self,
        field: &str,
        model: &Model,
        rules: &Rules,
        points: &Points,
        dtype: DType,
        device: &Device,
    ) -> Result<Prediction> {
        if !self.0.contains_key(field) {
            let program =
                Self::compile(&|f: &Fields<'_>| f.get(field), model, rules, dtype, device)?;
            self.0.insert(field.into(), program);
        }
        match self.0.get(field) {
            Some(program) => Self::run(program, model, rules, points, dtype, device),
            None => Err(PinnError::UnknownField {
                asked: field.into(),
                known: model.networks.keys().cloned().collect(),
            }),
        }
    }

    pub fn compile(
        formula: &dyn Fn(&Fields<'_>) -> Field,
        model: &Model,
        rules: &Rules,
        dtype: DType,
        device: &Device,
    ) -> Result<Program> {
        let axes = rules.centre.len();
        let example =
            Tensor::from_f64(&vec![0.0; axes], [1, axes], dtype, device).rows("predict")?;
        let mistake = RefCell::new(None);
        let program = compile(
            |(): &(), (model, root): &(Model, Tensor)| {
                let fields =
                    Fields::new(model, rules, rules.frame(root), BTreeMap::new(), &mistake);
                Ok(((), formula(&fields).value().clone()))
            },
            &(),
            &(model.clone(), example),
            device,
        );
        match mistake.take() {
            Some(e) => Err(e),
            None => Ok(program?),
        }
    }

    pub fn run(
        program: &Program,
        model: &Model,
        rules: &Rules,
        points: &Points,
        dtype: DType,
        device: &Device,
    ) -> Result<Prediction> {
        let axes = rules.centre.len();
        if points.dims() != axes {
            return Err(PinnError::Dimensions {
                what: "prediction".into(),
                expected: axes,
                found: points.dims(),
            });
        }
        let root = rules.scale_points(points.coordinates());
        let mut values = Vec::new();
        for chunk in root.chunks(CHUNK * axes) {
            let rows = Tensor::from_f64(chunk, [chunk.len() / axes, axes], dtype, device);
            let input = (model.clone(), rows.rows("predict")?);
            let ((), out) = program.call((), &input)?;
            values.extend(out.to_host()?.data);
        }
        let components = values.len() / points.len().max(1);
        Ok(Prediction { components, values })
    }
}
