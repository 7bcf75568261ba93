//! L-BFGS on functions with known minima.

use rtx_nn::{Lbfgs, Mlp, Module, NnError, StopReason, loss};
use rtx_tensor::{DType, Device, Tensor};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

fn rosenbrock(x: &Tensor, n: usize) -> Tensor {
    let (head, tail) = (x.slice(0, 0, n - 1), x.slice(0, 1, n));
    let valley = (tail - head.square()).square() * 100.0;
    (valley + (1.0 - head).square()).sum_all()
}

#[test]
fn rosenbrock_in_ten_dimensions() -> Result<(), NnError> {
    let dev = Device::cpu();
    let start: Vec<f64> = (0..10)
        .map(|k| if k % 2 == 0 { -1.2 } else { 1.0 })
        .collect();
    let x = Tensor::from_vec(start, [10], &dev);
    let f = |x: &Tensor, (): &()| Ok(rosenbrock(x, 10));
    let report = Lbfgs::f64().minimize_model(&x, &(), f, &dev)?;
    let m = report.minimum;
    assert!(
        matches!(m.reason, StopReason::Gradient { .. }),
        "{}",
        m.reason
    );
    // From this start the chained function has a local minimum too, which is not the one sought here.
    assert!(m.x.iter().all(|v| (v - 1.0).abs() < 1e-8), "{:?}", m.x);
    assert!(
        m.iterations < 120 && m.evaluations < 180,
        "{} {}",
        m.iterations,
        m.evaluations
    );
    assert!(
        m.values
            .windows(2)
            .all(|w| w[1] <= w[0] * (1.0 + 1e-14) + 1e-300)
    );
    assert_eq!(m.reason.to_string().split(':').next(), Some("converged"));
    Ok(())
}

#[test]
fn a_quadratic_ends_at_its_minimum() -> Result<(), NnError> {
    let scale = [1.0, 1e3, 1e-2, 50.0];
    let f = |x: &[f64]| {
        let value = x
            .iter()
            .zip(scale)
            .map(|(x, s)| 0.5 * s * (x - 1.0).powi(2))
            .sum();
        Ok((
            value,
            x.iter().zip(scale).map(|(x, s)| s * (x - 1.0)).collect(),
        ))
    };
    let m = Lbfgs::f64().minimize(f, vec![0.0; 4])?;
    assert!(
        m.x.iter().all(|x| (x - 1.0).abs() < 1e-7),
        "{:?} {}",
        m.x,
        m.reason
    );
    Ok(())
}

#[test]
fn a_domain_with_an_edge_is_respected() -> Result<(), NnError> {
    // x - ln x is NaN for negative x; the first step along the gradient would leave the domain.
    let f = |x: &[f64]| Ok((100.0 * (x[0] - x[0].ln()), vec![100.0 * (1.0 - 1.0 / x[0])]));
    let m = Lbfgs::f64().minimize(f, vec![0.01])?;
    assert!((m.x[0] - 1.0).abs() < 1e-9, "{:?} {}", m.x, m.reason);
    Ok(())
}

#[test]
fn every_reason_to_stop_is_told() -> Result<(), NnError> {
    let quartic = |x: &[f64]| Ok((x[0].powi(4), vec![4.0 * x[0].powi(3)]));
    let m = Lbfgs::f64().max_iter(3).minimize(quartic, vec![3.0])?;
    assert_eq!((m.reason, m.iterations), (StopReason::Iterations(3), 3));
    let flag = Arc::new(AtomicBool::new(true));
    let m = Lbfgs::f64().stop_flag(flag).minimize(quartic, vec![3.0])?;
    assert_eq!((m.reason, m.x[0]), (StopReason::Stopped, 3.0));
    let nan = |_: &[f64]| Ok((f64::NAN, vec![0.0]));
    assert_eq!(
        Lbfgs::f64().minimize(nan, vec![0.0])?.reason,
        StopReason::NotFinite
    );
    // A gradient that lies: nothing along its descent is lower.
    let liar = |x: &[f64]| Ok((x[0], vec![-1.0]));
    let m = Lbfgs::f64().minimize(liar, vec![0.0])?;
    assert!(
        matches!(m.reason, StopReason::LineSearch { .. }),
        "{}",
        m.reason
    );
    Ok(())
}

#[test]
fn a_single_precision_network_is_polished_in_double() -> Result<(), NnError> {
    let dev = Device::cpu();
    let net = Mlp::new(1, 1).hidden(&[6]).seed(3).build(&dev);
    let points: Vec<f32> = (0..12).map(|k| k as f32 / 6.0 - 1.0).collect();
    let x = Tensor::from_vec(points, [12, 1], &dev);
    let y = (&x * 3.0).sin();
    let f = |net: &Mlp, (x, y): &(Tensor, Tensor)| Ok(loss::mse(&net.forward(x), y));
    let lbfgs = Lbfgs::f64().max_iter(200).gradient_tolerance(1e-7);
    let report = lbfgs.minimize_model(&net, &(x, y), f, &dev)?;
    let m = &report.minimum;
    assert!(
        m.value < 1e-6 && m.values[0] > 0.1,
        "{} {}",
        m.values[0],
        m.value
    );
    assert_eq!(report.model.layers[0].weight.dtype(), DType::F64);
    assert_eq!(report.rounded.layers[0].weight.dtype(), DType::F32);
    Ok(())
}
