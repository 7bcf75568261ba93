//! Counts compilations. The only test of its process, because the counter belongs to the device.

use rtx_nn::{Adam, Losses, Mlp, Module, NnError, Schedule, StepContext, Trainer, loss};
use rtx_tensor::{DType, Device, Tensor, Tree, compilations, eval};

type Data = (Tensor, Tensor, Tensor);

/// Points of one domain, points of another, weight of the second loss; all of them evaluated.
fn data(inside: usize, edge: usize, weight: f64, dev: &Device) -> Result<Data, NnError> {
    let d = (
        Tensor::full([inside, 1], 0.5, DType::F32, dev).rows("inside")?,
        Tensor::full([edge, 1], 1.0, DType::F32, dev).rows("edge")?,
        Tensor::from_f64(&[weight], [0usize; 0], DType::F32, dev),
    );
    eval(&d.leaves().iter().collect::<Vec<_>>())?;
    Ok(d)
}

#[test]
fn other_rows_weights_and_reads_never_recompile() -> Result<(), NnError> {
    let dev = Device::cpu();
    let net = Mlp::new(1, 1).hidden(&[4]).build(&dev);
    let f = |net: &Mlp, (a, b, w): &Data, c: &StepContext| {
        let moved = a + c.normal([1], DType::F32, 0);
        let edge = loss::mae(&net.forward(b), b);
        Ok(Losses::from(loss::mse(&net.forward(&moved), a) + edge * w))
    };
    let schedule = Schedule::Constant(1e-2);
    let mut t = Trainer::new(
        net,
        Adam::default(),
        schedule,
        data(3, 2, 1.0, &dev)?,
        f,
        &dev,
    )?
    .quiet(true)
    .read_every(2);
    let first = t.run(3)?.loss;
    let sets: Result<Vec<Data>, NnError> = [(30, 1, 0.0), (1, 9, 50.0), (3, 2, 2.0)]
        .iter()
        .map(|&(a, b, w)| data(a, b, w, &dev))
        .collect();
    let before = compilations(&dev);
    for set in sets? {
        t.set_inputs(set);
        assert_ne!(t.run(5)?.loss, first);
    }
    assert_eq!(compilations(&dev), before);
    assert_eq!(t.compilations(), 1);
    Ok(())
}
