//! A compiled step allocates nothing: counted, with the system's allocator wrapped.

use rtx_tensor::{
    Compiled, DType, Device, DotDims, Tensor, Tree, compile, eval, value_and_grad,
    value_and_grad_tree,
};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);
/// Bytes in use now, and the most since it was last set.
static LIVE: AtomicU64 = AtomicU64::new(0);
static PEAK: AtomicU64 = AtomicU64::new(0);
/// Counters belong to the process, so one test at a time.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

// SAFETY: passes everything on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        let size = layout.size() as u64;
        let live = LIVE.fetch_add(size, Ordering::Relaxed) + size;
        PEAK.fetch_max(live, Ordering::Relaxed);
        // SAFETY: as given.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size() as u64, Ordering::Relaxed);
        // SAFETY: as given.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// A training step with jets, a run-time number of rows and momentum: 200 more steps allocate no more.
#[test]
fn steps_do_not_allocate() {
    let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(|e| e.into_inner());
    let dev = Device::cpu();
    let shapes: [&[usize]; 4] = [&[2, 64], &[64], &[64, 2], &[2]];
    let w: Vec<Tensor> = shapes
        .iter()
        .enumerate()
        .map(|(k, s)| {
            Tensor::random_normal(rtx_tensor::Shape::of(s), k as u64, DType::F32, &dev) * 0.3
        })
        .collect();
    let m: Vec<Tensor> = w.iter().map(|w| w * 0.0).collect();
    eval(&w.iter().chain(&m).collect::<Vec<_>>()).unwrap();
    let x = Tensor::random_uniform([300, 2], 9, DType::F32, &dev);
    let x = x.rows("points").unwrap();
    let step = compile(
        |(w, m): &(Vec<Tensor>, Vec<Tensor>), x: &Tensor| {
            let loss = |w: &Vec<Tensor>| {
                let h = (x.matmul(&w[0]) + &w[1]).tanh();
                let u = h.matmul(&w[2]) + &w[3];
                (u.laplacian(x, 2) + u.dx(x, 0) - u).square().mean_all()
            };
            let (loss, g) = value_and_grad_tree(loss, w)?;
            let m: Vec<Tensor> = m.iter().zip(&g).map(|(m, g)| m * 0.9 + g).collect();
            let w = w.iter().zip(&m).map(|(w, m)| w - m * 1e-3).collect();
            Ok(((w, m), loss))
        },
        &(w.clone(), m.clone()),
        &x,
        &dev,
    )
    .unwrap();
    assert_steps_allocate_nothing(&step, (w, m), &x);
}

/// Operations on whole arrays: an embedding with its gradient (a sum into rows), batched products, permutations and
/// ranges of the leading axis. The arrays are large enough for several threads.
#[test]
fn whole_arrays_do_not_allocate() {
    let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(|e| e.into_inner());
    let dev = Device::cpu();
    let random = |shape: &[usize]| {
        Tensor::random_normal(rtx_tensor::Shape::of(shape), 1, DType::F32, &dev) * 0.1
    };
    let table = random(&[60, 30, 20]);
    eval(&[&table]).unwrap();
    let index = (0..400).map(|k| k * 7 % 60).collect();
    let index: Tensor = Tensor::from_vec::<i64>(index, [400], &dev);
    let batched = DotDims {
        lhs_batch: vec![0],
        rhs_batch: vec![0],
        lhs_contract: vec![2],
        rhs_contract: vec![2],
    };
    let step = compile(
        |table: &Tensor, index: &Tensor| {
            let loss = |t: &Tensor| {
                let picked = t.gather(index);
                let square = picked.dot_general(&picked, batched.clone());
                let turned = Tensor::concat(&[&t.slice(0, 0, 30), &t.slice(0, 10, 60)], 0);
                square.square().mean_all() + turned.permute(&[2, 1, 0]).slice(0, 1, 19).sum_all()
            };
            let (loss, g) = value_and_grad(loss)(table);
            Ok((table - g * 1e-3, loss))
        },
        &table,
        &index,
        &dev,
    )
    .unwrap();
    assert!(step.listing().contains("scatter_add"), "{}", step.listing());
    assert_steps_allocate_nothing(&step, table, &index);
}

#[track_caller]
fn assert_steps_allocate_nothing<S: Tree + Clone>(
    step: &Compiled<S, Tensor, Tensor>,
    mut state: S,
    x: &Tensor,
) {
    let mut count = |steps: usize| {
        let before = ALLOCATIONS.load(Ordering::Relaxed);
        let (next, loss) = step.run(state.clone(), x, steps).unwrap();
        assert!(loss.item().unwrap().is_finite());
        state = next;
        ALLOCATIONS.load(Ordering::Relaxed) - before
    };
    count(50);
    let (few, many) = (count(10), count(210));
    // The thread pool's queues may grow once more; the steps themselves add nothing.
    assert!(
        many <= few + 8,
        "{few} allocations for 10 steps, {many} for 210"
    );
}

/// A state that is handed over is in memory twice, at one step and at many; the next call allocates no array.
#[test]
fn a_state_that_is_handed_over_is_in_memory_twice() {
    let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(|e| e.into_inner());
    let dev = Device::cpu();
    let n = 1 << 20;
    let bytes = 2 * 4 * n as u64;
    let state = || {
        let array = |k| Tensor::random_uniform([n], k, DType::F32, &dev);
        let state = vec![array(0), array(1)];
        eval(&state.iter().collect::<Vec<_>>()).unwrap();
        state
    };
    let step = compile(
        |s: &Vec<Tensor>, (): &()| {
            let next = vec![&s[0] * 0.5 + &s[1], s[1].clone()];
            Ok((next, s[0].slice(0, 0, 1)))
        },
        &state(),
        &(),
        &dev,
    )
    .unwrap();
    for steps in [1, 2, 7, 8] {
        let (expected, _) = step.run(state(), &(), steps).unwrap();
        let expected = expected[0].to_vec::<f32>().unwrap();
        let mut given = state();
        for call in 0..3 {
            let before = LIVE.load(Ordering::Relaxed);
            PEAK.store(before, Ordering::Relaxed);
            let (next, _) = step.run(given, &(), steps).unwrap();
            let more = PEAK.load(Ordering::Relaxed) - before;
            // The call takes its second set from the arrays that the last one left.
            assert!(
                more < bytes / 8,
                "{steps} steps, call {call}: {more} bytes more"
            );
            if call == 0 {
                assert_eq!(next[0].to_vec::<f32>().unwrap(), expected, "{steps} steps");
            }
            given = next;
        }
        // A state that the caller keeps is not touched.
        let kept = state();
        let before = kept[0].to_vec::<f32>().unwrap();
        let (next, _) = step.run(kept.clone(), &(), steps).unwrap();
        assert_eq!(kept[0].to_vec::<f32>().unwrap(), before);
        assert_eq!(
            next[0].to_vec::<f32>().unwrap(),
            expected,
            "{steps} steps, kept"
        );
    }
}
