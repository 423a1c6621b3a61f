//! Faults of drivers that tests ask for with `TORCH_DML_IMITATED_FAULTS`, so that what the layers
//! above do about them is tested on any adapter.
//!
//! The value is a list with `;` between: `refuses NAME`, `refuses-optimised NAME` and `dies NAME`
//! are for kernels whose name begins with NAME, and without a NAME for all; with `known`, the
//! driver is known to refuse kernels. `matrices WORD` is for the query of matrix shapes.

use std::sync::LazyLock;

use dml_environment::IMITATED_FAULTS;

use crate::error::Error;

/// What happens, and to what.
static FAULTS: LazyLock<Vec<(String, String)>> = LazyLock::new(|| {
    let text = IMITATED_FAULTS.get().unwrap_or_default();
    let fault = |part: &str| {
        let (what, of) = part.trim().split_once(' ').unwrap_or((part.trim(), ""));
        (what.to_owned(), of.to_owned())
    };
    text.split(';').map(fault).collect()
});

/// What the driver does with a kernel before it compiles it.
///
/// # Errors
/// It refuses it.
pub(crate) fn compiling(kernel: &str, optimised: bool) -> Result<(), Error> {
    for (what, name) in &*FAULTS {
        if !kernel.starts_with(name.as_str()) {
            continue;
        }
        match what.as_str() {
            "dies" if optimised => std::process::abort(),
            "refuses" => {}
            "refuses-optimised" if optimised => {}
            _ => continue,
        }
        tracing::info!("imitated fault: {kernel} is refused, optimised: {optimised}");
        return Err(Error::Driver { call: "vkCreateComputePipelines", code: -13, name: "ERROR_UNKNOWN".to_owned() });
    }
    Ok(())
}

/// What happens in the query of matrix shapes, in one word, on an adapter that is asked for them in
/// a child process; `None` if no test asks for it.
pub(crate) fn of_matrix_query() -> Option<&'static str> {
    FAULTS.iter().find(|(what, _)| what == "matrices").map(|(_, word)| word.as_str())
}

/// Whether the driver is known to refuse kernels.
pub(crate) fn are_known() -> bool {
    FAULTS.iter().any(|(what, _)| what == "known")
}
