//! Operations on whole arrays on the CPU: milliseconds per run of a compiled step, at about 10^6 elements.
//!
//! `cargo bench -p rtx-tensor --bench whole [-- part of a name]`. A run is one of several steps of one call, so the
//! memory of the result is that of the step before; the best call is printed.

use rtx_ir::DotDims;
use rtx_tensor::{DType, Device, Result, Shape, Tensor, compile, eval};
use std::time::Instant;

/// Steps of a call, and the time for the calls of one operation, in seconds.
const STEPS: usize = 5;
const TIME: f64 = 0.5;

fn main() -> Result<()> {
    let wanted: Vec<String> = std::env::args()
        .skip(1)
        .filter(|a| !a.starts_with("--"))
        .collect();
    let dev = Device::cpu();
    let f = |shape: &[usize]| Tensor::random_uniform(Shape::of(shape), 1, DType::F32, &dev) - 0.5;
    // Rows in no order, each about equally often.
    let index = |n: usize, rows: usize| {
        let at = |k: usize| (k as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 33;
        let rows = (0..n).map(|k| (at(k) % rows as u64) as i64).collect();
        Tensor::from_vec(rows, [n], &dev)
    };
    println!("{:<52} {:>10}", "operation (f32)", "ms");
    let measure = |name: &str, inputs: Vec<Tensor>, op: &dyn Fn(&[Tensor]) -> Tensor| {
        if !wanted.is_empty() && !wanted.iter().any(|w| name.contains(w.as_str())) {
            return Ok(());
        }
        eval(&inputs.iter().collect::<Vec<_>>())?;
        let step = compile(
            |(): &(), x: &Vec<Tensor>| Ok(((), op(x))),
            &(),
            &inputs,
            &dev,
        )?;
        let mut best = f64::INFINITY;
        let begin = Instant::now();
        while best.is_infinite() || begin.elapsed().as_secs_f64() < TIME {
            let start = Instant::now();
            step.run((), &inputs, STEPS)?;
            best = best.min(start.elapsed().as_secs_f64() / STEPS as f64);
        }
        println!("{name:<52} {:>10.3}", best * 1e3);
        Result::Ok(())
    };

    for (n, rows, width) in [
        (1_000_000, 1_000_000, 1),
        (1_000_000, 1_000, 1),
        (100_000, 100_000, 10),
        (100_000, 100, 10),
    ] {
        let shape: &[usize] = if width == 1 { &[n] } else { &[n, width] };
        let table = if width == 1 {
            vec![rows]
        } else {
            vec![rows, width]
        };
        measure(
            &format!("scatter_add {shape:?} to {table:?}"),
            vec![f(shape), index(n, rows)],
            &|x| x[0].scatter_add(&x[1], Shape::of(&table)),
        )?;
    }
    measure(
        "gather of one row [1000, 1000]",
        vec![
            f(&[1000, 1000]),
            Tensor::from_vec(vec![7i64], [1], &dev).reshape([] as [usize; 0]),
        ],
        &|x| x[0].gather(&x[1]),
    )?;
    measure(
        "slice [1000000, 2] axis 0, half",
        vec![f(&[1_000_000, 2])],
        &|x| x[0].slice(0, 1000, 501_000),
    )?;
    measure("pad [100000, 10] axis 0", vec![f(&[100_000, 10])], &|x| {
        x[0].pad(0, 10, 1000)
    })?;
    measure(
        "concat 2 x [50000, 10] axis 0",
        vec![f(&[50_000, 10]), f(&[50_000, 10])],
        &|x| Tensor::concat(&[&x[0], &x[1]], 0),
    )?;
    measure(
        "permute [1000, 1000] by [1, 0]",
        vec![f(&[1000, 1000])],
        &|x| x[0].t(),
    )?;
    measure(
        "permute [250000, 4] by [1, 0]",
        vec![f(&[250_000, 4])],
        &|x| x[0].t(),
    )?;
    measure(
        "permute [100, 100, 100] by [2, 1, 0]",
        vec![f(&[100, 100, 100])],
        &|x| x[0].permute(&[2, 1, 0]),
    )?;
    measure(
        "permute [100, 100, 100] by [1, 0, 2]",
        vec![f(&[100, 100, 100])],
        &|x| x[0].permute(&[1, 0, 2]),
    )?;
    let batched = DotDims {
        lhs_batch: vec![0],
        rhs_batch: vec![0],
        lhs_contract: vec![2],
        rhs_contract: vec![1],
    };
    for (a, b) in [
        ([64, 125, 125], [64, 125, 125]),
        ([1000, 10, 100], [1000, 100, 10]),
        ([100_000, 3, 3], [100_000, 3, 3]),
    ] {
        measure(
            &format!("batched product {a:?} x {b:?}"),
            vec![f(&a), f(&b)],
            &|x| x[0].dot_general(&x[1], batched.clone()),
        )?;
    }
    let two = DotDims {
        lhs_contract: vec![1, 2],
        rhs_contract: vec![0, 1],
        ..DotDims::default()
    };
    measure(
        "product [100, 100, 100] x [100, 100, 20], two axes",
        vec![f(&[100, 100, 100]), f(&[100, 100, 20])],
        &|x| x[0].dot_general(&x[1], two.clone()),
    )?;
    measure(
        "product of i64 [100, 100] x [100, 100]",
        vec![
            index(10_000, 9).reshape([100, 100]),
            index(10_000, 7).reshape([100, 100]),
        ],
        &|x| x[0].matmul(&x[1]),
    )?;
    measure(
        "sum [100, 100, 100] over [0, 1]",
        vec![f(&[100, 100, 100])],
        &|x| x[0].sum(&[0, 1]),
    )?;
    measure(
        "max [100, 100, 100] over [0, 2]",
        vec![f(&[100, 100, 100])],
        &|x| x[0].max(&[0, 2]),
    )?;
    measure(
        "argmax [100000, 10] axis 0",
        vec![f(&[100_000, 10])],
        &|x| x[0].argmax(0),
    )?;
    measure(
        "argmax [100000, 10] axis 1",
        vec![f(&[100_000, 10])],
        &|x| x[0].argmax(1),
    )
}
