//! Problems from description to trained fields.

use rtx_nn::{Activation, Adam, Mlp, Module, Schedule};
use rtx_pinn::{
    Complex64, Cuboid, Edge, Fields, Geometry, Interval, Observations, PinnError, PointSet, Points,
    Problem, Rectangle, Sampling,
};
use rtx_tensor::{Buffer, Device, Tensor};

/// A "network" that is a known function of its input, with one useless parameter.
#[derive(Clone, Module)]
struct Known {
    zero: Tensor,
    unused: Buffer,
    #[module(skip)]
    formula: fn(&Tensor) -> Tensor,
}

fn known(formula: fn(&Tensor) -> Tensor) -> Known {
    let zero = Tensor::from_vec(vec![0.0f64], [0usize; 0], &Device::cpu());
    Known {
        unused: Buffer(zero.clone()),
        zero,
        formula,
    }
}

impl Module for Known {
    fn forward(&self, x: &Tensor) -> Tensor {
        (self.formula)(x) + &self.zero
    }
}

fn net(inputs: usize, outputs: usize) -> Mlp {
    Mlp::new(inputs, outputs)
        .hidden(&[12, 12])
        .activation(Activation::Tanh)
        .seed(3)
        .build(&Device::cpu())
}

fn column(x: &Tensor, k: usize) -> Tensor {
    x.slice(1, k, k + 1)
}

/// Losses of a problem at its start, by term.
fn losses(problem: Problem) -> Vec<(String, f64)> {
    let mut t = problem
        .trainer(Adam::default(), Schedule::Constant(0.0))
        .unwrap()
        .quiet(true);
    t.run(1).unwrap().terms
}

/// Every kind of condition is fulfilled by a function that fulfils it, in coordinates with units.
#[test]
fn conditions_of_a_known_solution_vanish() {
    // u = sin(pi x / 2) e^(-t) with x = 4 + 2 xi on [2, 6], t = 1 + tau on [0, 2].
    let u = |r: &Tensor| {
        let x = column(r, 0) * 2.0 + 4.0;
        (x * (std::f64::consts::PI / 2.0)).sin() * (-(column(r, 1) + 1.0)).exp()
    };
    let exact = |f: &Fields| (f.x(0) * (std::f64::consts::PI / 2.0)).sin() * (-f.t()).exp();
    let k = std::f64::consts::PI / 2.0;
    let slope = move |f: &Fields| (f.x(0) * k).cos() * (-f.t()).exp() * k;
    let g = Interval::new(2.0, 6.0).in_time(0.0, 2.0);
    let points = g.sample(20, Sampling::Random(4)).unwrap();
    let values = points.evaluate(|p| (p[0] * k).sin() * (-p[1]).exp());
    let start = g.initial(9, Sampling::Grid).unwrap();
    let at_start = start.evaluate(|p| (p[0] * k).sin());
    let problem = Problem::new(g)
        .field("u", known(u))
        .residual("heat", 30, move |f| {
            let u = f.get("u");
            u.dt() - u.laplacian() * (1.0 / (k * k))
        })
        .dirichlet("u", (Edge::Left, 8), exact)
        .dirichlet("u", ("start", start), at_start)
        .neumann("u", (Edge::Right, 8), slope)
        .robin("u", (Edge::Left, 8), 2.0, -3.0, move |f: &Fields| {
            exact(f) * 2.0 + slope(f) * 3.0
        })
        .periodic("u", 0, 6)
        .initial("u", 10, exact)
        .observe("u", ("data", points), values)
        .penalty("size", 10, |f| f.get("u").square() - f.get("u").powi(2))
        .scalar_term("mean", 10, move |f: &Fields| {
            (f.get("u") - exact(f)).value().mean_all()
        });
    let terms = losses(problem);
    assert_eq!(terms.len(), 10);
    for (name, v) in &terms {
        assert!(v.abs() < 1e-20, "{name}: {v}");
    }
    assert!(terms.iter().any(|t| t.0 == "u.neumann.upper0"));
}

