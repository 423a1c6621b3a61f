//! Emitted modules are written to the folder that `TORCH_DML_SPIRV_DIR` names, once per content,
//! and as HLSL to the folder that `TORCH_DML_HLSL_DIR` names, with the origin of the module that
//! runs.

use dml_kernel::{Builder, DType, ScalarType};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Set in the child process of a test, which emits the modules.
const CALLED: &str = "DML_TEST_CALLED";

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

/// Runs `test` of this binary in a child process that emits modules into a folder.
fn emit_in_process(test: &str, variable: &str, folder: &Path) {
    let done = Command::new(std::env::current_exe().expect("the test binary"))
        .args([test, "--exact"])
        .env(variable, folder)
        .env(CALLED, "1")
        .output()
        .expect("the test binary runs");
    assert!(done.status.success());
}

fn fresh_folder(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("dml-kernel-{name}-{}", std::process::id()))
}

fn files(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).expect("the folder was made");
    entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("ASCII")).collect()
}

#[test]
fn each_module_is_collected_once() {
    if std::env::var_os(CALLED).is_some() {
        return emit();
    }
    let folder = fresh_folder("collect");
    for _ in 0..2 {
        emit_in_process("each_module_is_collected_once", "TORCH_DML_SPIRV_DIR", &folder);
        let names = files(&folder);
        assert_eq!(names.len(), 2, "{names:?}");
        assert!(names.iter().all(|name| name.starts_with("store__number-") && name.ends_with(".spv")), "{names:?}");
    }
    std::fs::remove_dir_all(folder).expect("the folder is removed");
}

#[test]
fn what_runs_is_noted_beside_the_hlsl() {
    if std::env::var_os(CALLED).is_some() {
        return emit();
    }
    let folder = fresh_folder("origin");
    let run = || {
        emit_in_process("what_runs_is_noted_beside_the_hlsl", "TORCH_DML_HLSL_DIR", &folder);
        let names = files(&folder).into_iter().filter(|name| name.ends_with(".origin"));
        names.map(|name| std::fs::read_to_string(folder.join(name)).expect("a note")).collect::<Vec<_>>()
    };
    assert_eq!(run(), ["its HLSL is not compiled"; 2]);
    let texts: Vec<_> = files(&folder).into_iter().filter(|name| name.ends_with(".hlsl")).collect();
    assert_eq!(texts.len(), 2, "{texts:?}");
    for text in texts {
        std::fs::write(folder.join(text).with_extension("spv"), "no module").expect("a file");
    }
    assert_eq!(run(), ["the compiler's SPIR-V is not understood"; 2]);
    std::fs::remove_dir_all(folder).expect("the folder is removed");
}
