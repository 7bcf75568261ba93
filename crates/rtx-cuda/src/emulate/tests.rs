//! A training step against the reference, and the same step with its text spoilt: what the emulation must find.

use super::*;
use rtx_ir::eval::{Bindings, evaluate_graph};
use rtx_ir::{Dim, DotDims, Node, RowDomain, Shape, Source, UnaryOp, vjp};
use rtx_testing::{Nan, largest_difference};

/// Rows of the batch: several blocks of rows for each block of threads, the last one not full.
const ROWS: usize = 61;

fn values(dims: &[usize], seed: u64) -> HostArray {
    let mut state = seed;
    let data = (0..dims.iter().product()).map(|_| {
        state = state
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (state >> 33) as f64 / f64::from(1u32 << 30) - 1.0
    });
    HostArray::new(DType::F64, dims, data.collect())
}

fn array(dims: &[usize], seed: u64) -> Node {
    let shape = Shape::of(dims);
    Node::data(Arc::new(values(dims, seed)), DType::F64, shape)
}

/// Loss and gradients of a network with products of every kind: tiled with several panels and column blocks, of few
/// columns, plain, transposed. Each product has `channels` operands that stand side by side: six have more rows than a
/// tile.
fn training_step(channels: usize) -> Graph {
    let rows: Shape = [Dim::Rows(RowDomain::named("points")), Dim::Fixed(12)]
        .into_iter()
        .collect();
    let x = Node::data(Arc::new(values(&[ROWS, 12], 1)), DType::F64, rows);
    let weights = [
        array(&[12, 132], 2),
        array(&[132, 36], 3),
        array(&[36, 2], 4),
        array(&[2, 3], 5),
    ]
    .map(|w| w.watch());
    let small = |n: &Node| n.mul(&n.scalar_like(0.2));
    let wide = &weights[1];
    let mut loss = small(&wide.mul(wide).sum_all());
    for channel in 0..channels {
        let mut y = x.mul(&x.scalar_like(0.3 + 0.2 * channel as f64));
        for w in &weights {
            y = small(&y.matmul(w)).unary(UnaryOp::Tanh);
        }
        loss = loss.add(&y.mul(&y).sum_all());
    }
    let mut outputs = vec![loss.clone()];
    outputs.extend(vjp(&[loss], &[None], &weights).unwrap());
    let columns = DotDims {
        lhs_batch: vec![],
        rhs_batch: vec![],
        lhs_contract: vec![0],
        rhs_contract: vec![0],
    };
    outputs.push(wide.dot(wide, columns));
    Graph::from_nodes(&outputs, false).unwrap()
}

/// The largest distance of a run to the reference, or what was reported.
fn difference(graph: &Graph, program: &dyn Executable) -> std::result::Result<f64, String> {
    let expected = evaluate_graph(graph, &Bindings::default()).unwrap();
    let inputs = graph.inputs.iter().map(|i| match &i.source {
        Source::Captured(v) => v.clone(),
        _ => panic!("a node without value"),
    });
    let found = program
        .run(&inputs.collect::<Vec<_>>())
        .map_err(|e| e.to_string())?;
    let differences = found.iter().zip(&expected).map(|(f, e)| {
        let f = f.to_host().unwrap().data;
        let size = e.data.iter().fold(0.0, |m: f64, v| m.max(v.abs()));
        largest_difference(&f, &e.data, Nan::Fails) / size
    });
    Ok(differences.fold(0.0, f64::max))
}

/// The same with a changed text.
fn spoilt(
    graph: &Graph,
    change: impl FnOnce(String) -> String,
) -> std::result::Result<f64, String> {
    let program = rtx_compiler::compile(graph, &CompileOptions::default()).unwrap();
    let program = EmulatedProgram::new(program, change).map_err(|e| e.to_string())?;
    difference(graph, &program)
}

const ALLOWED: f64 = 1e-13;

fn translated(graph: &Graph) -> String {
    let program = rtx_compiler::compile(graph, &CompileOptions::default()).unwrap();
    source::translate(&program).unwrap().code
}

/// Results of `test` for each of the list, two at a time.
fn each<T: Sync, R: Send>(list: &[T], test: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let (left, right) = list.split_at(list.len() / 2);
    std::thread::scope(|scope| {
        let other = scope.spawn(|| right.iter().map(&test).collect::<Vec<_>>());
        let mut all: Vec<R> = left.iter().map(&test).collect();
        all.extend(other.join().unwrap());
        all
    })
}

