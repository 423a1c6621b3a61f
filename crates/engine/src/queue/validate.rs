//! Whether a kernel can run as a launch wants it.

use crate::error::Error;
use crate::kernels::launch::Launch;
use crate::memory::upload_ring::MAX_REGION_BYTES;

/// Bytes of an address among a kernel's parameters.
const ADDRESS_BYTES: usize = 8;
/// The most ranges of one launch.
const MAX_RANGES: usize = u16::MAX as usize / 2;

/// Checks a launch on a device that runs at most `max` groups in each dimension.
///
/// # Errors
/// [`Error::InvalidLaunch`].
#[inline]
pub(crate) fn validate(launch: &Launch<'_>, max: [u32; 3]) -> Result<(), Error> {
    let tabled = !launch.table.is_empty();
    let given = launch.params.len() + if tabled { ADDRESS_BYTES } else { 0 };
    let table_fits =
        !tabled || launch.table.len() as u64 <= MAX_REGION_BYTES && !launch.kernel.has_indirect_parameters();
    let fits = launch.groups[0] <= max[0] && launch.groups[1] <= max[1] && launch.groups[2] <= max[2];
    let right = launch.kernel.param_bytes() as usize;
    if given == right && fits && table_fits && launch.reads.len().max(launch.writes.len()) <= MAX_RANGES {
        return Ok(());
    }
    Err(invalid(launch, [given, right], (fits, max), table_fits))
}

/// What is wrong with a launch.
#[cold]
fn invalid(launch: &Launch<'_>, [given, right]: [usize; 2], (fits, max): (bool, [u32; 3]), table_fits: bool) -> Error {
    Error::InvalidLaunch {
        operator: launch.operator,
        kernel: launch.kernel.name().to_owned(),
        what: if given != right {
            format!("it takes {right} bytes of parameters, not {given}")
        } else if !fits {
            format!("{:?} workgroups, and at most {max:?} are possible", launch.groups)
        } else if !table_fits {
            format!("a table of {} bytes, or too many parameters for a launch with a table", launch.table.len())
        } else {
            format!("more than {MAX_RANGES} ranges")
        },
    }
}
