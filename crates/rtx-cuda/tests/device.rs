//! The driver layer on a GPU.

use rtx_cuda::driver::{
    Context, Counts, Function, Graph, Memory, Module, arch_of, compile, nvrtc, probe,
};
use rtx_cuda::{CudaBackend, Error};
use rtx_ir::DType;
use rtx_ir::eval::HostArray;
use rtx_runtime::Backend;
use std::ffi::c_void;
use std::sync::Arc;

const KERNELS: &str = r#"
extern "C" __global__ void add(const float* a, const float* b, float* c, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) c[i] = a[i] + b[i];
}
extern "C" __global__ void step(float* x, unsigned* count, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] += 1.0f;
    if (i == 0) *count += 1;
}
extern "C" __global__ void reverse(float* x, unsigned n) {
    extern __shared__ float s[];
    for (unsigned i = threadIdx.x; i < n; i += blockDim.x) s[i] = x[i];
    __syncthreads();
    for (unsigned i = threadIdx.x; i < n; i += blockDim.x) x[i] = s[n - 1 - i];
}
"#;

/// Held by the tests that look at the device's free memory.
static FREE_MEMORY: std::sync::Mutex<()> = std::sync::Mutex::new(());

fn device() -> Arc<Context> {
    probe().unwrap_or_else(|error| panic!("{error}"));
    Context::new(0).expect("the device can be taken into use")
}

/// A context and its kernels.
fn kernels() -> (Arc<Context>, Module) {
    let context = device();
    nvrtc().unwrap_or_else(|error| panic!("{error}"));
    let arch = arch_of(context.info().capability);
    let cubin = compile(KERNELS, "kernels", &arch, &["--std=c++17"]).expect("compiles");
    let module = Module::load(&context, &cubin).expect("loads");
    assert!(Module::load(&context, &cubin[..cubin.len() / 2]).is_err());
    (context, module)
}

fn noise(bytes: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    (0..bytes)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state as u8
        })
        .collect()
}

fn bytes_of(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_ne_bytes()).collect()
}

fn floats(context: &Context, memory: &Memory) -> Vec<f32> {
    let mut bytes = vec![0; memory.len()];
    context.download(memory, &mut bytes).expect("read");
    bytes
        .chunks_exact(4)
        .map(|b| f32::from_ne_bytes([b[0], b[1], b[2], b[3]]))
        .collect()
}

/// Launches a kernel on pointers, the last argument being a number.
fn launch(context: &Context, function: &Function, pointers: &[&Memory], n: u32, shared: u32) {
    let (block, mut n) = (256u32, n);
    let grid = if shared > 0 { 1 } else { n.div_ceil(block) };
    let mut addresses: Vec<u64> = pointers.iter().map(|m| m.pointer()).collect();
    let mut params: Vec<*mut c_void> = addresses
        .iter_mut()
        .map(|a| std::ptr::from_mut(a).cast())
        .collect();
    params.push(std::ptr::from_mut(&mut n).cast());
    // SAFETY: pointers and number have the kernels' types; every test's memory outlives its work.
    unsafe { context.launch(function, grid, block, shared, &mut params) }.expect("launched");
}

mod needs_gpu {
    use super::*;

    #[test]
    #[ignore = "needs an NVIDIA GPU"]
    fn what_the_device_is() {
        let context = device();
        let info = context.info();
        println!("{info:?}");
        assert!(!info.name.is_empty() && info.multiprocessors > 0);
        assert!(info.shared_per_block >= 48 << 10 && info.l2 > 0);
        let (free, total) = context.memory().expect("told");
        assert!(free <= total && total <= info.memory);
        let error = Context::new(1000).expect_err("not that many");
        assert!(
            matches!(error, Error::NoDevice { ordinal: 1000, .. }),
            "{error}"
        );
    }

    #[test]
    #[ignore = "needs an NVIDIA GPU"]
    fn bytes_come_back_as_they_went() {
        let context = device();
        // Around the staging buffer's halves (2 MiB) and far beyond both.
        for bytes in [
            0,
            1,
            3,
            255,
            1 << 20,
            (2 << 20) - 1,
            (2 << 20) + 1,
            (13 << 20) + 5,
        ] {
            let data = noise(bytes);
            let memory = context.alloc(bytes).expect("allocated");
            assert_eq!(memory.len(), bytes);
            context.upload(&memory, &data).expect("written");
            let mut back = vec![0; bytes];
            context.download(&memory, &mut back).expect("read");
            assert!(back == data, "{bytes} bytes");
        }
    }