/// The same terms notice functions that do not fulfil them.
#[test]
fn conditions_of_a_wrong_solution_do_not_vanish() {
    let u = |r: &Tensor| column(r, 0).square() * (column(r, 1) + 2.0) + column(r, 0);
    let g = || Cuboid::new([-1.0], [1.0]).in_time(-1.0, 1.0);
    let terms = losses(
        Problem::new(g())
            .field("u", known(u))
            .dirichlet("u", Edge::Left, 0.5)
            .neumann("u", Edge::Right, 0.0)
            .robin("u", Edge::Left, 1.0, 1.0, 0.0)
            .periodic("u", 0, 6)
            .initial("u", 10, 0.0)
            .observe(
                "u",
                ("one", Points::new(2, vec![1.0, 0.0]).unwrap()),
                vec![2.0],
            ),
    );
    for (name, v) in &terms {
        assert!(*v > 1e-3, "{name}: {v}");
    }
    // u(1, 0) = 3, measured 2, divided by the size of the data.
    assert!((terms[5].1 - 0.25).abs() < 1e-12);
}

#[test]
fn hard_conditions_are_exact_and_inputs_can_be_chosen() {
    let g = Rectangle::new([0.0, 0.0], [1.0, 1.0]);
    let corner = g.lattice(&[2, 2]).unwrap();
    let problem = Problem::new(g)
        .field("u", net(2, 1))
        .field_over("mu", &[1], net(1, 2))
        .output_scaling("mu", &[2.0], &[5.0])
        .hard("u", |x, raw| {
            let x = x.axis(0);
            &x * 7.0 + &x * (1.0 - &x) * raw
        })
        .residual("pde", 16, |f| {
            f.get("u").laplacian() * f.get("mu").component(0)
        });
    let mut t = problem
        .trainer(Adam::default(), Schedule::Constant(1e-2))
        .unwrap()
        .quiet(true);
    t.run(5).unwrap();
    assert_eq!(
        t.predict("u", &corner).unwrap().values,
        [0.0, 0.0, 7.0, 7.0]
    );
    let mu = t.predict("mu", &corner).unwrap();
    assert_eq!(mu.components, 2);
    // mu does not depend on x.
    assert_eq!(mu.values[..4], mu.values[4..]);
    let raw = t.evaluate(&corner, |f| (f.get("mu") - 5.0) / 2.0).unwrap();
    assert!((raw.values[0] * 2.0 + 5.0 - mu.values[0]).abs() < 1e-6);
    let missing = t.predict("nu", &corner);
    assert!(matches!(missing, Err(PinnError::UnknownField { .. })));
}

/// u'' = c x for u = x^3: the unknown goes to 6 and stays in its range on the way.
#[test]
fn unknowns_are_found_inside_their_range() {
    let problem = Problem::new(Interval::new(-1.0, 1.0))
        .field("u", known(|x| x.powi(3)))
        .unknown("c", 0.5, 0.1..10.0)
        .residual("pde", 8, |f| f.get("u").dxx(0) - f.x(0) * f.unknown("c"));
    let mut t = problem
        .trainer(Adam::default(), Schedule::Constant(0.1))
        .unwrap()
        .quiet(true);
    assert!((t.unknown("c").unwrap() - 0.5).abs() < 1e-12);
    let report = t.run(200).unwrap();
    let c = t.unknown("c").unwrap();
    assert!((c - 6.0).abs() < 1e-2, "{c}");
    let logged = report.terms.iter().find(|t| t.0 == "c").unwrap().1;
    assert!((logged - c).abs() < 1e-2);
    let wrong = t.unknown("d");
    assert!(matches!(wrong, Err(PinnError::UnknownScalar { known, .. }) if known == ["c"]));
}

#[test]
fn weights_change_without_compiling() {
    let problem = Problem::new(Interval::new(0.0, 1.0))
        .field("u", net(1, 1))
        .residual("pde", 8, |f| f.get("u").dxx(0) + 1.0)
        .dirichlet("u", Edge::Left, 1.0)
        .weight("pde", 0.0)
        .weight("u.dirichlet.lower0", 2.0);
    let mut t = problem
        .trainer(Adam::default(), Schedule::Constant(0.0))
        .unwrap()
        .quiet(true);
    let first = t.run(1).unwrap();
    assert!((first.loss - 2.0 * first.terms[1].1).abs() < 1e-6 * first.loss);
    t.set_weight("pde", 10.0).unwrap();
    let second = t.run(1).unwrap();
    let expected = 10.0 * second.terms[0].1 + 2.0 * second.terms[1].1;
    assert!((second.loss - expected).abs() < 1e-5 * expected);
    assert_eq!(t.inner().compilations(), 1);
    let wrong = t.set_weight("pdee", 1.0);
    assert!(matches!(wrong, Err(PinnError::UnknownTerm { known, .. }) if known.len() == 2));
    assert!(matches!(
        t.set_weight("pde", f64::NAN),
        Err(PinnError::Value { .. })
    ));
}

