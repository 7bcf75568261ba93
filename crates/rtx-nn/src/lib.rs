//! Modules, optimizers, schedules, checkpoints and the trainer of RustyTorch++
