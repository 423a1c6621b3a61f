//! The two phases of an operator. [`infer`] returns what a call would give: dtypes, shapes,
//! strides, scratch memory, and errors of the arguments, without any memory and without work for
//! the device. [`run_with_outputs`] runs the operator on given results.
//!
//! Both run the operator's single function, so that they cannot disagree: in the first phase the
//! context only [describes](dml_compute::context::Phase::Infer) and enqueues nothing, and the host
//! from which memory is allocated only counts. A function whose results depend on values, such as
//! `nonzero`, ends with [`Error::NeedsData`] in this phase.

use crate::complex;
use crate::movement::copies;
use crate::operator::Operator;
use crate::operator::call::{Arg, Call, Host, Ret};
use crate::operator::error::{Error, Result};
use crate::special_dtypes::dispatch;
use dml_compute::context::Phase;
use dml_compute::view::overlap::ranges_overlap;
use dml_compute::{Dims, Environment, Location, Policy, View};
use dml_engine::{AddressRange, Device, KernelRef};
use dml_kernel::DType;
use smallvec::SmallVec;
use std::cell::{Cell, RefCell};
use std::sync::Arc;

/// The results of a call, as far as they follow from its arguments.
#[derive(Debug)]
pub struct Inferred {
    /// The results. Tensors have no memory, unless they are arguments.
    pub results: SmallVec<[Ret; 3]>,
    /// Bytes that the call would allocate besides its results, not counting measurements and
    /// self-tests of kernels, which a first call may make.
    pub scratch: u64,
}

/// Describes a call of `operator`. Its tensor arguments need no memory, but different tensors have
/// to have different addresses; `host` is only asked for its settings.
///
/// # Errors
/// Those of the call's arguments; [`Error::Fallback`] if the device has no kernel for the call;
/// [`Error::NeedsData`] if the results depend on values.
pub fn infer(operator: &Operator, args: &[Arg], device: &Arc<Device>, host: &dyn Host) -> Result<Inferred> {
    let host = InferenceHost { host, next: Cell::new(FIRST), allocated: Cell::new(0) };
    let mut call = operator.call(args, device, &host);
    call.context.phase = Phase::Infer;
    dispatch(&mut call, operator)?;
    let results = call.returns;
    let mut given: SmallVec<[AddressRange; 4]> =
        tensors(&results).map(|t| t.storage).filter(|storage| storage.start >= FIRST).collect();
    given.sort_unstable_by_key(|storage| storage.start);
    given.dedup();
    let given: u64 = given.iter().map(|storage| storage.end - storage.start).sum();
    Ok(Inferred { scratch: host.allocated.get() - given, results })
}

/// Compiles the kernels of a call of `operator` without launching any.
///
/// # Errors
/// Those of the call's arguments; [`dml_engine::Error::Compile`] if the driver refuses a kernel;
/// [`Error::NeedsData`] if the rest depends on values.
pub fn probe(operator: &Operator, call: &Call) -> Result<()> {
    let host = InferenceHost { host: call.host, next: Cell::new(FIRST), allocated: Cell::new(0) };
    let mut probe = call.with_host(call.args, &host);
    probe.context.phase = Phase::Probe;
    dispatch(&mut probe, operator)
}

/// Runs `operator` so that its tensor results are `outputs`, in order, which have the dtypes,
/// shapes and strides of [`infer`]. If the operator computes a result elsewhere, it is copied.
///
/// # Errors
/// Those of the call; [`Error::Runtime`] if the outputs are not what the operator returns.
pub fn run_with_outputs(
    operator: &Operator,
    args: &[Arg],
    device: &Arc<Device>,
    host: &dyn Host,
    outputs: &[View],
) -> Result<SmallVec<[Ret; 3]>> {
    let host = OutputHost { host, outputs, taken: RefCell::new(SmallVec::from_elem(false, outputs.len())) };
    let mut call = operator.call(args, device, &host);
    dispatch(&mut call, operator)?;
    let results = std::mem::take(&mut call.returns);
    put(&call, host.host, &results, outputs)?;
    Ok(results)
}

/// Copies the results that were computed elsewhere to the outputs.
fn put(call: &Call, host: &dyn Host, results: &[Ret], outputs: &[View]) -> Result<()> {
    let made: SmallVec<[&View; 4]> = tensors(results).collect();
    let fits = |(t, out): (&&View, &View)| t.dtype == out.dtype && t.sizes == out.sizes;
    if made.len() != outputs.len() || !made.iter().zip(outputs).all(fits) {
        let (wanted, given) = (describe_tensors(made.iter().copied()), describe_tensors(outputs.iter()));
        return Err(Error::Runtime(format!("{}: the results are {wanted}, not {given}", call.name)));
    }
    let is_there = |t: &View, out: &View| t.data == out.data && t.strides == out.strides || t.numel() == 0;
    let misplaced: SmallVec<[(&View, &View); 4]> =
        made.iter().zip(outputs).filter(|(t, out)| !is_there(t, out)).map(|(&t, out)| (t, out)).collect();
    // A result that was computed in the memory of outputs is moved out of its way first.
    let mut moved: SmallVec<[Option<View>; 4]> = SmallVec::new();
    for &(t, _) in &misplaced {
        let in_the_way = outputs.iter().any(|output| ranges_overlap(output, t));
        moved.push(if in_the_way {
            let apart = host.allocate(call.device.index() as u8, t.dtype, &t.sizes, &t.strides)?;
            copy(call, t, &apart)?;
            Some(apart)
        } else {
            None
        });
    }
    for (&(t, out), moved) in misplaced.iter().zip(&moved) {
        copy(call, moved.as_ref().unwrap_or(t), out)?;
    }
    Ok(())
}

