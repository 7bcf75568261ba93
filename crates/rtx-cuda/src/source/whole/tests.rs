//! Every operation, element type and form of shape against the reference evaluation.

use super::emulation::{self, Case, bytes, numbers};
use super::*;
use crate::emulate::Library;
use crate::source::PRELUDE;
use rtx_ir::eval::{HostArray, eval_op};
use rtx_ir::{BinaryOp, Dim, DotDims, ReduceKind, UnaryOp};

const DTYPES: [DType; 5] = [DType::F32, DType::F64, DType::I32, DType::I64, DType::Bool];
const ROWS: [usize; 2] = [5, 37];

/// Stands for the row count of a domain in the tables below.
const R: usize = usize::MAX;

fn domains() -> Vec<RowDomain> {
    vec![RowDomain::named("other"), RowDomain::named("points")]
}

fn shape(dims: &[usize]) -> Shape {
    dims.iter()
        .map(|&n| {
            if n == R {
                Dim::Rows(RowDomain::named("points"))
            } else {
                Dim::Fixed(n)
            }
        })
        .collect()
}

fn resolved(dims: &[usize]) -> Vec<usize> {
    dims.iter()
        .map(|&n| if n == R { ROWS[1] } else { n })
        .collect()
}

/// Numbers without pattern.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        self.0 >> 33
    }

    /// Floats between -2 and 2 with some NaN if asked for, small integers with repetitions.
    fn array(&mut self, dtype: DType, dims: &[usize], nan: bool) -> HostArray {
        let n = dims.iter().product();
        let data = (0..n)
            .map(|_| {
                let v = self.next();
                if dtype.is_float() {
                    if nan && v.is_multiple_of(11) {
                        f64::NAN
                    } else {
                        v as f64 / (1u64 << 29) as f64 - 2.0
                    }
                } else {
                    (v % 9) as f64 - 3.0
                }
            })
            .collect();
        HostArray::new(dtype, dims, data)
    }
}

struct Test {
    label: String,
    out: DType,
    expected: Vec<f64>,
    /// Error allowed for each element of unit size.
    tolerance: f64,
}

#[derive(Default)]
struct Table {
    tests: Vec<Test>,
    cases: Vec<Case>,
    seed: u64,
}

impl Table {
    /// Adds an operation on operands with given contents. Operands and result are not buffers 0, 1, ... so
    /// that a mistaken number shows.
    fn add_on(&mut self, op: Op, x: &[(HostArray, Shape)], out: (DType, &[usize])) -> &mut Case {
        let mut program = Program::default();
        let info = |dtype, shape: &Shape| BufferInfo {
            dtype,
            shape: shape.clone(),
        };
        let mut buffers = vec![vec![7u8; 8]];
        program.buffers.push(info(DType::F32, &shape(&[2])));
        let dims = resolved(out.1);
        let size = dims.iter().product::<usize>() * out.0.size();
        program.buffers.push(info(out.0, &shape(out.1)));
        buffers.push(vec![0xCD; size]);
        for (a, s) in x {
            program.buffers.push(info(a.dtype, s));
            buffers.push(bytes(a));
        }
        let kernel = WholeKernel {
            op: op.clone(),
            inputs: (2..2 + x.len()).collect(),
            output: 1,
            rows: None,
        };
        let label = format!(
            "{op} {:?} -> {}{:?}",
            x.iter()
                .map(|(a, s)| format!("{}{s}", a.dtype))
                .collect::<Vec<_>>(),
            out.0,
            shape(out.1)
        );
        let name = format!("kernel_{}", self.cases.len());
        let source = whole_kernel(&name, &kernel, &program, &domains()).expect(&label);
        assert_eq!(
            source.count.resolve(&ROWS),
            Some(dims.iter().product()),
            "{label}"
        );
        let refs: Vec<&HostArray> = x.iter().map(|(a, _)| a).collect();
        let mut expected = eval_op(&op, &refs, out.0, &dims).data;
        if matches!(op, Op::Dot(_)) {
            for pair in refs[2..].chunks(2) {
                let more = eval_op(&op, pair, DType::F64, &dims).data;
                expected.iter_mut().zip(more).for_each(|(s, v)| *s += v);
            }
        }
        let sums = matches!(
            op,
            Op::Dot(_)
                | Op::Reduce(..)
                | Op::ScatterAdd
                | Op::Unary(_)
                | Op::Random(RandomKind::Normal)
        );
        let tolerance = match out.0 {
            DType::F32 if sums => 1e-5,
            DType::F64 if sums => 1e-13,
            _ => 0.0,
        };
        self.tests.push(Test {
            label,
            out: out.0,
            expected,
            tolerance,
        });
        self.cases.push(Case {
            name,
            code: source.code,
            geometry: source.geometry,
            rows: ROWS.to_vec(),
            buffers,
        });
        self.cases.last_mut().unwrap()
    }

