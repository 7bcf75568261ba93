//! What is told of a running training: values read from the device, and the bar on the terminal.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// What a training has reached, at a read.
#[derive(Clone, Debug, PartialEq)]
pub struct Progress {
    /// Finished steps.
    pub step: u64,
    /// Loss of the last finished step, before its update.
    pub loss: f64,
    /// Named terms of that loss.
    pub terms: Vec<(String, f64)>,
    /// Learning rate of that step.
    pub learning_rate: f64,
    /// Seconds since the trainer was made or resumed, without the time between runs.
    pub seconds: f64,
    /// Steps per second since the last read.
    pub steps_per_second: f64,
}

/// The bar of one run; hidden where the standard error is no terminal.
pub(crate) struct Bar(ProgressBar);

impl Bar {
    pub(crate) fn new(steps: u64, quiet: bool) -> Bar {
        let target = if quiet {
            ProgressDrawTarget::hidden()
        } else {
            ProgressDrawTarget::stderr()
        };
        let bar = ProgressBar::with_draw_target(Some(steps), target);
        let template = "{bar:30} {pos}/{len}  {msg}  {eta} left";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        Bar(bar)
    }

    pub(crate) fn advance(&self, steps: u64, p: &Progress) {
        self.0.inc(steps);
        self.0.set_message(format!(
            "loss {:.4e}  lr {:.2e}  {:.0} it/s",
            p.loss, p.learning_rate, p.steps_per_second
        ));
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.0.abandon();
    }
}
