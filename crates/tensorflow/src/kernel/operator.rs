//! An operator: its name, the dtypes of its kernels, and what makes one.

use super::call::Call;
use crate::c_api::attributes::Attributes;
use crate::error::Result;
use dml_kernel::DType;

/// The kernel of a node.
pub type Kernel = Box<dyn Fn(&Call) -> Result<()> + Send + Sync>;

/// What makes the kernel of a node.
type Make = Box<dyn Fn(&Attributes) -> Result<Kernel> + Send + Sync>;

/// An attribute of type `type` that follows from another one, the other's name, and how.
pub type Tie = (&'static str, &'static str, fn(DType) -> DType);

/// An operator of TensorFlow.
pub struct Operator {
    /// TensorFlow's name.
    pub name: &'static str,
    /// Attributes of type `type`, with the dtypes that have kernels; one kernel for each choice.
    pub types: Vec<(&'static str, &'static [DType])>,
    /// Attributes of type `type` that follow from another one.
    pub tied: Vec<Tie>,
    /// Names of arguments and results in host memory.
    pub host: &'static [&'static str],
    /// The arguments and results of a kernel for int32 that has all of them in host memory, if
    /// there is one.
    pub int32_on_host: Option<&'static [&'static str]>,
    /// Whether it is preferred to a kernel that TensorFlow's core has for this type of device.
    pub replaces_core: bool,
    /// What makes a kernel.
    pub make: Make,
}

impl Operator {
    /// An operator whose kernel is made from attributes.
    pub fn new<F>(name: &'static str, make: impl Fn(&Attributes) -> Result<F> + Send + Sync + 'static) -> Self
    where
        F: Fn(&Call) -> Result<()> + Send + Sync + 'static,
    {
        let make = Box::new(move |attributes: &Attributes| Ok(Box::new(make(attributes)?) as Kernel));
        Self { name, types: Vec::new(), tied: Vec::new(), host: &[], int32_on_host: None, replaces_core: false, make }
    }

    /// An operator whose kernel needs no attribute.
    pub fn plain<F>(name: &'static str, compute: F) -> Self
    where
        F: Fn(&Call) -> Result<()> + Clone + Send + Sync + 'static,
    {
        Self::new(name, move |_| Ok(compute.clone()))
    }

    /// With kernels for these dtypes of an attribute.
    #[must_use]
    pub fn of(mut self, attribute: &'static str, dtypes: &'static [DType]) -> Self {
        self.types.push((attribute, dtypes));
        self
    }

    /// With kernels only where one attribute follows from another one.
    #[must_use]
    pub fn tied(mut self, attribute: &'static str, to: &'static str, how: fn(DType) -> DType) -> Self {
        self.tied.push((attribute, to, how));
        self
    }

    /// With these arguments or results in host memory.
    #[must_use]
    pub fn on_host(mut self, arguments: &'static [&'static str]) -> Self {
        self.host = arguments;
        self
    }

    /// With a kernel for int32, in place of the first attribute's dtypes, with all of its arguments
    /// and results in host memory, which is where shapes are: see [`Call::on_host`].
    #[must_use]
    pub fn int32_on_host(mut self, arguments: &'static [&'static str]) -> Self {
        self.int32_on_host = Some(arguments);
        self
    }

    /// Preferred to a kernel of TensorFlow's core.
    #[must_use]
    pub fn replacing_core(mut self) -> Self {
        self.replaces_core = true;
        self
    }
}
