//! The examples at reduced size.

#[path = "../examples/burgers.rs"]
mod burgers;
#[path = "../examples/inverse_diffusion.rs"]
mod inverse_diffusion;

/// A small network gets the smooth part right; the full example has the threshold that counts.
#[test]
fn burgers_reduces_its_error() {
    let effort = |steps| burgers::Effort {
        hidden: vec![16; 4],
        points: 2000,
        batch: 250,
        steps,
        polish: 0,
    };
    let start = burgers::solve(&effort(1), true).unwrap();
    let end = burgers::solve(&effort(2000), true).unwrap();
    assert!(start.0 > 0.5 && end.0 < 0.15, "{} {}", start.0, end.0);
}

#[test]
fn diffusivity_is_found() {
    let effort = inverse_diffusion::Effort {
        measured: 100,
        noise: 1e-3,
        points: 100,
        steps: 1000,
        polish: 200,
    };
    let found = inverse_diffusion::solve(&effort, 1, true).unwrap();
    let error = found / inverse_diffusion::TRUTH - 1.0;
    assert!(error.abs() < 0.02, "{found}");
}