    #[test]
    #[ignore = "needs an NVIDIA GPU"]
    fn parts_copies_and_fills() {
        let context = device();
        let data = noise(1000);
        let a = context.alloc(1000).expect("allocated");
        let b = context.alloc(1000).expect("allocated");
        context.fill(&b, 1000, 0xab).expect("filled");
        context.upload(&a, &data).expect("written");
        context.upload(a.at(990), &[1, 2, 3]).expect("written");
        context.copy(b.at(10), a.at(985), 9).expect("copied");
        context.fill(b.at(999), 1, 5).expect("filled");
        let mut got = vec![0; 1000];
        context.download(&b, &mut got).expect("read");
        let mut want = vec![0xab; 1000];
        want[10..15].copy_from_slice(&data[985..990]);
        want[15..18].copy_from_slice(&[1, 2, 3]);
        want[18] = data[993];
        want[999] = 5;
        assert_eq!(got, want);
        let mut tail = [0; 2];
        context.download(b.at(998), &mut tail).expect("read");
        assert_eq!(tail, [0xab, 5]);

        let misuse = |result: Result<(), Error>| matches!(result, Err(Error::Misuse { .. }));
        assert!(misuse(context.upload(a.at(999), &[0, 0])));
        assert!(misuse(context.download(a.at(usize::MAX), &mut [0])));
        assert!(misuse(context.copy(&a, &b, 1001)));
        assert!(misuse(context.copy(a.at(1), a.at(0), 10)), "overlap");
        assert!(misuse(context.fill(a.at(1), 1000, 0)));
    }

    #[test]
    #[ignore = "needs an NVIDIA GPU"]
    fn a_vector_sum() {
        let (context, module) = kernels();
        let n = 100_003;
        let a: Vec<f32> = (0..n).map(|i| i as f32).collect();
        let b: Vec<f32> = (0..n).map(|i| 0.5 - 2.0 * i as f32).collect();
        let memory = [&a, &b, &a].map(|v| {
            let memory = context.alloc(4 * v.len()).expect("allocated");
            context.upload(&memory, &bytes_of(v)).expect("written");
            memory
        });
        let add = module.function("add").expect("there");
        assert_eq!((add.name(), add.params()), ("add", 4));
        let usage = add.usage().expect("told");
        assert!(usage.registers > 0 && usage.max_block >= 256, "{usage:?}");
        assert!(add.blocks_per_multiprocessor(256, 0).expect("told") > 0);
        launch(&context, &add, &[&memory[0], &memory[1], &memory[2]], n, 0);
        let sum = floats(&context, &memory[2]);
        assert!((0..n as usize).all(|i| sum[i] == a[i] + b[i]));

        // SAFETY: refused before anything runs.
        let refused = unsafe { context.launch(&add, 1, 1, 0, &mut []) };
        assert!(matches!(refused, Err(Error::Misuse { .. })), "{refused:?}");
        let error = module.function("absent").expect_err("no such kernel");
        assert!(error.to_string().contains("absent"), "{error}");
    }

    #[test]
    #[ignore = "needs an NVIDIA GPU"]
    fn more_shared_memory_than_the_default() {
        let (context, module) = kernels();
        let bytes = context.info().shared_per_block;
        let values: Vec<f32> = (0..bytes / 4).map(|i| i as f32).collect();
        let x = context.alloc(bytes as usize).expect("allocated");
        context.upload(&x, &bytes_of(&values)).expect("written");
        let reverse = module.function("reverse").expect("there");
        reverse.set_max_dynamic_shared(bytes).expect("allowed");
        launch(&context, &reverse, &[&x], bytes / 4, bytes);
        assert!(floats(&context, &x).iter().eq(values.iter().rev()));
        assert!(reverse.set_max_dynamic_shared(1 << 30).is_err());
    }

