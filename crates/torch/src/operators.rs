//! The table of operators, and their calls.

use crate::abi::{DmlHost, DmlPayload, DmlTensor, DmlValue, Status, tag};
use crate::convert::{NONE, arg, from_scalar, slice, to_abi};
use crate::error::{Failure, guard, guard_value};
use crate::host::Plugin;
use dml_aten::inference::{Inferred, difference, infer};
use dml_aten::{Arg, Ret, operators};
use dml_compute::View;
use dml_engine::measure::{self, Stage};
use dml_environment::{CHECK_INFERENCE, FALLBACK_IS_ERROR};
use smallvec::SmallVec;
use std::cell::RefCell;
use std::ffi::{CString, c_char};
use std::sync::OnceLock;

thread_local! {
    /// The tensor lists of the last call that returned any; the plugin has pointers to them.
    static LISTS: RefCell<Vec<Vec<DmlTensor>>> = const { RefCell::new(Vec::new()) };
    /// The results of the last `dml_infer`, and its lists of tensors.
    static DESCRIBED: RefCell<(Vec<Ret>, Vec<Vec<DmlTensor>>)> = const { RefCell::new((Vec::new(), Vec::new())) };
}

/// Names and schemas with their terminating zero.
fn texts() -> &'static [(CString, CString)] {
    static TEXTS: OnceLock<Vec<(CString, CString)>> = OnceLock::new();
    TEXTS.get_or_init(|| {
        let text = |s: &str| CString::new(s).unwrap_or_default();
        operators().iter().map(|op| (text(op.name), text(op.schema))).collect()
    })
}

/// Number of operators in the table.
#[unsafe(no_mangle)]
pub extern "C" fn dml_operator_count() -> u32 {
    guard_value(0, || Ok(operators().len() as u32))
}

/// An operator's name, such as "aten::add.Tensor"; null when there is none of this index.
#[unsafe(no_mangle)]
pub extern "C" fn dml_operator_name(op: u32) -> *const c_char {
    guard_value(std::ptr::null(), || Ok(texts().get(op as usize).map_or(std::ptr::null(), |(name, _)| name.as_ptr())))
}

/// An operator's schema as PyTorch prints it; null when there is none of this index.
#[unsafe(no_mangle)]
pub extern "C" fn dml_operator_schema(op: u32) -> *const c_char {
    guard_value(std::ptr::null(), || {
        Ok(texts().get(op as usize).map_or(std::ptr::null(), |(_, schema)| schema.as_ptr()))
    })
}

/// Whether `TORCH_DML_FALLBACK` makes an operator without a kernel an error. Read at each call, as
/// programs may change the variable.
#[unsafe(no_mangle)]
pub extern "C" fn dml_fallback_is_error() -> i32 {
    guard_value(0, || Ok(i32::from(FALLBACK_IS_ERROR.get_now().is_some())))
}

/// Runs operator `op` on dml:`device`. Lists and strings in `results` belong to the engine and live
/// until the calling thread's next `dml_call`. A missing result has the tag NONE.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dml_call(
    op: u32,
    device: i32,
    args: *const DmlValue,
    nargs: usize,
    host: *const DmlHost,
    results: *mut DmlValue,
    nresults: usize,
) -> i32 {
    guard(|| {
        let op = *operators()
            .get(op as usize)
            .ok_or_else(|| Failure::new(Status::RuntimeError, format!("there is no operator {op}")))?;
        let device = crate::device::open(device)?;
        // Not returned from a block, which would copy all eight elements.
        let mut list: SmallVec<[Arg; 8]> = SmallVec::new();
        // SAFETY: the contract's arrays.
        for value in unsafe { slice(args, nargs) } {
            // SAFETY: the contract's values; `list` goes when the call returns, and no operator
            // keeps an argument.
            list.push(unsafe { arg(value)? });
        }
        // SAFETY: the contract's host, which is not null and stays as it is during the call.
        let plugin = unsafe { Plugin::new(&*host) };
        let may_lack = dml_aten::may_lack_kernels(device, &list);
        // What has no kernel runs on the CPU, which does not follow from the arguments.
        let checks = CHECK_INFERENCE.get().unwrap_or(false) && !may_lack;
        let inferred = checks.then(|| infer(op, &list, device, &plugin));
        let mut call = op.call(&list, device, &plugin);
        tracing::trace!(target: "dml::call", name = op.name, "call");
        let ran = {
            let _stage = measure::enter(Stage::Shape);
            if may_lack { dml_aten::dispatch_checked(&mut call, op) } else { dml_aten::dispatch(&mut call, op) }
        };
        if let Some(inferred) = inferred {
            check_inferred(op.name, &inferred, &ran.as_ref().map(|()| call.returns.as_slice()))?;
        }
        ran.map_err(|e| explain(e, op.name, &list))?;
        // SAFETY: the contract's places: room for `nresults` results.
        unsafe { deliver(&call.returns, results, nresults) }
    })
}

