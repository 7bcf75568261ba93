//! L-BFGS with a strong-Wolfe line search, on flat vectors in double precision.

mod history;
mod line_search;
mod minimize;
mod model;

pub use minimize::{Lbfgs, Minimum, StopReason};
pub use model::LbfgsReport;
