//! The two networks.

use super::options::{PinnOptions, PinnRheology, Recipe};
use super::scales::Scales;
use rtx_nn::{Activation, Init, Mlp};
use rtx_tensor::{Tensor, eval};

/// Logit of the initial loss angle over a quarter turn: about a fifth.
const INITIAL_PHASE: f64 = -1.4;

/// The network of u (`2 * fields` outputs: real parts, imaginary parts) and that of the modulus.
pub(super) fn build(
    scales: &Scales,
    fields: usize,
    options: &PinnOptions,
    recipe: &Recipe,
) -> (Mlp, Mlp) {
    let band = scales.largest_wavenumber() / std::f64::consts::TAU;
    let net = |which: usize, outputs: usize, last: f64| {
        let mut net = Mlp::new(scales.dims, outputs)
            .hidden(&vec![recipe.width[which]; recipe.depth[which]])
            .activation(Activation::Sin { omega: 1.0 })
            .init(Init::Siren { omega: 1.0 })
            .fourier(recipe.features[which], recipe.bandwidth[which] * band)
            .seed(options.seed.wrapping_mul(2).wrapping_add(which as u64))
            .build(&options.device);
        // A small last layer starts the fit from rest and the modulus from its scale.
        if let Some(layer) = net.layers.last_mut() {
            layer.weight = &layer.weight * last;
        }
        net
    };
    let u = net(0, 2 * fields, 0.2);
    let frequencies = scales.modulus_scale.len();
    let independent = options.rheology == PinnRheology::Independent;
    let mut m = net(1, if independent { 2 * frequencies } else { 1 }, 0.1);
    if let Some(layer) = m.layers.last_mut().filter(|_| independent) {
        let bias: Vec<f64> = (0..2 * frequencies)
            .map(|k| if k < frequencies { 0.0 } else { INITIAL_PHASE })
            .collect();
        layer.bias = Tensor::from_f64(
            &bias,
            [2 * frequencies],
            layer.bias.dtype(),
            &options.device,
        );
    }
    for t in u
        .layers
        .iter()
        .chain(&m.layers)
        .flat_map(|l| [&l.weight, &l.bias])
    {
        // A mistake stays in the tensor and surfaces when the step is compiled.
        let _ = eval(&[t]);
    }
    (u, m)
}