/// Wrong indices, bounds, masks and conditions in the products (`rows.cu`) and around the steps (`rows.rs`).
const WRONG: &[(&str, &str)] = &[
    (
        "sum = rtx_fma(a[row * K + k]",
        "sum = rtx_fma(a[row * K + k + 1]",
    ),
    ("w[k * KS + n * NS], sum)", "w[k * NS + n * KS], sum)"),
    (
        "out[row * N + n] = sums[n]",
        "out[row * N + n + 1] = sums[n]",
    ),
    (
        "row = threadIdx.x / 32; row < m",
        "row = threadIdx.x / 16; row < m",
    ),
    ("0xffffffffu, sums[n], d", "0x0000ffffu, sums[n], d"),
    ("for (int d = 16; d > 0", "for (int d = 8; d > 0"),
    (
        "r < ROWS && row0 + r < m && k < K",
        "r < ROWS && row0 + r < m",
    ),
    ("a + (row0 + r) * K + k", "a + r * K + k"),
    ("a + (row0 + r) * K + k", "a + (row0 + r) * K + k + 1"),
    (
        "if (k < K && n < N) next_w[j] = *(const Quad<T>*)(w + k",
        "if (k < K) next_w[j] = *(const Quad<T>*)(w + k",
    ),
    ("w + n * NS + k", "w + n * KS + k"),
    ("i < ROWS * RTX_DEPTH / 4", "i <= ROWS * RTX_DEPTH / 4"),
    (
        "ws = shared + ROWS * RTX_DEPTH",
        "ws = shared + ROWS * RTX_DEPTH / 2",
    ),
    (
        "as + (rg * 8 + r) * RTX_DEPTH + k",
        "as + (rg * 8 + r) * RTX_DEPTH + k + 4",
    ),
    (
        "(k + c) * RTX_COLUMNS + lane * 4",
        "(k + c) * RTX_COLUMNS + lane * 2",
    ),
    ("if (kg == part)", "if (kg >= part)"),
    ("if (kg == 0 && n < N)", "if (n < N)"),
    ("if (row < m) {", "if (row < m + 1) {"),
    ("x[p] + r * M + i0 + c", "x[p] + r * N + i0 + c"),
    ("i0 + (i / 4) * 64 + ty * 4", "i0 + (i / 4) * 32 + ty * 4"),
    ("if (row < M && column < N)", "if (row < M)"),
    ("y[p][r * N + j]", "y[p][r * M + j]"),
    (
        "ys = shared + RTX_SUM_DEPTH * 128",
        "ys = shared + RTX_SUM_DEPTH * 64",
    ),
    (
        "const int PART = RTX_DEPTH / KG;",
        "if (tid < 128) __syncthreads(); const int PART = RTX_DEPTH / KG;",
    ),
    (
        "(k0 + k) / rows, r = (k0 + k) % rows",
        "(k0 + k) / rows, r = k % rows",
    ),
    (
        "l.partials + (long long)blockIdx.x *",
        "l.partials + (long long)0 *",
    ),
    (
        "l.scratch + (long long)blockIdx.x *",
        "l.scratch + (long long)0 *",
    ),
    (
        "start = block * block_rows;",
        "start = block * block_rows + 1;",
    ),
    (
        "rows - start < block_rows ? rows - start : block_rows",
        "block_rows",
    ),
    ("first = block == blockIdx.x", "first = block == 0"),
    ("first = block == blockIdx.x", "first = true"),
    ("block += gridDim.x", "block += 1"),
    (
        "for (int r = 1; r < count; ++r)",
        "for (int r = 1; r <= count; ++r)",
    ),
    (
        "for (long long g = 1; g < l.count",
        "for (long long g = 1; g <= l.count",
    ),
    (
        "for (long long g = 1; g < l.count",
        "for (long long g = 2; g < l.count",
    ),
];

mod needs_gxx {
    use super::*;

    #[test]
    #[ignore = "needs g++"]
    fn a_training_step_agrees_with_the_reference() {
        let backend = EmulatedBackend::new().unwrap_or_else(|e| panic!("{e}"));
        for channels in [1, 6] {
            let graph = training_step(channels);
            let program = backend.compile(&graph, &CompileOptions::default()).unwrap();
            let first = difference(&graph, &*program).unwrap_or_else(|e| panic!("{e}"));
            assert!(first <= ALLOWED, "{channels} channels: {first:e}");
            // Threads and blocks go in other orders.
            for _ in 0..4 {
                assert_eq!(difference(&graph, &*program), Ok(first));
            }
        }
    }

    /// Each barrier in turn is taken out. Those of the products are all needed. Of those between steps, some stand
    /// between steps that have nothing in common: then no value may change.
    #[test]
    #[ignore = "needs g++"]
    fn missing_barriers_are_found() {
        const BARRIER: &str = "__syncthreads();";
        let graph = training_step(1);
        let text = translated(&graph);
        let all: Vec<usize> = text.match_indices(BARRIER).map(|(at, _)| at).collect();
        let results = each(&all, |&at| {
            spoilt(&graph, |code| {
                format!("{}{}", &code[..at], &code[at + BARRIER.len()..])
            })
        });
        // In the prelude are those of sums over whole arrays, which this program does not have.
        let products = text.find("#define RTX_THREADS").unwrap();
        let kernels = text.find("extern \"C\" __global__ void rtx_copy").unwrap();
        let (mut inside, mut between, mut free) = (0, 0, 0);
        for (&at, result) in all.iter().zip(&results) {
            let line = text[..at].matches('\n').count() + 1;
            println!("without the barrier of line {line}: {result:?}");
            let found = result.is_err();
            assert!(
                found || result.clone().is_ok_and(|d| d <= ALLOWED),
                "line {line}: {result:?}"
            );
            assert!(
                found || !(products..kernels).contains(&at),
                "not found: line {line}"
            );
            inside += usize::from(found && at < kernels);
            between += usize::from(found && at >= kernels);
            free += usize::from(!found);
        }
        println!("{inside} in products and {between} between steps are needed, {free} are not");
        assert_eq!(inside, 6);
        assert!(between >= 10);
    }

    #[test]
    #[ignore = "needs g++"]
    fn wrong_indices_are_found() {
        let graph = training_step(6);
        let text = translated(&graph);
        let results = each(WRONG, |(right, wrong)| {
            assert!(text.contains(right), "{right}");
            spoilt(&graph, |code| code.replace(right, wrong))
        });
        for ((_, wrong), result) in WRONG.iter().zip(&results) {
            println!("{wrong}: {result:?}");
        }
        for ((right, wrong), result) in WRONG.iter().zip(&results) {
            let found = result.clone().map_or(true, |d| d > ALLOWED);
            assert!(found, "not found: {wrong} instead of {right}");
        }
    }
}
