//! Mistakes: what they say, how they travel, and what is refused. Sharing between threads.

use rtx_ir::{DotDims, Error as GraphError, Node};
use rtx_tensor::{
    Compiled, DType, Device, Error, Tensor, compilations, compile, eval, grad, jvp, value_and_grad,
    vjp,
};

fn ones(shape: impl Into<rtx_tensor::Shape>) -> Tensor {
    Tensor::ones(shape, &Device::cpu())
}

/// The error of a tensor's read, which must be that of its check.
#[track_caller]
fn mistake(t: &Tensor) -> String {
    let checked = t.check().expect_err("the mistake is known without running");
    let read = t.to_host().expect_err("a read fails");
    assert_eq!(checked.to_string(), read.to_string());
    checked.to_string()
}

/// Asserts that the message names this file and line and every text of `parts`.
#[track_caller]
fn names(message: &str, line: u32, parts: &[&str]) {
    let place = format!("{}:{line}:", file!());
    for part in parts.iter().copied().chain([place.as_str()]) {
        assert!(message.contains(part), "'{part}' is missing in: {message}");
    }
}

#[test]
fn wrong_shapes_name_both_shapes_and_the_line() {
    let (a, b) = (ones([2, 3]), ones([4, 5]));
    let (sum, line) = (&a + &b, line!());
    names(&mistake(&sum), line, &["add", "[2, 3]", "[4, 5]"]);
    let (difference, line) = (a.clone() - b.clone(), line!());
    names(&mistake(&difference), line, &["sub", "[2, 3]", "[4, 5]"]);
    let (product, line) = (a.matmul(&b), line!());
    names(
        &mistake(&product),
        line,
        &["dot_general", "[2, 3]", "[4, 5]"],
    );
    let (scalar, line) = (a.sum_all().matmul(&b), line!());
    names(&mistake(&scalar), line, &["matmul", "[]", "[4, 5]"]);
    let (joined, line) = (Tensor::concat(&[&a, &b], 0), line!());
    names(&mistake(&joined), line, &["concat", "[2, 3]", "[4, 5]"]);
    let (shaped, line) = (a.reshape([5]), line!());
    names(&mistake(&shaped), line, &["reshape", "[2, 3]", "[5]"]);
    let (wide, line) = (a.broadcast_to([2, 4]), line!());
    names(&mistake(&wide), line, &["broadcast", "[2, 3]", "[2, 4]"]);
    let (flat, line) = (a.broadcast_to([3]), line!());
    names(&mistake(&flat), line, &["broadcast", "[2, 3]", "[3]"]);
    let (chosen, line) = (a.lt(&a).select(&a, &b), line!());
    names(&mistake(&chosen), line, &["select", "[2, 3]", "[4, 5]"]);
    let (power, line) = (a.pow(&b), line!());
    names(&mistake(&power), line, &["pow", "[2, 3]", "[4, 5]"]);
    let index = Tensor::from_vec(vec![0i64, 1], [2], &Device::cpu());
    let (table, line) = (a.scatter_add(&index, [4, 5]), line!());
    names(&mistake(&table), line, &["scatter_add", "[2, 3]", "[4, 5]"]);
    let line = line!() + 1;
    let data = Tensor::from_vec(vec![1f32], [2, 2], &Device::cpu());
    names(&mistake(&data), line, &["from_vec", "[1]", "[2, 2]"]);
    let (slope, line) = (a.dx(&b, 0), line!());
    names(&mistake(&slope), line, &["derivative", "[2, 3]", "[4, 5]"]);
    let (column, line) = (a.dx(&ones([2, 2]), 7), line!());
    names(&mistake(&column), line, &["derivative", "[2, 3]", "[2, 2]"]);
}

