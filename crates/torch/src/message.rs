//! The engine's errors in the words of PyTorch's users.

use dml_aten::operator::device_type::{DeviceName, device_type_name};
use dml_engine::{Bytes, Error, Shortage};

/// What users read of an error of the engine.
pub fn message(e: &Error) -> String {
    match e {
        Error::OutOfMemory { requested, allocated, reserved, free, total, device, adapter, shortage } => {
            let advice = match shortage {
                Shortage::Device => {
                    "Smaller batches need less; torch.dml.empty_cache() returns what is reserved but unused.".to_owned()
                }
                limit => limit.to_string(),
            };
            format!(
                "{} out of memory. Tried to allocate {}. Device {device} ({adapter}) has a total capacity of {} of which {} is \
                 free. Of the memory of this process, {} is in use by tensors and {} is reserved but unused. {advice}",
                device_type_name(),
                Bytes(*requested),
                Bytes(*total),
                Bytes(*free),
                Bytes(*allocated),
                Bytes(reserved.saturating_sub(*allocated))
            )
        }
        Error::DeviceLost { device, adapter } => format!(
            "device {} ({adapter}) was lost: the driver reset it, it was removed, or a kernel did not finish",
            DeviceName(*device)
        ),
        Error::Forked => format!(
            "Cannot re-initialize {0} in forked subprocess. To use {0} with multiprocessing, you must use the 'spawn' start \
             method",
            device_type_name()
        ),
        Error::InvalidDevice { index, count } => {
            format!("invalid device index {index}: there are {count} {} devices", device_type_name())
        }
        Error::Graph { device, what } => format!("{}: {what}", DeviceName(*device)),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn out_of_memory_says_everything() {
        let error = |shortage| Error::OutOfMemory {
            requested: 20 << 30,
            allocated: 5 << 20,
            reserved: 20 << 20,
            free: 1 << 30,
            total: 8 << 30,
            device: 1,
            adapter: "GPU".into(),
            shortage,
        };
        assert_eq!(
            message(&error(Shortage::Device)),
            "dml out of memory. Tried to allocate 20.00 GiB. Device 1 (GPU) has a total capacity of 8.00 GiB of which \
             1.00 GiB is free. Of the memory of this process, 5.00 MiB is in use by tensors and 15.00 MiB is reserved \
             but unused. Smaller batches need less; torch.dml.empty_cache() returns what is reserved but unused."
        );
        assert!(
            message(&error(Shortage::Process(6 << 20))).ends_with("unused. This process limits itself to 6.00 MiB.")
        );
    }

    #[test]
    fn devices_have_the_names_that_programs_use() {
        let lost = message(&Error::DeviceLost { device: 1, adapter: "GPU".into() });
        assert!(lost.starts_with("device dml:1 (GPU) was lost"), "{lost}");
        assert_eq!(message(&Error::Graph { device: 0, what: "no".into() }), "dml:0: no");
        let none = message(&Error::InvalidDevice { index: 9, count: 1 });
        assert_eq!(none, "invalid device index 9: there are 1 dml devices");
        assert!(message(&Error::Forked).starts_with("Cannot re-initialize dml in forked subprocess."));
    }

    #[test]
    fn other_errors_are_said_as_the_engine_says_them() {
        let error = Error::InvalidValue("log of a negative number");
        assert_eq!(message(&error), error.to_string());
    }
}
