//! Modules, initializers, losses, optimizers, learning-rate schedules, checkpoints and the trainer.

mod module;

pub use module::Module;
