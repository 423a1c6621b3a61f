//! What a driver's compiler reports of a pipeline.

/// One program of a pipeline. A driver may compile several, of which it runs one at a time: Intel's
/// drivers compile one for each subgroup size that may be the best.
#[derive(Debug, Clone, PartialEq)]
pub struct Executable {
    /// The driver's name of the program.
    pub name: String,
    /// Invocations of a subgroup; 0 if the driver does not report it.
    pub subgroup_size: u32,
    /// Numbers by the names that the driver gives them, in the driver's order: registers, spills,
    /// instructions and others.
    pub statistics: Vec<(String, f64)>,
    /// The machine code as text, if `TORCH_DML_PIPELINE_DISASSEMBLY` is set: the last of the
    /// representations that the driver shows, which is the nearest to what runs. Empty if it shows
    /// none.
    pub disassembly: String,
}
