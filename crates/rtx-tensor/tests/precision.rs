//! The precision of products is part of a compiled step: in its listing and its hash, and never by default.

use rtx_tensor::{CompileOptions, Compiled, Device, Precision, Result, Tensor, compile_with};

fn square(precision: Precision, device: &Device) -> Result<(Compiled<(), Tensor, Tensor>, Tensor)> {
    let a = Tensor::from_vec(vec![0.1f32, 0.2, 0.3, 0.4], [2, 2], device);
    let options = CompileOptions { precision };
    let step = compile_with(
        &options,
        |(): &(), a: &Tensor| Ok(((), a.matmul(a))),
        &(),
        &a,
        device,
    )?;
    Ok((step, a))
}

#[test]
fn each_tier_is_named_and_the_cpu_computes_all_in_f32() -> Result<()> {
    let device = Device::cpu();
    let (exact, a) = square(Precision::default(), &device)?;
    assert!(
        !exact.listing().contains("products of f32"),
        "{}",
        exact.listing()
    );
    let expected = exact.call((), &a)?.1.to_vec::<f32>()?;
    let mut hashes = vec![exact.structure_hash()];
    for tier in &Precision::ALL[1..] {
        let (step, a) = square(*tier, &device)?;
        let line = format!("products of f32 in {tier}\n");
        assert!(step.listing().contains(&line), "{}", step.listing());
        assert_eq!(step.call((), &a)?.1.to_vec::<f32>()?, expected, "{tier}");
        hashes.push(step.structure_hash());
    }
    hashes.sort_unstable();
    hashes.dedup();
    assert_eq!(
        hashes.len(),
        Precision::ALL.len(),
        "another tier is another program"
    );
    Ok(())
}

#[test]
fn names_are_read_back_and_a_wrong_one_lists_them() {
    for tier in Precision::ALL {
        assert_eq!(tier.to_string().parse(), Ok(tier));
    }
    let error = "half".parse::<Precision>().unwrap_err().to_string();
    assert_eq!(
        error,
        "no precision 'half'; there are f32, bf16x3, tf32, bf16, f16"
    );
}
