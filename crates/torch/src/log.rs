//! Diagnostics on stderr, filtered by `TORCH_DML_LOG` (`debug`, `dml_engine=trace`, `dml::call=trace`, ...): warnings unless it says
//! otherwise.

use std::sync::Once;
use tracing_subscriber::EnvFilter;

/// Starts logging. Once a process; another subscriber that is there already stays. A filter that makes no sense is as none.
pub fn start() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let filter = EnvFilter::try_from_env("TORCH_DML_LOG").unwrap_or_else(|_| EnvFilter::new("warn"));
        let _ = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).try_init();
    });
}
