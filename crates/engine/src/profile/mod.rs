//! Profiles of the device's activities and of the host's time.

pub(crate) mod activity;
pub mod measure;
pub(crate) mod sink;
