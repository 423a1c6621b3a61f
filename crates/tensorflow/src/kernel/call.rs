//! One call of a kernel: its inputs and results as views, its memory, and the context of its
//! computations.

use crate::c_api::functions::{RawContext, api};
use crate::c_api::status::checked;
use crate::c_api::tensor::Tensor;
use crate::dtype;
use crate::error::{Error, Result};
use crate::platform::Stream;
use crate::settings::Settings;
use dml_compute::context::Phase;
use dml_compute::{Context, Dims, Environment, Location, Policy, Scalar, View, host};
use dml_engine::{AddressRange, Device, FaultKind, KernelRef};
use dml_kernel::DType;
use std::cell::RefCell;
use std::sync::Arc;

/// One call of a kernel.
pub struct Call {
    raw: *mut RawContext,
    device: &'static Arc<Device>,
    operator: &'static str,
    /// Whether inputs and results are in host memory.
    on_host: bool,
    /// The tensors whose views the kernel has, until the call ends.
    tensors: RefCell<Vec<Tensor>>,
    /// Scratch memory, until the call ends.
    scratch: RefCell<Vec<u64>>,
}

impl Call {
    /// A call of a kernel whose inputs and results are on the device, or all on the host.
    ///
    /// # Safety
    /// `raw` is what TensorFlow gave to a kernel's function, and stays valid while the result
    /// lives.
    pub(super) unsafe fn new(raw: *mut RawContext, operator: &'static str, on_host: bool) -> Result<Self> {
        // SAFETY: the caller's promise.
        let stream = checked(|status| unsafe { (api().TF_GetStream)(raw, status) })?;
        // SAFETY: the kernels are registered for our devices, whose streams are ours.
        let device = unsafe { Stream::device(stream) };
        // Before TensorFlow allocates results, which would be another error.
        if device.is_lost() {
            device.synchronize()?;
        }
        Ok(Self { raw, device, operator, on_host, tensors: RefCell::default(), scratch: RefCell::default() })
    }

    /// TensorFlow's context.
    pub(super) fn raw(&self) -> *mut RawContext {
        self.raw
    }

