//! The file of `TORCH_DML_PIPELINE_STATISTICS`: a line of JSON for every pipeline that a process
//! compiles, with what the driver's compiler reports of it. `python -m torch_dml kernels` reads it.
//!
//! The folder of `TORCH_DML_PIPELINE_DISASSEMBLY` receives their machine code.
//!
//! In a dry run, kernels that stand in the file of `TORCH_DML_KNOWN_PIPELINES` are not compiled
//! again.

use crate::backend::{self, Gpu, Pipeline};
use crate::kernels::disassembly;
use crate::kernels::kernel::{KernelRef, Origin};
use dml_environment::{DRY_RUN, KNOWN_PIPELINES, PIPELINE_DISASSEMBLY, PIPELINE_STATISTICS};
use dml_gpu::traits::*;
use dml_gpu::{Executable, PipelineOptions};
use dml_kernel::Builder;
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::fs::File;
use std::io::Write;
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::Duration;

/// The open file. Lines are appended whole, so several processes may share it.
static FILE: LazyLock<Option<Mutex<File>>> = LazyLock::new(|| {
    let path = PIPELINE_STATISTICS.get()?;
    match File::options().create(true).append(true).open(&path) {
        Ok(file) => Some(Mutex::new(file)),
        Err(error) => {
            tracing::warn!("TORCH_DML_PIPELINE_STATISTICS={}: {error}", path.display());
            None
        }
    }
});

/// Lines of earlier runs, by what determines a pipeline.
static KNOWN: LazyLock<HashMap<String, String>> = LazyLock::new(|| {
    let Some(path) = KNOWN_PIPELINES.get().filter(|_| DRY_RUN.get() == Some(true)) else { return HashMap::new() };
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| {
        tracing::warn!("TORCH_DML_KNOWN_PIPELINES={}: {error}", path.display());
        String::new()
    });
    let line = |line: &str| Some((identity(&serde_json::from_str(line).ok()?), line.to_owned()));
    text.lines().filter_map(line).collect()
});

/// What determines a pipeline, of its line.
fn identity(line: &Value) -> String {
    ["adapter", "driver", "id", "required_subgroup_size"].map(|name| line[name].to_string()).join(" ")
}

/// Compiles a kernel in a dry run, for which any pipeline with its parameters will do, if its line
/// is known: the line is copied. `None` for other kernels.
pub(super) fn known(
    gpu: &Gpu,
    kernel: &KernelRef,
    options: &PipelineOptions,
    push_bytes: u32,
) -> Option<Result<Pipeline, dml_gpu::Error>> {
    if KNOWN.is_empty() {
        return None;
    }
    let line = KNOWN.get(&identity(&kernel_line(gpu, kernel, kernel.name(), options)))?;
    append(kernel, line);
    let does_nothing = Builder::new("nothing", [1, 1, 1]).finish().emit().ok()?;
    Some(backend::code(&does_nothing.words).and_then(|code| gpu.compile("nothing", code, push_bytes)))
}

/// Appends the line of a kernel whose compilation under this name has ended, and writes its machine
/// code, as far as the environment asks for them. What cannot be written is a warning in the log.
pub(super) fn record(
    gpu: &Gpu,
    kernel: &KernelRef,
    name: &str,
    options: &PipelineOptions,
    result: &Result<Pipeline, dml_gpu::Error>,
    took: Duration,
) {
    let folder = PIPELINE_DISASSEMBLY.get();
    if FILE.is_none() && folder.is_none() {
        return;
    }
    let reported = result.as_ref().map_err(Clone::clone).and_then(|pipeline| gpu.executables(pipeline));
    if let (Some(folder), Ok(executables)) = (folder, &reported) {
        disassembly::write(&folder, kernel, executables);
    }
    let mut line = kernel_line(gpu, kernel, name, options);
    line["milliseconds"] = json!(took.as_micros() as f64 / 1e3);
    match reported {
        Ok(executables) => line["executables"] = executables.iter().map(described).collect(),
        Err(error) => line["error"] = error.to_string().into(),
    }
    append(kernel, &line.to_string());
}

/// The line without what the compiler reports.
fn kernel_line(gpu: &Gpu, kernel: &KernelRef, name: &str, options: &PipelineOptions) -> Value {
    json!({
        "adapter": gpu.info().name,
        "driver": format!("{} {}", gpu.info().driver_name, gpu.info().driver_info),
        "kernel": name,
        "id": kernel.id().to_string(),
        "source": kernel.origin().map(Origin::source),
        "specialisation": kernel.origin().map(Origin::specialisation),
        "workgroup": kernel.workgroup_size(),
        "required_subgroup_size": options.subgroup_size,
        "optimised": options.optimised,
    })
}

fn append(kernel: &KernelRef, line: &str) {
    let Some(file) = &*FILE else { return };
    let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
    if let Err(error) = file.write_all(format!("{line}\n").as_bytes()) {
        tracing::warn!("TORCH_DML_PIPELINE_STATISTICS: kernel {} is not recorded: {error}", kernel.name());
    }
}

fn described(Executable { name, subgroup_size, statistics, .. }: &Executable) -> Value {
    let numbers: Map<String, Value> = statistics.iter().map(|(name, value)| (name.clone(), number(*value))).collect();
    json!({ "name": name, "subgroup_size": subgroup_size, "statistics": numbers })
}

/// An integer without a fraction.
fn number(value: f64) -> Value {
    if value.fract() == 0.0 && value.abs() < 9e15 { json!(value as i64) } else { json!(value) }
}
