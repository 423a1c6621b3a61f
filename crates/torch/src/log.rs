//! Diagnostics on stderr, filtered by `TORCH_DML_LOG` (`debug`, `dml_engine=trace`, `dml::call=trace`, ...): warnings unless it says
//! otherwise.

use dml_environment::LOG;
use std::io::IsTerminal;
use std::sync::Once;
use tracing_subscriber::EnvFilter;

/// Starts logging. Once a process; another subscriber that is there already stays. A filter that makes no sense is as none.
pub fn start() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let filter = LOG.get().and_then(|filter| EnvFilter::try_new(filter).ok());
        // Variables that make no sense are in Python's warnings.
        let filter = filter.unwrap_or_else(|| EnvFilter::new("warn,dml_environment=off"));
        let ansi = std::io::stderr().is_terminal();
        let _ =
            tracing_subscriber::fmt().with_env_filter(filter).with_ansi(ansi).with_writer(std::io::stderr).try_init();
    });
}
