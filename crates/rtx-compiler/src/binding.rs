//! What every executor needs to know before a run: which buffers share memory, and how many rows there are.

use crate::program::{BufferId, Kernel, Program};
use rtx_ir::{DType, Dim, Error, Result, RowDomain, Value};

/// Which memory the buffers of a program use.
#[derive(Clone, Debug)]
pub struct Binding {
    /// Buffer whose memory each buffer uses: itself, or the end of a chain of views.
    pub base: Vec<BufferId>,
    /// For each output: true if a kernel writes the output's memory directly; the others are copied.
    pub direct: Vec<bool>,
}

/// Row counts of one run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RowCounts(Vec<(RowDomain, usize)>);

impl Binding {
    /// Follows the views of a program.
    pub fn new(program: &Program) -> Self {
        let mut base: Vec<BufferId> = (0..program.buffers.len()).collect();
        for &(this, that) in &program.views {
            base[this] = that;
        }
        for b in 0..base.len() {
            let mut at = base[b];
            while base[at] != at {
                at = base[at];
            }
            base[b] = at;
        }
        let mut seen = Vec::new();
        let direct = program.outputs.iter().map(|&o| {
            let b = base[o];
            let written = b >= program.inputs && !program.constants.iter().any(|(c, _)| *c == b);
            let first = written && !seen.contains(&b);
            seen.push(b);
            first
        });
        let direct = direct.collect();
        Binding { base, direct }
    }

    /// True if a run has to provide memory for `b`: it is no input, constant, view or direct output.
    pub fn is_internal(&self, program: &Program, b: BufferId) -> bool {
        let mut outputs = program.outputs.iter().zip(&self.direct);
        b >= program.inputs
            && self.base[b] == b
            && !program.constants.iter().any(|(c, _)| *c == b)
            && !outputs.any(|(&o, direct)| *direct && self.base[o] == b)
    }
}

impl RowCounts {
    /// Checks the inputs against the program and reads the row counts off them. `dtype` is the element type of an
    /// input as far as the device knows it.
    ///
    /// # Errors
    /// Another number of inputs, an input of another type or shape, two inputs of one domain that disagree, or a
    /// domain whose rows no input tells.
    pub fn of(
        program: &Program,
        inputs: &[Value],
        dtype: impl Fn(&Value) -> Option<DType>,
    ) -> Result<Self> {
        if inputs.len() != program.inputs {
            let message = format!(
                "{} inputs given, the program has {}",
                inputs.len(),
                program.inputs
            );
            let slot = inputs.len().min(program.inputs);
            return Err(Error::Input { slot, message });
        }
        let mut rows = RowCounts::default();
        for (slot, (v, b)) in inputs.iter().zip(&program.buffers).enumerate() {
            let mut extents = v.dims().iter().zip(b.shape.dims());
            let fits = v.dims().len() == b.shape.rank()
                && extents.all(|(n, d)| d.fixed().is_none_or(|f| f == *n));
            if !fits || dtype(v).is_some_and(|d| d != b.dtype) {
                let message = format!(
                    "has extents {:?}, the program takes {}{}",
                    v.dims(),
                    b.dtype,
                    b.shape
                );
                return Err(Error::Input { slot, message });
            }
            let Some(domain) = b.shape.rows() else {
                continue;
            };
            match (rows.get(domain), v.dims()[0]) {
                (Some(first), second) if first != second => {
                    let domain = domain.name();
                    return Err(Error::RowCount {
                        domain,
                        first,
                        second,
                    });
                }
                (Some(_), _) => {}
                (None, n) => rows.0.push((domain, n)),
            }
        }
        for k in &program.kernels {
            let counted = match k {
                Kernel::Whole(w) => w.rows,
                Kernel::Rows(r) => r.domain,
            };
            if let Some(Dim::Rows(d)) = counted
                && rows.get(d).is_none()
            {
                return Err(Error::UnknownRows { domain: d.name() });
            }
        }
        Ok(rows)
    }

    /// Rows of a domain, if an input told them.
    pub fn get(&self, domain: RowDomain) -> Option<usize> {
        self.0.iter().find(|(d, _)| *d == domain).map(|(_, n)| *n)
    }

    /// Rows of a kernel's domain; one for work on scalars.
    pub fn rows(&self, domain: Option<Dim>) -> usize {
        match domain {
            None => 1,
            Some(Dim::Fixed(n)) => n,
            Some(Dim::Rows(d)) => self.get(d).unwrap_or(0),
        }
    }

    /// Extents of every buffer.
    ///
    /// # Errors
    /// A domain whose rows no input tells.
    pub fn dims(&self, program: &Program) -> Result<Vec<Vec<usize>>> {
        let of = |b: &crate::BufferInfo| {
            b.shape.resolve(|d| self.get(d)).ok_or_else(|| {
                let domain = b.shape.rows().map(RowDomain::name).unwrap_or_default();
                Error::UnknownRows { domain }
            })
        };
        program.buffers.iter().map(of).collect()
    }
}
