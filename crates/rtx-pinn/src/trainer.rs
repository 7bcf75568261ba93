//! Training of a problem.

use crate::bandwidth;
use crate::model::{Model, Rules};
use crate::pointset::PointSet;
use crate::predict::Predictor;
use crate::problem::check_weight;
use crate::term::Term;
use crate::{Field, Fields, Frame, PinnError, Points, Prediction, Problem, Result};
use rtx_nn::{
    Lbfgs, Losses, Minimum, NnError, Optimizer, Progress, Resumed, RunReport, Schedule,
    StepContext, Trainer,
};
use rtx_tensor::{DType, Device, Tensor};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Arrays of the point sets, and the weights of the terms.
type Inputs = (Vec<Tensor>, Vec<Tensor>);

/// Where the arrays of a point set are among the inputs.
#[derive(Clone)]
struct SetLayout {
    /// Number of stored points and of points drawn per step.
    batch: Option<(usize, usize)>,
    root: usize,
    normals: Option<usize>,
    data: Vec<(String, usize)>,
}

/// Trains the fields and unknowns of a problem; made by [`Problem::trainer`].
pub struct PinnTrainer {
    trainer: Trainer<Model, Inputs>,
    rules: Arc<Rules>,
    layouts: Arc<Vec<SetLayout>>,
    terms: Arc<Vec<Term>>,
    stop: Option<Arc<AtomicBool>>,
    predictor: Predictor,
    warnings: Vec<String>,
    dtype: DType,
    device: Device,
}

impl PinnTrainer {
    pub(crate) fn new(
        problem: Problem,
        model: Model,
        optimizer: impl Optimizer + 'static,
        schedule: Schedule,
        dtype: DType,
        device: &Device,
    ) -> Result<PinnTrainer> {
        let rules = Arc::new(problem.rules);
        let warnings = bandwidth::warnings(&model, &rules, &problem.wavenumbers)?;
        let (mut arrays, mut layouts) = (Vec::new(), Vec::new());
        for set in &problem.sets {
            layouts.push(upload(set, &rules, dtype, device, &mut arrays)?);
        }
        let weights = problem.terms.iter().map(|t| t.weight);
        let weights = weights.map(|w| scalar(w, dtype, device)).collect();
        let (layouts, terms) = (Arc::new(layouts), Arc::new(problem.terms));
        let (loss_rules, loss_layouts, loss_terms) =
            (rules.clone(), layouts.clone(), terms.clone());
        let trainer = Trainer::with_precision(
            problem.precision,
            model,
            optimizer,
            schedule,
            (arrays, weights),
            move |model: &Model, inputs: &Inputs, step: &StepContext| {
                losses(model, inputs, step, &loss_rules, &loss_layouts, &loss_terms)
                    .map_err(NnError::loss)
            },
            device,
        )?;
        Ok(PinnTrainer {
            trainer,
            rules,
            layouts,
            terms,
            stop: None,
            predictor: Predictor::default(),
            warnings,
            dtype,
            device: device.clone(),
        })
    }

    /// Seed of the points that are drawn per step. To be set before the first run.
    pub fn seed(self, seed: u64) -> Self {
        self.with(|t| t.seed(seed))
    }

    /// Steps between two reads of the loss (default 100).
    pub fn read_every(self, steps: u64) -> Self {
        self.with(|t| t.read_every(steps))
    }

    /// Hides the progress bar.
    pub fn quiet(self, quiet: bool) -> Self {
        self.with(|t| t.quiet(quiet))
    }

    /// Calls `hook` at every read, with the loss, every term without its weight, and every unknown.
    pub fn on_read(self, hook: impl FnMut(&Progress) + Send + 'static) -> Self {
        self.with(|t| t.on_read(hook))
    }

    /// Writes loss, rate, terms and unknowns as comma-separated values at every read.
    pub fn log_csv(self, path: impl AsRef<Path>) -> Self {
        self.with(|t| t.log_csv(path))
    }

    /// Writes a checkpoint every so many steps and at the end of each run.
    pub fn checkpoint_every(self, path: impl AsRef<Path>, steps: u64) -> Self {
        self.with(|t| t.checkpoint_every(path, steps))
    }

