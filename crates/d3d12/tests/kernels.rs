//! Kernels, with the addresses of segments.
#![cfg(windows)]

mod support;

#[path = "support/bytecode.rs"]
mod bytecode;

use dml_d3d12::{Gpu, Pipeline, Segment};
use dml_gpu::traits::*;
use dml_gpu::{Commands, Error, MemoryClass, PipelineOptions};
use support::{bytes_of, download, gpu, upload};

const GROUP: u32 = 64;
const PUSH: u32 = 28;

/// A device and the kernel; `None`, with a printed reason, if kernels cannot access all segments.
/// They can in Microsoft's Direct3D with resource binding tier 3, and in Wine's with Vulkan drivers
/// that have descriptor indexing.
fn device() -> Option<(Gpu, Pipeline)> {
    let gpu = gpu()?;
    match gpu.compile("add", &bytecode::add(), PUSH) {
        Ok(kernel) => Some((gpu, kernel)),
        Err(Error::Driver { call: "ID3D12Device::CreateRootSignature", name, .. }) => {
            eprintln!("skipped: {} has no table without an end ({name})", gpu.info().name);
            None
        }
        Err(error) => panic!("{error}"),
    }
}

fn words(values: impl IntoIterator<Item = u32>) -> Vec<u8> {
    values.into_iter().flat_map(u32::to_le_bytes).collect()
}

/// The parameters of [`bytecode::add`] for the elements from `first` on.
fn push(a: &Segment, b: &Segment, out: &Segment, first: u64, n: u32) -> Vec<u8> {
    let addresses = [a, b, out].map(|segment| (segment.address() + 4 * first).to_le_bytes()).concat();
    [addresses, n.to_le_bytes().to_vec()].concat()
}

fn add<C: Commands<Api = dml_d3d12::D3d12>>(
    commands: &mut C,
    kernel: &Pipeline,
    segments: [&Segment; 3],
    n: u32,
) -> Result<(), Error> {
    let [a, b, out] = segments;
    commands.dispatch(kernel, &push(a, b, out, 0, n), [n.div_ceil(GROUP), 1, 1])
}

#[test]
fn a_kernel_reads_and_writes_by_address_and_knows_its_workgroups() {
    let Some((gpu, kernel)) = device() else { return };
    const N: u32 = 1000;
    let (a, b) = (upload(&gpu, &words(0..N)), upload(&gpu, &words((0..N).map(|i| i << 16))));
    let zeros = upload(&gpu, &words((0..N).map(|_| 0)));
    let out = gpu.allocate(u64::from(N) * 4, MemoryClass::Device).expect("memory");
    let mut recorder = gpu.recorder().expect("a recorder");
    recorder.copy(&zeros, 0, &out, 0, zeros.bytes()).expect("recorded");
    recorder.barrier();
    // All elements but the first 10 and the last 90.
    let parameters = push(&a, &b, &out, 10, 900);
    recorder.dispatch(&kernel, &parameters, [900_u32.div_ceil(GROUP), 1, 1]).expect("recorded");
    recorder.barrier();
    let groups = 900_u32.div_ceil(GROUP);
    let expected = (0..N).map(|i| if (10..910).contains(&i) { (i | i << 16) + groups } else { 0 });
    assert_eq!(download(&gpu, &mut recorder, &out), words(expected));
}

#[test]
fn dependent_kernels_see_what_earlier_ones_wrote() {
    let Some((gpu, kernel)) = device() else { return };
    const N: u32 = 4096;
    const TIMES: u32 = 20;
    let ones = upload(&gpu, &words((0..N).map(|_| 1)));
    let sums = [0, 1].map(|_| gpu.allocate(u64::from(N) * 4, MemoryClass::Device).expect("memory"));
    let mut recorder = gpu.recorder().expect("a recorder");
    let start = upload(&gpu, &words(0..N));
    recorder.copy(&start, 0, &sums[0], 0, start.bytes()).expect("recorded");
    for time in 0..TIMES as usize {
        recorder.barrier();
        add(&mut recorder, &kernel, [&sums[time % 2], &ones, &sums[(time + 1) % 2]], N).expect("recorded");
    }
    recorder.barrier();
    let each = 1 + N / GROUP;
    assert_eq!(download(&gpu, &mut recorder, &sums[0]), words((0..N).map(|i| i + TIMES * each)));
}

