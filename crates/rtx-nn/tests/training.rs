//! The trainer: deferred reads, random points, NaN guard, checkpoints, recompilation.

use rtx_nn::{
    Adam, Lbfgs, Losses, Mlp, Module, NnError, Outcome, Progress, Schedule, Sgd, StepContext,
    Trainer, load_parameters, loss, save_parameters,
};
use rtx_tensor::{DType, Device, Precision, Tensor, Tree};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// All points, their targets, weight of a penalty, table of further points, how many of those count.
type Data = (Tensor, Tensor, Tensor, Tensor, Tensor);

fn dev() -> Device {
    Device::cpu()
}

fn data(points: usize, weight: f64) -> Result<Data, NnError> {
    let grid = |n: usize| {
        let v: Vec<f32> = (0..n).map(|k| k as f32 / n as f32 * 2.0 - 1.0).collect();
        Tensor::from_vec(v, [n, 1], &dev())
    };
    let x = grid(points).rows("training points")?;
    let y = (&x * 2.0).sin();
    let scalar = |v: f64| Tensor::from_f64(&[v], [0usize; 0], DType::F32, &dev());
    Ok((
        x,
        y,
        scalar(weight),
        grid(16),
        scalar(points.min(16) as f64),
    ))
}

/// A fit to all points, one to a random batch that is drawn anew at every step, and a weighted penalty.
fn batch_loss(
    net: &Mlp,
    (x, y, weight, table, count): &Data,
    context: &StepContext,
) -> rtx_nn::Result<Losses> {
    let fit = loss::mse(&net.forward(x), y);
    let batch = table.gather(&context.sample_below(count, 4, 0));
    let random = loss::mse(&net.forward(&batch), &(&batch * 2.0).sin());
    let penalty = net.layers[0].weight.square().mean_all();
    Ok(Losses {
        total: &fit + &random + &penalty * weight,
        terms: vec![("fit".into(), fit), ("penalty".into(), penalty)],
    })
}

fn trainer(seed: u64) -> Result<Trainer<Mlp, Data>, NnError> {
    let net = Mlp::new(1, 1)
        .hidden(&[5])
        .learnable_fourier(2, 0.5)
        .seed(seed)
        .build(&dev());
    let schedule = Schedule::Plateau {
        lr: 1e-2,
        factor: 0.5,
        patience: 3,
        threshold: 1e-3,
        floor: 1e-4,
    };
    let inputs = data(9, 1e-3)?;
    let t = Trainer::new(net, Adam::default(), schedule, inputs, batch_loss, &dev())?;
    Ok(t.quiet(true).read_every(7).seed(11))
}

fn bits(tree: &impl Tree) -> Vec<u64> {
    let leaves = tree.leaves();
    let hosts = leaves.iter().flat_map(|t| t.to_host().unwrap().data);
    hosts.map(f64::to_bits).collect()
}

#[test]
fn a_resumed_run_equals_the_uninterrupted_one() -> Result<(), NnError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("half.safetensors");
    let mut whole = trainer(1)?;
    whole.run(40)?;
    let mut first = trainer(1)?;
    first.run(20)?;
    first.checkpoint(&path)?;
    let mut second = trainer(2)?.seed(99);
    let resumed = second.resume(&path)?;
    assert_eq!((resumed.step, resumed.same_program), (20, true));
    second.run(20)?;
    assert_eq!(second.steps_done(), 40);
    assert_eq!(bits(second.state()), bits(whole.state()));
    assert_ne!(bits(first.state()), bits(whole.state()));
    let (a, b) = (folder.path().join("a"), folder.path().join("b"));
    whole.checkpoint(&a)?;
    second.checkpoint(&b)?;
    assert_eq!(
        std::fs::read(a).unwrap(),
        std::fs::read(b).unwrap(),
        "equal states, equal bytes"
    );
    Ok(())
}

