//! The structure hash tells programs apart, and nothing else.

use rtx_tensor::{Compiled, DType, Device, Result, Tensor, compile};

fn step(factor: f64, rows: usize) -> Result<Compiled<Tensor, Tensor, Tensor>> {
    let dev = Device::reference();
    let w = Tensor::full([1], 2.0, DType::F64, &dev);
    let x = Tensor::full([rows, 1], 1.0, DType::F64, &dev).rows("points")?;
    compile(
        |w: &Tensor, x: &Tensor| Ok((w.clone(), (x * w * factor).sum_all())),
        &w,
        &x,
        &dev,
    )
}

#[test]
fn equal_programs_share_a_hash() -> Result<()> {
    let a = step(3.0, 4)?.structure_hash();
    assert_eq!(a, step(3.0, 9)?.structure_hash(), "row counts do not count");
    assert_ne!(a, step(4.0, 4)?.structure_hash(), "constants do");
    Ok(())
}
