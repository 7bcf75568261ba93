//! x
pub mod error;
pub mod io;
pub use error::{MreError, Result};