fn copy(call: &Call, from: &View, to: &View) -> Result<()> {
    if from.dtype.is_complex() { complex::checked_copy(call, from, to) } else { copies::checked_copy(call, from, to) }
}

/// Describes the first difference between an inferred call and the actual results; `None` if there
/// is none.
pub fn difference(inferred: &[Ret], given: &[Ret]) -> Option<String> {
    let (a, b) = (tensors(inferred), tensors(given));
    let pairs: Vec<_> = a.zip(b).collect();
    if pairs.len() != tensors(inferred).count() || pairs.len() != tensors(given).count() {
        return Some(format!("{} and {} results", tensors(inferred).count(), tensors(given).count()));
    }
    pairs.into_iter().find_map(|(a, b)| {
        let strides = a.sizes.iter().zip(a.strides.iter().zip(&b.strides)).all(|(&n, (a, b))| n <= 1 || a == b);
        let same = a.dtype == b.dtype && a.sizes == b.sizes && (strides || a.numel() == 0);
        (!same).then(|| {
            let [a, b] = [a, b].map(|t| format!("{} of strides {:?}", t.describe(), t.strides.as_slice()));
            format!("{a} and {b}")
        })
    })
}

fn describe_tensors<'t>(tensors: impl Iterator<Item = &'t View>) -> String {
    tensors.map(View::describe).collect::<Vec<_>>().join(", ")
}

fn tensors(results: &[Ret]) -> impl Iterator<Item = &View> {
    results.iter().flat_map(|result| match result {
        Ret::Tensor(t) => std::slice::from_ref(t),
        Ret::Tensors(list) => list,
        Ret::None | Ret::Scalar(_) | Ret::Unsigned(_) => &[],
    })
}

/// The first address of described memory: above the addresses of all devices.
const FIRST: u64 = 1 << 60;

/// A host that allocates addresses without memory, and refuses what the driver refuses.
struct InferenceHost<'h> {
    host: &'h dyn Host,
    next: Cell<u64>,
    allocated: Cell<u64>,
}

impl InferenceHost<'_> {
    fn memory(&self, bytes: u64) -> AddressRange {
        let start = self.next.get();
        self.next.set(start + bytes.next_multiple_of(256).max(256));
        self.allocated.set(self.allocated.get() + bytes);
        AddressRange::new(start, bytes)
    }
}

impl Environment for InferenceHost<'_> {
    fn allocate(&self, device: u8, dtype: DType, sizes: &[i64], strides: &[i64]) -> dml_compute::Result<View> {
        let mut view = View {
            handle: 0,
            data: 0,
            dtype,
            location: Location::Device(device),
            sizes: Dims::from_slice(sizes),
            strides: Dims::from_slice(strides),
            storage: AddressRange::new(0, 0),
            weak: false,
            negative: false,
            conjugate: false,
        };
        view.storage = self.memory(view.range().end);
        view.data = view.storage.start;
        view.handle = view.data as usize;
        Ok(view)
    }

    fn policy(&self) -> &dyn Policy {
        self.host.policy()
    }

    fn probe(&self, device: &Device, kernel: &KernelRef, _: &[AddressRange]) -> dml_compute::Result<()> {
        Ok(device.check_accepted(kernel)?)
    }
}

impl Host for InferenceHost<'_> {
    fn resize(&self, tensor: &mut View, sizes: &[i64], strides: &[i64]) -> Result<()> {
        let available = tensor.storage.end - tensor.data;
        (tensor.sizes, tensor.strides) = (Dims::from_slice(sizes), Dims::from_slice(strides));
        let range = tensor.range();
        if range.end - range.start > available {
            tensor.storage = self.memory(range.end - range.start);
            tensor.data = tensor.storage.start;
        }
        Ok(())
    }

    fn view(&self, base: &View, view: &View) -> Result<View> {
        Ok(View { handle: base.handle, ..view.clone() })
    }

    fn warn(&self, _: &str) {}

    fn default_dtype(&self) -> DType {
        self.host.default_dtype()
    }
}

/// A host that returns the results' memory for the first request of a matching tensor.
struct OutputHost<'h> {
    host: &'h dyn Host,
    outputs: &'h [View],
    taken: RefCell<SmallVec<[bool; 4]>>,
}

impl Environment for OutputHost<'_> {
    fn allocate(&self, device: u8, dtype: DType, sizes: &[i64], strides: &[i64]) -> dml_compute::Result<View> {
        let mut taken = self.taken.borrow_mut();
        let fits = |out: &View| {
            let here = out.location == Location::Device(device);
            here && out.dtype == dtype && out.sizes.as_slice() == sizes && out.strides.as_slice() == strides
        };
        match self.outputs.iter().zip(taken.iter_mut()).find(|(out, taken)| !**taken && fits(out)) {
            Some((out, taken)) => {
                *taken = true;
                Ok(out.clone())
            }
            None => self.host.allocate(device, dtype, sizes, strides),
        }
    }

    fn policy(&self) -> &dyn Policy {
        self.host.policy()
    }

    fn probe(&self, device: &Device, kernel: &KernelRef, writes: &[AddressRange]) -> dml_compute::Result<()> {
        self.host.probe(device, kernel, writes)
    }
}

impl Host for OutputHost<'_> {
    fn resize(&self, tensor: &mut View, sizes: &[i64], strides: &[i64]) -> Result<()> {
        self.host.resize(tensor, sizes, strides)
    }

    fn view(&self, base: &View, view: &View) -> Result<View> {
        self.host.view(base, view)
    }

    fn warn(&self, message: &str) {
        self.host.warn(message);
    }

    fn default_dtype(&self) -> DType {
        self.host.default_dtype()
    }
}
