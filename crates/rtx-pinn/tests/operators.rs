//! Differential operators of closed formulas against their derivatives by hand.

use rtx_pinn::{Complex64, Field, Frame, VectorField};
use rtx_tensor::{Device, Tensor};

const XY: [[f64; 2]; 3] = [[0.3, -0.4], [1.1, 0.2], [-0.7, 0.9]];

/// The points under a scaling that no derivative may depend on.
fn frame() -> Frame {
    let (centre, half) = ([0.2, -0.1], [2.0, 0.5]);
    let root = XY
        .iter()
        .flat_map(|p| (0..2).map(move |a| (p[a] - centre[a]) / half[a]))
        .collect::<Vec<f64>>();
    let root = Tensor::from_vec(root, [XY.len(), 2], &Device::cpu());
    Frame::scaled(&root, &centre, &half, 2)
}

fn close(found: &Field, expected: impl Fn(f64, f64) -> f64) {
    let v = found.value().to_vec::<f64>().unwrap();
    for (v, [x, y]) in v.iter().zip(XY) {
        let e = expected(x, y);
        assert!((v - e).abs() < 1e-12 * (1.0 + e.abs()), "{v} for {e}");
    }
}

fn wave(at: &Frame) -> Field {
    (at.x(0) * 2.0).sin() * (at.x(1) * -1.5).exp()
}

fn wave_at(x: f64, y: f64) -> f64 {
    (2.0 * x).sin() * (-1.5 * y).exp()
}

#[test]
fn first_second_and_mixed_derivatives() {
    let at = frame();
    let u = wave(&at);
    close(&u.dx(0), |x, y| 2.0 * (2.0 * x).cos() * (-1.5 * y).exp());
    close(&u.dx(1), |x, y| -1.5 * wave_at(x, y));
    close(&u.dt(), |x, y| -1.5 * wave_at(x, y));
    close(&u.dxx(0), |x, y| -4.0 * wave_at(x, y));
    close(&u.laplacian(), |x, y| (-4.0 + 2.25) * wave_at(x, y));
    close(&u.partial(&[2, 1]), |x, y| 6.0 * wave_at(x, y));
    close(&u.dx(0).dx(0).dx(1), |x, y| 6.0 * wave_at(x, y));
    let biharmonic = u.operator(&[(&[4], 1.0), (&[2, 2], 2.0), (&[0, 4], 1.0)]);
    close(&biharmonic, |x, y| 1.75 * 1.75 * wave_at(x, y));
}

#[test]
fn vector_operators() {
    let at = frame();
    let (x, y) = (at.x(0), at.x(1));
    let v = VectorField::new(&at, vec![&x * &x * &y, (&x * &y).sin()]);
    close(&v.div(), |x, y| 2.0 * x * y + x * (x * y).cos());
    let stacked = Field::stack(v.parts()).unwrap();
    assert_eq!(stacked.components(), 2);
    close(&stacked.div(), |x, y| 2.0 * x * y + x * (x * y).cos());
    let u = wave(&at);
    let flux = &x.exp() * &u.grad();
    let expected = |x: f64, y: f64| {
        x.exp() * (-1.75 * wave_at(x, y) + 2.0 * (2.0 * x).cos() * (-1.5 * y).exp())
    };
    close(&flux.div(), expected);
    close(&u.div_of_gradient(&x.exp()), expected);
    close(&u.grad().norm2(), |x, y| {
        ((2.0 * (2.0 * x).cos()).powi(2) + (1.5 * (2.0 * x).sin()).powi(2)) * (-3.0 * y).exp()
    });
}

#[test]
fn arithmetic_with_numbers_and_tensors() {
    let at = frame();
    let u = wave(&at);
    let c = Tensor::scalar(3.0, rtx_tensor::DType::F64, &Device::cpu());
    close(&(2.0 - &u / 4.0), |x, y| 2.0 - wave_at(x, y) / 4.0);
    close(&(&c / (&u + 5.0) - &c * &u), |x, y| {
        3.0 / (wave_at(x, y) + 5.0) - 3.0 * wave_at(x, y)
    });
    close(&(-&u * &c), |x, y| -3.0 * wave_at(x, y));
}