#[test]
fn kernels_write_where_the_host_reads() {
    let Some((gpu, kernel)) = device() else { return };
    let a = upload(&gpu, &words(0..GROUP));
    for class in [MemoryClass::Readback, MemoryClass::Staging] {
        let out = gpu.allocate(u64::from(GROUP) * 4, class).expect("memory");
        let mut recorder = gpu.recorder().expect("a recorder");
        add(&mut recorder, &kernel, [&a, &a, &out], GROUP).expect("recorded");
        recorder.host_barrier();
        recorder.wait_idle().expect("done");
        assert_eq!(bytes_of(&out), words((0..GROUP).map(|i| 2 * i + 1)), "{class:?}");
    }
}

#[test]
fn a_recording_runs_kernels_and_copies() {
    let Some((gpu, kernel)) = device() else { return };
    let [a, sum] = [0, 1].map(|_| gpu.allocate(u64::from(GROUP) * 4, MemoryClass::Device).expect("memory"));
    let ones = vec![upload(&gpu, &words((0..GROUP).map(|_| 1)))];
    let recording = gpu
        .record::<Error>(ones, |commands, ones| {
            add(commands, &kernel, [&a, &ones[0], &sum], GROUP)?;
            commands.barrier();
            commands.copy(&sum, 0, &a, 0, sum.bytes())
        })
        .expect("recorded");
    drop(kernel);
    let mut recorder = gpu.recorder().expect("a recorder");
    let start = upload(&gpu, &words(0..GROUP));
    recorder.copy(&start, 0, &a, 0, start.bytes()).expect("recorded");
    for _ in 0..5 {
        recorder.execute(&recording).expect("recorded");
    }
    recorder.barrier();
    assert_eq!(download(&gpu, &mut recorder, &a), words((0..GROUP).map(|i| i + 5 * 2)));
}

#[test]
fn dispatches_that_cannot_be_are_errors() {
    let Some((gpu, kernel)) = device() else { return };
    let Some(other) = support::gpu() else { return };
    let a = upload(&gpu, &words(0..GROUP));
    let parameters = push(&a, &a, &a, 0, 0);
    let mut recorder = gpu.recorder().expect("a recorder");
    let invalid = |result: Result<(), Error>| assert!(matches!(result, Err(Error::Invalid { .. })), "{result:?}");
    invalid(recorder.dispatch(&kernel, &parameters[4..], [1, 1, 1]));
    invalid(recorder.dispatch(&kernel, &parameters, [1, 65_536, 1]));
    invalid(other.recorder().expect("a recorder").dispatch(&kernel, &parameters, [1, 1, 1]));
    assert_eq!(recorder.dispatch(&kernel, &parameters, [1, 0, 1]), Ok(()), "no workgroup is no work");
    assert_eq!(recorder.recorded(), 0);
    // Functions that are not implemented yet.
    let unsupported =
        |result: Result<(), Error>| assert!(matches!(result, Err(Error::Unsupported { .. })), "{result:?}");
    unsupported(recorder.dispatch_from(&kernel, &parameters, [1, 0, 0], [1, 1, 1]));
    let subgroups = PipelineOptions { subgroup_size: Some(12), ..PipelineOptions::default() };
    unsupported(gpu.compile_with("add", &bytecode::add(), PUSH, &subgroups).map(drop));
    assert!(gpu.compile("damaged", &bytecode::add()[..100], PUSH).is_err());
}
