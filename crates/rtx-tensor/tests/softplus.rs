//! Softplus and its derivatives against closed forms, at zero and far from it.

use rtx_tensor::{Device, Result, Tensor, grad};

#[test]
fn derivatives_are_right_at_zero_and_at_the_ends() -> Result<()> {
    let points: Vec<f64> = vec![-800.0, -30.0, -1.0, 0.0, 1e-9, 2.0, 39.0, 41.0, 800.0];
    let x = Tensor::from_vec(points.clone(), [points.len()], &Device::reference());
    let f = |x: &Tensor| x.softplus().sum_all();
    let first = grad(f)(&x).to_vec::<f64>()?;
    let second = grad(|x: &Tensor| grad(f)(x).sum_all())(&x).to_vec::<f64>()?;
    let value = x.softplus().to_vec::<f64>()?;
    for (k, &p) in points.iter().enumerate() {
        let s = 1.0 / (1.0 + (-p).exp());
        let want = if p > 0.0 {
            p + (-p).exp().ln_1p()
        } else {
            p.exp().ln_1p()
        };
        assert!(
            (value[k] - want).abs() <= 1e-15 * want.abs(),
            "{p}: {}",
            value[k]
        );
        assert!((first[k] - s).abs() <= 1e-15, "{p}: {}", first[k]);
        assert!(
            (second[k] - s * (1.0 - s)).abs() <= 1e-15,
            "{p}: {}",
            second[k]
        );
    }
    Ok(())
}
