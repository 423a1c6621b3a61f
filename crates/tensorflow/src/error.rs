//! The error of a kernel, and TensorFlow's code for it.

/// [`std::result::Result`] with this crate's error.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The error of a kernel.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Arguments that the operator does not accept.
    #[error("{0}")]
    InvalidArgument(String),
    /// What this plugin does not compute.
    #[error("{0}")]
    Unimplemented(String),
    /// The error of a computation.
    #[error(transparent)]
    Compute(#[from] dml_compute::Error),
    /// TensorFlow's own error, with its code.
    #[error("{message}")]
    TensorFlow {
        /// `TF_Code`.
        code: i32,
        /// The message.
        message: String,
    },
}

impl From<dml_engine::Error> for Error {
    fn from(error: dml_engine::Error) -> Self {
        Self::Compute(error.into())
    }
}

/// `TF_Code`.
pub mod code {
    /// Success.
    pub const OK: i32 = 0;
    /// Arguments that are wrong whatever the state.
    pub const INVALID_ARGUMENT: i32 = 3;
    /// No memory is left.
    pub const RESOURCE_EXHAUSTED: i32 = 8;
    /// Arguments that the operator needs in another state.
    pub const FAILED_PRECONDITION: i32 = 9;
    /// Not implemented.
    pub const UNIMPLEMENTED: i32 = 12;
    /// A fault of the plugin or of the driver.
    pub const INTERNAL: i32 = 13;
}

impl Error {
    /// `TF_Code`.
    pub fn code(&self) -> i32 {
        use dml_engine::Error as E;
        match self {
            Self::InvalidArgument(_) => code::INVALID_ARGUMENT,
            Self::Unimplemented(_) => code::UNIMPLEMENTED,
            Self::TensorFlow { code, .. } => *code,
            Self::Compute(error) => match error {
                dml_compute::Error::Invalid(_) | dml_compute::Error::TooLarge(_) => code::INVALID_ARGUMENT,
                dml_compute::Error::NoKernel(_) | dml_compute::Error::NeedsData(_) => code::UNIMPLEMENTED,
                dml_compute::Error::Allocation(_) => code::RESOURCE_EXHAUSTED,
                dml_compute::Error::Engine(error) => match error {
                    E::OutOfMemory { .. } | E::HostOutOfMemory { .. } => code::RESOURCE_EXHAUSTED,
                    E::IndexOutOfRange { .. } | E::InvalidValue(_) => code::INVALID_ARGUMENT,
                    E::Unsupported { .. } | E::Gpu(dml_gpu::Error::Unsupported { .. }) => code::UNIMPLEMENTED,
                    _ => code::INTERNAL,
                },
            },
        }
    }
}

/// `return Err(Error::InvalidArgument(format!(..)))` unless the condition holds.
#[macro_export]
macro_rules! require {
    ($condition:expr, $($format:tt)+) => {
        if !std::convert::identity::<bool>($condition) {
            return Err($crate::Error::InvalidArgument(format!($($format)+)));
        }
    };
}
