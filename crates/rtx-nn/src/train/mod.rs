//! Training: one compiled step, run many times without reading anything in between.

mod checkpoint;
mod context;
mod log;
mod progress;
mod scale;
mod state;
mod step;
mod trainer;

pub use checkpoint::Resumed;
pub use context::{Losses, StepContext};
pub use progress::Progress;
pub use scale::LossScale;
pub use state::TrainState;
pub use trainer::{Outcome, RunReport, Trainer};
