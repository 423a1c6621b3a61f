//! What the tests on a device share.
#![allow(dead_code, clippy::unwrap_used)] // Each test binary uses a part.

pub mod graphs;
pub mod slow;

use dml_engine::interface::{I32, ReadRange, U32, WriteRange};
use dml_engine::{AddressRange, ArgumentBlock, Device, Interface, KernelRef, Launch, parameters};
use dml_kernel::{Builder, DType, ScalarType};

/// A device of its own on the first adapter.
pub fn open() -> Device {
    Device::open(&dml_engine::adapters().unwrap()[0], 0).unwrap()
}

/// `out[i] = x[i] * scale + y[i]`, wrapping.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct MultiplyAdd;

parameters! {
    /// Arguments of [`multiply_add`].
    MultiplyAdd as _spec => MultiplyAddArguments, MultiplyAddParameters {
        out: WriteRange = DType::I32,
        x: ReadRange = DType::I32,
        y: ReadRange = DType::I32,
        n: U32,
        scale: I32,
    }
}

/// The kernel of `out[i] = x[i] * scale + y[i]`.
pub fn multiply_add(device: &Device) -> KernelRef {
    let build = || {
        let b = Builder::new("multiply_add", [64, 1, 1]);
        let MultiplyAddParameters { out, x, y, n, scale } = MultiplyAdd.declare(&b);
        let i = b.global_id(0);
        b.if_(i.lt(n), || out.store(i, x.load(i) * scale + y.load(i)));
        b.finish()
    };
    device.kernel(&MultiplyAdd, build).unwrap().clone()
}

/// Enqueues `out = x * scale + y` over `n` elements at GPU addresses.
pub fn launch_multiply_add(
    device: &Device,
    kernel: &KernelRef,
    (out, x, y): (u64, u64, u64),
    n: u32,
    scale: i32,
) -> Result<(), dml_engine::Error> {
    let [out, x, y] = [out, x, y].map(|address| AddressRange::new(address, u64::from(n) * 4));
    ArgumentBlock::with_spare(|block| {
        MultiplyAdd.pass(&MultiplyAddArguments { out, x, y, n, scale }, block);
        device.launch(block.launch(kernel, [n.div_ceil(64), 1, 1], "multiply_add")?)
    })
}

pub fn bytes_of(values: &[i32]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_ne_bytes()).collect()
}

pub fn read(device: &Device, address: u64, n: usize) -> Vec<i32> {
    let mut bytes = vec![0; n * 4];
    device.download(address, &mut bytes).unwrap();
    assert_eq!(dml_engine::validation_messages(), []); // Counted with TORCH_DML_VALIDATION=1.
    bytes.chunks_exact(4).map(|b| i32::from_ne_bytes(b.try_into().unwrap())).collect()
}

/// An allocation that holds `values`.
pub fn put(device: &Device, values: &[i32]) -> u64 {
    let address = device.allocate(values.len() as u64 * 4).unwrap();
    device.upload(address, &bytes_of(values)).unwrap();
    address
}

/// `out[0] = sum of the table's first n words`; the table is the launch's.
pub fn sum_of_table(device: &Device) -> KernelRef {
    let key = "test::sum_of_table";
    device
        .kernel(&key, || {
            let b = Builder::new("sum_of_table", [1, 1, 1]);
            let (table, out) = (b.pointer("table", DType::I32), b.pointer("out", DType::I32));
            let n = b.param("n", ScalarType::U32);
            let sum = b.var(b.i32(0));
            b.for_(0, n, 1, |i| sum.set(sum.get() + table.load(i)));
            out.store(0, sum.get());
            b.finish()
        })
        .unwrap()
        .clone()
}

/// Enqueues `out = sum of table`.
pub fn launch_sum_of_table(
    device: &Device,
    kernel: &KernelRef,
    out: u64,
    table: &[i32],
) -> Result<(), dml_engine::Error> {
    let mut params = [0; 12];
    params[..8].copy_from_slice(&out.to_ne_bytes());
    params[8..].copy_from_slice(&(table.len() as u32).to_ne_bytes());
    let writes = [AddressRange::new(out, 4)];
    let table = bytes_of(table);
    device.launch(Launch {
        kernel,
        params: &params,
        table: &table,
        groups: [1, 1, 1],
        reads: &[],
        writes: &writes,
        work: 0,
        operator: "sum_of_table",
    })
}