#[test]
fn space_operators_leave_time_out() {
    let root = Tensor::from_vec(vec![0.5f64, 0.25], [1, 2], &Device::cpu());
    let at = Frame::scaled(&root, &[0.0; 2], &[1.0; 2], 1);
    let u = at.x(0).powi(2) * at.x(1).powi(3);
    let lap = u.laplacian().value().to_vec::<f64>().unwrap()[0];
    assert!((lap - 2.0 * 0.25f64.powi(3)).abs() < 1e-14);
    assert_eq!(u.grad().parts().len(), 1);
    let dt = u.dt().value().to_vec::<f64>().unwrap()[0];
    assert!((dt - 0.25 * 3.0 * 0.0625).abs() < 1e-14);
}

#[test]
fn complex_arithmetic() {
    let at = frame();
    let z = rtx_pinn::ComplexField::new(at.x(0), at.x(1));
    let w = Complex64::new(0.5, -2.0);
    let check = |f: &rtx_pinn::ComplexField, g: &dyn Fn(Complex64) -> Complex64| {
        close(&f.re, |x, y| g(Complex64::new(x, y)).re);
        close(&f.im, |x, y| g(Complex64::new(x, y)).im);
    };
    check(&(&z * w + 1.0), &|z| z * w + 1.0);
    check(&(w / &z - &z), &|z| w / z - z);
    check(&(&z * &z / (&z + w)), &|z| z * z / (z + w));
    check(&(2.0 - z.conj()), &|z| 2.0 - z.conj());
    check(&(-at.x(0) * &z.exp()), &|z| -z.re * z.exp());
    check(&(1.0 / &z), &|z| 1.0 / z);
    check(&(w - &z), &|z| w - z);
    close(&z.abs2(), |x, y| x * x + y * y);
    close(&z.arg(), |x, y| y.atan2(x));
}

/// A plane wave in a lossy medium, oblique to the axes, solves the Helmholtz equation written once.
#[test]
fn helmholtz_residual_of_a_plane_wave_is_zero() {
    let at = frame();
    let (modulus, density, omega) = (Complex64::new(3.0, 0.4), 1.2, 5.0);
    let k = (density * omega * omega / modulus).sqrt();
    let (c, s) = (0.6, 0.8);
    let along = at.x(0) * c + at.x(1) * s;
    let u = (Complex64::i() * k * along).exp();
    let residual = modulus * u.laplacian() + density * omega * omega * &u;
    close(&residual.abs2(), |_, _| 0.0);
    // With a modulus that varies, div(G grad u) has the second term as well.
    let g = (at.x(0) * 0.3).exp() * modulus;
    let hetero = u.div_of_gradient(&g);
    let direct = u.grad().map(|p| &g * p).div();
    close(&(&hetero - &direct).abs2(), |_, _| 0.0);
    let expected = |x: f64, y: f64| {
        let u = (Complex64::i() * k * (c * x + s * y)).exp();
        (0.3 * x).exp() * modulus * (-k * k + 0.3 * c * Complex64::i() * k) * u
    };
    close(&hetero.re, |x, y| expected(x, y).re);
    close(&hetero.im, |x, y| expected(x, y).im);
}

#[test]
fn mistakes_name_what_was_asked() {
    let at = frame();
    let short = VectorField::new(&at, vec![at.x(0)]);
    let message = short
        .dot(&at.coordinates())
        .value()
        .check()
        .unwrap_err()
        .to_string();
    assert!(message.contains("1 and 2 axes"), "{message}");
    assert!(at.x(5).value().check().is_err());
    assert!(at.x(0).dx(2).value().check().is_err());
}
