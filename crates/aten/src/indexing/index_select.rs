//! Reading and writing through an index for each slice along a dimension: index_select and related
//! operators.

use crate::indexing::arguments::{combine_of, destination, short, warn_if_expanded};
use crate::indexing::fill_value::check_value;
use crate::movement::copies::without_overlap;
use crate::operator::argument::{AnyTensor, Out, TensorOrScalar};
use crate::operator::call::Call;
use crate::operator::conversion::check_all_fit;
use crate::operator::error::{Error, Result};
use crate::operator::structured;
use crate::pointwise::operator::input;
use crate::tensor::overlap;
use crate::{check, operators};
use dml_compute::host;
use dml_compute::indexing::arguments::{at_least_1d, is_index};
use dml_compute::indexing::index_select::Slices;
use dml_compute::movement::copy::cast;
use dml_compute::pointwise::kernel::Input;
use dml_compute::primitives::combine::Combine;
use dml_compute::primitives::indexed_access::Action;
use dml_compute::scalar::Scalar as Number;
use dml_compute::view::{Dims, View};
use dml_kernel::DType;

operators! {
    index_select(self, dim, index, out).complex(Complex::Run(complex::run_as_bits)).float8(float8::run_as_bits) {
        hot "aten::index_select(Tensor self, int dim, Tensor index) -> Tensor",
        "aten::index_select.out(Tensor self, int dim, Tensor index, *, Tensor(a!) out) -> Tensor(a!)",
    }
    index_add(self, dim, index, source, alpha, out).complex(Complex::Run(complex::index_add)) {
        "aten::index_add(Tensor self, int dim, Tensor index, Tensor source, *, Scalar alpha=1) -> Tensor",
        "aten::index_add_(Tensor(a!) self, int dim, Tensor index, Tensor source, *, Scalar alpha=1) -> Tensor(a!)",
        "aten::index_add.out(Tensor self, int dim, Tensor index, Tensor source, *, Scalar alpha=1, Tensor(a!) out) -> Tensor(a!)",
    }
    index_copy(self, dim, index, source, out).complex(Complex::Run(complex::run_as_bits)) {
        "aten::index_copy(Tensor self, int dim, Tensor index, Tensor source) -> Tensor",
        "aten::index_copy_(Tensor(a!) self, int dim, Tensor index, Tensor source) -> Tensor(a!)",
        "aten::index_copy.out(Tensor self, int dim, Tensor index, Tensor source, *, Tensor(a!) out) -> Tensor(a!)",
    }
    index_reduce(self, dim, index, source, reduce, include_self, out) {
        "aten::index_reduce(Tensor self, int dim, Tensor index, Tensor source, str reduce, *, bool include_self=True) -> Tensor",
        "aten::index_reduce_(Tensor(a!) self, int dim, Tensor index, Tensor source, str reduce, *, bool include_self=True) -> Tensor(a!)",
        "aten::index_reduce.out(Tensor self, int dim, Tensor index, Tensor source, str reduce, *, bool include_self=True, Tensor(a!) out) -> Tensor(a!)",
    }
    index_fill(self, dim, index, value).complex(Complex::Run(complex::by_parts)) {
        "aten::index_fill_.int_Scalar(Tensor(a!) self, int dim, Tensor index, Scalar value) -> Tensor(a!)",
        "aten::index_fill_.int_Tensor(Tensor(a!) self, int dim, Tensor index, Tensor value) -> Tensor(a!)",
    }
}

