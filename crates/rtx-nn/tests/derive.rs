//! `#[derive(Module)]`.

use rtx_nn::Module;
use rtx_tensor::{Device, Tensor, Tree};

#[derive(Clone, Module)]
struct Layer {
    weight: Tensor,
    #[module(buffer)]
    mean: Tensor,
    #[module(skip)]
    name: &'static str,
}

#[derive(Module)]
#[module(crate = "rtx_tensor")]
struct Net<T, F: Fn(f64) -> f64, const N: usize>
where
    T: Clone,
{
    parts: [T; N],
    extra: Option<Vec<T>>,
    #[module(skip)]
    shape: F,
    r#type: Tensor,
    #[module(buffer)]
    frozen: Layer,
}

fn scalar(v: f64) -> Tensor {
    Tensor::from_vec(vec![v], [1], &Device::cpu())
}

fn layer(v: f64) -> Layer {
    Layer {
        weight: scalar(v),
        mean: scalar(v + 0.5),
        name: "layer",
    }
}

#[test]
fn paths_roles_and_order() {
    let net = Net {
        parts: [layer(1.0), layer(2.0)],
        extra: Some(vec![layer(3.0)]),
        shape: |x| x,
        r#type: scalar(4.0),
        frozen: layer(5.0),
    };
    let names = |all: Vec<(String, Tensor)>| all.into_iter().map(|p| p.0).collect::<Vec<_>>();
    assert_eq!(
        names(net.named()),
        [
            "parts.0.weight",
            "parts.0.mean",
            "parts.1.weight",
            "parts.1.mean",
            "extra.0.weight",
            "extra.0.mean",
            "type",
            "frozen.weight",
            "frozen.mean"
        ]
    );
    assert_eq!(
        names(net.parameters()),
        ["parts.0.weight", "parts.1.weight", "extra.0.weight", "type"]
    );
    let doubled = net.map("", true, &mut |_, t| t * 2.0);
    let values = |net: &Net<_, _, 2>| -> Vec<f64> {
        let leaves: Vec<Tensor> = net.leaves();
        leaves.iter().map(|t| t.item().unwrap()).collect()
    };
    let (before, after) = (values(&net), values(&doubled));
    assert!(before.iter().zip(&after).all(|(a, b)| 2.0 * a == *b));
    assert_eq!(doubled.parts[0].name, "layer");
    assert_eq!((doubled.shape)(3.0), 3.0);
}
