//! Index errors of graphs. All kernels of graphs report to one address, whichever thread replays; a
//! kernel after each replay moves the report to the address of the thread that replayed.

use crate::error::Error;
use crate::kernels::argument_block::ArgumentBlock;
use crate::kernels::interface::{Interface, Unordered, WriteRange};
use crate::kernels::kernel::KernelRef;
use crate::kernels::store::KernelStore;
use crate::parameters;
use crate::queue::device_queue::{DeviceQueue, State};
use dml_kernel::{Builder, DType};

/// Words of a report ([`crate::fault`]).
const WORDS: u32 = 8;

/// Moves a report, if there is one and the destination is empty.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct MoveReport;

parameters! { MoveReport as _spec => Arguments, Parameters { from: WriteRange = DType::U32, to: Unordered = DType::U32 } }

/// The kernel that runs after each replay of a graph whose kernels may report.
pub(crate) fn kernel(kernels: &KernelStore) -> Result<KernelRef, Error> {
    let build = || {
        let b = Builder::new("move_report", [1, 1, 1]);
        let Parameters { from, to } = MoveReport.declare(&b);
        b.if_(from.load(0).ne(0), || {
            b.if_(to.compare_exchange(0, 0, 1).eq(0), || (1..WORDS).for_each(|word| to.store(word, from.load(word))));
            from.store(0, b.u32(0));
        });
        (b.finish(), None)
    };
    kernels.get(&MoveReport, build).cloned()
}

/// Enqueues the kernel after a replay by the calling thread.
pub(crate) fn move_report(queue: &DeviceQueue, state: &mut State, kernel: &KernelRef) -> Result<(), Error> {
    let mut block = ArgumentBlock::default();
    MoveReport.pass(&Arguments { from: queue.fault.of_graphs(), to: queue.fault.give() }, &mut block);
    queue.launch_locked(state, &block.launch(kernel, [1, 1, 1], "graph")?)
}
