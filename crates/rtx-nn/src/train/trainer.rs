//! The trainer.

use crate::train::checkpoint::{self, Identity};
use crate::train::log::CsvLog;
use crate::train::progress::Bar;
use crate::train::state::{base_key, integer};
use crate::train::step::{LossFn, Step, StepOutput, compile_step};
use crate::train::{LossScale, Losses, Progress, Resumed, StepContext, TrainState};
use crate::{Lbfgs, LbfgsReport, NnError, Optimizer, Result, Schedule};
use rtx_tensor::{DType, Device, Precision, ProgramStats, Tensor, Tree};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// Why a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All steps were done.
    Finished,
    /// The stop flag was set.
    Stopped,
}

/// What a run did.
#[derive(Clone, Debug, PartialEq)]
pub struct RunReport {
    /// Why it ended.
    pub outcome: Outcome,
    /// Finished steps since the start of the training.
    pub step: u64,
    /// Loss of the last step, before its update (NaN if no step was done).
    pub loss: f64,
    /// Named terms of that loss.
    pub terms: Vec<(String, f64)>,
    /// Learning rate of the last step.
    pub learning_rate: f64,
    /// Seconds that this run took.
    pub seconds: f64,
}

type ReadHook = Box<dyn FnMut(&Progress) + Send>;

/// Trains a model `M` (any structure of tensors) on inputs `I`.
///
/// One step (loss, gradient, schedule, update) is compiled when the trainer is made. A run repeats it in chunks of
/// `read_every` steps; the loss is read once per chunk, the gradient and the update happen at every step.
pub struct Trainer<M, I> {
    step: Step<M, I>,
    state: TrainState<M>,
    inputs: I,
    loss: Box<LossFn<M, I>>,
    optimizer: Box<dyn Optimizer>,
    schedule: Schedule,
    precision: Precision,
    device: Device,
    /// Finished steps; the copy on the device is `state.step`.
    done: u64,
    seconds: f64,
    compilations: u64,
    read_every: u64,
    quiet: bool,
    stop: Arc<AtomicBool>,
    hook: Option<ReadHook>,
    log: Option<CsvLog>,
    keep: Option<(PathBuf, u64)>,
}

impl<M: Tree + Clone, I: Tree> Trainer<M, I> {
    /// Compiles the step. Arrays that change between runs (points, targets, weights of the losses) belong into
    /// `inputs`, tagged with [`Tensor::rows`] where their number of rows may change; what `loss` captures is
    /// bound once and for all.
    ///
    /// # Errors
    /// A mistake inside `loss`, naming its line, or a loss that is no scalar.
    pub fn new(
        model: M,
        optimizer: impl Optimizer + 'static,
        schedule: Schedule,
        inputs: I,
        loss: impl Fn(&M, &I, &StepContext) -> Result<Losses> + Send + Sync + 'static,
        device: &Device,
    ) -> Result<Self> {
        let precision = Precision::F32;
        Self::with_precision(precision, model, optimizer, schedule, inputs, loss, device)
    }

    /// As [`new`](Self::new), with products of single-precision arrays as exact as `precision` says. With
    /// [`Precision::F16`] the loss is [scaled](LossScale).
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn with_precision(
        precision: Precision,
        model: M,
        optimizer: impl Optimizer + 'static,
        schedule: Schedule,
        inputs: I,
        loss: impl Fn(&M, &I, &StepContext) -> Result<Losses> + Send + Sync + 'static,
        device: &Device,
    ) -> Result<Self> {
        let mut state = TrainState::new(model, &optimizer, 0, device)?;
        let single = |(_, t): (String, Tensor)| t.dtype() == DType::F32;
        if precision == Precision::F16 && state.model.parameters().into_iter().any(single) {
            state.loss_scale = Some(LossScale::new(device));
        }
        let step = compile_step(
            &state, &inputs, &loss, &optimizer, &schedule, precision, device,
        )?;
        Ok(Trainer {
            step,
            state,
            inputs,
            loss: Box::new(loss),
            optimizer: Box::new(optimizer),
            schedule,
            precision,
            device: device.clone(),
            done: 0,
            seconds: 0.0,
            compilations: 1,
            read_every: 100,
            quiet: false,
            stop: Arc::default(),
            hook: None,
            log: None,
            keep: None,
        })
    }

    /// Seed of the random numbers that the loss draws (default 0). To be set before the first run.
    pub fn seed(mut self, seed: u64) -> Self {
        self.state.key = base_key(seed, &self.device);
        self
    }

    /// Steps between two reads of the loss (default 100, at least 1).
    pub fn read_every(mut self, steps: u64) -> Self {
        self.read_every = steps.max(1);
        self
    }

    /// Hides the progress bar, which is hidden anyway where the standard error is no terminal.
    pub fn quiet(mut self, quiet: bool) -> Self {
        self.quiet = quiet;
        self
    }

