//! The kernel for small uploads and read-backs. A copy command costs the GPU 5 µs more.

use crate::error::Error;
use crate::kernels::argument_block::ArgumentBlock;
use crate::kernels::interface::{Interface, U32, Unordered, WriteRange};
use crate::kernels::kernel::KernelRef;
use crate::kernels::store::KernelStore;
use crate::memory::range::AddressRange;
use crate::parameters;
use dml_kernel::{Builder, DType};

const GROUP: u32 = 64;

/// Copies 32-bit words, one per invocation.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct CopyWords;

parameters! {
    /// The destination, the source, and the number of words.
    CopyWords as _spec => CopyArguments, CopyParameters {
        to: WriteRange = DType::I32,
        from: Unordered = DType::I32,
        words: U32,
    }
}

/// The kernel. It may be [refused](KernelRef::refused).
pub(crate) fn copy_words(kernels: &KernelStore) -> Result<KernelRef, Error> {
    let build = || {
        let b = Builder::new("copy_words", [GROUP, 1, 1]);
        let CopyParameters { to, from, words } = CopyWords.declare(&b);
        let i = b.global_id(0);
        b.if_(i.lt(words), || to.store(i, from.load(i)));
        (b.finish(), None)
    };
    let kernel = kernels.get(&CopyWords, build)?;
    if kernels.refusals().any() {
        kernel.await_compiled(kernels.gpu())?;
    }
    Ok(kernel.clone())
}

/// Packs the arguments of a copy of whole words from an address; returns the number of workgroups.
pub(crate) fn pass(to: AddressRange, from: u64, block: &mut ArgumentBlock) -> [u32; 3] {
    let words = ((to.end - to.start) / 4) as u32;
    CopyWords.pass(&CopyArguments { to, from, words }, block);
    [words.div_ceil(GROUP), 1, 1]
}
