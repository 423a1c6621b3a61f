//! Operators that are linear with real coefficients, on the real and the imaginary parts.

/// Numbers of which each part takes its own: those that become elements. Others are real factors of
/// both.
pub fn is_element(name: &str) -> bool {
    matches!(name, "value" | "start" | "end")
}
