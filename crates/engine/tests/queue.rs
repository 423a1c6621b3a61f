//! Order: whatever overlaps, results are those of one command after the other.
#![allow(clippy::unwrap_used)]

mod common;
use common::*;
use dml_engine::{AddressRange, Device, Error, KernelRef, Launch};
use dml_kernel::{Builder, DType, ScalarType};
use dml_testing::Random;
use std::time::{Duration, Instant};

#[test]
fn a_chain_of_dependent_launches() {
    let device = open();
    let kernel = multiply_add(&device);
    let x = put(&device, &[1; 1000]);
    let zero = put(&device, &[0; 1000]);
    // Each round doubles, and frees what it read: the allocator hands the same blocks out again.
    let mut now = x;
    for _ in 0..20 {
        let next = device.allocate(4000).unwrap();
        launch_multiply_add(&device, &kernel, (next, now, zero), 1000, 2).unwrap();
        device.free(now);
        now = next;
    }
    assert_eq!(read(&device, now, 1000), [1 << 20; 1000]);
    let stats = device.memory_stats();
    assert_eq!(stats.all.allocations.current, 2);
    assert!(stats.all.reserved_bytes.current <= 2 << 20);
}

#[test]
fn independent_launches_need_no_barrier() {
    let device = open();
    let kernel = multiply_add(&device);
    let x = put(&device, &[3; 64]);
    device.synchronize().unwrap();
    let before = device.queue_stats();
    let outs: Vec<u64> = (0..40).map(|_| device.allocate(256).unwrap()).collect();
    for (i, &out) in outs.iter().enumerate() {
        launch_multiply_add(&device, &kernel, (out, x, x), 64, i as i32).unwrap();
    }
    device.synchronize().unwrap();
    let after = device.queue_stats();
    assert_eq!(after.commands - before.commands, 40);
    assert_eq!(after.barriers, before.barriers);
    for (i, &out) in outs.iter().enumerate() {
        assert_eq!(read(&device, out, 64), [3 * i as i32 + 3; 64]);
    }
}

/// 10,000 launches and small uploads on random, overlapping ranges of one block, compared with a
/// model on the CPU.
#[test]
fn random_aliasing_agrees_with_the_cpu() {
    const WORDS: usize = 4096;
    let device = open();
    let kernel = multiply_add(&device);
    let mut random = Random(11);
    let mut model: Vec<i32> = (0..WORDS as i32).collect();
    let block = put(&device, &model);
    for step in 0..10_000 {
        let n = 1 + random.below(80) as usize;
        let mut place = || random.below((WORDS - n) as u64) as usize;
        let (out, x, y) = (place(), place(), place());
        let overlaps = |a: usize| a != out && a.abs_diff(out) < n;
        if overlaps(x) || overlaps(y) {
            continue; // Within one launch the order of elements is open.
        }
        let address = |i: usize| block + 4 * i as u64;
        if step % 17 == 0 {
            let data: Vec<i32> = (0..n as i32).map(|i| i ^ step).collect();
            device.upload(address(out), &bytes_of(&data)).unwrap();
            model[out..out + n].copy_from_slice(&data);
            continue;
        }
        let scale = random.below(9) as i32 - 4;
        let places = (address(out), address(x), address(y));
        launch_multiply_add(&device, &kernel, places, n as u32, scale).unwrap();
        for i in 0..n {
            model[out + i] = model[x + i].wrapping_mul(scale).wrapping_add(model[y + i]);
        }
        if step % 1000 == 7 {
            let got = read(&device, address(out), n);
            assert_eq!(got, model[out..out + n], "step {step}");
        }
    }
    assert_eq!(read(&device, block, WORDS), model);
}