/// Describes the results of a call of operator `op` on dml:`device` without running it, as tensors
/// without a handle and without memory. Lists, sizes and strides in `results` belong to the engine
/// and live until the calling thread's next `dml_infer`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dml_infer(
    op: u32,
    device: i32,
    args: *const DmlValue,
    nargs: usize,
    host: *const DmlHost,
    results: *mut DmlValue,
    nresults: usize,
) -> i32 {
    guard(|| {
        let op = *operators()
            .get(op as usize)
            .ok_or_else(|| Failure::new(Status::RuntimeError, format!("there is no operator {op}")))?;
        let device = crate::device::open(device)?;
        let mut list: SmallVec<[Arg; 8]> = SmallVec::new();
        // SAFETY: the contract's arrays.
        for value in unsafe { slice(args, nargs) } {
            // SAFETY: the contract's values; `list` goes when the call returns.
            list.push(unsafe { arg(value)? });
        }
        // SAFETY: the contract's host, which is not null and stays as it is during the call.
        let plugin = unsafe { Plugin::new(&*host) };
        let inferred = infer(op, &list, device, &plugin).map_err(|e| explain(e, op.name, &list))?;
        DESCRIBED.with_borrow_mut(|(described, lists)| {
            lists.clear();
            described.clear();
            described.extend(inferred.results);
            // SAFETY: the contract's places: room for `nresults` results.
            unsafe { write(described, results, nresults, lists, |t| Ok(description(t))) }
        })
    })
}

/// A result without memory. Its sizes and strides may be in `t` itself, which must not move.
fn description(t: &View) -> DmlTensor {
    DmlTensor { handle: std::ptr::null_mut(), data: 0, storage: 0, ..to_abi(t) }
}

/// Whether what was inferred of a call is what it did, for `TORCH_DML_CHECK_INFERENCE`.
fn check_inferred(
    name: &str,
    inferred: &dml_aten::Result<Inferred>,
    ran: &Result<&[Ret], &dml_aten::Error>,
) -> Result<(), Failure> {
    use dml_aten::Error;
    let difference = match (inferred, ran) {
        (Err(Error::NeedsData(_)), _) | (_, Err(Error::Engine(_) | Error::Host(_))) => None,
        (Ok(inferred), Ok(given)) => difference(&inferred.results, given).or_else(|| returned_twice(given)),
        (Err(a), Err(b)) => (a.to_string() != b.to_string()).then(|| format!("{a:?} and {b:?}")),
        (Ok(_), Err(e)) => Some(format!("results and {e:?}")),
        (Err(e), Ok(_)) => Some(format!("{e:?} and results")),
    };
    match difference {
        None => Ok(()),
        Some(difference) => {
            Err(Failure::new(Status::RuntimeError, format!("{name}: inferred and run differ: {difference}")))
        }
    }
}

/// A tensor that is two results: autograd would take either for the other.
fn returned_twice(results: &[Ret]) -> Option<String> {
    let mut handles: Vec<usize> = results
        .iter()
        .flat_map(|result| match result {
            Ret::Tensor(tensor) => std::slice::from_ref(tensor),
            Ret::Tensors(tensors) => tensors.as_slice(),
            _ => &[],
        })
        .map(|tensor| tensor.handle)
        .collect();
    handles.sort_unstable();
    handles.windows(2).any(|pair| pair[0] == pair[1]).then(|| "one tensor is returned twice".to_owned())
}

/// An engine's error does not know what was asked of it; the operator, shapes and dtypes are added
/// here.
fn explain(e: dml_aten::Error, name: &str, args: &[Arg]) -> Failure {
    use dml_engine::Error as Engine;
    let wants_context = matches!(
        &e,
        dml_aten::Error::Engine(e) if !matches!(
            e,
            Engine::OutOfMemory { .. } | Engine::IndexOutOfRange { .. } | Engine::InvalidValue(_) | Engine::Interrupted
        )
    );
    let mut failure = Failure::from(e);
    if let (true, Some(message)) = (wants_context, &mut failure.message) {
        let tensors: Vec<String> =
            args.iter().filter_map(|a| if let Arg::Tensor(t) = a { Some(t.describe()) } else { None }).collect();
        message.push_str(&format!(" (in {name} of {})", tensors.join(", ")));
    }
    failure
}

