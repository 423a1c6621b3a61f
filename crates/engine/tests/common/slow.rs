//! Work that takes as long as wanted.

use super::{open, put, read};
use dml_engine::interface::WriteRange;
use dml_engine::{AddressRange, ArgumentBlock, Device, Interface, KernelRef, parameters};
use dml_kernel::{Builder, DType};
use std::time::Instant;

/// Counts in one word, slowly.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Count;
parameters! { Count as _spec => Arguments, Parameters { word: WriteRange = DType::U32 } }

/// A device, a kernel that takes its time, and a word for it.
pub struct Slow {
    pub device: Device,
    kernel: KernelRef,
    pub word: u64,
    /// Workgroups of a tenth of a second.
    tenth: u32,
}

impl Slow {
    /// A device of its own.
    pub fn open() -> Self {
        let device = open();
        let kernel = device.kernel(&Count, || {
            let b = Builder::new("count", [1, 1, 1]);
            let Parameters { word } = Count.declare(&b);
            let state = b.var(b.global_id(0));
            // No compiler sees through the steps of this. Mesa's software adapter ends a loop after
            // 65,535 of them.
            b.for_(0, b.u32(50_000), 1, |_| {
                let mixed = state.get() ^ (state.get() >> 7);
                state.set(mixed * 1_664_525 + b.u32(1_013_904_223));
            });
            b.if_(b.global_id(0).eq(0) | state.get().eq(1), || word.store(0, word.load(0) + 1));
            b.finish()
        });
        let kernel = kernel.unwrap().clone();
        let word = put(&device, &[0]);
        let mut slow = Self { device, kernel, word, tenth: 100 };
        slow.run(1);
        slow.device.synchronize().unwrap();
        let start = Instant::now();
        slow.run(1);
        slow.device.synchronize().unwrap();
        let tenth = f64::from(slow.tenth) * 0.1 / start.elapsed().as_secs_f64();
        slow.tenth = (tenth as u32).clamp(1, 60_000);
        slow
    }

    /// Enqueues a run that takes this many tenths of a second; almost none for 0.
    pub fn run(&self, tenths: u32) {
        self.run_as(tenths, 0);
    }

    /// As [`run`](Self::run), and declares this many operations.
    pub fn run_as(&self, tenths: u32, operations: u64) {
        let groups = (self.tenth * tenths).clamp(1, 65_535);
        let mut block = ArgumentBlock::default();
        Count.pass(&Arguments { word: AddressRange::new(self.word, 4) }, &mut block);
        block.operations(operations);
        self.device.launch(block.launch(&self.kernel, [groups, 1, 1], "count").unwrap()).unwrap();
    }

    /// How many runs there were.
    pub fn counted(&self) -> i32 {
        read(&self.device, self.word, 1)[0]
    }
}