    fn add(&mut self, op: Op, x: &[(DType, &[usize])], out: (DType, &[usize])) -> &mut Case {
        self.seed += 1;
        let mut numbers = Numbers(self.seed);
        // Products and sums of NaN are NaN all over; order decides only where elements are compared.
        let nan = matches!(
            op,
            Op::Reduce(ReduceKind::Max | ReduceKind::Min, _) | Op::ArgMax(_)
        );
        let x: Vec<_> = x
            .iter()
            .map(|(d, s)| (numbers.array(*d, &resolved(s), nan), shape(s)))
            .collect();
        self.add_on(op, &x, out)
    }
}

fn elementwise(t: &mut Table) {
    for dims in [&[][..], &[4, 3], &[R, 2], &[R], &[0, 3]] {
        use DType::{Bool, F32, F64, I32, I64};
        for d in [F32, F64, I32, I64] {
            t.add(Op::Unary(UnaryOp::Neg), &[(d, dims)], (d, dims));
            t.add(
                Op::Binary(BinaryOp::Max),
                &[(d, dims), (d, dims)],
                (d, dims),
            );
            t.add(
                Op::Binary(BinaryOp::Lt),
                &[(d, dims), (d, dims)],
                (Bool, dims),
            );
        }
        t.add(Op::Unary(UnaryOp::Tanh), &[(F32, dims)], (F32, dims));
        t.add(Op::Unary(UnaryOp::Not), &[(Bool, dims)], (Bool, dims));
        for d in DTYPES {
            let three = [(Bool, dims), (d, dims), (d, dims)];
            t.add(Op::Select, &three, (d, dims));
            t.add(Op::Identity { stop: true }, &[(d, dims)], (d, dims));
            for to in DTYPES.into_iter().filter(|to| *to != d) {
                t.add(Op::Cast, &[(d, dims)], (to, dims));
            }
        }
    }
}

fn made(t: &mut Table) {
    for d in DTYPES {
        t.add(Op::Iota(0), &[], (d, &[R, 3]));
        t.add(Op::Iota(1), &[], (d, &[R, 3]));
        t.add(Op::Iota(1), &[], (d, &[2, 5, 3]));
    }
    for kind in [RandomKind::Uniform, RandomKind::Normal] {
        for (d, key) in [(DType::F32, DType::I64), (DType::F64, DType::I32)] {
            for dims in [&[][..], &[R, 3], &[100]] {
                let k = HostArray::new(key, &[], vec![-123_456_789.0]);
                t.add_on(Op::Random(kind), &[(k, shape(&[]))], (d, dims));
            }
        }
    }
}

