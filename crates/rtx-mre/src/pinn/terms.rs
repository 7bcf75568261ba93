//! The terms of the loss: data, wave equation, total variation.

use super::options::{Equation, PinnOptions, PinnRheology, Recipe};
use super::scales::Scales;
use rtx_pinn::{ComplexField, Field, Fields, PointSet, Problem};
use rtx_tensor::{DType, Device, Tensor};

/// The modulus over its scale at each frequency, and the real maps whose variation is penalised.
fn modulus(f: &Fields<'_>, rheology: PinnRheology, omega_ratio: &Tensor) -> (ComplexField, Field) {
    let m = f.get("m");
    let count = omega_ratio.symbolic_shape().row_elements();
    if rheology == PinnRheology::Independent {
        let magnitude = m.slice(0, count).exp();
        let phase = m.slice(count, 2 * count).sigmoid() * std::f64::consts::FRAC_PI_2;
        let varying =
            Field::stack(&[m.slice(0, count), phase.clone()]).unwrap_or_else(|| m.clone());
        return (
            ComplexField::new(&magnitude * phase.cos(), &magnitude * phase.sin()),
            varying,
        );
    }
    // One storage modulus for all frequencies, repeated so that products go frequency by frequency.
    let storage = m.exp().map(|t| t + omega_ratio * 0.0);
    let loss = match rheology {
        PinnRheology::Voigt => {
            let viscosity = f.unknown("viscosity");
            storage.map(|t| t * 0.0 + omega_ratio * &viscosity)
        }
        _ => &storage * 0.0,
    };
    (ComplexField::new(storage, loss), m)
}

/// Repeats each frequency for all components of the motion.
fn per_component(g: &ComplexField, components: usize) -> ComplexField {
    if components == 1 {
        return g.clone();
    }
    g.map(|field| {
        let n = field.components();
        let parts: Vec<Field> = (0..n)
            .flat_map(|k| std::iter::repeat_n(field.component(k), components))
            .collect();
        Field::stack(&parts).unwrap_or_else(|| field.clone())
    })
}

pub(super) fn add(
    problem: Problem,
    pixels: &PointSet,
    scales: &Scales,
    options: &PinnOptions,
    recipe: &Recipe,
    nf: usize,
    nc: usize,
) -> Problem {
    let device: &Device = &options.device;
    let constant = |v: Vec<f64>| Tensor::from_f64(&v, [v.len()], DType::F32, device);
    let omega_ratio = constant(scales.omega_ratio.clone());
    let inverse = constant(
        (0..nf * nc)
            .map(|k| 1.0 / scales.wavenumber_squared[k / nc])
            .collect(),
    );
    let (rheology, equation) = (options.rheology, options.equation);
    let (power, floor, length) = (recipe.residual_power, recipe.variation_floor, scales.length);
    let ratio = omega_ratio.clone();
    // Real and imaginary parts of a frequency count alike.
    let precision: Vec<f64> = scales
        .noise
        .iter()
        .map(|n| n.max(1e-6).powf(-2.0 * recipe.noise_power))
        .collect();
    let mean = precision.iter().sum::<f64>() / precision.len() as f64;
    let precision = constant(
        precision
            .iter()
            .chain(&precision)
            .map(|p| p / mean)
            .collect(),
    );
    problem
        .scalar_term("data", pixels, move |f| {
            let miss = (f.get("u") - f.data("u"))
                .map(|d| d.square() * &precision)
                .sum_components();
            let seen = f.data("seen");
            (miss * &seen).value().sum_all() / (seen.value().sum_all() * (nf * nc) as f64)
        })
        .scalar_term("equation", pixels, move |f| {
            let u = f.complex("u");
            let g = per_component(&modulus(f, rheology, &ratio).0, nc);
            let wave = match equation {
                Equation::Hetero => u.div_of_gradient(&g),
                Equation::Helmholtz => &g * u.laplacian(),
            };
            let residual = (wave * &inverse + u).abs2();
            let weighed = if power == 0.0 {
                residual
            } else {
                residual / g.abs2().powf(power)
            };
            weighed.value().mean_all()
        })
        .scalar_term("variation", pixels, move |f| {
            let varying = modulus(f, rheology, &omega_ratio).1;
            let steep = varying.grad().norm2() * (length * length);
            let per_map = if rheology == PinnRheology::Independent {
                steep.slice(0, nf) + steep.slice(nf, 2 * nf)
            } else {
                steep
            };
            (per_map + floor * floor).sqrt().value().mean_all()
        })
        .weight("equation", recipe.equation_weight)
        .weight("variation", recipe.variation_weight)
}