fn index_select(call: &mut Call, t: &View, dim: i64, index: &View, out: Out) -> Result<()> {
    let dim = call.wrap_dim(dim, t.dim())?;
    check!(index.dim() <= 1, Index, "index_select(): Index is supposed to be a vector");
    check!(
        is_index(index.dtype),
        Runtime,
        "index_select(): Expected dtype int32 or int64 for index but got: {}",
        index.dtype
    );
    check!(
        t.dim() > 0 || index.numel() == 1,
        Runtime,
        "index_select(): Index to scalar can have only 1 value, got {} value(s)",
        index.numel()
    );
    if let Some(out) = out.given() {
        let given = out.dtype;
        check!(
            given == t.dtype,
            Runtime,
            "index_select(): self and result must have the same scalar type, but got {} and {given}",
            t.dtype
        );
        // Before the resize, as on the CPU.
        overlap::check_internal(out)?;
        overlap::check_none(out, &[t, index])?;
    }
    let (base, index) = (at_least_1d(t), at_least_1d(index));
    let mut sizes = base.sizes.clone();
    sizes[dim] = index.numel();
    let out = call.result(out.given(), t.dtype, if t.dim() == 0 { &[] } else { &sizes })?;
    let slices = Slices { dim, index: &index, negative: false };
    if t.dim() > 1 && t.numel() == 0 && index.numel() > 0 {
        // There is nothing to read, but indices are still checked.
        check!(t.sizes[dim] > 0, Runtime, "index_select(): self indexing axis dim should be positive");
        slices.numbers(call, t)?;
    }
    slices.run(call, &base, &sizes, &Action::Read(&at_least_1d(&out)))?;
    call.ret(out);
    Ok(())
}

/// Checks the arguments of an operator that writes slices; returns the dimension.
fn check_slices(call: &Call, t: &View, dim: i64, index: &View, source: &View) -> Result<usize> {
    let (name, copy) = (short(call).trim_end_matches('_'), short(call).starts_with("index_copy"));
    let dim = call.wrap_dim(dim, t.dim())?;
    check!(
        index.dim() <= 1,
        Index,
        "{name}_(): Index is supposed to be a vector, but got dim: {} with type: {} and size: {:?}",
        index.dim(),
        index.dtype,
        index.sizes.as_slice()
    );
    check!(
        if copy { index.dtype == DType::I64 } else { is_index(index.dtype) },
        Runtime,
        "{name}_(): Expected dtype {} for index but got: {}",
        if copy { "int64" } else { "int32/int64" },
        index.dtype
    );
    check!(
        t.dtype == source.dtype,
        Runtime,
        "{name}_(): self and source expected to have the same dtype, but got (self) {} and (source) {}",
        t.dtype,
        source.dtype
    );
    let (target, given) = (at_least_1d(t), at_least_1d(source));
    check!(
        !copy || t.dim() == 0 || source.dim() == 0 || t.dim() == source.dim(),
        Index,
        "{name}_(): When source and destination are not scalars, their dimensionality must match. Source \
         dimensionality ({}), destination dimensionality ({})",
        source.dim(),
        t.dim()
    );
    let along = if source.dim() == 0 { 1 } else { given.sizes.get(dim).copied().unwrap_or(1) };
    if index.numel() != along {
        // The CPU computes this size for its message, with an error for a missing dimension.
        call.size_of(source, dim)?;
        let message = format!(
            "{name}_(): Number of indices ({}) should be equal to source.size(dim): ({along}), for dim: {dim}",
            index.numel()
        );
        return Err(if copy { Error::Index(message) } else { Error::Runtime(message) });
    }
    let fits = source.dim() == 0 && target.sizes.iter().enumerate().all(|(d, &n)| d == dim || n == 1)
        || given.dim() == target.dim() && (0..target.dim()).all(|d| d == dim || target.sizes[d] == given.sizes[d]);
    check!(
        fits,
        Runtime,
        "{name}_(): source tensor shape must match self tensor shape, excluding the specified dimension. Got \
         self.shape = {:?} source.shape = {:?}",
        t.sizes.as_slice(),
        source.sizes.as_slice()
    );
    Ok(dim)
}

/// The operands of an operator on slices: the destination, the vector of indices and the source,
/// all at least one-dimensional.
fn slices_of(call: &Call, out: &View, index: &View, source: &View) -> Result<(View, View, View)> {
    let dst = at_least_1d(out);
    let index = without_overlap(call, &dst, &at_least_1d(index))?;
    let mut source = source.clone();
    if source.dim() < dst.dim() {
        let ones = Dims::from_elem(1, dst.dim());
        source = source.as_strided(&ones, &ones, 0);
    }
    let source = without_overlap(call, &dst, &source)?;
    Ok((dst, index, source))
}