fn moved(t: &mut Table) {
    for d in DTYPES {
        t.add(Op::Reshape, &[(d, &[R, 6])], (d, &[R, 2, 3]));
        t.add(Op::Reshape, &[(d, &[4, 6])], (d, &[3, 8]));
        t.add(
            Op::Broadcast(vec![1, 3]),
            &[(d, &[3, 2])],
            (d, &[R, 3, 4, 2]),
        );
        t.add(Op::Broadcast(vec![0, 1]), &[(d, &[R, 1])], (d, &[R, 5]));
        t.add(Op::Broadcast(vec![0, 1]), &[(d, &[1, 2])], (d, &[R, 2]));
        t.add(Op::Broadcast(vec![]), &[(d, &[])], (d, &[]));
        t.add(Op::Broadcast(vec![]), &[(d, &[])], (d, &[2, 3]));
        t.add(
            Op::Permute(vec![2, 0, 1]),
            &[(d, &[2, 3, 4])],
            (d, &[4, 2, 3]),
        );
        t.add(
            Op::Permute(vec![0, 2, 1]),
            &[(d, &[R, 3, 4])],
            (d, &[R, 4, 3]),
        );
        t.add(Op::Permute(vec![1, 0]), &[(d, &[0, 3])], (d, &[3, 0]));
        let slice = |axis, start, end| Op::Slice { axis, start, end };
        t.add(slice(0, 2, 5), &[(d, &[7, 3])], (d, &[3, 3]));
        t.add(slice(1, 1, 3), &[(d, &[R, 4, 2])], (d, &[R, 2, 2]));
        t.add(slice(0, 2, 2), &[(d, &[7])], (d, &[0]));
        let pad = |axis, before, after| Op::Pad {
            axis,
            before,
            after,
        };
        t.add(pad(0, 2, 3), &[(d, &[4, 3])], (d, &[9, 3]));
        t.add(pad(1, 1, 0), &[(d, &[R, 3, 2])], (d, &[R, 4, 2]));
        t.add(pad(0, 1, 1), &[(d, &[0, 2])], (d, &[2, 2]));
        let parts: [(DType, &[usize]); 3] = [(d, &[2, 3]), (d, &[1, 3]), (d, &[4, 3])];
        t.add(Op::Concat(0), &parts, (d, &[7, 3]));
        t.add(Op::Concat(1), &[(d, &[R, 2]), (d, &[R, 1])], (d, &[R, 3]));
        for i in [DType::I32, DType::I64] {
            t.add(Op::Gather, &[(d, &[4, 3]), (i, &[])], (d, &[3]));
            t.add(Op::Gather, &[(d, &[3]), (i, &[6])], (d, &[6]));
            t.add(Op::Gather, &[(d, &[4, 2]), (i, &[R, 2])], (d, &[R, 2, 2]));
            t.add(Op::ScatterAdd, &[(d, &[9, 3]), (i, &[9])], (d, &[4, 3]));
            t.add(Op::ScatterAdd, &[(d, &[R, 2]), (i, &[R])], (d, &[5, 2]));
            t.add(Op::ScatterAdd, &[(d, &[3]), (i, &[])], (d, &[R, 3]));
            t.add(Op::ScatterAdd, &[(d, &[6, 20]), (i, &[6, 20])], (d, &[3]));
        }
    }
}

fn folded(t: &mut Table) {
    use ReduceKind::{Max, Min, Prod, Sum};
    for d in [DType::F32, DType::F64, DType::I32, DType::I64] {
        for kind in [Sum, Max, Min, Prod] {
            let mut reduce = |axes: &[usize], from: &[usize], to: &[usize]| {
                t.add(Op::Reduce(kind, axes.to_vec()), &[(d, from)], (d, to));
            };
            reduce(&[0, 1], &[4, 3], &[]);
            reduce(&[0, 2], &[3, 4, 5], &[4]);
            reduce(&[1], &[R, 4, 2], &[R, 2]);
            reduce(&[0], &[0, 3], &[3]);
            if kind != Prod {
                // Products of many random integers leave what a double holds exactly.
                reduce(&[0, 1], &[R, 3], &[]);
                reduce(&[0, 2], &[R, 3, 4], &[3]);
                reduce(&[0], &[200, 2], &[2]);
                reduce(&[0, 1, 2], &[30, 4, 9], &[]);
            }
        }
        t.add(Op::ArgMax(0), &[(d, &[7, 3])], (DType::I64, &[3]));
        t.add(Op::ArgMax(1), &[(d, &[R, 9])], (DType::I64, &[R]));
        t.add(Op::ArgMax(1), &[(d, &[2, 5, 3])], (DType::I64, &[2, 3]));
        products(t, d);
    }
    t.add(Op::ArgMax(0), &[(DType::Bool, &[6, 2])], (DType::I64, &[2]));
}