#[test]
fn wrong_element_types_name_both_types_and_the_line() {
    let single = ones([2]);
    let double = single.cast(DType::F64);
    let truth = single.lt(&single);
    let (sum, line) = (&single + &double, line!());
    names(&mistake(&sum), line, &["add", "f32", "f64", "cast()"]);
    let (product, line) = (single.matmul(&double), line!());
    names(&mistake(&product), line, &["dot_general", "f32", "f64"]);
    let (chosen, line) = (single.select(&single, &single), line!());
    names(&mistake(&chosen), line, &["select", "f32", "bool"]);
    let (sine, line) = (truth.sin(), line!());
    names(&mistake(&sine), line, &["sin", "bool"]);
    let (not, line) = (single.logical_not(), line!());
    names(&mistake(&not), line, &["not", "f32"]);
    let (rows, line) = (single.gather(&single), line!());
    names(&mistake(&rows), line, &["gather", "f32", "integer"]);
    let (table, line) = (single.scatter_add(&single, [4]), line!());
    names(&mistake(&table), line, &["scatter_add", "f32", "integer"]);
    let (total, line) = (truth.sum_all(), line!());
    names(&mistake(&total), line, &["reduce_sum", "bool"]);
    let (joined, line) = (Tensor::concat(&[&single, &double], 0), line!());
    names(&mistake(&joined), line, &["concat", "f32", "f64"]);
    let e = double.to_vec::<f32>().unwrap_err();
    assert!(matches!(
        e,
        Error::ElementType {
            asked: DType::F32,
            found: DType::F64
        }
    ));
}

#[test]
fn constructors_check_the_count_and_the_rank() {
    let of = Device::cpu();
    let v = vec![1.0f32; 1024];
    let (few, line) = (Tensor::from_vec(v.clone(), [2, 2], &of), line!());
    names(&mistake(&few), line, &["from_vec", "[1024]", "[2, 2]"]);
    let (many, line) = (Tensor::from_vec(v.clone(), [2; 10], &of), line!());
    names(&mistake(&many.sum_all()), line, &["from_vec", "10 axes"]);
    let (huge, line) = (Tensor::from_vec(v, [usize::MAX, 3], &of), line!());
    names(&mistake(&huge), line, &["from_vec", "[1024]"]);
}

#[test]
fn wrong_axes_name_the_axis_the_shape_and_the_line() {
    let a = ones([2, 3]);
    let (sum, line) = (a.sum(&[2]), line!());
    names(&mistake(&sum), line, &["reduce_sum", "axis 2", "[2, 3]"]);
    let (twice, line) = (a.max(&[1, 1]), line!());
    names(&mistake(&twice), line, &["reduce_max", "axis 1", "[2, 3]"]);
    let (mean, line) = (a.mean(&[0, 5]), line!());
    names(&mistake(&mean), line, &["reduce_sum", "axis 5", "[2, 3]"]);
    let (largest, line) = (a.argmax(9), line!());
    names(&mistake(&largest), line, &["argmax", "axis 9", "[2, 3]"]);
    let (cut, line) = (a.slice(1, 1, 7), line!());
    names(&mistake(&cut), line, &["slice", "1..7", "[2, 3]"]);
    let (cut, line) = (a.slice(4, 0, 1), line!());
    names(&mistake(&cut), line, &["slice", "axis 4", "[2, 3]"]);
    let (grown, line) = (a.pad(2, 1, 1), line!());
    names(&mistake(&grown), line, &["pad", "axis 2", "[2, 3]"]);
    let (turned, line) = (a.permute(&[0, 0]), line!());
    names(&mistake(&turned), line, &["permute", "[0, 0]", "[2, 3]"]);
    let (turned, line) = (ones([3]).t(), line!());
    names(&mistake(&turned), line, &["permute", "[3]"]);
    let (joined, line) = (Tensor::concat(&[&a, &a], 3), line!());
    names(&mistake(&joined), line, &["concat", "axis 3", "[2, 3]"]);
    let twice = DotDims {
        lhs_contract: vec![1, 1],
        rhs_contract: vec![1, 1],
        ..DotDims::default()
    };
    let (product, line) = (a.dot_general(&a, twice), line!());
    names(&mistake(&product), line, &["dot_general", "[2, 3]"]);
    let both = DotDims {
        lhs_batch: vec![0],
        rhs_batch: vec![0],
        lhs_contract: vec![0],
        rhs_contract: vec![0],
    };
    let (product, line) = (a.dot_general(&a, both), line!());
    names(&mistake(&product), line, &["dot_general", "[2, 3]"]);
    let outside = DotDims {
        lhs_contract: vec![6],
        rhs_contract: vec![0],
        ..DotDims::default()
    };
    let (product, line) = (a.dot_general(&a, outside), line!());
    names(
        &mistake(&product),
        line,
        &["dot_general", "axis 6", "[2, 3]"],
    );
}

