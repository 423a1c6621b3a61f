//! If the validation layer is requested but missing, that is an error, and its errors fail the
//! process. Each mistake is made in a child process: this test binary, started again.

mod support;

use dml_gpu::traits::*;
use dml_gpu::{Error, MemoryClass};
use dml_vulkan::Gpu;
use std::process::{Command, Output};

/// Names the mistake that the child process has to make.
const MISTAKE: &str = "DML_TEST_MISTAKE";

type Mistake = (&'static str, &'static str, fn(&Gpu) -> Result<(), Error>);

/// The name of each mistake, the layer's name for the rule, and a function that makes the mistake.
const MISTAKES: [Mistake; 5] = [
    ("a kernel with a wrong layout", "VUID-VkComputePipelineCreateInfo-layout", wrong_layout),
    ("two writes without a barrier", "SYNC-HAZARD-WRITE-AFTER-WRITE", two_writes),
    ("a read without a barrier", "SYNC-HAZARD-READ-AFTER-WRITE", read_after_write),
    ("an overwritten source", "SYNC-HAZARD-WRITE-AFTER-READ", write_after_read),
    ("a feature that the profile hides", "VUID-VkShaderModuleCreateInfo-pCode-", hidden_feature),
];

/// The kernel reads push constants that the layout does not have.
fn wrong_layout(gpu: &Gpu) -> Result<(), Error> {
    gpu.compile("wrong layout", support::ADD, 0).map(drop)
}

fn two_writes(gpu: &Gpu) -> Result<(), Error> {
    let memory = gpu.allocate(64, MemoryClass::Device)?;
    let mut recorder = gpu.recorder()?;
    recorder.update(&memory, 0, &[1; 64])?;
    recorder.update(&memory, 32, &[2; 32])?;
    recorder.wait_idle()
}

fn read_after_write(gpu: &Gpu) -> Result<(), Error> {
    let (one, two) = (gpu.allocate(64, MemoryClass::Device)?, gpu.allocate(64, MemoryClass::Device)?);
    let mut recorder = gpu.recorder()?;
    recorder.update(&one, 0, &[1; 64])?;
    recorder.copy(&one, 0, &two, 0, 64)?;
    recorder.wait_idle()
}

fn write_after_read(gpu: &Gpu) -> Result<(), Error> {
    let (one, two) = (gpu.allocate(64, MemoryClass::Device)?, gpu.allocate(64, MemoryClass::Device)?);
    let mut recorder = gpu.recorder()?;
    recorder.copy(&one, 0, &two, 0, 64)?;
    recorder.update(&one, 0, &[1; 64])?;
    recorder.wait_idle()
}

/// Every adapter of the tests has 64-bit integers, and the profile `minimum` has none.
fn hidden_feature(gpu: &Gpu) -> Result<(), Error> {
    const HEADER: usize = 5;
    const CAPABILITY_INT64: [u32; 2] = [2 << 16 | 17, 11];
    let (header, rest) = support::ADD.split_at(HEADER);
    gpu.compile("hidden feature", &[header, &CAPABILITY_INT64, rest].concat(), 32).map(drop)
}

/// Runs `test` of this binary in a child process, with the validation layer, with the profile
/// `minimum`, and with `variable` set.
fn run(test: &str, variable: (&str, &str)) -> Output {
    Command::new(std::env::current_exe().expect("the test binary"))
        .args([test, "--exact", "--include-ignored", "--nocapture"])
        .env("TORCH_DML_VALIDATION", "1")
        .env("TORCH_DML_PROFILE", "minimum")
        .env(variable.0, variable.1)
        .output()
        .expect("the test binary runs")
}

#[test]
#[ignore = "needs Vulkan's validation layer: make validate"]
fn mistakes_fail_the_process() -> Result<(), Error> {
    if let Ok(asked) = std::env::var(MISTAKE) {
        let (.., make) = MISTAKES.iter().find(|(name, ..)| *name == asked).expect("a known mistake");
        return make(&support::open());
    }
    for (name, id, _) in MISTAKES {
        let output = run("mistakes_fail_the_process", (MISTAKE, name));
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains(id), "{name}: no {id} in:\n{said}");
        assert_eq!(output.status.code(), Some(86), "{name}: {said}");
        assert!(String::from_utf8_lossy(&output.stdout).contains("test result: ok"), "{name}: the test itself passes");
    }
    Ok(())
}

#[test]
fn the_layer_is_missed_when_asked_for() {
    const NO_LAYERS: &str = "VK_LAYER_PATH";
    if std::env::var_os(NO_LAYERS).is_some() {
        let found = dml_vulkan::adapters().map(<[_]>::len);
        assert!(matches!(found, Err(Error::NoValidation { .. })), "{found:?}");
        return;
    }
    let output = run("the_layer_is_missed_when_asked_for", (NO_LAYERS, "/nonexistent"));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}
