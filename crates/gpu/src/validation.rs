//! Messages of a validation layer.

/// A kind of mistake that the API's validation layer reported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValidationMessage {
    /// The layer's name for the rule: Vulkan's are `VUID-...` and `SYNC-HAZARD-...`.
    pub id: String,
    /// The first message of this kind in full.
    pub text: String,
    /// The number of reports.
    pub count: u64,
}