/// A product whose operand is a repeated scalar is no special case.
#[test]
fn repeated_scalars_multiply() {
    let v = Tensor::full([3], 2.0, DType::F32, &Device::cpu());
    let m = ones([3, 2]);
    assert_eq!(v.matmul(&m).to_vec::<f32>().unwrap(), [6.0, 6.0]);
    assert!(v.matmul(&ones([4, 2])).check().is_err());
}

#[test]
fn the_first_mistake_travels_to_every_later_value() {
    let (bad, line) = (ones([2]) + ones([3]), line!());
    let later = ((bad * 2.0).sin().sum_all() + ones([7]).sum_all()).exp();
    names(&mistake(&later), line, &["add", "[2]", "[3]"]);
    let later = Tensor::concat(&[&ones([2]), &later], 0);
    names(&mistake(&later), line, &["add"]);
    assert!(later.shape().is_err());
    assert!(later.rows("points").is_err());
    let g = grad(|x| (x + &later).sum_all())(&ones([2]));
    names(&mistake(&g), line, &["add"]);
    let good = ones([2]);
    let e = eval(&[&good, &later]).unwrap_err().to_string();
    names(&e, line, &["add"]);
    let refused = compile(
        |s: &Tensor, _: &()| Ok((s + &later, ())),
        &good,
        &(),
        &Device::cpu(),
    );
    names(&refused.err().expect("refused").to_string(), line, &["add"]);
}

#[test]
fn a_mistake_inside_a_compiled_step_names_its_line() {
    let line = line!() + 2;
    let step = compile(
        |s: &Tensor, x: &Tensor| Ok((s.clone(), s + x)),
        &ones([2]),
        &ones([3]),
        &Device::cpu(),
    );
    // The output is checked where the program is made.
    let e = step.err().expect("refused").to_string();
    names(&e, line, &["add", "[2]", "[3]"]);
}

#[test]
fn check_runs_nothing() {
    let before = compilations(&Device::reference());
    let x = Tensor::ones([1000, 1000], &Device::reference());
    let y = (0..1000).fold(x, |y, _| y.sin().matmul(&y));
    y.check().unwrap();
    assert_eq!(y.shape().unwrap(), [1000, 1000]);
    assert_eq!(compilations(&Device::reference()), before);
    assert!(y.node().value().is_none());
}

#[test]
fn wrong_calls_of_the_transforms() {
    let x = ones([2, 3]);
    let line = line!() + 1;
    let g = grad(|x| x.sin())(&x);
    let e = mistake(&g);
    names(&e, line, &["scalar", "[2, 3]", "sum_all()"]);
    assert!(matches!(
        g.check(),
        Err(Error::Graph(GraphError::NotScalar { .. }))
    ));
    let short = ones([3]);
    for e in [vjp(|x| x.sin(), &x, &short), jvp(|x| x.sin(), &x, &short)] {
        let e = e.expect_err("refused").to_string();
        assert!(e.contains("[2, 3]") && e.contains("[3]"), "{e}");
    }
    let double = Tensor::full([2, 3], 1.0, DType::F64, &Device::cpu());
    for e in [
        vjp(|x| x.reshape([6]), &x, &double.reshape([6])),
        jvp(|x| x.reshape([6]), &x, &double),
    ] {
        let e = e.expect_err("refused").to_string();
        assert!(e.contains("f32") && e.contains("f64"), "{e}");
    }
}