fn products(t: &mut Table, d: DType) {
    let dims = |lb: &[usize], rb: &[usize], lc: &[usize], rc: &[usize]| {
        Op::Dot(DotDims {
            lhs_batch: lb.to_vec(),
            rhs_batch: rb.to_vec(),
            lhs_contract: lc.to_vec(),
            rhs_contract: rc.to_vec(),
        })
    };
    let mut dot = |op: Op, a: &[usize], b: &[usize], to: &[usize]| {
        t.add(op, &[(d, a), (d, b)], (d, to));
    };
    let plain = || dims(&[], &[], &[1], &[0]);
    dot(plain(), &[3, 4], &[4, 2], &[3, 2]);
    dot(plain(), &[R, 4], &[4, 2], &[R, 2]);
    dot(plain(), &[70, 100], &[100, 65], &[70, 65]);
    dot(
        dims(&[], &[], &[0], &[1]),
        &[100, 16],
        &[130, 100],
        &[16, 130],
    );
    dot(dims(&[], &[], &[1], &[1]), &[64, 8], &[64, 8], &[64, 64]);
    dot(dims(&[], &[], &[0], &[0]), &[20, 17], &[20, 33], &[17, 33]);
    dot(dims(&[], &[], &[0], &[0]), &[0, 3], &[0, 2], &[3, 2]);
    dot(dims(&[], &[], &[], &[]), &[3], &[2, 2], &[3, 2, 2]);
    dot(
        dims(&[0], &[0], &[2], &[1]),
        &[2, 3, 4],
        &[2, 4, 5],
        &[2, 3, 5],
    );
    dot(
        dims(&[1, 0], &[0, 1], &[2], &[2]),
        &[2, 3, 4],
        &[3, 2, 4],
        &[3, 2],
    );
    dot(
        dims(&[0], &[0], &[2], &[1]),
        &[R, 3, 4],
        &[R, 4, 2],
        &[R, 3, 2],
    );
    dot(dims(&[], &[], &[0], &[0]), &[R, 3, 4], &[R, 2], &[3, 4, 2]);
    dot(dims(&[], &[], &[1, 0], &[1, 0]), &[R, 3], &[R, 3], &[]);
    dot(
        dims(&[], &[], &[2, 0], &[0, 1]),
        &[2, 3, 4],
        &[4, 2, 5],
        &[3, 5],
    );
    dot(
        dims(&[], &[], &[2, 0], &[0, 1]),
        &[30, 3, 40],
        &[40, 30],
        &[3],
    );
    let (x, y) = ((d, &[R, 3][..]), (d, &[R, 2][..]));
    t.add(
        dims(&[], &[], &[0], &[0]),
        &[x, y, x, y, x, y],
        (d, &[3, 2]),
    );
    let (x, y) = ((d, &[20, 30][..]), (d, &[20, 40][..]));
    t.add(dims(&[], &[], &[0], &[0]), &[x, y, x, y], (d, &[30, 40]));
}

fn every_operation_agrees_with_the_reference() {
    let mut t = Table::default();
    elementwise(&mut t);
    made(&mut t);
    moved(&mut t);
    folded(&mut t);
    let results = emulation::run(&t.cases);
    for ((test, case), after) in t.tests.iter().zip(&t.cases).zip(&results) {
        let got = numbers(test.out, &after[1]);
        assert_eq!(got.len(), test.expected.len(), "{}", test.label);
        for (k, (g, w)) in got.iter().zip(&test.expected).enumerate() {
            let fits = g == w
                || g.is_nan() && w.is_nan()
                || (g - w).abs() <= test.tolerance * (1.0 + w.abs());
            assert!(fits, "{} [{k}]: {g} {w}\n{}", test.label, case.code);
        }
        for (k, (a, b)) in after.iter().zip(&case.buffers).enumerate() {
            assert!(k == 1 || a == b, "{} writes buffer {k}", test.label);
        }
    }
    println!("{} kernels", t.cases.len());
}

