//! The CPU backend against the reference evaluation.

use rtx_tensor::{DType, Device, Tensor, compile, eval, value_and_grad_tree};

fn net(w: &[Tensor], x: &Tensor) -> Tensor {
    let z = x.matmul(&w[0]) * 2.0;
    let mut h = Tensor::concat(&[&z.sin(), &z.cos()], 1);
    for l in 0..2 {
        h = (h.matmul(&w[1 + 2 * l]) + &w[2 + 2 * l]).tanh();
    }
    h.matmul(&w[5]) + &w[6]
}

fn weights(dtype: DType, dev: &Device) -> Vec<Tensor> {
    [
        vec![2, 8],
        vec![16, 16],
        vec![16],
        vec![16, 16],
        vec![16],
        vec![16, 2],
        vec![2],
    ]
    .iter()
    .enumerate()
    .map(|(k, s)| Tensor::random_normal(rtx_tensor::Shape::of(s), k as u64, dtype, dev) * 0.3)
    .collect()
}

fn residual(w: &Vec<Tensor>, x: &Tensor, u: &Tensor) -> Tensor {
    let y = net(w, x);
    let lap = y.laplacian(x, 2);
    let r = lap * y.dx(x, 0) + &y * 4.0;
    (&y - u).square().mean_all() + r.square().mean_all() * 0.01
}

/// Loss and gradient of a small physics-informed network by both backends.
#[test]
fn pinn_step_agrees_with_the_reference() {
    for (dtype, tolerance) in [(DType::F64, 1e-12), (DType::F32, 2e-5)] {
        let run = |dev: &Device| -> Vec<Vec<f64>> {
            let w = weights(dtype, dev);
            let x = Tensor::random_uniform([37, 2], 100, dtype, dev)
                .rows("points")
                .unwrap();
            let u = Tensor::random_uniform([37, 2], 101, dtype, dev)
                .rows("points")
                .unwrap();
            let (loss, g) = value_and_grad_tree(|w: &Vec<Tensor>| residual(w, &x, &u), &w).unwrap();
            let mut all = vec![&loss];
            all.extend(&g);
            eval(&all).unwrap();
            all.iter().map(|t| t.to_host().unwrap().data).collect()
        };
        let (a, b) = (run(&Device::cpu()), run(&Device::reference()));
        for (k, (a, b)) in a.iter().zip(&b).enumerate() {
            let norm = b.iter().map(|v| v * v).sum::<f64>().sqrt();
            let error = a
                .iter()
                .zip(b)
                .map(|(x, y)| (x - y) * (x - y))
                .sum::<f64>()
                .sqrt();
            assert!(
                error <= tolerance * norm,
                "{dtype} output {k}: {error:e} of {norm:e}"
            );
        }
    }
}

/// A compiled step carries its state and gives the same numbers one by one and in one go.
#[test]
fn compiled_steps_carry_their_state() {
    let dev = Device::cpu();
    let w = weights(DType::F32, &dev);
    let x = Tensor::random_uniform([50, 2], 100, DType::F32, &dev)
        .rows("points")
        .unwrap();
    let u = Tensor::random_uniform([50, 2], 101, DType::F32, &dev)
        .rows("points")
        .unwrap();
    let step = compile(
        |w: &Vec<Tensor>, (x, u): &(Tensor, Tensor)| {
            let (loss, g) = value_and_grad_tree(|w: &Vec<Tensor>| residual(w, x, u), w)?;
            Ok((
                w.iter()
                    .zip(&g)
                    .map(|(w, g)| w - g * 1e-3)
                    .collect::<Vec<_>>(),
                loss,
            ))
        },
        &w,
        &(x.clone(), u.clone()),
        &dev,
    )
    .unwrap();
    let inputs = (x, u);
    let mut a = w.clone();
    let mut losses = Vec::new();
    for _ in 0..7 {
        let (next, loss) = step.call(a, &inputs).unwrap();
        a = next;
        losses.push(loss.item().unwrap());
    }
    let (b, last) = step.run(w, &inputs, 7).unwrap();
    assert_eq!(last.item().unwrap(), losses[6]);
    assert!(losses[6] < losses[0]);
    for (a, b) in a.iter().zip(&b) {
        assert_eq!(a.to_vec::<f32>().unwrap(), b.to_vec::<f32>().unwrap());
    }
    // Another number of rows runs on the same program.
    let x = Tensor::random_uniform([13, 2], 3, DType::F32, &dev)
        .rows("points")
        .unwrap();
    let u = Tensor::random_uniform([13, 2], 4, DType::F32, &dev)
        .rows("points")
        .unwrap();
    assert!(step.call(a, &(x, u)).unwrap().1.item().unwrap().is_finite());
}
