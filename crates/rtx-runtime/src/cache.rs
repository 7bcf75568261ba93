//! Compiled programs by structure, with a bound on their number.

use crate::{Backend, CompileOptions, Executable, Result};
use rtx_ir::Graph;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

/// Programs keyed by the structure of their graph (never by values) and their options, least recently used ones leave first.
pub struct ProgramCache {
    capacity: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    programs: HashMap<String, (u64, Arc<dyn Executable>)>,
    clock: u64,
    compilations: u64,
}

impl ProgramCache {
    /// A cache of at most `capacity` programs.
    pub fn new(capacity: usize) -> Self {
        ProgramCache {
            capacity: capacity.max(1),
            state: Mutex::default(),
        }
    }

    /// The program of that graph under those options, compiled on first sight.
    ///
    /// # Errors
    /// As [`Backend::compile`].
    pub fn get(
        &self,
        backend: &dyn Backend,
        graph: &Graph,
        options: &CompileOptions,
    ) -> Result<Arc<dyn Executable>> {
        let key = format!("{}|{options:?}|{}", backend.name(), graph.structure());
        {
            let mut s = self.state.lock().unwrap_or_else(|e| e.into_inner());
            s.clock += 1;
            let now = s.clock;
            if let Some((used, program)) = s.programs.get_mut(&key) {
                *used = now;
                return Ok(program.clone());
            }
        }
        let program = backend.compile(graph, options)?;
        let mut s = self.state.lock().unwrap_or_else(|e| e.into_inner());
        s.compilations += 1;
        if s.programs.len() >= self.capacity {
            let oldest = s
                .programs
                .iter()
                .min_by_key(|(_, (used, _))| *used)
                .map(|(k, _)| k.clone());
            if let Some(k) = oldest {
                s.programs.remove(&k);
            }
        }
        let now = s.clock;
        s.programs.insert(key, (now, program.clone()));
        Ok(program)
    }

    /// Number of compilations since the start, for tests that count them.
    pub fn compilations(&self) -> u64 {
        self.state
            .lock()
            .unwrap_or_else(|e| e.into_inner())
            .compilations
    }
}
