use super::*;
use rtx_ir::{BinaryOp, DotDims, Op, ReduceKind};
use rtx_testing::{Nan, assert_close};

fn layout(dtype: DType, dims: &[usize]) -> Layout {
    Layout {
        dtype,
        dims: dims.to_vec(),
    }
}

fn batched() -> Op {
    Op::Dot(DotDims {
        lhs_batch: vec![0],
        rhs_batch: vec![0],
        lhs_contract: vec![2],
        rhs_contract: vec![1],
    })
}

/// Elements of operand `k`: waves, and rows of the whole table.
fn values(k: usize, l: &Layout, out: &Layout) -> Vec<f64> {
    let rows = out.dims.first().copied().unwrap_or(1);
    let value = |e: usize| match l.dtype.is_float() {
        true => f64::from(((e * (k + 3)) as f32 * 0.7).sin()),
        false => (e * 7919 % rows) as f64,
    };
    (0..l.elements()).map(value).collect()
}

/// Bytes of a result on that many threads, from the same operands. Result and scratch are dirty before.
fn bytes_on(threads: usize, op: &Op, inputs: &[Layout], out: &Layout) -> Vec<u8> {
    let dirty = |bytes: usize| {
        let b = Bytes::new(bytes);
        // SAFETY: as many bytes are there.
        unsafe { std::ptr::write_bytes(b.ptr(), 0x7F, bytes) };
        b
    };
    let fill = |(k, l): (usize, &Layout)| {
        let array = Bytes::new(l.bytes());
        // SAFETY: the array holds the elements.
        unsafe { write_f64(array.ptr(), l.dtype, &values(k, l, out)) };
        array
    };
    let mut arrays: Vec<Bytes> = inputs.iter().enumerate().map(fill).collect();
    arrays.push(dirty(out.bytes()));
    let kernel = WholeKernel {
        op: op.clone(),
        inputs: (0..inputs.len()).collect(),
        output: inputs.len(),
        rows: None,
    };
    let pointers = Pointers(arrays.iter().map(Bytes::ptr).collect());
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    pool.unwrap().install(|| {
        let task = Task::new(op, inputs, out);
        let scratch = dirty(task.scratch(threads));
        // SAFETY: the arrays and the scratch are those of the task.
        unsafe { task.run(&kernel, &pointers, &scratch) };
    });
    // SAFETY: the result has as many bytes.
    unsafe { std::slice::from_raw_parts(pointers.0[inputs.len()], out.bytes()) }.to_vec()
}

#[test]
fn results_do_not_depend_on_the_number_of_threads() {
    let (f, i) = (DType::F32, DType::I64);
    let cases = [
        // Groups of updates; rows in order; threads with rows of their own.
        (
            Op::ScatterAdd,
            vec![layout(f, &[200_000]), layout(i, &[200_000])],
            layout(f, &[12]),
        ),
        (
            Op::ScatterAdd,
            vec![layout(f, &[90_000, 2]), layout(i, &[90_000])],
            layout(f, &[80_000, 2]),
        ),
        (
            Op::ScatterAdd,
            vec![layout(f, &[5000, 40]), layout(i, &[5000])],
            layout(f, &[4000, 40]),
        ),
        // One product in pieces of rows, many products, small products.
        (
            batched(),
            vec![layout(f, &[1, 300, 70]), layout(f, &[1, 70, 90])],
            layout(f, &[1, 300, 90]),
        ),
        (
            batched(),
            vec![layout(f, &[40, 50, 30]), layout(f, &[40, 30, 20])],
            layout(f, &[40, 50, 20]),
        ),
        (
            batched(),
            vec![layout(f, &[9000, 3, 3]), layout(f, &[9000, 3, 3])],
            layout(f, &[9000, 3, 3]),
        ),
        (
            Op::Permute(vec![2, 1, 0]),
            vec![layout(f, &[60, 50, 70])],
            layout(f, &[70, 50, 60]),
        ),
        (
            Op::ArgMax(1),
            vec![layout(f, &[20, 50, 300])],
            layout(i, &[20, 300]),
        ),
    ];
    for (op, inputs, out) in cases {
        let one = bytes_on(1, &op, &inputs, &out);
        assert!(one.iter().any(|b| *b != 0), "{op}");
        for threads in [2, 3, 7] {
            assert!(
                bytes_on(threads, &op, &inputs, &out) == one,
                "{op} {:?} differs on {threads} threads",
                out.dims
            );
        }
    }
}