/// Writes the results where the plugin reads them. Does not write if it fails: lists that were
/// written may be gone.
///
/// # Safety
/// `results` is valid for writes of `nresults` values.
unsafe fn deliver(returns: &[Ret], results: *mut DmlValue, nresults: usize) -> Result<(), Failure> {
    let mut lists = Vec::new();
    // SAFETY: the caller's promise.
    unsafe { write(returns, results, nresults, &mut lists, |t| known(to_abi(t)))? };
    if !lists.is_empty() {
        LISTS.set(lists);
    }
    Ok(())
}

/// Writes results as values, their tensors by `tensor`. The pointers of lists are into `lists`.
///
/// # Safety
/// `results` is valid for writes of `nresults` values.
unsafe fn write(
    returns: &[Ret],
    results: *mut DmlValue,
    nresults: usize,
    lists: &mut Vec<Vec<DmlTensor>>,
    tensor: impl Fn(&View) -> Result<DmlTensor, Failure>,
) -> Result<(), Failure> {
    for i in 0..nresults {
        let value = match returns.get(i) {
            None | Some(Ret::None) => NONE,
            Some(Ret::Scalar(s)) => from_scalar(*s),
            Some(Ret::Unsigned(bits)) => {
                DmlValue { tag: tag::UNSIGNED, len: 0, u: DmlPayload { integer: bits.cast_signed() } }
            }
            Some(Ret::Tensor(t)) => DmlValue { tag: tag::TENSOR, len: 0, u: DmlPayload { tensor: tensor(t)? } },
            Some(Ret::Tensors(list)) => {
                let list: Vec<_> = list.iter().map(&tensor).collect::<Result<_, _>>()?;
                let (len, tensors) = (list.len() as i64, list.as_ptr());
                lists.push(list);
                DmlValue { tag: tag::TENSORS, len, u: DmlPayload { tensors } }
            }
        };
        // SAFETY: the caller's promise; `i` is below `nresults`.
        unsafe { results.add(i).write(value) };
    }
    Ok(())
}

/// Checks that the plugin knows the tensor of a result: it must be one of the arguments, or one
/// that the host made. Its sizes and strides are not returned, because the plugin has them and the
/// pointers would dangle.
fn known(t: DmlTensor) -> Result<DmlTensor, Failure> {
    if t.handle.is_null() {
        return Err(Failure::new(Status::RuntimeError, "an operator returned a tensor that the host did not make"));
    }
    Ok(DmlTensor { sizes: std::ptr::null(), strides: std::ptr::null(), ..t })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CStr;

    #[test]
    fn a_schema_begins_with_the_name() {
        for i in 0..dml_operator_count() {
            // SAFETY: both are C strings.
            let (name, schema) =
                unsafe { (CStr::from_ptr(dml_operator_name(i)), CStr::from_ptr(dml_operator_schema(i))) };
            assert!(schema.to_bytes().starts_with(name.to_bytes()), "{schema:?}");
        }
        assert!(dml_operator_name(u32::MAX).is_null() && dml_operator_schema(u32::MAX).is_null());
    }

    #[test]
    fn a_call_of_no_operator_fails() {
        // SAFETY: nothing is read before the index is checked.
        let status = unsafe { dml_call(u32::MAX, 0, std::ptr::null(), 0, std::ptr::null(), std::ptr::null_mut(), 0) };
        assert_eq!(status, Status::RuntimeError as i32);
    }

    #[test]
    fn results_are_delivered_and_missing_ones_are_none() {
        let mut results = [from_scalar(dml_compute::Scalar::Bool(true)); 2];
        let returns = [Ret::Scalar(dml_compute::Scalar::Int(3))];
        // SAFETY: two places.
        unsafe { deliver(&returns, results.as_mut_ptr(), 2) }.expect("delivered");
        assert_eq!((results[0].tag, results[1].tag), (tag::INT, tag::NONE));
        // SAFETY: the tag says so.
        assert_eq!(unsafe { results[0].u.integer }, 3);
    }
}
