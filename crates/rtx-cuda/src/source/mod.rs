//! From a program to CUDA C: one text with all its kernels, and how each of them is started.

mod rows;
mod scalar;
mod whole;

pub(crate) use rows::{RowSource, THREADS};
pub(crate) use whole::{BLOCK, Geometry, WholeSource};

use crate::Error;
use rtx_compiler::{Kernel, Program};
use rtx_ir::{Dim, RowDomain};

/// Device functions that all kernels share.
pub(crate) const PRELUDE: &str = include_str!("prelude.cu");

/// A program as CUDA C.
pub(crate) struct Translation {
    /// The text to compile.
    pub(crate) code: String,
    /// What becomes of each kernel; kernel `n` is the function `k<n>`.
    pub(crate) kernels: Vec<Planned>,
    /// Domains in the order of `Launch::rows`.
    pub(crate) domains: Vec<RowDomain>,
}

/// How one kernel of the program is carried out.
pub(crate) enum Planned {
    /// A row kernel.
    Rows(RowSource),
    /// An operation on whole arrays.
    Whole(WholeSource),
    /// A number of rows, which the host writes when the program is bound.
    Count,
}

/// Name of the function of kernel `n`.
pub(crate) fn function_name(n: usize) -> String {
    format!("k{n}")
}

/// Most domains of a launch.
const MAX_DOMAINS: usize = 8;

/// Writes the kernels of a program.
///
/// # Errors
/// An operation without code here, or more row domains than a launch has room for.
pub(crate) fn translate(program: &Program) -> Result<Translation, Error> {
    let mut domains: Vec<RowDomain> = Vec::new();
    let counted = program.kernels.iter().filter_map(|k| match k {
        Kernel::Rows(r) => r.domain,
        Kernel::Whole(w) => w.rows,
    });
    let shapes = program.buffers.iter().filter_map(|b| b.shape.rows());
    let named = counted.filter_map(|d| match d {
        Dim::Rows(d) => Some(d),
        Dim::Fixed(_) => None,
    });
    for d in shapes.chain(named) {
        if !domains.contains(&d) {
            domains.push(d);
        }
    }
    if domains.len() > MAX_DOMAINS {
        return Err(Error::Unsupported {
            what: format!("{} row domains in one program", domains.len()),
            instead: format!(
                "at most {MAX_DOMAINS} run there; join sets of points, or use the device 'cpu'"
            ),
        });
    }
    let mut code = format!("{PRELUDE}\n{}\n", rows::HELPERS);
    let mut kernels = Vec::new();
    for (n, kernel) in program.kernels.iter().enumerate() {
        let name = function_name(n);
        kernels.push(match kernel {
            Kernel::Rows(r) => {
                let mut source = rows::row_kernel(&name, r, program, &domains);
                code += &std::mem::take(&mut source.code);
                Planned::Rows(source)
            }
            Kernel::Whole(w) if w.rows.is_some() => Planned::Count,
            Kernel::Whole(w) => {
                let mut source =
                    whole::whole_kernel(&name, w, program, &domains).ok_or_else(|| {
                        Error::Unsupported {
                            what: format!(
                                "{} of {:?}",
                                w.op.name(),
                                w.inputs
                                    .iter()
                                    .map(|&b| &program.buffers[b].shape)
                                    .collect::<Vec<_>>()
                            ),
                            instead: "use the device 'cpu' for this program".to_string(),
                        }
                    })?;
                code += &std::mem::take(&mut source.code);
                Planned::Whole(source)
            }
        });
    }
    Ok(Translation {
        code,
        kernels,
        domains,
    })
}
