//! Products of two matrices by tiles in shared memory.

use super::layout::{Extent, strides};
use super::{BLOCK, Geometry, WholeSource, Writer};
use crate::source::scalar::c_type;
use rtx_ir::DotDims;

/// Rows and columns of a tile of the result: 16 x 16 threads with 4 x 4 elements each.
const TILE: usize = 64;
/// Depth of the slabs that are staged in shared memory.
const DEPTH: usize = 16;
/// Slabs after which partial sums are put away, so that a rounding error does not grow with the depth.
const RUN: usize = 4;
/// Smallest extents worth a tile.
const SMALLEST: (usize, usize) = (16, 8);

/// A product of two matrices of known extents with one contracted axis; `None` for any other.
pub(super) fn dot(w: &Writer<'_>, d: &DotDims) -> Option<WholeSource> {
    let ([ca], [cb]) = (&d.lhs_contract[..], &d.rhs_contract[..]) else {
        return None;
    };
    let (a, b) = (w.shape(0)?, w.shape(1)?);
    let plain = w.inputs.len() == 2
        && d.lhs_batch.is_empty()
        && a.rank() == 2
        && b.rank() == 2
        && w.out_dtype().is_float();
    if !plain {
        return None;
    }
    let (m, k) = (a.dims()[1 - ca].fixed()?, a.dims()[*ca].fixed()?);
    let n = b.dims()[1 - cb].fixed()?;
    if m < SMALLEST.0 || n < SMALLEST.0 || k < SMALLEST.1 {
        return None;
    }
    let (sa, sb) = (strides(a)?, strides(b)?);
    let tiles = m.div_ceil(TILE).checked_mul(n.div_ceil(TILE))?;
    let index = w.layout.index();
    let load_a = load("a", index, "x0", ("row", m), k, (sa[1 - ca], sa[*ca]));
    let load_b = load("b", index, "x1", ("column", n), k, (sb[1 - cb], sb[*cb]));
    let t = c_type(w.out_dtype());
    let across = n.div_ceil(TILE);
    let pitch = TILE + 4;
    let body = format!(
        "    __shared__ {t} a[{DEPTH}][{pitch}], b[{DEPTH}][{pitch}];
    const int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
    for (long long e = blockIdx.x; e < {tiles}ll; e += gridDim.x) {{
        const {index} row = ({index})(e / {across}) * {TILE}, column = ({index})(e % {across}) * {TILE};
        {t} sum[4][4], run[4][4];
        #pragma unroll
        for (int i = 0; i < 16; ++i) sum[i / 4][i % 4] = run[i / 4][i % 4] = 0;
        int slabs = 0;
        for ({index} from = 0; from < {k}; from += {DEPTH}) {{
{load_a}{load_b}            __syncthreads();
            #pragma unroll
            for (int p = 0; p < {DEPTH}; ++p) {{
                {t} u[4], v[4];
                #pragma unroll
                for (int i = 0; i < 4; ++i) {{
                    u[i] = a[p][ty * 4 + i];
                    v[i] = b[p][tx * 4 + i];
                }}
                #pragma unroll
                for (int i = 0; i < 16; ++i) run[i / 4][i % 4] = rtx_fma(u[i / 4], v[i % 4], run[i / 4][i % 4]);
            }}
            __syncthreads();
            if (++slabs % {RUN} == 0) {{
                #pragma unroll
                for (int i = 0; i < 16; ++i) {{
                    sum[i / 4][i % 4] += run[i / 4][i % 4];
                    run[i / 4][i % 4] = 0;
                }}
            }}
        }}
        #pragma unroll
        for (int i = 0; i < 16; ++i) {{
            const {index} r = row + ty * 4 + i / 4, c = column + tx * 4 + i % 4;
            if (r < {m} && c < {n}) y[r * {n} + c] = sum[i / 4][i % 4] + run[i / 4][i % 4];
        }}
    }}
"
    );
    Some(WholeSource {
        code: w.function(&body),
        count: w.count,
        geometry: Geometry::Blocks {
            units: Extent::fixed(tiles),
        },
    })
}

/// Stages a slab of one operand, zeros outside. Neighbouring threads read along the axis that is
/// contiguous in memory.
fn load(
    shared: &str,
    index: &str,
    from: &str,
    (first, extent): (&str, usize),
    depth: usize,
    (step, depth_step): (usize, usize),
) -> String {
    let (along, within) = if depth_step == 1 {
        (format!("t / {DEPTH}"), format!("t % {DEPTH}"))
    } else {
        (format!("t % {TILE}"), format!("t / {TILE}"))
    };
    format!(
        "            #pragma unroll
            for (int t = threadIdx.x; t < {}; t += {BLOCK}) {{
                const int q = {along}, p = {within};
                const {index} i = {first} + q, d = from + p;
                {shared}[p][q] = i < {extent} && d < {depth} ? {from}[i * {step} + d * {depth_step}] : 0;
            }}
",
        TILE * DEPTH
    )
}