    #[test]
    #[ignore = "needs an NVIDIA GPU"]
    fn a_graph_is_replayed_a_thousand_times() {
        let (context, module) = kernels();
        let n = 1000;
        let step = module.function("step").expect("there");
        let x = context.alloc(4 * n as usize).expect("allocated");
        let copy = context.alloc(4 * n as usize).expect("allocated");
        let steps = context.alloc(4).expect("allocated");
        context.fill(&x, x.len(), 0).expect("filled");
        context.fill(&steps, 4, 0).expect("filled");
        let spare = context.alloc(1 << 20).expect("allocated");
        // SAFETY: module and memory outlive the graph.
        let graph = unsafe {
            Graph::capture(&context, || {
                launch(&context, &step, &[&x, &steps], n, 0);
                launch(&context, &step, &[&x, &steps], n, 0);
                context.copy(&copy, &x, 4 * n as usize)?;
                // Freed after the capture, not by the graph.
                drop(spare);
                for refused in [
                    context.alloc(8).map(drop),
                    context.synchronize(),
                    context.download(&x, &mut [0]),
                    context.upload(&x, &[0]),
                ] {
                    assert!(matches!(refused, Err(Error::Misuse { .. })), "{refused:?}");
                }
                // Others go on meanwhile, and are not recorded.
                std::thread::scope(|scope| {
                    scope.spawn(|| {
                        let other = context.alloc(64).expect("allocated");
                        context.fill(&other, 64, 9).expect("filled");
                        let mut got = [0; 64];
                        context.download(&other, &mut got).expect("read");
                        assert_eq!(got, [9; 64]);
                    });
                });
                Ok(())
            })
        }
        .expect("captured");
        assert_eq!(graph.nodes(), 3);
        assert!(
            floats(&context, &x).iter().all(|&v| v == 0.0),
            "nothing ran yet"
        );

        let before = context.counts();
        let start = std::time::Instant::now();
        for _ in 0..1000 {
            graph.launch().expect("replayed");
        }
        let queued = start.elapsed();
        let after = context.counts();
        assert_eq!(
            after,
            Counts {
                replays: before.replays + 1000,
                ..before
            }
        );
        context.synchronize().expect("done");
        println!(
            "1000 replays: queued in {queued:?}, done in {:?}",
            start.elapsed()
        );
        assert!(floats(&context, &x).iter().all(|&v| v == 2000.0));
        assert!(floats(&context, &copy).iter().all(|&v| v == 2000.0));
        let mut count = [0; 4];
        context.download(&steps, &mut count).expect("read");
        assert_eq!(u32::from_ne_bytes(count), 2000);

        // Another thread may replay it.
        std::thread::scope(|scope| scope.spawn(|| graph.launch().expect("replayed")).join())
            .expect("no panic");
        assert!(floats(&context, &x).iter().all(|&v| v == 2002.0));
    }