/// What a compiled program can ask for: see the roles in `rtx-compiler/src/cluster.rs`.
#[test]
fn no_operation_of_a_program_runs_by_the_reference_rules() {
    let x = |dims: &[usize]| layout(DType::F32, dims);
    let i = |dims: &[usize]| layout(DType::I32, dims);
    let dot = Op::Dot(DotDims::default());
    let cases = [
        (Op::Reshape, vec![x(&[6])], x(&[2, 3])),
        (Op::Identity { stop: true }, vec![x(&[])], x(&[])),
        (Op::Broadcast(vec![]), vec![x(&[])], x(&[])),
        (Op::Permute(vec![1, 0]), vec![x(&[2, 3])], x(&[3, 2])),
        (
            Op::Slice {
                axis: 0,
                start: 1,
                end: 3,
            },
            vec![x(&[4])],
            x(&[2]),
        ),
        (
            Op::Pad {
                axis: 0,
                before: 1,
                after: 3,
            },
            vec![x(&[4])],
            x(&[8]),
        ),
        (Op::Concat(0), vec![x(&[4]), x(&[3])], x(&[7])),
        (Op::Gather, vec![x(&[4, 3]), i(&[])], x(&[3])),
        (Op::ScatterAdd, vec![x(&[4, 3]), i(&[4])], x(&[2, 3])),
        (batched(), vec![x(&[2, 3, 0]), x(&[2, 0, 2])], x(&[2, 3, 2])),
        (
            batched(),
            vec![x(&[2, 30, 20]), x(&[2, 20, 9])],
            x(&[2, 30, 9]),
        ),
        (dot, vec![x(&[4]), x(&[3])], x(&[4, 3])),
        (Op::ArgMax(1), vec![x(&[4, 3])], layout(DType::I64, &[4])),
        (
            Op::Random(RandomKind::Normal),
            vec![layout(DType::I64, &[])],
            x(&[]),
        ),
    ];
    for (op, inputs, out) in cases {
        let task = Task::new(&op, &inputs, &out);
        assert!(!matches!(task, Task::Reference(..)), "{op}");
        let host = |(k, l): (usize, &Layout)| HostArray::new(l.dtype, &l.dims, values(k, l, &out));
        let host: Vec<HostArray> = inputs.iter().enumerate().map(host).collect();
        let refs: Vec<&HostArray> = host.iter().collect();
        let expected = eval_op(&op, &refs, out.dtype, &out.dims).data;
        let bytes = bytes_on(2, &op, &inputs, &out);
        let aligned = Bytes::new(bytes.len());
        // SAFETY: the bytes are those of the result.
        let found = unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), aligned.ptr(), bytes.len());
            read_f64(aligned.ptr(), out.dtype, out.elements())
        };
        assert_close(&op.to_string(), &found, &expected, 1e-6, Nan::Fails);
    }
    // The others still work.
    for (op, inputs, out) in [
        (Op::Binary(BinaryOp::Add), vec![x(&[2]), x(&[2])], x(&[2])),
        (
            Op::Reduce(ReduceKind::Sum, vec![0, 1]),
            vec![x(&[2, 3])],
            x(&[]),
        ),
    ] {
        let task = Task::new(&op, &inputs, &out);
        assert!(matches!(task, Task::Reference(..)), "{op}");
        assert!(bytes_on(1, &op, &inputs, &out).iter().any(|b| *b != 0));
    }
}