fn index_add(call: &mut Call, t: &View, dim: i64, index: &View, source: &View, alpha: Number, out: Out) -> Result<()> {
    let dim = check_slices(call, t, dim, index, source)?;
    let out = destination(call, t, out)?;
    let (dst, index, source) = slices_of(call, &out, index, source)?;
    if t.dim() > 1 && t.numel() == 0 {
        // As on the CPU, nothing is added to an empty tensor, whatever the index.
        call.ret(out);
        return Ok(());
    }
    if alpha.to_f64() != 1.0 && source.numel() > 0 {
        check_all_fit(&[alpha], source.dtype)?;
    }
    Slices { dim, index: &index, negative: false }.add(call, &dst, &source, alpha)?;
    call.ret(out);
    Ok(())
}

fn index_reduce(
    call: &mut Call,
    t: &View,
    dim: i64,
    index: &View,
    source: &View,
    reduce: Option<&str>,
    include_self: bool,
    out: Out,
) -> Result<()> {
    check!(
        matches!(reduce, Some("prod" | "mean" | "amax" | "amin")),
        Runtime,
        "index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got {}.",
        reduce.unwrap_or("None")
    );
    let dim = check_slices(call, t, dim, index, source)?;
    // Slices of several elements are combined by operators that accept bools; a mean divides.
    let takes_bools = t.dim() > 1 && (reduce != Some("mean") || index.numel() == 0);
    check!(t.dtype != DType::Bool || takes_bools, NotImplemented, "\"index_reduce_func\" not implemented for 'Bool'");
    let out = destination(call, t, out)?;
    let (dst, index, source) = slices_of(call, &out, index, source)?;
    Slices { dim, index: &index, negative: false }.combine(call, &dst, &source, combine_of(reduce)?, include_self)?;
    call.ret(out);
    Ok(())
}

fn index_copy(call: &mut Call, t: &View, dim: i64, index: &View, source: &View, out: Out) -> Result<()> {
    call.wrap_dim(dim, t.dim())?;
    // The CPU checks its result before the other arguments.
    structured::check_given(out.given(), t.dtype)?;
    let dim = check_slices(call, t, dim, index, source)?;
    let out = destination(call, t, out)?;
    let (dst, index, source) = slices_of(call, &out, index, source)?;
    let slices = Slices { dim, index: &index, negative: false };
    if call.host.policy().deterministic() {
        slices.combine(call, &dst, &source, Combine::Last, true)?;
    } else {
        slices.run(call, &dst, &source.sizes, &Action::Write(&source))?;
    }
    call.ret(out);
    Ok(())
}

fn index_fill(call: &mut Call, out: &View, dim: i64, index: &View, value: TensorOrScalar) -> Result<()> {
    let dim = call.wrap_dim(dim, out.dim())?;
    check!(index.dtype == DType::I64, Index, "index_fill_(): Expected dtype int64 for index.");
    check!(index.dim() <= 1, Index, "Index has to be a vector/scalar");
    warn_if_expanded(call, out, "index_fill_");
    let dst = at_least_1d(out);
    let index = without_overlap(call, &dst, &at_least_1d(index))?;
    let mut sizes = dst.sizes.clone();
    sizes[dim] = index.numel();
    let slices = Slices { dim, index: &index, negative: true };
    let value = match value {
        TensorOrScalar::Scalar(x) => Input::Number(x, dst.dtype),
        TensorOrScalar::Tensor(AnyTensor(value)) => {
            check!(
                value.dim() == 0,
                Runtime,
                "index_fill_ only supports a 0-dimensional value tensor, but got tensor with {} dimension(s).",
                value.dim()
            );
            input(call, value)?
        }
    };
    check_value(call, &value, dst.dtype)?;
    match value {
        Input::Number(number, _) => slices.run(call, &dst, &sizes, &Action::Fill(host::bits(dst.dtype, number)))?,
        Input::Tensor(value) => {
            let value = cast(call, &without_overlap(call, &dst, &value)?, dst.dtype)?;
            slices.run(call, &dst, &sizes, &Action::Write(&value.expand(&sizes)))?;
        }
    }
    call.ret(out.clone());
    Ok(())
}
