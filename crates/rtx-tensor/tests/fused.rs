//! Random programs: the fast CPU backend against the op-by-op reference, and one program for every number
//! of rows.
//!
//! The rule is that of the design: with reductions, `|fused - f64| <= 4 max(|unfused - f64|, eps sum|terms|)`,
//! taken over the whole array, with `sum|terms|` bounded by the longest sum times the largest value met.

#[path = "fused/program.rs"]
mod program;

use program::{Inputs, Instruction, Program, Run};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use rtx_tensor::{DType, Device, compilations};
use rtx_testing::{Nan, Tally, largest_difference};
use std::cell::RefCell;
use std::sync::Mutex;

/// Compilations are counted per device, so one test at a time.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// The CPU, or the device that `RTX_TEST_DEVICES` names.
fn fusing() -> Device {
    match std::env::var("RTX_TEST_DEVICES") {
        Ok(name) if !name.is_empty() => Device::named(&name).expect("RTX_TEST_DEVICES"),
        _ => Device::cpu(),
    }
}

/// A runner with a fixed seed; `PROPTEST_CASES` (256 by default) scales the number of cases.
fn runner(cases: u32, seed: u8) -> TestRunner {
    let config = Config {
        cases: cases * Config::default().cases / 256,
        failure_persistence: None,
        max_shrink_iters: 2000,
        ..Config::default()
    };
    TestRunner::new_with_rng(
        config,
        TestRng::from_seed(RngAlgorithm::ChaCha, &[seed; 32]),
    )
}

fn instructions(longest: usize) -> impl Strategy<Value = Vec<Instruction>> {
    let one = (any::<u8>(), any::<u8>(), any::<u8>(), any::<u8>());
    prop::collection::vec(one, 1..longest)
}

/// Largest difference between two lists of arrays, array by array.
fn differences(a: &Run, b: &Run) -> Vec<f64> {
    a.outputs
        .iter()
        .zip(&b.outputs)
        .map(|(a, b)| {
            assert_eq!(a.dims, b.dims);
            largest_difference(&a.data, &b.data, Nan::Fails)
        })
        .collect()
}

fn compare(program: &Program, inputs: &Inputs, tally: &mut Tally) -> Result<(), TestCaseError> {
    let fail = |what: String| Err(TestCaseError::fail(format!("{what}\n{program}")));
    let exact = match program.run(inputs, DType::F64, &Device::reference()) {
        Ok(run) => run,
        Err(e) => return fail(format!("reference: {e}")),
    };
    // Programs whose values grow without bound say nothing about rounding.
    if !exact.largest.is_finite() || exact.largest > 1e4 {
        tally.left_out();
        return Ok(());
    }
    tally.compared();
    for (dtype, eps) in [
        (DType::F64, f64::EPSILON),
        (DType::F32, f64::from(f32::EPSILON)),
    ] {
        let fused = match program.run(inputs, dtype, &fusing()) {
            Ok(run) => run,
            Err(e) => return fail(format!("fused {dtype}: {e}")),
        };
        let unfused = match program.run(inputs, dtype, &Device::reference()) {
            Ok(run) => run,
            Err(e) => return fail(format!("reference {dtype}: {e}")),
        };
        let (near, far) = (differences(&unfused, &exact), differences(&fused, &exact));
        let floor = eps * exact.longest_sum as f64 * exact.largest.max(1.0);
        for (k, (unfused, fused)) in near.iter().zip(&far).enumerate() {
            let allowed = 4.0 * unfused.max(floor);
            if *fused > allowed {
                return fail(format!(
                    "{dtype}, output {k}: fused is off by {fused:e}, unfused by {unfused:e}, allowed {allowed:e}"
                ));
            }
        }
    }
    Ok(())
}

/// Compares `cases` random programs; few of them may grow without bound.
fn compare_all(
    cases: u32,
    seed: u8,
    strategy: &impl Strategy<Value = (Vec<Instruction>, usize)>,
    tagged: bool,
) {
    let tally = RefCell::default();
    let test = |(code, rows)| {
        let (program, inputs) = (Program::new(code, tagged), Inputs::new(rows));
        compare(&program, &inputs, &mut tally.borrow_mut())
    };
    if let Err(e) = runner(cases, seed).run(strategy, test) {
        panic!("{e}");
    }
    tally.into_inner().assert_few_left_out(0.1);
}

#[test]
fn fused_equals_unfused_with_known_extents() {
    let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(|e| e.into_inner());
    let strategy = (instructions(16), 1usize..7);
    compare_all(400, 1, &strategy, false);
}

#[test]
fn fused_equals_unfused_with_run_time_rows() {
    let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(|e| e.into_inner());
    let strategy = (
        instructions(16),
        prop::sample::select(vec![1usize, 3, 8, 65, 300]),
    );
    compare_all(300, 2, &strategy, true);
}

/// A program over tagged rows is compiled for the first number of rows only.
#[test]
fn other_row_counts_do_not_recompile() {
    let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(|e| e.into_inner());
    let cpu = fusing();
    let test = |code| {
        let program = Program::new(code, true);
        let mut compiled = None;
        for rows in [5, 1, 17, 256, 33] {
            let run = program.run(&Inputs::new(rows), DType::F32, &cpu);
            prop_assert!(run.is_ok(), "{rows} rows: {:?}\n{program}", run.err());
            let now = compilations(&cpu);
            prop_assert_eq!(
                *compiled.get_or_insert(now),
                now,
                "{} rows\n{}",
                rows,
                program
            );
        }
        Ok(())
    };
    if let Err(e) = runner(60, 3).run(&instructions(12), test) {
        panic!("{e}");
    }
}

/// The same bits at every run.
#[test]
fn runs_repeat_to_the_bit() {
    let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(|e| e.into_inner());
    let test = |code| {
        let (program, inputs) = (Program::new(code, true), Inputs::new(700));
        let bits = || -> Result<Vec<u64>, TestCaseError> {
            let run = program.run(&inputs, DType::F32, &fusing());
            let run = run.map_err(|e| TestCaseError::fail(format!("{e}\n{program}")))?;
            let data = run.outputs.iter().flat_map(|o| &o.data);
            Ok(data.map(|v| v.to_bits()).collect())
        };
        prop_assert_eq!(bits()?, bits()?);
        Ok(())
    };
    if let Err(e) = runner(40, 4).run(&instructions(12), test) {
        panic!("{e}");
    }
}
