//! Ctrl-C during a training: the first asks it to stop and keep a checkpoint, the second ends at
//! once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::failure::Failure;
use crate::output::note;

/// A flag that the first Ctrl-C sets.
///
/// Installed only around work that looks at the flag, so that elsewhere Ctrl-C ends the process as
/// usual. To be called once.
///
/// # Errors
/// The system's refusal of a signal handler.
pub fn stop_flag() -> Result<Arc<AtomicBool>, Failure> {
    let flag = Arc::new(AtomicBool::new(false));
    let shared = Arc::clone(&flag);
    ctrlc::set_handler(move || {
        if shared.swap(true, Ordering::SeqCst) {
            std::process::exit(130);
        }
        note("stopping at the next read of the loss; Ctrl-C again ends at once");
    })
    .map_err(|e| Failure::Other(format!("cannot watch for Ctrl-C: {e}")))?;
    Ok(flag)
}