    /// A flag that ends a run at the next read when somebody sets it.
    pub fn stop_flag(mut self, flag: Arc<AtomicBool>) -> Self {
        self.stop = Some(flag.clone());
        self.with(|t| t.stop_flag(flag))
    }

    /// Hands the [warnings](Self::warnings) to a logger.
    pub fn on_warning(self, mut hook: impl FnMut(&str)) -> Self {
        self.warnings.iter().for_each(|w| hook(w));
        self
    }

    fn with(self, f: impl FnOnce(Trainer<Model, Inputs>) -> Trainer<Model, Inputs>) -> PinnTrainer {
        PinnTrainer {
            trainer: f(self.trainer),
            ..self
        }
    }

    /// Trains for `steps` more steps.
    ///
    /// # Errors
    /// A loss that is not finite (the last good state is restored), or a file that cannot be written.
    pub fn run(&mut self, steps: u64) -> Result<RunReport> {
        Ok(self.trainer.run(steps)?)
    }

    /// Polishes fields and unknowns with L-BFGS in double precision. Point sets that are drawn from per
    /// step are used whole: on one draw the minimum would be that draw's.
    ///
    /// # Errors
    /// A formula that captured single-precision arrays; attach them with
    /// [`PointSet::with_data`] instead.
    pub fn then(&mut self, lbfgs: &Lbfgs) -> Result<Minimum> {
        let lbfgs = match &self.stop {
            Some(flag) => lbfgs.clone().stop_flag(flag.clone()),
            None => lbfgs.clone(),
        };
        let whole: Vec<SetLayout> = self
            .layouts
            .iter()
            .map(|l| SetLayout {
                batch: None,
                ..l.clone()
            })
            .collect();
        let state = self.trainer.state();
        let step = StepContext::new(&state.key, &state.step);
        let report = lbfgs.minimize_model(
            self.trainer.model(),
            self.trainer.inputs(),
            |model, inputs| {
                losses(model, inputs, &step, &self.rules, &whole, &self.terms)
                    .map(|l| l.total)
                    .map_err(NnError::loss)
            },
            &self.device,
        )?;
        self.trainer.set_model(report.rounded)?;
        Ok(report.minimum)
    }

    /// Another weight for a term, from the next run on. Never compiles anything.
    ///
    /// # Errors
    /// A term that does not exist, or a weight that is negative or not finite.
    pub fn set_weight(&mut self, term: &str, weight: f64) -> Result<()> {
        check_weight(term, weight)?;
        let Some(k) = self.terms.iter().position(|t| t.name == term) else {
            return Err(PinnError::UnknownTerm {
                asked: term.into(),
                known: self.terms(),
            });
        };
        let (arrays, mut weights) = self.trainer.inputs().clone();
        weights[k] = scalar(weight, self.dtype, &self.device);
        self.trainer.set_inputs((arrays, weights));
        Ok(())
    }

    /// Names of the terms in order.
    pub fn terms(&self) -> Vec<String> {
        self.terms.iter().map(|t| t.name.clone()).collect()
    }

    /// What might be wrong with the problem though it can be trained.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Value of an unknown.
    ///
    /// # Errors
    /// A name that does not exist.
    pub fn unknown(&self, name: &str) -> Result<f64> {
        let model = self.trainer.model();
        match (model.unknowns.get(name), self.rules.unknowns.get(name)) {
            (Some(raw), Some(map)) => Ok(map.apply(raw).item()?),
            _ => Err(PinnError::UnknownScalar {
                asked: name.into(),
                known: model.unknowns.keys().cloned().collect(),
            }),
        }
    }

    /// A field at points, computed in chunks. Compiled at the first use of a field, for any number of points.
    ///
    /// # Errors
    /// A field that does not exist, or points of another dimension.
    pub fn predict(&mut self, field: &str, points: &Points) -> Result<Prediction> {
        let model = self.trainer.model();
        self.predictor
            .field(field, model, &self.rules, points, self.dtype, &self.device)
    }