fn long_sums_stay_exact() {
    let mut t = Table::default();
    let n = 1_000_000;
    let x = |dims: &[usize]| (HostArray::new(DType::F32, dims, vec![0.1; n]), shape(dims));
    let sum = |axis| Op::Reduce(ReduceKind::Sum, vec![axis]);
    t.add_on(sum(0), &[x(&[n])], (DType::F32, &[]));
    // By a thread for each element, because there are many.
    t.add_on(sum(0), &[x(&[10, n / 10])], (DType::F32, &[n / 10]));
    let index = HostArray::new(DType::I32, &[n], vec![0.0; n]);
    let scatter = [x(&[n]), (index, shape(&[n]))];
    t.add_on(Op::ScatterAdd, &scatter, (DType::F32, &[1]));
    let results = emulation::run(&t.cases);
    for (test, after) in t.tests.iter().zip(&results) {
        let got = numbers(test.out, &after[1]);
        for (g, w) in got.iter().zip(&test.expected) {
            assert!((g / w - 1.0).abs() < 2e-6, "{}: {g} {w}", test.label);
        }
    }
}

#[test]
fn what_the_host_does_or_no_rule_admits_gives_no_kernel() {
    let buffer = |dtype, dims: &[usize]| BufferInfo {
        dtype,
        shape: shape(dims),
    };
    let program = Program {
        buffers: vec![buffer(DType::F32, &[R, 2]), buffer(DType::Bool, &[2])],
        ..Program::default()
    };
    let kernel = |op: Op, inputs: &[usize], output| WholeKernel {
        op,
        inputs: inputs.to_vec(),
        output,
        rows: None,
    };
    let copy = kernel(Op::Reshape, &[0], 0);
    assert!(whole_kernel("k", &copy, &program, &domains()).is_some());
    assert!(whole_kernel("k", &copy, &program, &domains()[..1]).is_none());
    for k in [
        kernel(Op::RowCount, &[0], 0),
        kernel(Op::Unary(UnaryOp::Sin), &[1], 1),
        kernel(Op::Reduce(ReduceKind::Sum, vec![0]), &[1], 1),
        kernel(Op::Reshape, &[0], 7),
    ] {
        assert!(
            whole_kernel("k", &k, &program, &domains()).is_none(),
            "{k:?}"
        );
    }
}

/// Sums by a tree of threads and products by tiles, without each of their barriers in turn.
fn missing_barriers_are_found() {
    const BARRIER: &str = "__syncthreads();";
    let mut t = Table::default();
    let d = DType::F64;
    t.add(
        Op::Reduce(ReduceKind::Sum, vec![0]),
        &[(d, &[3000])],
        (d, &[]),
    );
    t.add(
        Op::Reduce(ReduceKind::Max, vec![1]),
        &[(d, &[5, 700])],
        (d, &[5]),
    );
    let product = DotDims {
        lhs_batch: vec![],
        rhs_batch: vec![],
        lhs_contract: vec![1],
        rhs_contract: vec![0],
    };
    t.add(
        Op::Dot(product),
        &[(d, &[70, 40]), (d, &[40, 130])],
        (d, &[70, 130]),
    );
    let codes: String = t.cases.iter().map(|c| c.code.as_str()).collect();
    let text = format!("{PRELUDE}{codes}");
    let barriers: Vec<_> = text.match_indices(BARRIER).collect();
    assert_eq!(barriers.len(), 5, "three of a sum, two of a product");
    for (at, _) in barriers {
        let spoilt = format!("{}{}", &text[..at], &text[at + BARRIER.len()..]);
        let library = Library::build(&spoilt).unwrap_or_else(|e| panic!("{e}"));
        let reports = t.cases.iter().filter_map(|c| c.run(&library).err());
        let reports: Vec<String> = reports.map(|e| e.to_string()).collect();
        println!("{reports:?}");
        let found = reports.iter().any(|r| r.contains("no barrier between"));
        assert!(found, "{}", text[..at].matches('\n').count() + 1);
    }
}

/// Run the generated text as C++.
mod needs_gxx {
    #[test]
    #[ignore = "needs g++"]
    fn every_operation_agrees_with_the_reference() {
        super::every_operation_agrees_with_the_reference();
    }

    #[test]
    #[ignore = "needs g++"]
    fn long_sums_stay_exact() {
        super::long_sums_stay_exact();
    }

    #[test]
    #[ignore = "needs g++"]
    fn missing_barriers_are_found() {
        super::missing_barriers_are_found();
    }
}