/// Complex observations of chosen components, and a complex residual, at the exact field.
#[test]
fn complex_fields_are_observed_and_constrained() {
    // Two frequencies: e^(i k x) with k = 2, 3; components are re, re, im, im.
    let waves = |x: &Tensor| {
        let parts = [
            (x * 2.0).cos(),
            (x * 3.0).cos(),
            (x * 2.0).sin(),
            (x * 3.0).sin(),
        ];
        Tensor::concat(&[&parts[0], &parts[1], &parts[2], &parts[3]], 1)
    };
    let points = Points::new(1, vec![-0.5, 0.1, 0.9]).unwrap();
    let wave = |k: f64| {
        points
            .iter()
            .map(|x| Complex64::cis(k * x[0]))
            .collect::<Vec<_>>()
    };
    let both: Vec<Complex64> = wave(2.0)
        .into_iter()
        .zip(wave(3.0))
        .flat_map(|(a, b)| [a, b])
        .collect();
    let off: Vec<Complex64> = wave(3.0)
        .iter()
        .map(|z| z * Complex64::new(1.0, 0.5))
        .collect();
    let set = PointSet::new("pixels", points.clone());
    let terms = losses(
        Problem::new(Interval::new(-1.0, 1.0))
            .field("u", known(waves))
            .observe("u", &set, Observations::complex(2, &both))
            .residual("helmholtz", 9, |f| {
                let u = f.complex("u");
                let like = u.re.value();
                let k2 = Tensor::from_f64(&[4.0, 9.0], [2], like.dtype(), like.device());
                u.laplacian() + k2 * &u
            }),
    );
    assert!(terms.iter().all(|t| t.1 < 1e-20), "{terms:?}");
    let one = losses(
        Problem::new(Interval::new(-1.0, 1.0))
            .field("u", known(waves))
            .observe(
                "u",
                ("pixels", points),
                Observations::complex(1, &off)
                    .of_components(&[1])
                    .scale(&[2.0]),
            ),
    );
    // |0.5 i|^2 / 2^2 at every point.
    assert!((one[0].1 - 0.0625).abs() < 1e-12, "{one:?}");
}

/// Drawn points: another draw at every step, the same for all terms of the set, the same after resuming.
#[test]
fn batches_and_resume() {
    let build = || {
        let points = Interval::new(0.0, 1.0)
            .sample(50, Sampling::Halton)
            .unwrap();
        let x2 = points.evaluate(|p| p[0] * p[0]);
        let set = PointSet::new("drawn", points)
            .with_data("x2", 1, x2)
            .unwrap()
            .batch(7);
        Problem::new(Interval::new(0.0, 1.0))
            .field("u", net(1, 1))
            .residual("agree", &set, |f| f.data("x2") - f.x(0).square())
            .residual("fit", &set, |f| f.get("u") - f.data("x2"))
            .trainer(Adam::default(), Schedule::Constant(1e-2))
            .unwrap()
            .quiet(true)
            .seed(5)
    };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.safetensors");
    let mut a = build();
    let first = a.run(3).unwrap();
    assert!(
        first.terms[0].1 < 1e-12 && first.terms[1].1 > 1e-8,
        "{:?}",
        first.terms
    );
    a.checkpoint(&path).unwrap();
    let through = a.run(4).unwrap();
    let mut b = build();
    assert_eq!(b.resume(&path).unwrap().step, 3);
    assert_eq!(b.run(4).unwrap().loss.to_bits(), through.loss.to_bits());
}

#[test]
fn polish_in_double_precision() {
    let problem = Problem::new(Interval::new(0.0, 1.0))
        .field("u", net(1, 1))
        .output_scaling("u", &[0.5], &[0.1])
        .hard("u", |x, raw| x.axis(0) * (1.0 - x.axis(0)) * raw)
        .unknown("c", 1.5, 0.5..4.0)
        .residual("pde", 16, |f| f.get("u").dxx(0) + f.unknown("c"))
        .dirichlet("u", ("middle", Points::new(1, vec![0.5]).unwrap()), 0.25);
    let mut t = problem
        .trainer(Adam::default(), Schedule::Constant(1e-2))
        .unwrap()
        .quiet(true);
    t.run(50).unwrap();
    let end = t.then(&rtx_nn::Lbfgs::f64().max_iter(150)).unwrap();
    assert!(end.value < 1e-7, "{} {}", end.value, end.reason);
    // u = c x (1 - x) / 2 with u(1/2) = 1/4 means c = 2.
    assert!((t.unknown("c").unwrap() - 2.0).abs() < 1e-2);
}

