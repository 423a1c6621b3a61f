//! Emitted modules are collected where `TORCH_DML_SPIRV_DIR` says, each content once.

use dml_kernel::{Builder, DType, ScalarType};
use std::process::Command;

const FOLDER: &str = "TORCH_DML_SPIRV_DIR";

/// Emits three modules, two of which are the same.
fn emit() {
    for n in [1, 1, 2] {
        let b = Builder::new("store::number", [1, 1, 1]);
        let out = b.pointer("out", DType::U32);
        let value = b.param("value", ScalarType::U32);
        out.store(0, value + n);
        b.finish().emit().expect("a valid kernel");
    }
}

#[test]
fn each_module_is_collected_once() {
    const CALLED: &str = "DML_TEST_CALLED";
    if std::env::var_os(CALLED).is_some() {
        return emit();
    }
    let folder = std::env::temp_dir().join(format!("dml-kernel-collect-{}", std::process::id()));
    for _ in 0..2 {
        let done = Command::new(std::env::current_exe().expect("the test binary"))
            .env(FOLDER, &folder)
            .env(CALLED, "1")
            .output()
            .expect("the test binary runs");
        assert!(done.status.success());
        let names: Vec<_> = std::fs::read_dir(&folder)
            .expect("the folder was made")
            .map(|entry| entry.expect("an entry").file_name().into_string().expect("ASCII"))
            .collect();
        assert_eq!(names.len(), 2, "{names:?}");
        assert!(names.iter().all(|name| name.starts_with("store__number-") && name.ends_with(".spv")), "{names:?}");
    }
    std::fs::remove_dir_all(folder).expect("the folder is removed");
}
