//! For tests: `spirv-val` (package spirv-tools) decides what drivers must accept.

use dml_kernel::Kernel;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

/// Emits a kernel and fails the test if the validator rejects it, or if its text is parsed as a
/// different kernel.
pub fn accepted(kernel: &Kernel) {
    let parsed = kernel.to_string().parse::<Kernel>();
    assert!(parsed.as_ref() == Ok(kernel), "{}: {:?}\n{kernel}", kernel.name, parsed.err());
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let name = format!("dml-compute-{}-{}.spv", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    let file = std::env::temp_dir().join(name);
    let bytes: Vec<u8> = kernel.emit().expect("a valid kernel").words.iter().flat_map(|w| w.to_le_bytes()).collect();
    std::fs::write(&file, bytes).expect("the temporary folder is writable");
    let output = Command::new("spirv-val")
        .args(["--target-env", "vulkan1.2", "--scalar-block-layout"])
        .arg(&file)
        .output()
        .expect("spirv-val is installed (package spirv-tools)");
    std::fs::remove_file(file).ok();
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {message}\n{kernel}", kernel.name);
}
