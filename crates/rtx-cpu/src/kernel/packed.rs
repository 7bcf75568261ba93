//! Matrices of a kernel's products, packed once per run for all blocks of rows.

use super::Pointers;
use crate::product::{Matrix, Real, takes_packed};
use rayon::prelude::*;
use rtx_compiler::{DotGroup, RowKernel, Step};
use rtx_ir::DType;

/// One matrix as a product needs it.
#[derive(Clone, Copy, PartialEq)]
struct Source {
    dtype: DType,
    buffer: usize,
    k: usize,
    n: usize,
    strides: (usize, usize),
}

/// What is packed, and where.
pub(crate) struct Packed {
    sources: Vec<(Source, usize)>,
    /// Offset of each step's matrix; `None` for steps that read theirs as it lies.
    at: Vec<Option<usize>>,
    pub(crate) bytes: usize,
}

fn source(kernel: &RowKernel, d: &DotGroup) -> Option<Source> {
    let dtype = kernel.tiles[d.lhs[0]].dtype;
    let packed = match dtype {
        DType::F64 => takes_packed::<f64>(d.k, d.n),
        DType::F32 => takes_packed::<f32>(d.k, d.n),
        _ => false,
    };
    packed.then_some(Source {
        dtype,
        buffer: d.rhs,
        k: d.k,
        n: d.n,
        strides: d.strides,
    })
}

impl Packed {
    pub(crate) fn new(kernel: &RowKernel) -> Self {
        let mut sources: Vec<(Source, usize)> = Vec::new();
        let mut bytes = 0;
        let at = kernel.steps.iter().map(|step| {
            let Step::Dot(d) = step else { return None };
            let s = source(kernel, d)?;
            if let Some((_, at)) = sources.iter().find(|(other, _)| *other == s) {
                return Some(*at);
            }
            let at = bytes;
            let lanes = match s.dtype {
                DType::F64 => f64::tiled()?.lanes,
                _ => f32::tiled()?.lanes,
            };
            bytes += (s.k * s.n.next_multiple_of(lanes) * s.dtype.size()).next_multiple_of(64);
            sources.push((s, at));
            Some(at)
        });
        let at = at.collect();
        Packed { sources, at, bytes }
    }

    /// Offset of a step's packed matrix.
    pub(crate) fn of_step(&self, step: usize) -> Option<usize> {
        self.at[step]
    }

    /// Packs all matrices.
    ///
    /// # Safety
    /// The pointers are those of the program, and `to` holds `bytes`.
    pub(crate) unsafe fn pack(&self, pointers: &Pointers, to: *mut u8, parallel: bool) {
        let base = to as usize;
        let one = |(s, at): &(Source, usize)| {
            let to = (base + at) as *mut u8;
            // SAFETY: each matrix has its own part of the memory.
            unsafe {
                match s.dtype {
                    DType::F64 => s.pack::<f64>(pointers, to.cast()),
                    _ => s.pack::<f32>(pointers, to.cast()),
                }
            }
        };
        if parallel && self.sources.len() > 1 {
            self.sources.par_iter().with_max_len(1).for_each(one);
        } else {
            self.sources.iter().for_each(one);
        }
    }
}

impl Source {
    unsafe fn pack<T: Real>(&self, pointers: &Pointers, to: *mut T) {
        let Some(tiled) = T::tiled() else { return };
        let from = Matrix {
            at: pointers.0[self.buffer].cast::<T>().cast_const(),
            row: self.strides.0 as isize,
            column: self.strides.1 as isize,
        };
        // SAFETY: by the caller.
        unsafe { (tiled.pack)(self.k, self.n, from, to) };
    }
}
