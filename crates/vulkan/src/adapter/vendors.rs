//! PCI ids of vendors.

pub(super) const AMD: u32 = 0x1002;
pub(super) const INTEL: u32 = 0x8086;
pub(super) const ARM: u32 = 0x13B5;
pub(super) const QUALCOMM: u32 = 0x5143;
/// The id that Qualcomm's driver for Windows reports.
pub(super) const QUALCOMM_ON_WINDOWS: u32 = 0x4D4F_4351;
