//! The one error type of the crate.

use crate::memory::range::DeviceRange;

/// An error of a device.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The layer below failed.
    #[error(transparent)]
    Gpu(dml_gpu::Error),
    /// No memory is left after all cached memory was released. Allocations in use remain valid, and
    /// a later allocation that fits succeeds.
    #[error(
        "device {device} ({adapter}) is out of memory: {} were asked for. {} of {} are free; this process uses {} and has {} in \
         reserve. {shortage}",
        Bytes(*requested), Bytes(*free), Bytes(*total), Bytes(*allocated), Bytes(reserved.saturating_sub(*allocated))
    )]
    OutOfMemory {
        /// Bytes asked for.
        requested: u64,
        /// Bytes in use.
        allocated: u64,
        /// Bytes allocated from the driver, bytes in use included.
        reserved: u64,
        /// Bytes that are free according to the driver.
        free: u64,
        /// Bytes of the device.
        total: u64,
        /// The device's index.
        device: usize,
        /// The adapter's name.
        adapter: String,
        /// The limit that was met.
        shortage: Shortage,
    },
    /// No host memory that the GPU can reach is left.
    #[error("not enough host memory: tried to pin {}", Bytes(*requested))]
    HostOutOfMemory {
        /// Bytes asked for.
        requested: u64,
    },
    /// A kernel needs a feature that the adapter lacks.
    #[error("kernel {kernel} needs {feature}, which {adapter} does not have")]
    Unsupported {
        /// The kernel.
        kernel: String,
        /// The adapter's name.
        adapter: String,
        /// The missing feature.
        feature: String,
    },
    /// The device was lost: driver crash, reset or removal. Other devices work on; this one cannot
    /// be used again in this process.
    #[error("device {device} ({adapter}) was lost: the driver reset it, it was removed, or a kernel did not finish")]
    DeviceLost {
        /// The device's index.
        device: usize,
        /// The adapter's name.
        adapter: String,
    },
    /// This process was forked from one that had started a driver. A newly started process works.
    #[error("this process was forked from one that had started the driver, which does not survive that")]
    Forked,
    /// There is no device of this index.
    #[error("invalid device index {index}: there are {count} devices")]
    InvalidDevice {
        /// The index asked for.
        index: usize,
        /// How many there are.
        count: usize,
    },
    /// The program interrupted this wait ([`set_interrupt_check`](crate::set_interrupt_check)).
    /// Enqueued work still runs.
    #[error("interrupted while waiting for the device")]
    Interrupted,
    /// A kernel met an index that is out of bounds. The results of the kernel are undefined.
    #[error("{operator}: index {index} is out of bounds for dimension {dim} with size {size}")]
    IndexOutOfRange {
        /// The operator.
        operator: &'static str,
        /// The index.
        index: i64,
        /// The size of the dimension.
        size: i64,
        /// The dimension.
        dim: u32,
        /// Whether the operator reports it as an error of a value and not of an index.
        runtime: bool,
    },
    /// A kernel met a value that its operator does not accept. The results of the kernel are
    /// undefined.
    #[error("{0}")]
    InvalidValue(&'static str),
    /// The driver refused a kernel in every form.
    #[error(
        "kernel {kernel} could not be compiled: {driver} refuses it ({reason}). From now on, also when the program runs again, \
         other kernels or the CPU take its place. This is a fault of the driver; please report it with the file that \
         `python -m torch_dml report` writes"
    )]
    Compile {
        /// The kernel.
        kernel: String,
        /// The driver, in words.
        driver: String,
        /// The driver's message.
        reason: String,
    },
    /// A fault of an operator: the specialisation of its kernel does not determine the code.
    /// Detected with `TORCH_DML_CHECK_KERNELS=1`, and by samples in builds with debug assertions.
    #[error(
        "two kernels, {first} and {second}, have one specialisation: what changes the code must be in the specialisation, which is \
         {specialisation}"
    )]
    AmbiguousKernel {
        /// The kernel that was built first: name and content.
        first: String,
        /// The kernel that was built now.
        second: String,
        /// The specialisation of both.
        specialisation: String,
    },
    /// A fault of an operator: it built an invalid kernel.
    #[error(transparent)]
    InvalidKernel(#[from] dml_kernel::InvalidKernel),
    /// A range of addresses is not memory of the device.
    #[error("{call}: {} bytes at {:#x} are not memory of this device", memory.range.bytes(), memory.range.start)]
    InvalidAddress {
        /// The function.
        call: &'static str,
        /// The device and the range.
        memory: DeviceRange,
    },
    /// A launch with wrong parameters or too many workgroups.
    #[error("{operator}: launch of {kernel} is invalid: {what}")]
    InvalidLaunch {
        /// The operator.
        operator: &'static str,
        /// The kernel.
        kernel: String,
        /// What is wrong.
        what: String,
    },
    /// An operation that is not possible with a graph or during its capture.
    #[error("device {device}: {what}")]
    Graph {
        /// The device's index.
        device: usize,
        /// What is wrong.
        what: String,
    },
    /// `elapsed_ms` of events that were not recorded for timing, or on different devices.
    #[error("no time between these events: {reason}")]
    NoTiming {
        /// Why.
        reason: &'static str,
    },
}

