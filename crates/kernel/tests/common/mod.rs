//! Checks a kernel's module with `spirv-val` (package spirv-tools), and its text by a round trip.

use dml_kernel::{FloatModes, Kernel, Module, Target};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

/// Emits the kernel and fails the test if the validator rejects it.
#[allow(dead_code, reason = "each test uses a part")]
pub fn validated(kernel: &Kernel) -> Module {
    let floats = FloatModes {
        round_to_even: true,
        keep_subnormals: true,
        keep_special_f32: true,
        keep_special_f64: true,
        halves: true,
    };
    validated_for(kernel, &Target { floats, ..Target::default() })
}

/// Fails the test unless the kernel's text is parsed to an equal kernel.
pub fn returns_from_text(kernel: &Kernel) {
    let text = kernel.to_string();
    match text.parse::<Kernel>() {
        Ok(parsed) => assert!(parsed == *kernel, "{text}\nis read as\n{parsed}\n{kernel:?}\n{parsed:?}"),
        Err(error) => panic!("{error}\n{text}"),
    }
}

/// As [`validated`], for an adapter that lacks features.
#[allow(dead_code, reason = "each test uses a part")]
pub fn validated_for(kernel: &Kernel, target: &Target) -> Module {
    returns_from_text(kernel);
    let module = kernel.emit_for(target).expect("a valid kernel");
    // Tests that run at the same time may have kernels of one name.
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let name = format!("dml-kernel-{}-{}.spv", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    let file = std::env::temp_dir().join(name);
    let bytes: Vec<u8> = module.words.iter().flat_map(|w| w.to_le_bytes()).collect();
    std::fs::write(&file, bytes).expect("the temporary folder is writable");
    let output = Command::new("spirv-val")
        .args(["--target-env", "vulkan1.2", "--scalar-block-layout"])
        .arg(&file)
        .output()
        .expect("spirv-val is installed (package spirv-tools)");
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{}: {message}\n{kernel}", kernel.name);
    std::fs::remove_file(file).ok();
    module
}