#[test]
fn a_compiled_step_refuses_other_arguments() {
    let dev = Device::cpu();
    let step = compile(
        |s: &Tensor, x: &Tensor| Ok((s + x, ())),
        &ones([2]),
        &ones([2]),
        &dev,
    )
    .unwrap();
    let e = step.call(ones([3]), &ones([2])).unwrap_err().to_string();
    assert!(
        e.contains("state") && e.contains("[3]") && e.contains("[2]"),
        "{e}"
    );
    let double = Tensor::full([2], 1.0, DType::F64, &dev);
    let e = step.call(ones([2]), &double).unwrap_err().to_string();
    assert!(
        e.contains("inputs") && e.contains("f64") && e.contains("f32"),
        "{e}"
    );
    let grows = compile(
        |s: &Tensor, _: &()| Ok((Tensor::concat(&[s, s], 0), ())),
        &ones([2]),
        &(),
        &dev,
    );
    let e = grows.err().expect("refused").to_string();
    assert!(e.contains("[2]") && e.contains("[4]"), "{e}");
}

#[test]
fn row_counts_that_differ_are_refused() {
    let a = ones([3, 2]).rows("errors: a").unwrap();
    let b = ones([4, 2]).rows("errors: a").unwrap();
    let e = (&a + &b).to_host().unwrap_err().to_string();
    assert!(
        e.contains("errors: a") && e.contains('3') && e.contains('4'),
        "{e}"
    );
    let c = ones([3, 2]).rows("errors: c").unwrap();
    let (sum, line) = (&a + &c, line!());
    names(&mistake(&sum), line, &["errors: a", "errors: c"]);
    let (cut, line) = (a.slice(0, 0, 2), line!());
    names(&mistake(&cut), line, &["slice", "rows"]);
    let (turned, line) = (a.t(), line!());
    names(&mistake(&turned), line, &["permute", "leading"]);
    let column = ones([3]).rows("errors: a").unwrap();
    let (table, line) = (&a.slice(1, 0, 1) + &column, line!());
    names(&mistake(&table), line, &["broadcast", "leading"]);
    assert!(ones([]).rows("errors: a").is_err());
}

/// A value that was read has no history; a derivative through it is refused, not zero.
#[test]
fn a_lost_history_is_refused() {
    let x = ones([2]);
    let y = x.sin();
    let _ = y.to_host().unwrap();
    let z = (&y * &y).sum_all();
    let e = rtx_ir::vjp(&[z.node().clone()], &[None], &[x.node().clone()]).unwrap_err();
    assert!(
        matches!(e, GraphError::NotDifferentiable { op: "sin", .. }),
        "{e}"
    );
    assert!(e.to_string().contains("watch()"), "{e}");
    let tangent = ones([2]).node().clone();
    let e = rtx_ir::jvp(&[z.node().clone()], &[x.node().clone()], &[tangent]).unwrap_err();
    assert!(
        matches!(e, GraphError::NotDifferentiable { op: "sin", .. }),
        "{e}"
    );

    // Inside grad the variable is watched, so reading on the way is allowed.
    let (value, g) = value_and_grad(|x: &Tensor| {
        let y = x.sin();
        y.to_host().expect("readable");
        (&y * &y).sum_all()
    })(&x);
    assert!((value.item().unwrap() - 2.0 * 1f64.sin().powi(2)).abs() < 1e-6);
    let expected = 2.0 * 1f64.sin() * 1f64.cos();
    for v in g.to_vec::<f32>().unwrap() {
        assert!((f64::from(v) - expected).abs() < 1e-6);
    }
}

#[test]
fn a_chain_of_a_million_nodes_drops_without_recursion() {
    let small_stack = std::thread::Builder::new().stack_size(256 * 1024);
    let work = || {
        let mut x = ones([1]);
        for _ in 0..1_000_000 {
            x = x.sin();
        }
        x.check().unwrap();
        drop(x);
        // Wide and shared histories too.
        let mut y = ones([1]);
        for _ in 0..100_000 {
            y = &y * &y + &y;
        }
        let copy = y.clone();
        drop(y);
        drop(copy);
    };
    small_stack.spawn(work).unwrap().join().unwrap();
}

#[test]
fn a_long_chain_evaluates_and_differentiates() {
    let small_stack = std::thread::Builder::new().stack_size(512 * 1024);
    let work = || {
        let f = |x: &Tensor| (0..20_000).fold(x.clone(), |y, _| y * 0.9999).sum_all();
        let x = Tensor::full([2], 1.0, DType::F64, &Device::reference());
        let expected = 0.9999f64.powi(20_000);
        let (value, g) = value_and_grad(f)(&x);
        assert!((value.item().unwrap() / (2.0 * expected) - 1.0).abs() < 1e-9);
        assert!((g.to_vec::<f64>().unwrap()[1] / expected - 1.0).abs() < 1e-9);
        let y = f(&x).reshape([1]).broadcast_to([2]);
        y.to_host().unwrap();
    };
    small_stack.spawn(work).unwrap().join().unwrap();
}