#[test]
fn parameters_that_do_not_fit_push_constants_go_through_memory() {
    let device = open();
    let count = 300; // Scalars: 1200 bytes and more.
    let key = ("test::many", count);
    let kernel = device
        .kernel(&key, || {
            let b = Builder::new("many", [1, 1, 1]);
            let out = b.pointer("out", DType::I32);
            let mut sum = b.i32(0);
            for i in 0..count {
                sum = sum + b.param(&format!("p{i}"), ScalarType::I32) * (i + 1);
            }
            out.store(0, sum);
            b.finish()
        })
        .unwrap();
    // Enough launches to go round the ring of parameters several times.
    let out = device.allocate(4).unwrap();
    let mut expected = 0;
    for round in 0..20_000i32 {
        let mut params = out.to_ne_bytes().to_vec();
        expected = 0;
        for i in 0..count {
            params.extend_from_slice(&(round ^ i).to_ne_bytes());
            expected += (round ^ i) * (i + 1);
        }
        device
            .launch(Launch {
                kernel,
                params: &params,
                table: &[],
                groups: [1, 1, 1],
                reads: &[],
                writes: &[AddressRange::new(out, 4)],
                work: 0,
                operator: "many",
            })
            .unwrap();
        if round % 5000 == 0 {
            assert_eq!(read(&device, out, 1), [expected]);
        }
    }
    assert_eq!(read(&device, out, 1), [expected]);
}

/// Tables of every length up to several rounds of the ring.
#[test]
fn a_launch_carries_a_table() {
    let device = open();
    let kernel = sum_of_table(&device);
    let outs: Vec<u64> = (0..300).map(|_| device.allocate(4).unwrap()).collect();
    let table = |i: usize| (0..1 + i * 97).map(|x| (x ^ i) as i32).collect::<Vec<_>>();
    for (i, &out) in outs.iter().enumerate() {
        launch_sum_of_table(&device, &kernel, out, &table(i)).unwrap();
    }
    for (i, &out) in outs.iter().enumerate().step_by(23) {
        assert_eq!(read(&device, out, 1), [table(i).iter().sum::<i32>()]);
    }
    let e = launch_sum_of_table(&device, &kernel, outs[0], &vec![1; (4 << 20) / 4 + 1]).unwrap_err();
    assert!(matches!(e, Error::InvalidLaunch { .. }), "{e}");
    let launch = Launch {
        kernel: &kernel,
        params: &[0; 12],
        table: &[],
        groups: [1, 1, 1],
        reads: &[],
        writes: &[],
        work: 0,
        operator: "sum_of_table",
    };
    let e = device.launch(launch).unwrap_err();
    assert!(e.to_string().contains("it takes 20 bytes of parameters, not 12"), "{e}");
}

#[test]
fn invalid_launches_are_refused() {
    let device = open();
    let kernel = multiply_add(&device);
    let launch = Launch {
        kernel: &kernel,
        params: &[0; 8],
        table: &[],
        groups: [1, 1, 1],
        reads: &[],
        writes: &[],
        work: 0,
        operator: "aten::test",
    };
    let e = device.launch(launch).unwrap_err();
    assert_eq!(e.to_string(), "aten::test: launch of multiply_add is invalid: it takes 32 bytes of parameters, not 8");
    let e = device.launch(Launch { params: &[0; 32], groups: [u32::MAX, 1, 1], ..launch }).unwrap_err();
    assert!(matches!(e, Error::InvalidLaunch { .. }), "{e}");
    device.launch(Launch { params: &[0; 32], groups: [0, 1, 1], ..launch }).unwrap();
    device.synchronize().unwrap();
}

#[test]
fn a_lone_launch_is_submitted_without_a_wait() {
    let device = open();
    let kernel = multiply_add(&device);
    let x = put(&device, &[1; 64]);
    device.synchronize().unwrap();
    for pause_ms in [0, 1, 20] {
        std::thread::sleep(Duration::from_millis(pause_ms)); // Once with the thread at rest.
        let submits = device.queue_stats().submits;
        launch_multiply_add(&device, &kernel, (x, x, x), 64, 1).unwrap();
        let start = Instant::now();
        while device.queue_stats().submits == submits {
            assert!(start.elapsed().as_secs() < 5, "never submitted");
            std::thread::sleep(Duration::from_micros(50));
        }
    }
    assert_eq!(read(&device, x, 64), [8; 64]);
}