    #[test]
    #[ignore = "needs an NVIDIA GPU"]
    fn a_failed_capture_leaves_the_context_usable() {
        let context = device();
        let memory = context.alloc(16).expect("allocated");
        let failed = || {
            context.fill(&memory, 16, 1)?;
            context.alloc(16).map(drop)
        };
        // SAFETY: nothing recorded is ever replayed.
        let error = unsafe { Graph::capture(&context, failed) }.expect_err("alloc is refused");
        assert!(
            matches!(error, Error::Misuse { call: "alloc", .. }),
            "{error}"
        );
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            // SAFETY: as above.
            unsafe { Graph::capture(&context, || panic!("in the work")) }
        }));
        assert!(panicked.is_err());
        // SAFETY: as above; the inner capture is refused.
        let nested =
            unsafe { Graph::capture(&context, || Graph::capture(&context, || Ok(())).map(drop)) };
        assert!(matches!(nested, Err(Error::Misuse { .. })), "{nested:?}");
        context.fill(&memory, 16, 7).expect("filled");
        let mut got = [0; 16];
        context.download(&memory, &mut got).expect("read");
        assert_eq!(got, [7; 16]);
    }

    #[test]
    #[ignore = "needs an NVIDIA GPU"]
    fn after_out_of_memory_work_goes_on() {
        let _alone = FREE_MEMORY.lock().unwrap_or_else(|e| e.into_inner());
        let context = device();
        let total = context.info().memory;
        for asked in [usize::MAX, total + 1] {
            let error = context.alloc(asked).expect_err("more than there is");
            assert!(
                matches!(error, Error::OutOfMemory { asked: a, .. } if a == asked),
                "{error}"
            );
        }
        // More than is left beside what is held, so that the driver itself refuses.
        let (free, _) = context.memory().expect("told");
        let held = context.alloc(free / 2).expect("half of what is free");
        let error = context.alloc(free / 4 * 3).expect_err("more than is left");
        assert!(matches!(error, Error::OutOfMemory { .. }), "{error}");
        drop(held);
        let whole = context.alloc(free / 4 * 3).expect("it is free again");
        drop(whole);
        let memory = context.alloc(1 << 20).expect("a normal allocation");
        context.upload(&memory, &noise(1 << 20)).expect("written");
    }

    #[test]
    #[ignore = "needs an NVIDIA GPU"]
    fn memory_may_be_dropped_anywhere() {
        let context = device();
        let memory = context.alloc(1 << 20).expect("allocated");
        context.fill(&memory, 1 << 20, 1).expect("filled");
        std::thread::spawn(move || drop(memory))
            .join()
            .expect("dropped");
        // The last owner on another thread takes the context down there.
        let memory = context.alloc(1 << 10).expect("allocated");
        drop(context);
        std::thread::spawn(move || drop(memory))
            .join()
            .expect("dropped");
        let again = Context::new(0).expect("the device can be taken again");
        again.synchronize().expect("works");
    }

    #[test]
    #[ignore = "needs an NVIDIA GPU"]
    fn a_loop_neither_allocates_nor_waits() {
        let (context, module) = kernels();
        let step = module.function("step").expect("there");
        let x = context.alloc(4000).expect("allocated");
        let steps = context.alloc(4).expect("allocated");
        context.fill(&x, 4000, 0).expect("filled");
        context.fill(&steps, 4, 0).expect("filled");
        let before = context.counts();
        let _bound = context.bind().expect("current");
        for _ in 0..500 {
            launch(&context, &step, &[&x, &steps], 1000, 0);
        }
        let after = context.counts();
        assert_eq!(
            after,
            Counts {
                launches: before.launches + 500,
                ..before
            }
        );
        // A read of a few bytes is one wait at most.
        let mut count = [0; 4];
        context.download(&steps, &mut count).expect("read");
        assert_eq!(u32::from_ne_bytes(count), 500);
        assert!(context.counts().synchronizations <= after.synchronizations + 1);
    }

    #[test]
    #[ignore = "needs an NVIDIA GPU"]
    fn repeated_allocation_is_cheap_and_grows_nothing() {
        let _alone = FREE_MEMORY.lock().unwrap_or_else(|e| e.into_inner());
        let context = device();
        drop(context.alloc(64 << 20).expect("allocated"));
        context.synchronize().expect("done");
        let (before, _) = context.memory().expect("told");
        let start = std::time::Instant::now();
        for _ in 0..1000 {
            drop(context.alloc(64 << 20).expect("allocated"));
        }
        println!("1000 allocations of 64 MiB: {:?}", start.elapsed());
        context.synchronize().expect("done");
        let (after, _) = context.memory().expect("told");
        println!("free before {before}, after {after}");
        assert!(after + (256 << 20) >= before);
    }

    #[test]
    #[ignore = "needs an NVIDIA GPU"]
    fn the_scalars_of_a_read_go_up_together() {
        let backend = CudaBackend::new(0).expect("a GPU");
        let arrays: Vec<HostArray> = (0..5)
            .map(|k| match k % 2 {
                0 => HostArray::new(DType::F32, &[], vec![f64::from(k) + 0.5]),
                _ => HostArray::new(DType::I64, &[], vec![f64::from(-k)]),
            })
            .collect();
        let before = backend.context().counts().allocations;
        let mut values = backend.upload_all(&arrays).expect("written");
        assert_eq!(backend.context().counts().allocations - before, 1);
        // The others live on without the first.
        drop(values.remove(0));
        for (value, array) in values.iter().zip(&arrays[1..]) {
            assert_eq!(value.to_host().expect("read").data, array.data);
        }
    }
}
