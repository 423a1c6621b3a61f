//! The host's view of mapped memory.

use crate::backend::Segment;
use crate::error::Error;
use dml_gpu::traits::*;
use std::ptr::NonNull;

/// The host address of a segment that was allocated mapped.
///
/// # Errors
/// [`dml_gpu::Error::Invalid`] if the driver did not map it.
pub(crate) fn mapped(segment: &Segment) -> Result<NonNull<u8>, Error> {
    segment.host_ptr().ok_or_else(|| {
        Error::Gpu(dml_gpu::Error::Invalid {
            call: "Segment::host_ptr",
            what: "memory of a mapped class is not mapped".to_owned(),
        })
    })
}
