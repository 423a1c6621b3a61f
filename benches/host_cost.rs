//! The engine's cost on the host: `cargo run --release -p dml-engine --example host_cost`.

use dml_engine::{AddressRange, Device, Error, KernelRef, Launch, device};
use dml_kernel::{Builder, DType, ScalarType};
use std::time::Instant;

const N: u32 = 16;
const KEY: &str = "example::add";

fn add(device: &Device) -> Result<&KernelRef, Error> {
    device.kernel(&KEY, || {
        let b = Builder::new("add", [64, 1, 1]);
        let (out, x, y) = (b.pointer("out", DType::F32), b.pointer("x", DType::F32), b.pointer("y", DType::F32));
        let n = b.param("n", ScalarType::U32);
        let i = b.global_id(0);
        b.if_(i.lt(n), || out.store(i, x.load(i) + y.load(i)));
        b.finish()
    })
}

fn launch(device: &Device, kernel: &KernelRef, out: u64, x: u64, y: u64) -> Result<(), Error> {
    let mut params = [0; 28];
    params[..8].copy_from_slice(&out.to_ne_bytes());
    params[8..16].copy_from_slice(&x.to_ne_bytes());
    params[16..24].copy_from_slice(&y.to_ne_bytes());
    params[24..].copy_from_slice(&N.to_ne_bytes());
    let bytes = u64::from(N) * 4;
    device.launch(Launch {
        kernel,
        params: &params,
        table: &[],
        groups: [1, 1, 1],
        reads: &[AddressRange::new(x, bytes), AddressRange::new(y, bytes)],
        writes: &[AddressRange::new(out, bytes)],
        work: 0,
        operator: "add",
    })
}

/// Runs `body` `count` times, best of five rounds; `after` ends a round and is not timed. Prints
/// nanoseconds per call.
fn measure(
    what: &str,
    count: u32,
    mut body: impl FnMut() -> Result<(), Error>,
    mut after: impl FnMut() -> Result<(), Error>,
) -> Result<(), Error> {
    let mut best = f64::INFINITY;
    for _ in 0..5 {
        let start = Instant::now();
        for _ in 0..count {
            body()?;
        }
        best = best.min(start.elapsed().as_nanos() as f64 / f64::from(count));
        after()?;
    }
    println!("{what:<52} {best:>10.0} ns");
    Ok(())
}

fn main() -> Result<(), Error> {
    let device = device(0)?;
    println!("{} ({} {})", device.info().name, device.info().driver_name, device.info().driver_info);
    let bytes = u64::from(N) * 4;
    let (x, y) = (device.allocate(bytes)?, device.allocate(bytes)?);
    device.upload(x, &[0; 64])?;
    device.upload(y, &[0; 64])?;
    let kernel = add(device)?;
    launch(device, kernel, x, x, y)?;
    device.synchronize()?;
    let sync = || device.synchronize();
    measure("kernel lookup", 100_000, || add(device).map(drop), sync)?;
    measure("allocate + free", 100_000, || device.allocate(bytes).map(|a| device.free(a)), sync)?;
    // Fewer than 8 pending commands are not submitted, so this times enqueuing alone; the flush is
    // not timed.
    let out = device.allocate(bytes)?;
    measure("launch, 3 enqueued", 3, || launch(device, kernel, out, x, y), sync)?;
    let operator = || {
        let kernel = add(device)?;
        let out = device.allocate(bytes)?;
        launch(device, kernel, out, x, y)?;
        device.free(out);
        Ok(())
    };
    let before = device.queue_stats();
    measure("lookup + allocate + launch + free, 63 in a row", 63, operator, sync)?;
    measure("the same, 20,000 in a row, recording and submits", 20_000, operator, sync)?;
    measure(
        "operator and synchronise",
        1000,
        || {
            operator()?;
            device.synchronize()
        },
        || Ok(()),
    )?;
    measure(
        "operator and read-back of 4 bytes",
        1000,
        || {
            operator()?;
            device.download(out, &mut [0; 4])
        },
        || Ok(()),
    )?;
    measure("upload of 64 B, 20 in a row", 20, || device.upload(out, &[0; 64]), sync)?;
    let mut waits = Vec::new();
    for _ in 0..200 {
        std::thread::sleep(std::time::Duration::from_millis(3));
        let submits = device.queue_stats().submits;
        let start = Instant::now();
        operator()?;
        while device.queue_stats().submits == submits {
            let look = Instant::now();
            while look.elapsed().as_micros() < 5 {
                std::hint::spin_loop();
            }
        }
        waits.push(start.elapsed().as_micros());
    }
    waits.sort_unstable();
    println!("a lone operator is submitted after {} µs (median), {} µs (worst of 200)", waits[100], waits[199]);
    let after = device.queue_stats();
    println!(
        "{} commands, {} barriers, {} submits, {} waits",
        after.commands - before.commands,
        after.barriers - before.barriers,
        after.submits - before.submits,
        after.waits - before.waits
    );
    let n = 256 << 20;
    let big = device.allocate(n)?;
    let mut data = vec![1u8; n as usize];
    for _ in 0..2 {
        let start = Instant::now();
        device.upload(big, &data)?;
        device.synchronize()?;
        let up = n as f64 / start.elapsed().as_secs_f64() / 1e9;
        let start = Instant::now();
        device.download(big, &mut data)?;
        let down = n as f64 / start.elapsed().as_secs_f64() / 1e9;
        println!("256 MiB: upload {up:.1} GB/s, download {down:.1} GB/s");
    }
    Ok(())
}
