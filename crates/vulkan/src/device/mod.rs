//! An opened device: the driver's functions, its queue, and whether it is lost. Every object of a
//! device holds [`DeviceShared`]; nothing here depends on those objects.

mod clock;
mod ledger;
mod logical;
mod queue;
mod shared;

pub(crate) use ledger::{Charge, Entry};
pub(crate) use shared::DeviceShared;
