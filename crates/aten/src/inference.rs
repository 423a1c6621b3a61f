//! The two phases of an operator. [`infer`] says what a call would give: dtypes, shapes, strides,
//! scratch memory, and the errors of its arguments, without any memory and without any work for the
//! device. [`run_into`] runs it on results that exist.
//!
//! Both run the operator's one function, so that they cannot disagree: in the first phase the
//! context [describes](dml_compute::context::Phase::Infer) and enqueues nothing, and the host that
//! memory is asked of only counts. A function that has to look at values before it knows its
//! results, such as `nonzero`, ends with [`Error::NeedsData`] there.

use crate::complex;
use crate::movement::copies;
use crate::operator::Operator;
use crate::operator::call::{Arg, Host, Ret};
use crate::operator::error::{Error, Result};
use crate::special_dtypes::dispatch;
use dml_compute::context::Phase;
use dml_compute::{Dims, Environment, Location, MatmulPrecision, View};
use dml_engine::{AddressRange, Device};
use dml_kernel::DType;
use smallvec::SmallVec;
use std::cell::{Cell, RefCell};
use std::sync::Arc;

/// What a call gives, as far as its arguments say.
#[derive(Debug)]
pub struct Inferred {
    /// The results. Tensors among them have no memory, unless they are arguments.
    pub results: SmallVec<[Ret; 3]>,
    /// Bytes that the call would allocate beside its results. Trials and self-tests of kernels,
    /// which a first call may make, do not count.
    pub scratch: u64,
}

/// Describes a call of `operator`. Its tensor arguments need no memory, but different ones
/// different addresses; `host` is asked for its choices alone.
///
/// # Errors
/// Those of the call's arguments; [`Error::Fallback`] of a call that the device has no kernel for;
/// [`Error::NeedsData`] where the results depend on values.
pub fn infer(operator: &Operator, args: &[Arg], device: &Arc<Device>, host: &dyn Host) -> Result<Inferred> {
    let host = Describing { host, next: Cell::new(FIRST), allocated: Cell::new(0) };
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

/// Runs `operator` so that its tensor results are `outputs`, in order: of the dtypes, shapes and
/// strides that [`infer`] gave. Where the operator computes a result elsewhere, it is copied.
///
/// # Errors
/// Those of the call; [`Error::Runtime`] if the outputs are not what the operator returns.
pub fn run_into(
    operator: &Operator,
    args: &[Arg],
    device: &Arc<Device>,
    host: &dyn Host,
    outputs: &[View],
) -> Result<SmallVec<[Ret; 3]>> {
    let host = Giving { host, outputs, taken: RefCell::new(SmallVec::from_elem(false, outputs.len())) };
    let mut call = operator.call(args, device, &host);
    dispatch(&mut call, operator)?;
    let results = std::mem::take(&mut call.returns);
    let made: SmallVec<[&View; 4]> = tensors(&results).collect();
    let fits = |(t, out): (&&View, &View)| t.dtype == out.dtype && t.sizes == out.sizes;
    if made.len() != outputs.len() || !made.iter().zip(outputs).all(fits) {
        let (wanted, given) = (described(made.iter().copied()), described(outputs.iter()));
        return Err(Error::Runtime(format!("{}: the results are {wanted}, not {given}", operator.name)));
    }
    for (&t, out) in made.iter().zip(outputs) {
        if t.data == out.data && t.strides == out.strides || t.numel() == 0 {
            continue;
        }
        if t.dtype.is_complex() {
            complex::checked_copy(&call, t, out)?;
        } else {
            copies::checked_copy(&call, t, out)?;
        }
    }
    drop(made);
    Ok(results)
}

/// The first difference between an inferred call and what the call gave, in words.
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

fn described<'t>(tensors: impl Iterator<Item = &'t View>) -> String {
    tensors.map(View::describe).collect::<Vec<_>>().join(", ")
}

fn tensors(results: &[Ret]) -> impl Iterator<Item = &View> {
    results.iter().flat_map(|result| match result {
        Ret::Tensor(t) => std::slice::from_ref(t),
        Ret::Tensors(list) => list,
        Ret::None | Ret::Scalar(_) | Ret::Unsigned(_) => &[],
    })
}

/// Where the addresses of described memory begin: above those of any device.
const FIRST: u64 = 1 << 60;

/// A host whose memory is addresses alone.
struct Describing<'h> {
    host: &'h dyn Host,
    next: Cell<u64>,
    allocated: Cell<u64>,
}

impl Describing<'_> {
    fn memory(&self, bytes: u64) -> AddressRange {
        let start = self.next.get();
        self.next.set(start + bytes.next_multiple_of(256).max(256));
        self.allocated.set(self.allocated.get() + bytes);
        AddressRange::new(start, bytes)
    }
}

impl Environment for Describing<'_> {
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

    fn deterministic(&self) -> bool {
        self.host.deterministic()
    }

    fn matmul_precision(&self) -> MatmulPrecision {
        self.host.matmul_precision()
    }

    fn product_dtype(&self) -> Option<DType> {
        self.host.product_dtype()
    }
}

impl Host for Describing<'_> {
    fn resize(&self, tensor: &mut View, sizes: &[i64], strides: &[i64]) -> Result<()> {
        let held = tensor.storage.end - tensor.data;
        (tensor.sizes, tensor.strides) = (Dims::from_slice(sizes), Dims::from_slice(strides));
        let range = tensor.range();
        if range.end - range.start > held {
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

/// A host that gives the results' memory to who asks for a tensor like one of them first.
struct Giving<'h> {
    host: &'h dyn Host,
    outputs: &'h [View],
    taken: RefCell<SmallVec<[bool; 4]>>,
}

impl Environment for Giving<'_> {
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

    fn deterministic(&self) -> bool {
        self.host.deterministic()
    }

    fn matmul_precision(&self) -> MatmulPrecision {
        self.host.matmul_precision()
    }

    fn product_dtype(&self) -> Option<DType> {
        self.host.product_dtype()
    }
}

impl Host for Giving<'_> {
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