/// The thread that submits may take long to wake, on a busy machine above all.
#[test]
fn only_the_first_launch_after_a_rest_goes_alone() {
    let device = open();
    let kernel = multiply_add(&device);
    let x = put(&device, &[1; 64]);
    let outs: Vec<u64> = (0..400).map(|_| device.allocate(256).unwrap()).collect();
    device.synchronize().unwrap();
    for _ in 0..20 {
        std::thread::sleep(Duration::from_millis(5));
        let submits = device.queue_stats().submits;
        let start = Instant::now();
        for &out in &outs {
            launch_multiply_add(&device, &kernel, (out, x, x), 64, 1).unwrap();
        }
        let ticks = start.elapsed().as_micros() as u64 / 30;
        let submits = device.queue_stats().submits - submits;
        // A quarter of them at most by the policy, and what the thread submits when nothing was
        // enqueued for a tick.
        assert!(submits <= 2 + 100 + ticks, "{submits} submits in {ticks} ticks");
        device.synchronize().unwrap();
    }
}

/// Reports the index 7 as bad, whatever else happens.
fn report(device: &Device) -> &KernelRef {
    let key = "test::report";
    let build = || {
        let b = Builder::new("report", [1, 1, 1]);
        let fault = b.pointer("fault", DType::I32);
        let operator = b.param("operator", ScalarType::I32);
        fault.store(1, operator);
        for (word, value) in [(2, 7), (3, 0), (4, 5), (5, 0), (6, 0)] {
            fault.store(word, b.i32(value));
        }
        fault.compare_exchange(0, 0, 1);
        b.finish()
    };
    device.kernel(&key, build).unwrap()
}

/// What a kernel reports lies in memory of the host, and asking for it submits nothing while there
/// is nothing: so this sees the run itself, not the submit.
#[test]
fn a_lone_launch_runs_without_a_wait() {
    let device = open();
    let kernel = report(&device);
    let mut params = device.fault_address().to_ne_bytes().to_vec();
    params.extend_from_slice(&dml_engine::operator_id("aten::report").to_ne_bytes());
    params.resize(kernel.param_bytes() as usize, 0);
    let mut delays = Vec::new();
    // Whatever thread submits is awake after the first pause and asleep after the last.
    for pause_us in [0, 50, 500, 20_000].repeat(15) {
        device.synchronize().unwrap();
        std::thread::sleep(Duration::from_micros(pause_us));
        let waits = device.queue_stats().waits;
        let start = Instant::now();
        let launch = Launch {
            kernel,
            params: &params,
            table: &[],
            groups: [1, 1, 1],
            reads: &[],
            writes: &[],
            work: 0,
            operator: "aten::report",
        };
        device.launch(launch).unwrap();
        let raised = loop {
            if let Err(e) = device.check_faults() {
                break e;
            }
            assert!(start.elapsed().as_secs() < 10, "never ran");
            std::thread::yield_now();
        };
        delays.push(start.elapsed());
        assert!(matches!(raised, Error::IndexOutOfRange { operator: "aten::report", index: 7, .. }), "{raised}");
        // One wait, for the rest of the report: none before it had come.
        assert!(device.queue_stats().waits <= waits + 1);
    }
    delays.sort_unstable();
    let (median, worst) = (delays[delays.len() / 2], delays[delays.len() - 1]);
    println!(
        "a lone launch had run after {median:?} (median), {worst:?} (worst), with the drain that its report takes"
    );
    // A quiet machine needs 0.1 ms. Much slower, and it was something else that submitted the
    // launch.
    assert!(median < Duration::from_millis(50), "{median:?}");
}

