//! Optimizers and schedules inside the compiled step, against optax in double precision.

use rtx_nn::{Adam, Losses, NnError, Optimizer, Schedule, ScheduleState, Sgd, Trainer};
use rtx_tensor::{DType, Device, Tensor};
use serde_json::Value;

fn goldens() -> Value {
    serde_json::from_str(include_str!("goldens/optimizers.json")).unwrap()
}

fn numbers(v: &Value) -> Vec<f64> {
    let list = v.as_array().unwrap();
    list.iter().map(|x| x.as_f64().unwrap()).collect()
}

/// Largest relative difference to the golden path over ten updates, one read per update.
fn deviation(
    name: &str,
    dtype: DType,
    optimizer: impl Optimizer + 'static,
    schedule: Schedule,
) -> Result<f64, NnError> {
    let dev = Device::cpu();
    let g = goldens();
    let p = Tensor::from_f64(&numbers(&g["start"]), [3], dtype, &dev);
    let scale = Tensor::from_f64(&numbers(&g["scale"]), [3], dtype, &dev);
    let loss = |p: &Tensor, scale: &Tensor, _: &_| {
        Ok(Losses::from((scale * (p.sin() + p.square())).sum_all()))
    };
    let mut t = Trainer::new(p, optimizer, schedule, scale, loss, &dev)?.quiet(true);
    let mut worst = 0.0f64;
    for row in g[name].as_array().unwrap() {
        t.run(1)?;
        for (got, want) in t.model().to_host()?.data.iter().zip(numbers(row)) {
            worst = worst.max((got - want).abs() / want.abs());
        }
    }
    Ok(worst)
}

#[test]
fn paths_equal_those_of_optax() -> Result<(), NnError> {
    let adamw = Adam {
        weight_decay: 0.1,
        ..Adam::default()
    };
    let half = Schedule::Exponential {
        lr: 0.05,
        factor: 0.5,
        every: 4,
    };
    for (dtype, tolerance) in [(DType::F64, 1e-13), (DType::F32, 1e-5)] {
        for (name, worst) in [
            (
                "adam",
                deviation("adam", dtype, Adam::default(), Schedule::Constant(0.05))?,
            ),
            (
                "adamw",
                deviation("adamw", dtype, adamw, Schedule::Constant(0.05))?,
            ),
            (
                "adam, decaying",
                deviation("adam_exponential", dtype, Adam::default(), half)?,
            ),
            (
                "sgd",
                deviation(
                    "sgd_momentum",
                    dtype,
                    Sgd { momentum: 0.8 },
                    Schedule::Constant(0.02),
                )?,
            ),
        ] {
            assert!(worst < tolerance, "{name} in {dtype}: {worst:e}");
        }
    }
    Ok(())
}

#[test]
fn first_adam_step_by_hand() -> Result<(), NnError> {
    // After one step the corrected moments are g and g^2, whatever the betas.
    let dev = Device::cpu();
    let p = Tensor::from_vec(vec![3.0f64], [1], &dev);
    let square = |p: &Tensor, (): &(), _: &_| Ok(Losses::from(p.square().sum_all()));
    let adam = Adam {
        eps: 0.5,
        ..Adam::default()
    };
    let mut t = Trainer::new(p, adam, Schedule::Constant(0.1), (), square, &dev)?.quiet(true);
    let report = t.run(1)?;
    assert_eq!(report.loss, 9.0);
    assert_eq!(report.learning_rate, 0.1);
    let want = 3.0 - 0.1 * 6.0 / (6.0 + 0.5);
    let got = t.model().to_vec::<f64>()?[0];
    assert!((got - want).abs() < 1e-14, "{got} {want}");
    Ok(())
}

#[test]
fn rates_follow_their_formulas() -> Result<(), NnError> {
    let dev = Device::cpu();
    let g = goldens();
    let state = ScheduleState::new(DType::F64, &dev);
    let (lr, total) = (0.02, 100);
    for (name, schedule) in [
        (
            "exponential",
            Schedule::Exponential {
                lr,
                factor: 0.3,
                every: 25,
            },
        ),
        (
            "cosine",
            Schedule::Cosine {
                lr,
                total,
                floor: 0.001,
            },
        ),
    ] {
        for (step, want) in numbers(&g["schedule_steps"]).iter().zip(numbers(&g[name])) {
            let step = Tensor::scalar(*step, DType::I64, &dev);
            let got = schedule.rate(&step, &state).item()?;
            assert!((got - want).abs() < 1e-12 * lr, "{name}: {got} {want}");
        }
    }
    Ok(())
}

#[test]
fn plateau_reduces_where_optax_does() -> Result<(), NnError> {
    let dev = Device::cpu();
    let g = goldens();
    let schedule = Schedule::Plateau {
        lr: 0.3,
        factor: 0.5,
        patience: 2,
        threshold: 0.01,
        floor: 0.03,
    };
    let mut state = ScheduleState::new(DType::F64, &dev);
    let losses = numbers(&g["plateau_losses"]);
    for (loss, want) in losses.iter().zip(numbers(&g["plateau_scales"])) {
        state = schedule.observe(&Tensor::scalar(*loss, DType::F64, &dev), &state);
        assert!(
            (state.scale.item()? - want).abs() < 1e-15,
            "after loss {loss}"
        );
    }
    let nan = Tensor::scalar(f64::NAN, DType::F64, &dev);
    let after = schedule.observe(&nan, &state);
    assert_eq!(after.best.item()?, state.best.item()?);
    Ok(())
}

#[test]
fn schedule_goes_on_inside_one_run() -> Result<(), NnError> {
    let dev = Device::cpu();
    let p = Tensor::from_vec(vec![0.0f64], [1], &dev);
    // Gradient 1 always, so that the parameter is minus the sum of the rates.
    let linear = |p: &Tensor, (): &(), _: &_| Ok(Losses::from(p.sum_all()));
    let halving = Schedule::Exponential {
        lr: 1.0,
        factor: 0.5,
        every: 1,
    };
    let mut t = Trainer::new(p, Sgd::default(), halving, (), linear, &dev)?.quiet(true);
    t.run(5)?;
    let got = t.model().to_vec::<f64>()?[0];
    assert!((got + 1.9375).abs() < 1e-12, "{got}");
    Ok(())
}