    /// The device.
    pub fn device(&self) -> &'static Arc<Device> {
        self.device
    }

    /// The operator's name.
    pub fn operator(&self) -> &'static str {
        self.operator
    }

    /// The context of computations.
    pub fn cx(&self) -> Context<'_> {
        Context {
            device: self.device,
            environment: self,
            name: self.operator,
            index_fault: FaultKind::RuntimeIndex,
            phase: Phase::Run,
        }
    }

    /// Whether inputs and results are in host memory: the kernel is one of
    /// [`Operator::int32_on_host`](crate::kernel::Operator::int32_on_host).
    pub fn on_host(&self) -> bool {
        self.on_host
    }

    fn location(&self) -> Location {
        if self.on_host { Location::Host } else { Location::Device(self.device.index() as u8) }
    }

    /// The number of inputs.
    pub fn inputs(&self) -> usize {
        // SAFETY: `new`'s promise.
        unsafe { (api().TF_NumInputs)(self.raw) as usize }
    }

    /// The number of results.
    pub fn outputs(&self) -> usize {
        // SAFETY: `new`'s promise.
        unsafe { (api().TF_NumOutputs)(self.raw) as usize }
    }

    /// An input's tensor, wherever its memory is.
    ///
    /// # Errors
    /// TensorFlow's, if there is no such input.
    pub fn tensor(&self, input: usize) -> Result<Tensor> {
        let mut tensor = std::ptr::null_mut();
        // SAFETY: `new`'s promise; the tensor is ours then.
        let tensor = unsafe {
            checked(|status| (api().TF_GetInput)(self.raw, input as i32, &raw mut tensor, status))?;
            Tensor::take(tensor)
        };
        tensor.ok_or_else(|| Error::InvalidArgument(format!("{} has no input {input}", self.operator)))
    }

    /// The view of a tensor on the device, which is kept until the call ends.
    ///
    /// # Errors
    /// As [`Tensor::view`].
    pub(super) fn keep(&self, tensor: Tensor) -> Result<View> {
        let view = tensor.view(self.location());
        self.tensors.borrow_mut().push(tensor);
        view
    }

    /// An input on the device.
    ///
    /// # Errors
    /// As [`tensor`](Self::tensor).
    pub fn input(&self, input: usize) -> Result<View> {
        self.keep(self.tensor(input)?)
    }

    /// The shape of an input, wherever its memory is.
    ///
    /// # Errors
    /// As [`tensor`](Self::tensor).
    pub fn sizes(&self, input: usize) -> Result<Dims> {
        Ok(self.tensor(input)?.sizes())
    }

    /// The numbers of an input in host memory.
    ///
    /// # Errors
    /// As [`tensor`](Self::tensor); [`Error::InvalidArgument`] if it is on the device.
    pub fn host_numbers(&self, input: usize) -> Result<Vec<Scalar>> {
        // SAFETY: `new`'s promise.
        let is_host = checked(|status| unsafe { (api().TF_IsHostMemoryInput)(self.raw, input as i32, status) })?;
        if !is_host {
            return Err(Error::InvalidArgument(format!("input {input} of {} is on the device", self.operator)));
        }
        let tensor = self.tensor(input)?;
        let dtype = tensor.dtype()?;
        let size = dtype.bytes() as usize;
        // SAFETY: it is in host memory, and inputs do not change during the call.
        let bytes = unsafe { tensor.host_bytes() };
        Ok(bytes.chunks_exact(size).map(|bytes| host::element(dtype, bytes)).collect())
    }

    /// The integers of an input in host memory, such as sizes or axes.
    ///
    /// # Errors
    /// As [`host_numbers`](Self::host_numbers).
    pub fn host_ints(&self, input: usize) -> Result<Dims> {
        Ok(self.host_numbers(input)?.into_iter().map(|number| number.to_i64()).collect())
    }

    /// The one number of an input in host memory.
    ///
    /// # Errors
    /// As [`host_numbers`](Self::host_numbers); [`Error::InvalidArgument`] unless it is one.
    pub fn host_number(&self, input: usize) -> Result<Scalar> {
        let numbers = self.host_numbers(input)?;
        match numbers[..] {
            [number] => Ok(number),
            _ => Err(Error::InvalidArgument(format!(
                "input {input} of {} has {} elements, not one",
                self.operator,
                numbers.len()
            ))),
        }
    }

    /// The dtype that a result must have.
    ///
    /// # Errors
    /// [`Error::Unimplemented`] for strings, resources, variants and quantised dtypes.
    pub fn output_dtype(&self, output: usize) -> Result<DType> {
        // SAFETY: `new`'s promise.
        let number = unsafe { (api().TF_ExpectedOutputDataType)(self.raw, output as i32) };
        dtype::of_number(number).ok_or_else(|| Error::Unimplemented(format!("dtype {number} of TensorFlow")))
    }

    fn allocate_output(&self, output: usize, sizes: &[i64]) -> Result<Tensor> {
        let dtype = self.output_dtype(output)?;
        let bytes = sizes.iter().product::<i64>() as u64 * dtype.bytes();
        // SAFETY: `new`'s promise; the sizes are read during the call, and the tensor is ours then.
        let tensor = unsafe {
            let raw = checked(|status| {
                (api().TF_AllocateOutput)(
                    self.raw,
                    output as i32,
                    dtype::number_of(dtype),
                    sizes.as_ptr(),
                    sizes.len() as i32,
                    bytes as usize,
                    status,
                )
            })?;
            Tensor::take(raw)
        };
        tensor.ok_or_else(|| Error::InvalidArgument(format!("{} has no result {output}", self.operator)))
    }

    /// A new result on the device.
    ///
    /// # Errors
    /// TensorFlow's, for example if memory is exhausted.
    pub fn output(&self, output: usize, sizes: &[i64]) -> Result<View> {
        self.keep(self.allocate_output(output, sizes)?)
    }

    /// A result on the device in the memory of one of these inputs, if nobody else needs that one
    /// and its shape and dtype are the same; else a new one.
    ///
    /// # Errors
    /// As [`output`](Self::output).
    pub fn output_over(&self, inputs: &[i32], output: usize, sizes: &[i64]) -> Result<View> {
        let mut which = 0;
        // SAFETY: `new`'s promise; the lists are read during the call, and the tensor is ours then.
        let tensor = unsafe {
            let raw = checked(|status| {
                (api().TF_ForwardInputOrAllocateOutput)(
                    self.raw,
                    inputs.as_ptr(),
                    inputs.len() as i32,
                    output as i32,
                    sizes.as_ptr(),
                    sizes.len() as i32,
                    &raw mut which,
                    status,
                )
            })?;
            Tensor::take(raw)
        };
        let tensor =
            tensor.ok_or_else(|| Error::InvalidArgument(format!("{} has no result {output}", self.operator)))?;
        self.keep(tensor)
    }

    /// A new result in host memory, of these numbers.
    ///
    /// # Errors
    /// As [`output`](Self::output); [`Error::InvalidArgument`] if it is on the device.
    pub fn host_output(&self, output: usize, sizes: &[i64], numbers: &[Scalar]) -> Result<()> {
        // SAFETY: `new`'s promise.
        let is_host = checked(|status| unsafe { (api().TF_IsHostMemoryOutput)(self.raw, output as i32, status) })?;
        if !is_host || sizes.iter().product::<i64>() != numbers.len() as i64 {
            return Err(Error::InvalidArgument(format!("result {output} of {} is not on the host", self.operator)));
        }
        let mut tensor = self.allocate_output(output, sizes)?;
        let dtype = tensor.dtype()?;
        let bytes = host::elements(dtype, numbers);
        // SAFETY: it is in host memory, has as many elements, and is not given on yet.
        unsafe { tensor.write_host(&bytes) };
        Ok(())
    }

    /// Makes an input's tensor a result, with another shape of as many elements.
    ///
    /// # Errors
    /// TensorFlow's, if dtypes or places differ.
    pub fn pass_on(&self, input: usize, output: usize, sizes: &[i64]) -> Result<()> {
        let mut tensor = self.tensor(input)?;
        tensor.set_sizes(sizes);
        self.set_output(output, &tensor)
    }

    /// Makes an input's memory a result, as elements of another dtype.
    ///
    /// # Errors
    /// As [`pass_on`](Self::pass_on).
    pub fn pass_on_as(&self, input: usize, output: usize, dtype: DType, sizes: &[i64]) -> Result<()> {
        let mut tensor = self.tensor(input)?;
        tensor.reinterpret(&self.tensor(input)?, dtype, sizes)?;
        self.set_output(output, &tensor)
    }

    /// Makes a tensor a result.
    ///
    /// # Errors
    /// TensorFlow's.
    pub fn set_output(&self, output: usize, tensor: &Tensor) -> Result<()> {
        // SAFETY: `new`'s promise; both live.
        checked(|status| unsafe { (api().TF_SetOutput)(self.raw, output as i32, tensor.raw(), status) })
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        // The work that uses it is enqueued: the memory may be given to later work.
        for address in self.scratch.get_mut().drain(..) {
            self.device.free(address);
        }
    }
}

impl Environment for Call {
    fn allocate(&self, device: u8, dtype: DType, sizes: &[i64], strides: &[i64]) -> dml_compute::Result<View> {
        let device = dml_engine::device(usize::from(device))?;
        let location = Location::Device(device.index() as u8);
        let over = |storage| View::over(storage, location, dtype, Dims::from_slice(sizes), Dims::from_slice(strides));
        let bytes = over(AddressRange { start: 0, end: 0 }).range().end;
        let start = device.allocate(bytes)?;
        self.scratch.borrow_mut().push(start);
        Ok(over(AddressRange { start, end: start + bytes }))
    }

    fn policy(&self) -> &dyn Policy {
        &Settings
    }

    fn probe(&self, _: &Device, _: &KernelRef, _: &[AddressRange]) -> dml_compute::Result<()> {
        Ok(())
    }
}