    /// Calls `hook` at every read.
    pub fn on_read(mut self, hook: impl FnMut(&Progress) + Send + 'static) -> Self {
        self.hook = Some(Box::new(hook));
        self
    }

    /// Writes a line of comma-separated values at every read: step, loss, learning rate, seconds, terms.
    pub fn log_csv(mut self, path: impl AsRef<Path>) -> Self {
        self.log = Some(CsvLog::new(path.as_ref()));
        self
    }

    /// A flag that ends a run at the next read when somebody sets it. The run leaves the flag set.
    pub fn stop_flag(mut self, flag: Arc<AtomicBool>) -> Self {
        self.stop = flag;
        self
    }

    /// Writes a checkpoint at the reads that complete `steps` more steps, at the end of a run, and when the loss
    /// becomes NaN (then of the last good state).
    pub fn checkpoint_every(mut self, path: impl AsRef<Path>, steps: u64) -> Self {
        self.keep = Some((path.as_ref().to_path_buf(), steps.max(1)));
        self
    }

    /// Trains for `steps` more steps.
    ///
    /// # Errors
    /// [`NnError::NotFinite`] after the last good state was restored; inputs that do not fit; a file that
    /// cannot be written.
    pub fn run(&mut self, steps: u64) -> Result<RunReport> {
        let started = Instant::now();
        let bar = Bar::new(steps, self.quiet);
        let mut left = steps;
        let mut last = None;
        while left > 0 && !self.stop.load(Ordering::Relaxed) {
            let n = left.min(self.read_every);
            let p = self.chunk(n)?;
            left -= n;
            bar.advance(n, &p);
            if let Some(log) = &mut self.log {
                log.write(&p, self.done > n)?;
            }
            if let Some(hook) = &mut self.hook {
                hook(&p);
            }
            if let Some((path, every)) = &self.keep {
                let due = self.done / every != (self.done - n) / every;
                if due && left > 0 {
                    self.checkpoint(path)?;
                }
            }
            last = Some(p);
        }
        if let Some((path, _)) = &self.keep {
            self.checkpoint(path)?;
        }
        let (loss, terms, learning_rate) = last.map_or((f64::NAN, Vec::new(), f64::NAN), |p| {
            (p.loss, p.terms, p.learning_rate)
        });
        Ok(RunReport {
            outcome: if left == 0 {
                Outcome::Finished
            } else {
                Outcome::Stopped
            },
            step: self.done,
            loss,
            terms,
            learning_rate,
            seconds: started.elapsed().as_secs_f64(),
        })
    }

    /// `n` steps and one read.
    fn chunk(&mut self, n: u64) -> Result<Progress> {
        let started = Instant::now();
        let steps = usize::try_from(n).unwrap_or(usize::MAX);
        // The trainer keeps the state, so the program writes into other arrays: one copy per chunk, and the
        // last good state is at hand if this chunk goes wrong.
        let (state, output) = self.step.run(self.state.clone(), &self.inputs, steps)?;
        let seconds = started.elapsed().as_secs_f64();
        let (loss, learning_rate, terms, finite) = read(&output, &state.finite)?;
        if finite != self.done + n {
            return Err(self.not_finite(finite, loss));
        }
        self.state = state;
        self.done += n;
        self.seconds += seconds;
        Ok(Progress {
            step: self.done,
            loss,
            terms,
            learning_rate,
            seconds: self.seconds,
            steps_per_second: n as f64 / seconds.max(1e-9),
        })
    }

    /// The error for a bad step. The last good state is in place already.
    fn not_finite(&self, step: u64, loss: f64) -> NnError {
        let saved = self.keep.as_ref().map(|(path, _)| path.clone());
        let checkpoint = saved.filter(|path| self.checkpoint(path).is_ok());
        NnError::NotFinite {
            step,
            loss,
            last_good: self.done,
            checkpoint,
        }
    }

    /// Writes parameters, optimizer slots, schedule, step and random key into one safetensors file, which is
    /// replaced whole or not at all.
    ///
    /// # Errors
    /// The system's refusal.
    pub fn checkpoint(&self, path: impl AsRef<Path>) -> Result<()> {
        checkpoint::save(&self.state, &self.identity(), path.as_ref())
    }

    /// Takes up the training of a checkpoint. With the same program and inputs, what follows equals the
    /// uninterrupted training bit for bit.
    ///
    /// # Errors
    /// A damaged file, or one of another model or optimizer; the trainer is then unchanged.
    pub fn resume(&mut self, path: impl AsRef<Path>) -> Result<Resumed> {
        let path = path.as_ref();
        let (state, resumed) = checkpoint::load(&self.state, &self.identity(), path)?;
        check_sound(&state, &resumed, path)?;
        self.state = state;
        self.done = resumed.step;
        Ok(resumed)
    }

    fn identity(&self) -> Identity {
        Identity {
            program: self.step.structure_hash(),
            optimizer: self.optimizer.describe(),
        }
    }

