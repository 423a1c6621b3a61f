//! Diagnostics on stderr, filtered by `TORCH_DML_LOG` (`debug`, `dml_engine=trace`, `dml::call=trace`, ...).

use std::sync::Once;
use tracing_subscriber::EnvFilter;

/// Starts logging if the variable is set. Once a process; another subscriber that is there already stays.
pub fn start() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        if let Ok(filter) = EnvFilter::try_from_env("TORCH_DML_LOG") {
            let _ = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).try_init();
        }
    });
}