#[test]
fn an_index_out_of_range_is_raised_once() {
    let device = open();
    let key = "test::gather";
    let kernel = device
        .kernel(&key, || {
            let b = Builder::new("gather", [64, 1, 1]);
            let out = b.pointer("out", DType::I32);
            let x = b.pointer("x", DType::I32);
            let indices = b.pointer("indices", DType::I32);
            let fault = b.pointer("fault", DType::I32);
            let n = b.param("n", ScalarType::U32);
            let size = b.param("size", ScalarType::I32);
            let operator = b.param("operator", ScalarType::I32);
            let i = b.global_id(0);
            b.if_(i.lt(n), || {
                let index = indices.load(i);
                b.if_else(
                    index.lt(size) & index.ge(0),
                    || out.store(i, x.load(index.cast(ScalarType::U32))),
                    || {
                        b.if_(fault.compare_exchange(0, 0, 1).eq(0), || {
                            fault.store(1, operator);
                            fault.store(2, index);
                            fault.store(3, index >> 31);
                            fault.store(4, size);
                            fault.store(5, 0);
                            fault.store(6, 2);
                        });
                    },
                );
            });
            b.finish()
        })
        .unwrap();
    let x = put(&device, &[7; 10]);
    let out = device.allocate(64).unwrap();
    let gather = |indices: &[i32]| {
        let at = put(&device, indices);
        let mut params: Vec<u8> = [out, x, at, device.fault_address()].iter().flat_map(|a| a.to_ne_bytes()).collect();
        for word in [indices.len() as u32, 10, dml_engine::operator_id("aten::gather")] {
            params.extend_from_slice(&word.to_ne_bytes());
        }
        // The block is padded to its largest member.
        params.resize(kernel.param_bytes() as usize, 0);
        device
            .launch(Launch {
                kernel,
                params: &params,
                table: &[],
                groups: [1, 1, 1],
                reads: &[AddressRange::new(x, 40), AddressRange::new(at, indices.len() as u64 * 4)],
                writes: &[AddressRange::new(out, indices.len() as u64 * 4)],
                work: 0,
                operator: "aten::gather",
            })
            .unwrap();
        device.free(at);
    };
    gather(&[0, 9, 5]);
    assert_eq!(read(&device, out, 3), [7; 3]);
    gather(&[0, -11, 5]);
    let e = device.synchronize().unwrap_err();
    assert_eq!(e, Error::IndexOutOfRange { operator: "aten::gather", index: -11, size: 10, dim: 2, runtime: false });
    assert_eq!(e.to_string(), "aten::gather: index -11 is out of bounds for dimension 2 with size 10");
    device.synchronize().unwrap();
    gather(&[10]);
    device.flush().unwrap();
    let mut raised = 0;
    for _ in 0..200 {
        std::thread::sleep(Duration::from_millis(1));
        let kernel = multiply_add(&device);
        raised += usize::from(launch_multiply_add(&device, &kernel, (x, x, x), 10, 1).is_err());
    }
    assert_eq!(raised, 1, "a later launch raises it");
    gather(&[3]);
    assert!(device.download(out, &mut [0; 4]).is_ok());
    // Reading bytes that the gather has nothing to do with waits for it, too.
    for _ in 0..50 {
        gather(&[10]);
        let e = device.download(x, &mut [0; 4]).unwrap_err();
        assert!(matches!(e, Error::IndexOutOfRange { index: 10, .. }), "{e}");
        assert!(device.download(x, &mut [0; 4]).is_ok());
    }
}

#[test]
fn a_kernel_that_the_adapter_cannot_run_is_refused_by_name() {
    let device = open();
    let key = "test::big";
    let e = device
        .kernel(&key, || {
            let b = Builder::new("big", [1, 1, 1]);
            let shared = b.shared(ScalarType::F32, 4, 1 << 20);
            let out = b.pointer("out", DType::F32);
            shared.store(0, b.vector(&[b.float(ScalarType::F32, 1.0); 4]));
            b.barrier();
            out.store(0, shared.load(0).lane(0));
            b.finish()
        })
        .unwrap_err();
    let text = e.to_string();
    assert!(matches!(e, Error::Unsupported { .. }));
    assert!(text.contains("big") && text.contains("shared memory") && text.contains(&device.info().name), "{text}");
}