const _: () = {
    const fn shared<T: Send + Sync>() {}
    shared::<Tensor>();
    shared::<Device>();
    shared::<Error>();
    shared::<Node>();
    shared::<Compiled<Vec<Tensor>, Tensor, (Tensor, Tensor)>>();
};

#[test]
fn threads_read_one_graph() {
    let dev = Device::cpu();
    for round in 0..200 {
        let x = Tensor::full([8], f64::from(round), DType::F64, &dev);
        let y = (&x * &x).sin() + 1.0;
        let z = &y * &y;
        let reads = std::thread::scope(|s| {
            let handles: Vec<_> = (0..4)
                .map(|k| {
                    let (y, z) = (&y, &z);
                    s.spawn(move || match k % 2 {
                        0 => (y * 1.0).to_vec::<f64>().and(z.to_vec::<f64>()),
                        _ => z.to_vec::<f64>().and_then(|v| y.to_vec::<f64>().map(|_| v)),
                    })
                })
                .collect();
            handles
                .into_iter()
                .map(|h| h.join().unwrap().unwrap())
                .collect::<Vec<_>>()
        });
        let expected = (f64::from(round * round).sin() + 1.0).powi(2);
        for v in reads {
            assert!((v[3] - expected).abs() < 1e-12, "round {round}");
        }
    }
}

#[test]
fn threads_run_one_compiled_step() {
    let dev = Device::cpu();
    let step = compile(
        |s: &Tensor, x: &Tensor| {
            let s = s * 0.5 + x;
            Ok((s.clone(), s.sum_all()))
        },
        &Tensor::full([64], 1.0, DType::F64, &dev),
        &Tensor::full([64], 1.0, DType::F64, &dev),
        &dev,
    )
    .unwrap();
    std::thread::scope(|scope| {
        for k in 0..4 {
            let (step, dev) = (&step, &dev);
            scope.spawn(move || {
                let x = Tensor::full([64], f64::from(k), DType::F64, dev);
                let mut s = Tensor::full([64], 0.0, DType::F64, dev);
                let mut last = 0.0;
                for _ in 0..100 {
                    let (next, sum) = step.call(s, &x).unwrap();
                    s = next;
                    last = sum.item().unwrap();
                }
                assert!((last - 2.0 * 64.0 * f64::from(k)).abs() < 1e-9);
            });
        }
    });
}

/// A derivative that is zero everywhere still has the rows of its variable.
#[test]
fn zero_derivatives_have_the_rows_of_their_variable() {
    let x = ones([5, 2]).rows("errors: zero").unwrap();
    let g = grad(|_: &Tensor| ones([3]).sum_all())(&x);
    assert_eq!(g.to_vec::<f32>().unwrap(), [0.0; 10]);
    let bent = (&x * 2.0).laplacian(&x, 2);
    assert_eq!(bent.square().mean_all().item().unwrap(), 0.0);
    let (_, t) = jvp(|x| x.stop_gradient(), &x, &x).unwrap();
    assert_eq!(t.to_vec::<f32>().unwrap(), [0.0; 10]);
}

/// A loop that is unrolled inside a compiled step is refused before it takes minutes.
#[test]
fn too_long_a_program_is_refused_with_a_way_out() {
    let dev = Device::cpu();
    let x = Tensor::ones([2], &dev);
    let unrolled = |x: &Tensor, (): &()| {
        let mut y = x.clone();
        for _ in 0..100_001 {
            y = y + 0.25;
        }
        Ok((y, ()))
    };
    let error = match rtx_tensor::compile(unrolled, &x, &(), &dev) {
        Ok(_) => panic!("compiled"),
        Err(e) => e.to_string(),
    };
    assert!(
        error.contains("100000 is the most") && error.contains(file!()),
        "{error}"
    );
}
