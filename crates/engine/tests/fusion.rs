//! Fusion: a chain of pointwise launches is one launch, in a batch as in a graph.
#![allow(clippy::unwrap_used)]

mod common;
use common::*;
use dml_engine::{AddressRange, Device, Error, KernelRef, Launch, Pointwise, PointwiseInput, PointwiseParameters};
use dml_kernel::{Builder, DType, Element, ScalarType, dense};
use std::time::{Duration, Instant};

const N: usize = 300;

/// `out[i] = x[i] + x[i]`, wrapping, of which launches can be fused.
fn double(device: &Device) -> KernelRef {
    let input = PointwiseInput::Tensor { dtype: DType::I32, constant: false };
    let build = || {
        let element = Element::record(&[ScalarType::I32], |_, values| vec![values[0] + values[0]]).unwrap();
        let b = Builder::new("double", [dense::GROUP, 1, 1]);
        let p = PointwiseParameters::declare(&b, [DType::I32], [input], ScalarType::U32);
        let inputs = [(p.tensors[0], false)];
        dense::write(&b, p.numel, 1, &p.outs, &inputs, &|loaded| element.inline(&b, loaded));
        let (outs, inputs) = ([DType::I32].into_iter().collect(), [input].into_iter().collect());
        (b.finish(), Some(Pointwise { element, outs, inputs }))
    };
    device.pointwise_kernel(&"test::double", build).unwrap().clone()
}

fn launch_double(device: &Device, kernel: &KernelRef, out: u64, x: u64, n: usize) -> Result<(), Error> {
    let mut params = [out, x].map(u64::to_ne_bytes).concat();
    params.extend_from_slice(&(n as u32).to_ne_bytes());
    params.resize(kernel.param_bytes() as usize, 0);
    device.launch(Launch {
        kernel,
        params: &params,
        table: &[],
        groups: dense::groups(n as u64),
        reads: &[AddressRange::new(x, 4 * n as u64)],
        writes: &[AddressRange::new(out, 4 * n as u64)],
        work: 0,
        operator: "double",
    })
}

/// Doubles `launches` times, each time into new memory. Returns what each launch wrote. Memory
/// between the first and the last is freed, unless it is to be kept.
fn chain(device: &Device, kernel: &KernelRef, x: u64, launches: usize, keep: bool) -> Vec<u64> {
    let mut outs: Vec<u64> = Vec::new();
    for _ in 0..launches {
        let from = outs.last().copied().unwrap_or(x);
        let out = device.allocate(4 * N as u64).unwrap();
        launch_double(device, kernel, out, from, N).unwrap();
        if !keep && from != x {
            device.free(from);
        }
        outs.push(out);
    }
    outs
}

fn numbers() -> Vec<i32> {
    (0..N as i32).map(|i| i - 7).collect()
}

fn times(factor: i32) -> Vec<i32> {
    numbers().iter().map(|x| x * factor).collect()
}

#[test]
fn a_graph_runs_a_chain_as_one_launch() {
    let device = open();
    let kernel = double(&device);
    let x = put(&device, &numbers());
    for keep in [false, true] {
        let capture = device.capture(None).unwrap();
        let outs = chain(&device, &kernel, x, 5, keep);
        let graph = capture.end().unwrap();
        assert_eq!((graph.stats().captured, graph.stats().launches), (5, 1));
        graph.replay().unwrap();
        assert_eq!(read(&device, outs[4], N), times(32));
        if keep {
            for (i, &out) in outs.iter().enumerate() {
                assert_eq!(read(&device, out, N), times(2 << i), "what was not freed is there");
            }
        }
    }
}

#[test]
fn a_graph_ends_a_chain_where_launches_do_not_fit() {
    let device = open();
    let (kernel, other) = (double(&device), multiply_add(&device));
    let x = put(&device, &numbers());
    let out = device.allocate(4 * N as u64).unwrap();
    let capture = device.capture(None).unwrap();
    let first = chain(&device, &kernel, x, 2, false)[1];
    launch_multiply_add(&device, &other, (out, first, first), N as u32, 1).unwrap(); // 8 x
    let second = chain(&device, &kernel, out, 3, false)[2];
    launch_double(&device, &kernel, out, second, N / 2).unwrap(); // another number of elements
    let graph = capture.end().unwrap();
    assert_eq!((graph.stats().captured, graph.stats().launches), (7, 4));
    graph.replay().unwrap();
    assert_eq!(read(&device, second, N), times(64));
    assert_eq!(read(&device, out, N), [&times(128)[..N / 2], &times(8)[N / 2..]].concat());
}

#[test]
fn a_batch_runs_a_chain_that_came_often_as_one_launch() {
    let device = open();
    let (kernel, other) = (double(&device), multiply_add(&device));
    let x = put(&device, &numbers());
    let unrelated = put(&device, &[0; N]);
    let start = Instant::now();
    loop {
        // The first launch after a rest is submitted alone, and four launches are if the device is
        // idle.
        launch_multiply_add(&device, &other, (unrelated, unrelated, unrelated), N as u32, 1).unwrap();
        let before = device.queue_stats();
        let out = chain(&device, &kernel, x, 3, false)[2];
        assert_eq!(read(&device, out, N), times(8));
        device.free(out);
        let after = device.queue_stats();
        assert_eq!(after.commands - before.commands, 3);
        if (after.fused_launches - before.fused_launches, after.fused_kernels - before.fused_kernels) == (3, 1) {
            break;
        }
        assert!(start.elapsed() < Duration::from_secs(30), "never fused: {after:?}");
        std::thread::sleep(Duration::from_millis(2));
    }
}