#[test]
fn reads_change_nothing_and_steps_draw_other_points() -> Result<(), NnError> {
    let mut often = trainer(1)?.read_every(1);
    let seen = Arc::new(Mutex::new(Vec::<Progress>::new()));
    let sink = seen.clone();
    often = often.on_read(move |p| sink.lock().unwrap().push(p.clone()));
    often.run(15)?;
    let mut seldom = trainer(1)?.read_every(100);
    let report = seldom.run(15)?;
    assert_eq!(bits(often.state()), bits(seldom.state()));
    let seen = seen.lock().unwrap();
    assert_eq!(
        seen.iter().map(|p| p.step).collect::<Vec<_>>(),
        (1..=15).collect::<Vec<_>>()
    );
    assert_eq!(seen[14].loss, report.loss);
    assert_eq!(seen[14].terms, report.terms);
    assert_eq!(report.terms[0].0, "fit");
    let other_seed = trainer(1)?.seed(12).run(15)?.loss;
    assert_ne!(report.loss, other_seed);
    Ok(())
}

#[test]
fn inputs_of_another_shape_are_refused() -> Result<(), NnError> {
    let mut t = trainer(1)?;
    let mut wrong = data(3, 1.0)?;
    wrong.0 = Tensor::zeros([3, 2], &dev());
    t.set_inputs(wrong);
    let error = t.run(1).unwrap_err();
    assert!(error.to_string().contains("[3, 2]"), "{error}");
    t.set_inputs(data(5, 1.0)?);
    assert_eq!(t.run(1)?.step, 1);
    Ok(())
}

#[test]
fn batches_cover_the_table_and_nothing_else() -> Result<(), NnError> {
    let key = Tensor::scalar(77.0, DType::I64, &dev());
    let mut counts = [0usize; 5];
    for step in 0..40 {
        let context = StepContext::new(&key, &Tensor::scalar(f64::from(step), DType::I64, &dev()));
        for i in context.sample_indices(5, 50, 3).to_vec::<i64>()? {
            counts[i as usize] += 1;
        }
        let a = context.uniform([4], DType::F64, 0).to_vec::<f64>()?;
        assert_ne!(a, context.uniform([4], DType::F64, 1).to_vec::<f64>()?);
    }
    // 2000 draws: 400 each, standard deviation 18.
    assert!(
        counts.iter().all(|&c| (c as i64 - 400).abs() < 90),
        "{counts:?}"
    );
    Ok(())
}

/// sqrt(1 - p) with gradient descent upwards in p: NaN once p passes 1.
fn diverging(path: Option<&Path>) -> Result<Trainer<Tensor, ()>, NnError> {
    let p = Tensor::from_vec(vec![0.0f64], [1], &dev());
    let f = |p: &Tensor, (): &(), _: &StepContext| Ok(Losses::from((1.0 - p).sqrt().sum_all()));
    let t = Trainer::new(p, Sgd::default(), Schedule::Constant(0.1), (), f, &dev())?;
    let t = t.quiet(true).read_every(4);
    Ok(match path {
        Some(path) => t.checkpoint_every(path, 4),
        None => t,
    })
}

#[test]
fn a_nan_restores_the_last_good_state() -> Result<(), NnError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("good.safetensors");
    // The first bad step by hand.
    let (mut p, mut bad) = (0.0f64, 0);
    while (1.0 - p).sqrt().is_finite() {
        p += 0.1 * 0.5 / (1.0 - p).sqrt();
        bad += 1;
    }
    let good = bad / 4 * 4;
    let mut t = diverging(Some(&path))?;
    let NnError::NotFinite {
        step,
        last_good,
        checkpoint,
        ..
    } = t.run(100).unwrap_err()
    else {
        panic!("another error");
    };
    assert_eq!(
        (step, last_good, checkpoint.as_deref()),
        (bad, good, Some(path.as_path()))
    );
    assert_eq!(t.steps_done(), good);
    let mut reference = diverging(None)?;
    reference.run(good)?;
    assert_eq!(bits(t.state()), bits(reference.state()));
    let mut again = diverging(None)?;
    assert_eq!(again.resume(&path)?.step, good);
    assert_eq!(bits(again.state()), bits(reference.state()));
    Ok(())
}