    /// Any formula of the fields at points (a residual, a flux), computed in chunks.
    ///
    /// # Errors
    /// A mistake inside the formula, or points of another dimension.
    pub fn evaluate(
        &self,
        points: &Points,
        formula: impl Fn(&Fields<'_>) -> Field,
    ) -> Result<Prediction> {
        let model = self.trainer.model();
        let compiled = Predictor::compile(&formula, model, &self.rules, self.dtype, &self.device)?;
        Predictor::run(
            &compiled,
            model,
            &self.rules,
            points,
            self.dtype,
            &self.device,
        )
    }

    /// Writes the whole state of the training.
    ///
    /// # Errors
    /// The system's refusal.
    pub fn checkpoint(&self, path: impl AsRef<Path>) -> Result<()> {
        Ok(self.trainer.checkpoint(path)?)
    }

    /// Takes up the training of a checkpoint of the same problem.
    ///
    /// # Errors
    /// A damaged file, or one of another problem.
    pub fn resume(&mut self, path: impl AsRef<Path>) -> Result<Resumed> {
        Ok(self.trainer.resume(path)?)
    }

    /// The trainer underneath: schedule, statistics, state.
    pub fn inner(&self) -> &Trainer<Model, Inputs> {
        &self.trainer
    }

    /// The trainer underneath, to change.
    pub fn inner_mut(&mut self) -> &mut Trainer<Model, Inputs> {
        &mut self.trainer
    }
}

/// A scalar that is an array, so that it is an input of the step and no constant.
fn scalar(value: f64, dtype: DType, device: &Device) -> Tensor {
    Tensor::from_f64(&[value], [0usize; 0], dtype, device)
}

/// Puts the arrays of a set among the inputs. A set that is used whole names its rows, so that another
/// number of points needs no other program.
fn upload(
    set: &PointSet,
    rules: &Rules,
    dtype: DType,
    device: &Device,
    arrays: &mut Vec<Tensor>,
) -> Result<SetLayout> {
    let n = set.points.len();
    let mut put = |values: &[f64], columns: usize| -> Result<usize> {
        let t = Tensor::from_f64(values, [n, columns], dtype, device);
        arrays.push(match set.batch {
            Some(_) => t,
            None => t.rows(&format!("points {}", set.name))?,
        });
        Ok(arrays.len() - 1)
    };
    let dims = set.points.dims();
    let root = put(&rules.scale_points(set.points.coordinates()), dims)?;
    let normals = match set.points.normals() {
        Some(v) => Some(put(v, dims)?),
        None => None,
    };
    let mut data = Vec::new();
    for (name, d) in &set.data {
        data.push((name.clone(), put(&d.values, d.components)?));
    }
    Ok(SetLayout {
        batch: set.batch.map(|b| (n, b)),
        root,
        normals,
        data,
    })
}

/// Records the loss of a step.
fn losses(
    model: &Model,
    (arrays, weights): &Inputs,
    step: &StepContext,
    rules: &Rules,
    layouts: &[SetLayout],
    terms: &[Term],
) -> Result<Losses> {
    let mistake = RefCell::new(None);
    let mut fields = Vec::with_capacity(layouts.len());
    for (stream, set) in layouts.iter().enumerate() {
        let drawn = set
            .batch
            .map(|(n, batch)| step.sample_indices(n, batch, stream as u64));
        let take = |k: usize| match &drawn {
            Some(rows) => arrays[k].gather(rows),
            None => arrays[k].clone(),
        };
        let mut frame: Frame = rules.frame(&take(set.root));
        if let Some(k) = set.normals {
            frame = frame.with_normals(&take(k));
        }
        let data: BTreeMap<String, Tensor> = set
            .data
            .iter()
            .map(|(name, k)| (name.clone(), take(*k)))
            .collect();
        fields.push(Fields::new(model, rules, frame, data, &mistake));
    }
    let mut weighted = Vec::with_capacity(terms.len());
    for (term, weight) in terms.iter().zip(weights) {
        let value = (term.formula)(&fields[term.set]);
        if let Some(e) = mistake.take() {
            return Err(e);
        }
        weighted.push((term.name.clone(), value?, weight.clone()));
    }
    let mut losses = Losses::weighted(weighted);
    for (name, raw) in &model.unknowns {
        if let Some(map) = rules.unknowns.get(name) {
            losses.terms.push((name.clone(), map.apply(raw)));
        }
    }
    Ok(losses)
}
