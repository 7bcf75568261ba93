//! Operations on whole arrays that no row kernel carries.

use crate::buffer::{read_f64, write_f64};
use crate::product::{Matrix, Real};
use rtx_ir::eval::{HostArray, eval_op};
use rtx_ir::{DType, Op};

/// An operand or result in memory.
#[derive(Clone)]
pub(crate) struct Array {
    pub(crate) at: *mut u8,
    pub(crate) dtype: DType,
    pub(crate) dims: Vec<usize>,
}

impl Array {
    fn elements(&self) -> usize {
        self.dims.iter().product()
    }
}

/// Runs one operation.
///
/// # Safety
/// The arrays are in memory of the sizes they state.
pub(crate) unsafe fn run(op: &Op, inputs: &[Array], out: &Array) {
    // SAFETY: by the caller.
    unsafe {
        match op {
            Op::Reshape => {
                std::ptr::copy_nonoverlapping(
                    inputs[0].at,
                    out.at,
                    out.elements() * out.dtype.size(),
                );
            }
            Op::Dot(d) if d.lhs_batch.is_empty() && matrices(op, inputs, out) => {}
            _ => {
                let host: Vec<HostArray> = inputs
                    .iter()
                    .map(|a| HostArray {
                        dtype: a.dtype,
                        dims: a.dims.clone(),
                        data: read_f64(a.at, a.dtype, a.elements()),
                    })
                    .collect();
                let refs: Vec<&HostArray> = host.iter().collect();
                write_f64(
                    out.at,
                    out.dtype,
                    &eval_op(op, &refs, out.dtype, &out.dims).data,
                );
            }
        }
    }
}

/// Products of two matrices with one contracted axis; false if the operation is of another form.
unsafe fn matrices(op: &Op, inputs: &[Array], out: &Array) -> bool {
    let Op::Dot(d) = op else { return false };
    let ([a, b], [ca], [cb]) = (inputs, &d.lhs_contract[..], &d.rhs_contract[..]) else {
        return false;
    };
    if a.dims.len() != 2 || b.dims.len() != 2 || !out.dtype.is_float() {
        return false;
    }
    let (m, n, k) = (a.dims[1 - ca], b.dims[1 - cb], a.dims[*ca]);
    let strides = |x: &Array, contracted: usize| {
        let s = [x.dims[1] as isize, 1];
        (s[1 - contracted], s[contracted])
    };
    let ((a_free, a_sum), (b_free, b_sum)) = (strides(a, *ca), strides(b, *cb));
    // SAFETY: the extents are those of the arrays.
    unsafe {
        if out.dtype == DType::F64 {
            let (x, y) = (
                Matrix {
                    at: a.at.cast::<f64>().cast_const(),
                    row: a_free,
                    column: a_sum,
                },
                Matrix {
                    at: b.at.cast::<f64>().cast_const(),
                    row: b_sum,
                    column: b_free,
                },
            );
            f64::gemm(m, n, k, out.at.cast(), false, x, y);
        } else {
            let (x, y) = (
                Matrix {
                    at: a.at.cast::<f32>().cast_const(),
                    row: a_free,
                    column: a_sum,
                },
                Matrix {
                    at: b.at.cast::<f32>().cast_const(),
                    row: b_sum,
                    column: b_free,
                },
            );
            f32::gemm(m, n, k, out.at.cast(), false, x, y);
        }
    }
    true
}
