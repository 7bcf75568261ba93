//! What a loss function is told of its step, and what it answers.

use rtx_tensor::{DType, RandomKind, Shape, Tensor};

/// Streams of random numbers per step; see [`StepContext::key_of`].
const STREAMS: u64 = 1024;

/// The step that a loss is recorded for. Its numbers are tensors, so that each step of the compiled program
/// sees its own.
#[derive(Clone, Debug)]
pub struct StepContext {
    /// Finished steps, an integer scalar.
    pub step: Tensor,
    /// Random key of this step, an integer scalar.
    pub key: Tensor,
}

impl StepContext {
    /// The context after `step` finished steps of a training with that base key.
    pub fn new(base_key: &Tensor, step: &Tensor) -> Self {
        StepContext {
            key: base_key + step * STREAMS as f64,
            step: step.clone(),
        }
    }

    /// Key of one of 1024 independent streams of this step (a larger number is taken modulo 1024).
    pub fn key_of(&self, stream: u64) -> Tensor {
        &self.key + (stream % STREAMS) as f64
    }

    /// Uniform numbers in [0, 1), others at every step and in every stream.
    #[track_caller]
    pub fn uniform(&self, shape: impl Into<Shape>, dtype: DType, stream: u64) -> Tensor {
        self.key_of(stream)
            .random(RandomKind::Uniform, shape, dtype)
    }

    /// Standard normal numbers, others at every step and in every stream.
    #[track_caller]
    pub fn normal(&self, shape: impl Into<Shape>, dtype: DType, stream: u64) -> Tensor {
        self.key_of(stream).random(RandomKind::Normal, shape, dtype)
    }

    /// `batch` row numbers in `0..n_table`, drawn with replacement: i64 of shape `[batch]`. Use them with
    /// [`Tensor::gather`] on every table whose rows belong together.
    #[track_caller]
    pub fn sample_indices(&self, n_table: usize, batch: usize, stream: u64) -> Tensor {
        // Double precision: a single-precision product can round up to n_table itself.
        let u = self.uniform([batch], DType::F64, stream);
        (u * n_table as f64).floor().cast(DType::I64)
    }

    /// As [`sample_indices`](Self::sample_indices) with the number of rows given by a scalar tensor: an input
    /// of the step that may change between runs, for tables padded to a fixed size.
    #[track_caller]
    pub fn sample_below(&self, count: &Tensor, batch: usize, stream: u64) -> Tensor {
        let u = self.uniform([batch], DType::F64, stream);
        (u * count.cast(DType::F64)).floor().cast(DType::I64)
    }
}

/// The value that is minimised, and the terms that are logged beside it.
#[derive(Clone, Debug)]
pub struct Losses {
    /// What is minimised: a scalar.
    pub total: Tensor,
    /// Named scalars for the log (unweighted, say). They do not change the training.
    pub terms: Vec<(String, Tensor)>,
}

impl From<Tensor> for Losses {
    fn from(total: Tensor) -> Self {
        Losses {
            total,
            terms: Vec::new(),
        }
    }
}

impl Losses {
    /// The sum of terms times weights; the terms are logged without their weights. No terms give no loss:
    /// an error tensor.
    #[track_caller]
    pub fn weighted(terms: Vec<(String, Tensor, Tensor)>) -> Losses {
        let total = terms
            .iter()
            .map(|(_, value, weight)| value * weight)
            .reduce(|a, b| a + b)
            .unwrap_or_else(|| Tensor::concat(&[], 0));
        let terms = terms.into_iter().map(|(name, value, _)| (name, value));
        Losses {
            total,
            terms: terms.collect(),
        }
    }
}
