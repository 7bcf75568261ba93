//! Generated kernels compiled as C++ and run on the host: the proof of what they compute without a GPU.

use super::{BLOCK, Geometry};
use crate::source::PRELUDE;
use crate::source::scalar::c_type;
use rtx_ir::DType;
use rtx_ir::eval::HostArray;
use std::process::Command;

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
    a.data
        .iter()
        .flat_map(|&v| match a.dtype {
            DType::Bool => vec![u8::from(v != 0.0)],
            DType::I32 => (v as i32).to_ne_bytes().to_vec(),
            DType::I64 => (v as i64).to_ne_bytes().to_vec(),
            DType::F32 => (v as f32).to_ne_bytes().to_vec(),
            DType::F64 => v.to_ne_bytes().to_vec(),
        })
        .collect()
}

/// The elements in memory as doubles.
pub(crate) fn numbers(dtype: DType, bytes: &[u8]) -> Vec<f64> {
    fn each<const N: usize>(bytes: &[u8], f: fn([u8; N]) -> f64) -> Vec<f64> {
        bytes.as_chunks::<N>().0.iter().map(|c| f(*c)).collect()
    }
    match dtype {
        DType::Bool => each(bytes, |[b]| f64::from(b)),
        DType::I32 => each(bytes, |b| f64::from(i32::from_ne_bytes(b))),
        DType::I64 => each(bytes, |b| i64::from_ne_bytes(b) as f64),
        DType::F32 => each(bytes, |b| f64::from(f32::from_ne_bytes(b))),
        DType::F64 => each(bytes, f64::from_ne_bytes),
    }
}

/// Runs all cases in one process; `None`, with a message, where there is no C++ compiler.
pub(crate) fn run(cases: &[Case]) -> Option<Vec<Vec<Vec<u8>>>> {
    if Command::new("g++").arg("--version").output().is_err() {
        println!("skipped: no g++");
        return None;
    }
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    std::fs::write(at("kernels.cpp"), program(cases)).unwrap();
    let all: Vec<u8> = cases.iter().flat_map(|c| c.buffers.concat()).collect();
    std::fs::write(at("in"), &all).unwrap();
    let compiled = Command::new("g++")
        .args(["-std=c++17", "-O0", "-ffp-contract=off", "-w", "-pthread"])
        .args(["-x", "c++"])
        .arg(at("kernels.cpp"))
        .arg("-o")
        .arg(at("kernels"))
        .output()
        .unwrap();
    let message = String::from_utf8_lossy(&compiled.stderr);
    assert!(compiled.status.success(), "{message}");
    let status = Command::new(at("kernels"))
        .args([at("in"), at("out")])
        .status()
        .unwrap();
    assert!(status.success(), "{status}");
    let out = std::fs::read(at("out")).unwrap();
    assert_eq!(out.len(), all.len());
    let mut rest = &out[..];
    let mut take = |n: usize| {
        let (first, others) = rest.split_at(n);
        rest = others;
        first.to_vec()
    };
    Some(
        cases
            .iter()
            .map(|c| c.buffers.iter().map(|b| take(b.len())).collect())
            .collect(),
    )
}

fn program(cases: &[Case]) -> String {
    let mut text = format!("{}\n{PRELUDE}\n", include_str!("shim.h"));
    for c in cases {
        text += &c.code;
    }
    text += "
typedef void (*Kernel)(char* const*, Launch);
static void start(Kernel kernel, bool together, FILE* in, FILE* out, std::vector<size_t> sizes, std::vector<long long> rows) {
    std::vector<std::vector<char>> data;
    std::vector<char*> at;
    for (size_t n : sizes) {
        data.emplace_back(n + 8);
        if (fread(data.back().data(), 1, n, in) != n) exit(2);
    }
    for (auto& d : data) at.push_back(d.data());
    Launch l = {};
    for (size_t k = 0; k < rows.size(); ++k) l.rows[k] = rows[k];
    // Grids that do not fit the work: loops over the grid are part of the test.
    gridDim.x = 2;
";
    text += &format!("    blockDim.x = together ? {BLOCK} : 3;\n");
    text += "    for (blockIdx.x = 0; blockIdx.x < gridDim.x; ++blockIdx.x) {
        std::vector<std::thread> threads;
        for (unsigned t = 0; t < blockDim.x; ++t) {
            auto work = [&, t] { threadIdx.x = t; kernel(at.data(), l); };
            if (together) threads.emplace_back(work); else work();
        }
        for (auto& t : threads) t.join();
    }
    for (size_t k = 0; k < sizes.size(); ++k) fwrite(data[k].data(), 1, sizes[k], out);
}
int main(int, char** argv) {
    FILE* in = fopen(argv[1], \"rb\");
    FILE* out = fopen(argv[2], \"wb\");
    if (!in || !out) return 3;
";
    for c in cases {
        let list = |n: Vec<usize>| n.iter().map(|x| format!("{x},")).collect::<String>();
        text += &format!(
            "    start({}, {}, in, out, {{{}}}, {{{}}});\n",
            c.name,
            c.geometry != Geometry::Threads,
            list(c.buffers.iter().map(Vec::len).collect()),
            list(c.rows.clone()),
        );
    }
    text + "    return fclose(out);\n}\n"
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