#[test]
fn files_that_do_not_fit_are_refused() -> Result<(), NnError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.safetensors");
    let mut t = trainer(1)?;
    t.run(2)?;
    t.checkpoint(&path)?;
    let before = bits(t.state());
    let whole = std::fs::read(&path).unwrap();
    let cut = folder.path().join("cut");
    for n in [0, 4, 100, whole.len() / 2, whole.len() - 1] {
        std::fs::write(&cut, &whole[..n]).unwrap();
        assert!(
            matches!(t.resume(&cut), Err(NnError::Format { .. })),
            "cut at {n}"
        );
    }
    std::fs::write(&cut, b"{\"this\": \"is json\"} and no checkpoint").unwrap();
    assert!(matches!(t.resume(&cut), Err(NnError::Format { .. })));
    assert!(matches!(
        t.resume(folder.path().join("absent")),
        Err(NnError::Io { .. })
    ));
    save_parameters(t.model(), &cut)?;
    assert!(
        matches!(t.resume(&cut), Err(NnError::Format { .. })),
        "parameters only"
    );
    let wide = Mlp::new(1, 1)
        .hidden(&[6])
        .learnable_fourier(2, 0.5)
        .build(&dev());
    let schedule = Schedule::Constant(1.0);
    let other = Trainer::new(
        wide,
        Adam::default(),
        schedule,
        data(4, 0.0)?,
        batch_loss,
        &dev(),
    )?;
    match other.quiet(true).resume(&path) {
        Err(NnError::Mismatch { name, reason, .. }) => {
            assert_eq!(name, "model.layers.0.weight");
            assert!(
                reason.contains("[4, 6]") && reason.contains("[4, 5]"),
                "{reason}"
            );
        }
        other => panic!("{other:?}"),
    }
    // The data follow the header: 64-bit counters first, numbers last. All bits set is NaN in a number.
    let header = u64::from_le_bytes(whole[..8].try_into().unwrap()) as usize + 8;
    for (damaged, says) in [
        (whole.len() - 8..whole.len(), "holds NaN"),
        (header + 1..header + 3, "steps are done"),
    ] {
        let mut bytes = whole.clone();
        bytes[damaged].fill(0xff);
        std::fs::write(&cut, bytes).unwrap();
        match t.resume(&cut) {
            Err(NnError::Format { reason, .. }) => assert!(reason.contains(says), "{reason}"),
            other => panic!("{says}: {other:?}"),
        }
    }
    assert_eq!(bits(t.state()), before, "a refused file changes nothing");
    assert!(t.checkpoint(folder.path().join("no/such/folder")).is_err());
    Ok(())
}

#[test]
fn parameters_alone_are_stored_and_loaded() -> Result<(), NnError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("net.safetensors");
    let build = |seed| {
        Mlp::new(2, 1)
            .hidden(&[3])
            .fourier(2, 1.0)
            .seed(seed)
            .build(&dev())
    };
    let (net, other) = (build(1), build(2));
    save_parameters(&net, &path)?;
    assert_ne!(bits(&net), bits(&other));
    assert_eq!(bits(&net), bits(&load_parameters(&other, &path)?));
    Ok(())
}

#[cfg(unix)]
#[test]
fn others_may_read_a_checkpoint_as_any_new_file() -> Result<(), NnError> {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o7777;
    let (usual, path) = (folder.path().join("usual"), folder.path().join("c"));
    std::fs::File::create(&usual).unwrap();
    let mut t = trainer(1)?;
    t.run(1)?;
    for _ in 0..2 {
        t.checkpoint(&path)?;
        assert_eq!(mode(&path), mode(&usual));
    }
    Ok(())
}