impl Error {
    /// An operation that is not possible with a graph or a capture of a device.
    pub(crate) fn graph(device: usize, what: impl Into<String>) -> Self {
        Self::Graph { device, what: what.into() }
    }

    /// A range that is not memory of the device that was to access it.
    pub(crate) fn invalid_address(call: &'static str, device: usize, address: u64, bytes: u64) -> Self {
        Self::InvalidAddress { call, memory: DeviceRange::new(device, address, bytes) }
    }
}

impl From<dml_gpu::Error> for Error {
    fn from(e: dml_gpu::Error) -> Self {
        Self::Gpu(e)
    }
}

/// The limit that an allocation met.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Shortage {
    /// The device has no more memory.
    Device,
    /// The limit in bytes that the process has set for itself:
    /// [`Device::set_memory_fraction`](crate::Device::set_memory_fraction).
    Process(u64),
    /// The most bytes that the driver allocates at once.
    Size(u64),
    /// The most allocations that the driver allows at a time.
    Count(u32),
}

impl std::fmt::Display for Shortage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Device => f.write_str("The device has no more memory."),
            Self::Process(limit) => write!(f, "This process limits itself to {}.", Bytes(*limit)),
            Self::Size(limit) => write!(f, "This driver allocates at most {} at once.", Bytes(*limit)),
            Self::Count(limit) => write!(f, "This driver allows {limit} allocations at a time, and they all exist."),
        }
    }
}

/// A number of bytes for people.
#[derive(Copy, Clone, Debug)]
pub struct Bytes(pub u64);

impl std::fmt::Display for Bytes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (b, x) = (self.0, self.0 as f64);
        match b {
            0..1024 => write!(f, "{b} bytes"),
            1024..0x10_0000 => write!(f, "{:.2} KiB", x / 1024.0),
            0x10_0000..0x4000_0000 => write!(f, "{:.2} MiB", x / 1048576.0),
            _ => write!(f, "{:.2} GiB", x / 1073741824.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn out_of_memory_says_everything() {
        let text = Error::OutOfMemory {
            requested: 20 << 30,
            allocated: 5 << 20,
            reserved: 20 << 20,
            free: 1 << 30,
            total: 8 << 30,
            device: 1,
            adapter: "GPU".into(),
            shortage: Shortage::Process(6 << 20),
        }
        .to_string();
        assert_eq!(
            text,
            "device 1 (GPU) is out of memory: 20.00 GiB were asked for. 1.00 GiB of 8.00 GiB are free; this process uses \
             5.00 MiB and has 15.00 MiB in reserve. This process limits itself to 6.00 MiB."
        );
    }
}
