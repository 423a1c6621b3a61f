//! The kernel that moves small uploads and read-backs: a copy command costs the GPU 5 µs more.

use crate::error::Error;
use crate::kernels::cache::{KernelCache, KernelRef};
use crate::kernels::key::Family;
use dml_kernel::{Builder, DType, ScalarType};
use dml_vulkan::Gpu;

const GROUP: u32 = 64;

/// Copies 32-bit words, one an invocation.
pub(crate) fn copy_words(cache: &KernelCache, gpu: &Gpu) -> Result<KernelRef, Error> {
    let key = Family("engine::copy_words");
    cache
        .get(gpu, &key, || {
            let b = Builder::new("copy_words", [GROUP, 1, 1]);
            let dst = b.pointer("dst", DType::I32);
            let src = b.pointer("src", DType::I32);
            let count = b.param("count", ScalarType::U32);
            let i = b.global_id(0);
            b.if_(i.lt(count), || dst.store(i, src.load(i)));
            (b.finish(), None)
        })
        .cloned()
}

/// The parameters and groups to copy `words` words.
pub(crate) fn arguments(dst: u64, src: u64, words: u32) -> ([u8; 20], [u32; 3]) {
    let mut params = [0; 20];
    params[..8].copy_from_slice(&dst.to_ne_bytes());
    params[8..16].copy_from_slice(&src.to_ne_bytes());
    params[16..].copy_from_slice(&words.to_ne_bytes());
    (params, [words.div_ceil(GROUP), 1, 1])
}
