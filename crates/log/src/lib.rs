//! The log on stderr, filtered by `TORCH_DML_LOG` (`debug`, `dml_engine=trace`, `dml::call=trace`,
//! ...); warnings by default. PyTorch and TensorFlow have no subscriber of `tracing`, so their
//! libraries start this one.

#![forbid(unsafe_code)]

use dml_environment::LOG;
use std::io::IsTerminal;
use std::sync::Once;
use tracing_subscriber::EnvFilter;

/// Starts the log, once per process. An existing subscriber stays. An invalid filter counts as
/// none.
pub fn start() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let filter = LOG.get().and_then(|filter| EnvFilter::try_new(filter).ok());
        // Python warns of variables with invalid values.
        let filter = filter.unwrap_or_else(|| EnvFilter::new("warn,dml_environment=off"));
        let ansi = std::io::stderr().is_terminal();
        let _ =
            tracing_subscriber::fmt().with_env_filter(filter).with_ansi(ansi).with_writer(std::io::stderr).try_init();
    });
}