    /// Other inputs of the same types for the next run: other points, numbers of rows or weights. Never
    /// recompiles; the run fails if a shape or type does not fit.
    pub fn set_inputs(&mut self, inputs: I) {
        self.inputs = inputs;
    }

    /// The inputs.
    pub fn inputs(&self) -> &I {
        &self.inputs
    }

    /// Multiplies the learning rate from the next step on, without a new compilation.
    pub fn scale_learning_rate(&mut self, factor: f64) {
        let scale = &self.state.schedule.scale * factor;
        self.state.schedule.scale = scale;
    }

    /// Another schedule from the next step on; its memory starts anew. Compiles the step again.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn set_schedule(&mut self, schedule: Schedule) -> Result<()> {
        let dtype = self.state.schedule.scale.dtype();
        self.state.schedule = crate::ScheduleState::new(dtype, &self.device);
        self.step = compile_step(
            &self.state,
            &self.inputs,
            &*self.loss,
            &*self.optimizer,
            &schedule,
            self.precision,
            &self.device,
        )?;
        self.schedule = schedule;
        self.compilations += 1;
        Ok(())
    }

    /// Polishes the model with L-BFGS in double precision on the current inputs; random numbers of the loss are
    /// those of the current step throughout, so that the objective is a fixed function. The result replaces
    /// the model (rounded to its own types) and the optimizer's slots start anew; the step count stays.
    ///
    /// # Errors
    /// A mistake inside the loss at double precision, such as a captured single-precision array.
    pub fn polish(&mut self, lbfgs: &Lbfgs) -> Result<LbfgsReport<M>> {
        let context = StepContext::new(&self.state.key, &self.state.step);
        let lbfgs = lbfgs.clone().or_stop_flag(&self.stop);
        let report = lbfgs.minimize_model(
            &self.state.model,
            &self.inputs,
            |m, i| (self.loss)(m, i, &context).map(|l| l.total),
            &self.device,
        )?;
        self.set_model(report.rounded.clone())?;
        Ok(report)
    }

    /// Another model of the same structure; the optimizer's slots start anew.
    ///
    /// # Errors
    /// A mistake inside the model's parameters.
    pub fn set_model(&mut self, model: M) -> Result<()> {
        let mut state = TrainState::new(model, &*self.optimizer, 0, &self.device)?;
        state.step = integer(self.done, &self.device);
        state.finite = integer(self.done, &self.device);
        state.key = self.state.key.clone();
        state.schedule = self.state.schedule.clone();
        state.loss_scale = self.state.loss_scale.clone();
        self.state = state;
        Ok(())
    }

    /// The model as trained so far.
    pub fn model(&self) -> &M {
        &self.state.model
    }

    /// The whole state.
    pub fn state(&self) -> &TrainState<M> {
        &self.state
    }

    /// Finished steps.
    pub fn steps_done(&self) -> u64 {
        self.done
    }

    /// Arithmetic of the products of single-precision arrays in a step.
    pub fn precision(&self) -> Precision {
        self.precision
    }

    /// The schedule.
    pub fn schedule(&self) -> &Schedule {
        &self.schedule
    }

    /// How often the step was compiled: 1 unless the schedule was replaced.
    pub fn compilations(&self) -> u64 {
        self.compilations
    }

    /// The compiled step in numbers.
    pub fn stats(&self) -> ProgramStats {
        self.step.stats()
    }

    /// The compiled step as text: kernels, buffers, bytes, flops.
    pub fn listing(&self) -> String {
        self.step.listing()
    }
}

/// Steps that no training reaches; beyond them an integer is no exact number in a file's eyes.
const MOST_STEPS: u64 = 1 << 53;

/// Refuses a state that no trainer writes: its numbers are not numbers, or its counters disagree. Training on
/// would fail with a message about the loss, or end at once and hand the damage out as a result.
fn check_sound<M: Tree>(state: &TrainState<M>, resumed: &Resumed, path: &Path) -> Result<()> {
    let damaged = |problem: String| Err(NnError::format(path, format!("it is damaged: {problem}")));
    for (name, tensor) in state.named() {
        if tensor.to_host()?.data.iter().any(|v| v.is_nan()) {
            return damaged(format!("tensor '{name}' holds NaN"));
        }
    }
    let finite = state.finite.item()? as u64;
    if resumed.step != finite || finite > MOST_STEPS {
        let step = resumed.step;
        return damaged(format!(
            "{step} steps are done, of which {finite} were finite"
        ));
    }
    Ok(())
}

/// Loss, rate, terms and number of finite steps.
type Readings = (f64, f64, Vec<(String, f64)>, u64);

fn read((loss, rate, terms): &StepOutput, finite: &Tensor) -> Result<Readings> {
    let mut values = Vec::with_capacity(terms.len());
    for (name, t) in terms {
        values.push((name.clone(), t.item()?));
    }
    Ok((loss.item()?, rate.item()?, values, finite.item()? as u64))
}

const _: () = {
    const fn movable<T: Send>() {}
    movable::<Trainer<Tensor, Tensor>>();
};
