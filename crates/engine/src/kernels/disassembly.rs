//! The folder of `TORCH_DML_PIPELINE_DISASSEMBLY`: a file of text for every pipeline that a process
//! compiles, with the machine code of its programs. `python -m tests.gpus --loops` reads it.

use crate::kernels::kernel::KernelRef;
use dml_gpu::Executable;
use std::fmt::Write;
use std::path::Path;

/// Writes the file of a pipeline, `NAME-ID.txt`. The code of each program follows a line
/// `program NAME, subgroups of N`. A driver that shows no code leaves no file. A file that cannot
/// be written is a warning in the log.
pub(super) fn write(folder: &Path, kernel: &KernelRef, executables: &[Executable]) {
    let mut text = String::new();
    for Executable { name, subgroup_size, disassembly, .. } in executables {
        if !disassembly.is_empty() {
            let _ = writeln!(text, "program {name}, subgroups of {subgroup_size}\n{}", disassembly.trim_end());
        }
    }
    if text.is_empty() {
        return;
    }
    let file = folder.join(file_name(kernel));
    if let Err(error) = std::fs::create_dir_all(folder).and_then(|()| std::fs::write(&file, text)) {
        tracing::warn!("TORCH_DML_PIPELINE_DISASSEMBLY: {}: {error}", file.display());
    }
}

fn file_name(kernel: &KernelRef) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let name: String = kernel.name().chars().map(plain).take(100).collect();
    format!("{name}-{}.txt", kernel.id())
}
