//! Networks: shapes, initial values, activations, Fourier features.

use rtx_nn::{Activation, Init, Linear, Mlp, Module, NnError, Output, loss, parameter_count};
use rtx_tensor::{DType, Device, Tensor, Tree, grad};
use rtx_testing::Nan;

fn dev() -> Device {
    Device::cpu()
}

fn column(v: &[f64]) -> Tensor {
    Tensor::from_vec(v.to_vec(), [v.len(), 1], &dev())
}

#[test]
fn activations_and_their_derivatives() -> Result<(), NnError> {
    let points = [-2.0, -0.3, 0.7, 3.0];
    let x = column(&points);
    let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
    let gelu = |x: f64| {
        0.5 * x * (1.0 + ((2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x.powi(3))).tanh())
    };
    let table: [(Activation, &dyn Fn(f64) -> f64); 8] = [
        (Activation::Tanh, &f64::tanh),
        (Activation::Sin { omega: 30.0 }, &|x| (30.0 * x).sin()),
        (Activation::Sigmoid, &sigmoid),
        (Activation::Relu, &|x| x.max(0.0)),
        (Activation::Softplus, &|x| x.exp().ln_1p()),
        (Activation::Silu, &|x| x * sigmoid(x)),
        (Activation::Gelu, &gelu),
        (Activation::Identity, &|x| x),
    ];
    for (a, f) in table {
        let got = a.apply(&x).to_vec::<f64>()?;
        let slope = grad(|x: &Tensor| a.apply(x).sum_all())(&x).to_vec::<f64>()?;
        for (k, &p) in points.iter().enumerate() {
            let h = 1e-5;
            let numeric = (f(p + h) - f(p - h)) / (2.0 * h);
            assert!((got[k] - f(p)).abs() < 1e-14, "{a:?} at {p}");
            assert!((slope[k] - numeric).abs() < 1e-5, "{a:?}' at {p}");
        }
    }
    Ok(())
}

#[test]
fn initial_values_depend_on_seed_and_layer_only() -> Result<(), NnError> {
    let weight = |seed, layer| -> Result<Vec<f64>, NnError> {
        let l = Linear::new(40, 50, Init::GlorotUniform, seed, layer, DType::F64, &dev());
        Ok(l.weight.to_vec::<f64>()?)
    };
    let w = weight(1, 0)?;
    assert_eq!(w, weight(1, 0)?);
    assert_ne!(w, weight(2, 0)?);
    assert_ne!(w, weight(1, 1)?);
    let limit = (6.0f64 / 90.0).sqrt();
    let (mean, variance) = moments(&w);
    assert!(w.iter().all(|v| v.abs() <= limit));
    assert!(mean.abs() < 0.05 * limit, "{mean}");
    assert!(
        (variance / (limit * limit / 3.0) - 1.0).abs() < 0.05,
        "{variance}"
    );
    let he = Init::He.weight(50, 60, 5, DType::F64, &dev());
    let (_, variance) = moments(&he.to_vec::<f64>()?);
    assert!((variance / (2.0 / 50.0) - 1.0).abs() < 0.1, "{variance}");
    Ok(())
}

fn moments(v: &[f64]) -> (f64, f64) {
    let n = v.len() as f64;
    let mean = v.iter().sum::<f64>() / n;
    (mean, v.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n)
}

#[test]
fn forward_by_hand_with_fourier_features() -> Result<(), NnError> {
    let net = Mlp::new(2, 1)
        .hidden(&[3])
        .fourier(4, [1.0, 0.25])
        .positive()
        .seed(7)
        .dtype(DType::F64)
        .build(&dev());
    let x = [0.3, -0.8];
    let b = net.named()[0].1.to_vec::<f64>()?;
    let mut h: Vec<f64> = (0..8)
        .map(|k| {
            let phase = 2.0 * std::f64::consts::PI * (x[0] * b[k % 4] + x[1] * b[4 + k % 4]);
            if k < 4 { phase.sin() } else { phase.cos() }
        })
        .collect();
    for (k, layer) in net.layers.iter().enumerate() {
        let (w, bias) = (layer.weight.to_vec::<f64>()?, layer.bias.to_vec::<f64>()?);
        if k > 0 {
            h = h.iter().map(|v| v.tanh()).collect();
        }
        let n = bias.len();
        h = (0..n)
            .map(|j| {
                bias[j]
                    + h.iter()
                        .enumerate()
                        .map(|(i, v)| v * w[i * n + j])
                        .sum::<f64>()
            })
            .collect();
    }
    let got = net
        .forward(&Tensor::from_vec(x.to_vec(), [1, 2], &dev()))
        .item()?;
    assert!((got - h[0].exp().ln_1p()).abs() < 1e-13);
    Ok(())
}

#[test]
fn learnable_features_are_parameters_and_fixed_ones_are_not() -> Result<(), NnError> {
    let base = Mlp::new(2, 2).hidden(&[8, 8]);
    let plain = 2 * 5 * 8 + 8 + 8 * 8 + 8 + 8 * 2 + 2;
    let fixed = base.clone().fourier(5, 2.0).build(&dev());
    assert_eq!(parameter_count(&fixed)?, plain);
    let learnable = base.learnable_fourier(5, 2.0).build(&dev());
    assert_eq!(parameter_count(&learnable)?, plain + 10);
    assert_eq!(learnable.parameters()[0].0, "fourier.frequencies");
    Ok(())
}

#[test]
fn siren_has_its_weights() -> Result<(), NnError> {
    let net = Mlp::new(2, 1)
        .hidden(&[32, 32])
        .siren(30.0)
        .dtype(DType::F64)
        .build(&dev());
    let limits = [
        0.5,
        (6.0f64 / 32.0).sqrt() / 30.0,
        (6.0f64 / 32.0).sqrt() / 30.0,
    ];
    for (layer, limit) in net.layers.iter().zip(limits) {
        let w = layer.weight.to_vec::<f64>()?;
        let largest = rtx_testing::largest_difference(&w, &vec![0.0; w.len()], Nan::Fails);
        assert!(
            largest <= limit && largest > 0.8 * limit,
            "{largest} {limit}"
        );
    }
    assert_eq!(net.activation(), Activation::Sin { omega: 30.0 });
    assert_eq!(net.output(), Output::Linear);
    Ok(())
}

#[test]
fn a_wrong_number_of_scales_is_an_error_at_the_read() {
    let net = Mlp::new(2, 1).fourier(4, [1.0, 1.0, 1.0]).build(&dev());
    let error = net
        .forward(&Tensor::zeros([1, 2], &dev()))
        .to_host()
        .unwrap_err();
    assert!(error.to_string().contains("[3]"), "{error}");
}

#[test]
fn losses_by_hand() -> Result<(), NnError> {
    let (a, b) = (column(&[0.0, 1.0, 5.0]), column(&[0.5, 1.0, 1.0]));
    let close = |t: Tensor, want: f64| -> Result<(), NnError> {
        let got = t.item()?;
        assert!((got - want).abs() < 1e-15, "{got} {want}");
        Ok(())
    };
    close(loss::mse(&a, &b), (0.25 + 16.0) / 3.0)?;
    close(loss::mae(&a, &b), 4.5 / 3.0)?;
    close(loss::huber(&a, &b, 2.0), (0.125 + 2.0 * (4.0 - 1.0)) / 3.0)
}
