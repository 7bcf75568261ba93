//! Single generated kernels on the host, for the tests of the texts.

use super::{BLOCK, Geometry};
use crate::array::{decode, encode};
use crate::emulate::{Builder, Library};
use crate::plan::{Arguments, Callee, Launch, Start};
use crate::source::PRELUDE;
use crate::source::scalar::c_type;
use rtx_ir::DType;
use rtx_ir::eval::HostArray;

/// One kernel with its buffers; all of them are given back after the run.
pub(crate) struct Case {
    /// Name of the function.
    pub(crate) name: String,
    /// Its text.
    pub(crate) code: String,
    /// How to start it.
    pub(crate) geometry: Geometry,
    /// Row counts of the domains.
    pub(crate) rows: Vec<usize>,
    /// Bytes of all buffers.
    pub(crate) buffers: Vec<Vec<u8>>,
}

/// The elements of an array as they lie in memory.
pub(crate) fn bytes(a: &HostArray) -> Vec<u8> {
    encode(a.dtype, &a.data)
}

/// The elements in memory as doubles.
pub(crate) fn numbers(dtype: DType, bytes: &[u8]) -> Vec<f64> {
    decode(dtype, bytes)
}

/// Runs all cases from one text; the buffers of each case afterwards. The grids do not fit the work: loops over the
/// grid are part of the test.
pub(crate) fn run(cases: &[Case]) -> Vec<Vec<Vec<u8>>> {
    let texts = cases.iter().map(|c| c.code.as_str());
    let text: String = std::iter::once(PRELUDE).chain(texts).collect();
    let library = Library::build(&text).unwrap_or_else(|e| panic!("{e}"));
    let after = cases.iter().map(|case| {
        case.run(&library)
            .unwrap_or_else(|e| panic!("{e}\n{}", case.code))
    });
    after.collect()
}

impl Case {
    /// The buffers after a run of the kernel in `library`.
    pub(crate) fn run(&self, library: &Library) -> crate::Result<Vec<Vec<u8>>> {
        let mut builder = Builder::default();
        let buffers = self.buffers.iter().enumerate();
        let at: Vec<usize> = buffers
            .map(|(k, b)| builder.add(&format!("buffer {k}"), b.len()))
            .collect();
        let table = builder.add("table", 8 * at.len());
        let mut memory = builder.build();
        for (offset, data) in at.iter().zip(&self.buffers) {
            memory.write(*offset, data);
        }
        let addresses = at.iter().map(|&o| memory.address(o));
        let addresses: Vec<u8> = addresses.flat_map(u64::to_le_bytes).collect();
        memory.write(table, &addresses);
        let block = match self.geometry {
            Geometry::Threads => 3,
            Geometry::Blocks { .. } => BLOCK,
        };
        let start = Start {
            callee: Callee::Kernel(0),
            grid: 2,
            block,
            shared: 0,
            arguments: Arguments::Launch(Launch::of_rows(&self.rows)),
        };
        let table = memory.address(table);
        library.call(&mut memory, &self.name, &start, table)?;
        let pairs = at.iter().zip(&self.buffers);
        Ok(pairs
            .map(|(&o, b)| memory.read(o, b.len()).to_vec())
            .collect())
    }
}

/// The kernel `name` that sets `y[e]` to `expression` of the operands `x0[e]`, `x1[e]`, ... for `n` elements.
pub(crate) fn elementwise(
    name: &str,
    operands: &[DType],
    out: DType,
    expression: &str,
    n: usize,
) -> String {
    let mut code =
        format!("extern \"C\" __global__ void {name}(char* const* at, const Launch l) {{\n");
    for (k, d) in operands.iter().enumerate() {
        let t = c_type(*d);
        code += &format!("    const {t}* x{k} = (const {t}*)at[{k}];\n");
    }
    let t = c_type(out);
    code += &format!("    {t}* y = ({t}*)at[{}];\n", operands.len());
    code + &format!(
        "    for (int e = blockIdx.x * blockDim.x + threadIdx.x; e < {n}; e += gridDim.x * blockDim.x) y[e] = {expression};\n}}\n"
    )
}