#[test]
fn the_log_goes_on_after_a_resume_and_the_flag_stops() -> Result<(), NnError> {
    let folder = tempfile::tempdir().unwrap();
    let (log, path) = (folder.path().join("log.csv"), folder.path().join("c"));
    let flag = Arc::new(AtomicBool::new(false));
    let setter = flag.clone();
    let mut t = trainer(1)?
        .log_csv(&log)
        .checkpoint_every(&path, 7)
        .stop_flag(flag.clone());
    t = t.on_read(move |p| setter.store(p.step == 14, Ordering::Relaxed));
    let report = t.run(700)?;
    assert_eq!((report.outcome, report.step), (Outcome::Stopped, 14));
    let mut t = trainer(1)?.log_csv(&log);
    t.resume(&path)?;
    t.run(7)?;
    let text = std::fs::read_to_string(&log).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "step,loss,learning_rate,seconds,fit,penalty");
    let steps: Vec<&str> = lines[1..]
        .iter()
        .filter_map(|l| l.split(',').next())
        .collect();
    assert_eq!(steps, ["7", "14", "21"]);
    assert_eq!(lines[1].split(',').count(), 6);
    Ok(())
}

#[test]
fn mistakes_in_the_loss_surface_when_the_trainer_is_made() -> Result<(), NnError> {
    let p = Tensor::zeros([2], &dev());
    let adam = Adam::default();
    let wrong = |p: &Tensor, (): &(), _: &StepContext| {
        Ok(Losses::from((p + Tensor::zeros([3], p.device())).sum_all()))
    };
    let made = Trainer::new(p.clone(), adam, Schedule::Constant(1.0), (), wrong, &dev());
    let error = made.err().unwrap().to_string();
    assert!(
        error.contains("training.rs") && error.contains("[3]"),
        "{error}"
    );
    let refused = |_: &Tensor, (): &(), _: &StepContext| Err(NnError::loss("no points"));
    let made = Trainer::new(p, adam, Schedule::Constant(1.0), (), refused, &dev());
    assert!(matches!(made.err(), Some(NnError::Loss(_))));
    Ok(())
}

#[test]
fn polishing_goes_on_from_the_training() -> Result<(), NnError> {
    let mut t = trainer(1)?;
    t.run(5)?;
    let report = t.polish(&Lbfgs::f64().max_iter(30))?;
    assert!(report.minimum.value < 0.5 * report.minimum.values[0]);
    assert_eq!(bits(t.model()), bits(&report.rounded));
    assert_eq!(t.run(1)?.step, 6);
    Ok(())
}

#[test]
fn the_rate_is_scaled_without_a_compilation() -> Result<(), NnError> {
    let p = Tensor::from_vec(vec![0.0f64], [1], &dev());
    let f = |p: &Tensor, (): &(), _: &StepContext| Ok(Losses::from(p.sum_all()));
    let mut t =
        Trainer::new(p, Sgd::default(), Schedule::Constant(1.0), (), f, &dev())?.quiet(true);
    t.run(1)?;
    t.scale_learning_rate(0.25);
    assert_eq!(t.run(1)?.learning_rate, 0.25);
    assert_eq!(t.model().to_vec::<f64>()?, [-1.25]);
    t.set_schedule(Schedule::Constant(0.5))?;
    t.run(1)?;
    assert_eq!(t.model().to_vec::<f64>()?, [-1.75]);
    assert_eq!(t.compilations(), 2);
    Ok(())
}

#[test]
fn the_precision_reaches_the_step_and_outlives_a_schedule() -> Result<(), NnError> {
    let p = Tensor::from_vec(vec![0.5f32, 0.25, -0.5, 1.0], [2, 2], &dev());
    let f = |p: &Tensor, (): &(), _: &StepContext| Ok(p.matmul(p).square().mean_all().into());
    let rate = Schedule::Constant(0.1);
    let tier = Precision::Tf32;
    let mut t = Trainer::with_precision(tier, p, Sgd::default(), rate, (), f, &dev())?.quiet(true);
    t.set_schedule(Schedule::Constant(0.2))?;
    assert_eq!(t.precision(), tier);
    assert!(
        t.listing().contains("products of f32 in tf32"),
        "{}",
        t.listing()
    );
    t.run(2)?;
    Ok(())
}