#[test]
fn a_slow_network_is_warned_of() {
    let build = |std: f64| {
        let net = Mlp::new(2, 1)
            .hidden(&[8])
            .fourier(64, std)
            .seed(1)
            .build(&Device::cpu());
        Problem::new(Rectangle::new([0.0, 0.0], [0.1, 0.1]))
            .field("u", net)
            .wavenumber("u", 1000.0)
            .residual("pde", 4, |f| f.get("u").laplacian())
            .trainer(Adam::default(), Schedule::Constant(1e-3))
            .unwrap()
    };
    assert!(build(15.0).warnings().is_empty());
    let mut heard = Vec::new();
    let _ = build(1.0).on_warning(|w| heard.push(w.to_string()));
    assert!(
        heard.len() == 2 && heard[0].contains("8.0 cycles"),
        "{heard:?}"
    );
}

fn failure(problem: Problem) -> PinnError {
    match problem.trainer(Adam::default(), Schedule::Constant(1e-3)) {
        Ok(_) => panic!("the problem was accepted"),
        Err(e) => e,
    }
}

#[test]
fn mistakes_are_typed_and_say_what_exists() {
    let base = || Problem::new(Interval::new(0.0, 1.0)).field("u", net(1, 2));
    let points = || Points::new(1, vec![0.1, 0.2]).unwrap();
    let text = failure(base().residual("pde", 4, |f| f.get("v"))).to_string();
    assert!(text.contains("'v'") && text.contains("\"u\""), "{text}");
    let e = failure(base().dirichlet("v", Edge::Left, 0.0));
    assert!(matches!(e, PinnError::UnknownField { .. }), "{e}");
    let e = failure(base().observe("u", ("p", points()), vec![1.0, 2.0]));
    assert!(
        matches!(
            e,
            PinnError::Components {
                expected: 2,
                found: 1,
                ..
            }
        ),
        "{e}"
    );
    let nan = Observations::real(2, vec![1.0, 2.0, f64::NAN, 3.0]);
    let e = failure(base().observe("u", ("p", points()), nan));
    assert!(
        matches!(
            e,
            PinnError::NotFinite {
                count: 1,
                row: 1,
                column: 0,
                ..
            }
        ),
        "{e}"
    );
    let third = Observations::real(1, vec![1.0, 2.0]).of_components(&[2]);
    let e = failure(base().observe("u", ("p", points()), third));
    assert!(
        matches!(
            e,
            PinnError::ComponentIndex {
                index: 2,
                count: 2,
                ..
            }
        ),
        "{e}"
    );
    let e = failure(base().residual("pde", 0, |f| f.get("u")));
    assert!(matches!(e, PinnError::NoPoints { .. }), "{e}");
    let e = failure(base().neumann("u", ("p", points()), 0.0));
    assert!(matches!(e, PinnError::NoNormals { .. }), "{e}");
    let e = failure(base().initial("u", 4, 0.0));
    assert!(matches!(e, PinnError::NoTime), "{e}");
    let e = failure(base().unknown("c", 3.0, 0.0..1.0));
    assert!(matches!(e, PinnError::Range { .. }), "{e}");
    let e = failure(base().residual("a", 4, |f| f.data("rho")));
    assert!(matches!(e, PinnError::UnknownData { .. }), "{e}");
    let e = failure(
        base()
            .residual("a", 4, |f| f.get("u"))
            .residual("a", 4, |f| f.get("u")),
    );
    assert!(
        matches!(e, PinnError::DuplicateName { what: "term", .. }),
        "{e}"
    );
    assert!(matches!(
        failure(base()),
        PinnError::Incomplete { what: "term", .. }
    ));
    let plane = Points::new(2, vec![0.0, 0.0]).unwrap();
    let e = failure(base().residual("a", ("p", plane), |f| f.get("u")));
    assert!(
        matches!(
            e,
            PinnError::Dimensions {
                expected: 1,
                found: 2,
                ..
            }
        ),
        "{e}"
    );
    let e = failure(base().residual("a", 4, |f| f.get("u").dx(1)));
    assert!(e.to_string().contains("problem.rs"), "{e}");
}
