//! Reading and writing through an index for each slice along a dimension: index_select and its kin.

use super::arguments::{at_least_1d, combine_of, destination, is_index, short, warn_if_expanded, without};
use super::fill_value::check_value;
use crate::movement::copy::{apart, cast};
use crate::operator::argument::{AnyTensor, Out, TensorOrScalar};
use crate::operator::call::{Call, Scalar as Number};
use crate::operator::conversion::check_all_fit;
use crate::operator::error::{Error, Result};
use crate::operator::{host, structured};
use crate::pointwise::kernel::{self, Input};
use crate::pointwise::operator::input;
use crate::primitives::indexed_access::{self, Action, Selector, Walk};
use crate::primitives::keyed_reduction::{self, Accumulation, Combine};
use crate::tensor::{Dims, Tensor, overlap};
use crate::{check, operators};
use dml_kernel::DType;

operators! {
    index_select(self, dim, index, out) {
        "aten::index_select(Tensor self, int dim, Tensor index) -> Tensor",
        "aten::index_select.out(Tensor self, int dim, Tensor index, *, Tensor(a!) out) -> Tensor(a!)",
    }
    index_add(self, dim, index, source, alpha, out) {
        "aten::index_add(Tensor self, int dim, Tensor index, Tensor source, *, Scalar alpha=1) -> Tensor",
        "aten::index_add_(Tensor(a!) self, int dim, Tensor index, Tensor source, *, Scalar alpha=1) -> Tensor(a!)",
        "aten::index_add.out(Tensor self, int dim, Tensor index, Tensor source, *, Scalar alpha=1, Tensor(a!) out) -> Tensor(a!)",
    }
    index_copy(self, dim, index, source, out) {
        "aten::index_copy(Tensor self, int dim, Tensor index, Tensor source) -> Tensor",
        "aten::index_copy_(Tensor(a!) self, int dim, Tensor index, Tensor source) -> Tensor(a!)",
        "aten::index_copy.out(Tensor self, int dim, Tensor index, Tensor source, *, Tensor(a!) out) -> Tensor(a!)",
    }
    index_reduce(self, dim, index, source, reduce, include_self, out) {
        "aten::index_reduce(Tensor self, int dim, Tensor index, Tensor source, str reduce, *, bool include_self=True) -> Tensor",
        "aten::index_reduce_(Tensor(a!) self, int dim, Tensor index, Tensor source, str reduce, *, bool include_self=True) -> Tensor(a!)",
        "aten::index_reduce.out(Tensor self, int dim, Tensor index, Tensor source, str reduce, *, bool include_self=True, Tensor(a!) out) -> Tensor(a!)",
    }
    index_fill(self, dim, index, value) {
        "aten::index_fill_.int_Scalar(Tensor(a!) self, int dim, Tensor index, Scalar value) -> Tensor(a!)",
        "aten::index_fill_.int_Tensor(Tensor(a!) self, int dim, Tensor index, Tensor value) -> Tensor(a!)",
    }
}

/// An index for each slice along a dimension.
pub struct Slices<'t> {
    /// The dimension.
    pub dim: usize,
    /// A row.
    pub index: &'t Tensor,
    /// Whether an index below 0 counts from the end.
    pub negative: bool,
}

impl Slices<'_> {
    /// Runs `action` on the slices of `t`; the other tensor has `sizes`.
    pub fn run(&self, call: &Call, t: &Tensor, sizes: &[i64], action: &Action) -> Result<()> {
        let mut strides = Dims::from_elem(0, sizes.len());
        strides[self.dim] = self.index.strides[0];
        let index = self.index.as_strided(sizes, &strides, 0);
        let selectors = [Selector { index, size: t.sizes[self.dim], stride: t.strides[self.dim], dim: self.dim }];
        let own = without(&t.strides, self.dim);
        let walk = Walk { sizes, base: t, strides: &own, selectors: &selectors, negative: self.negative };
        indexed_access::run(call, &walk, action)
    }

    /// The index as a row of u32 numbers of the slices of `t`; an index out of range is reported.
    fn numbers(&self, call: &Call, t: &Tensor) -> Result<Tensor> {
        let (n, size) = (self.index.numel(), t.sizes[self.dim]);
        let row = call.empty(DType::U32, &[n])?;
        let none = keyed_reduction::no_key(call.name, &[size])?;
        let selectors = [Selector { index: self.index.clone(), size, stride: 1, dim: self.dim }];
        let walk = Walk { sizes: &[n], base: t, strides: &[0], selectors: &selectors, negative: self.negative };
        indexed_access::run(call, &walk, &Action::Number { row: &row, none })?;
        Ok(row)
    }

    /// Combines the slices of `src` into those of `dst`.
    pub fn combine(&self, call: &Call, dst: &Tensor, src: &Tensor, combine: Combine, include_self: bool) -> Result<()> {
        let (n, d) = (self.index.numel(), self.dim);
        if n == 0 {
            return Ok(());
        }
        let row = self.numbers(call, dst)?;
        let rest = |of: &[i64]| -> Dims { of.iter().enumerate().filter(|&(i, _)| i != d).map(|(_, &x)| x).collect() };
        keyed_reduction::run(
            call,
            &Accumulation {
                dst,
                key_sizes: &[dst.sizes[d]],
                key_strides: &[dst.strides[d]],
                keys: &row,
                src,
                part_sizes: &[n],
                part_strides: &[src.strides[d]],
                slice_sizes: &rest(&src.sizes),
                dst_strides: &rest(&dst.strides),
                src_strides: &rest(&src.strides),
                combine,
                include_self,
                skip: None,
            },
        )
    }
}

fn index_select(call: &mut Call, t: &Tensor, dim: i64, index: &Tensor, out: Out) -> Result<()> {
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
        // Before it is resized, as on CPU.
        overlap::check_internal(out)?;
        overlap::check_none(out, &[t, index])?;
    }
    let (base, index) = (at_least_1d(t), at_least_1d(index));
    let mut sizes = base.sizes.clone();
    sizes[dim] = index.numel();
    let out = call.result(out.given(), t.dtype, if t.dim() == 0 { &[] } else { &sizes })?;
    let slices = Slices { dim, index: &index, negative: false };
    if t.dim() > 1 && t.numel() == 0 && index.numel() > 0 {
        // There is nothing to read, but an index may be wrong.
        check!(t.sizes[dim] > 0, Runtime, "index_select(): self indexing axis dim should be positive");
        slices.numbers(call, t)?;
    }
    slices.run(call, &base, &sizes, &Action::Read(&at_least_1d(&out)))?;
    call.ret(out);
    Ok(())
}

/// Checks the arguments of an operator that writes slices; yields the dimension.
fn check_slices(call: &Call, t: &Tensor, dim: i64, index: &Tensor, source: &Tensor) -> Result<usize> {
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
        // For its message the CPU asks for a dimension that is not there.
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

/// What an operator on slices works with: the destination, the index row and the source, all of one rank at least.
fn slices_of(call: &Call, out: &Tensor, index: &Tensor, source: &Tensor) -> Result<(Tensor, Tensor, Tensor)> {
    let dst = at_least_1d(out);
    let index = apart(call, &dst, &at_least_1d(index))?;
    let mut source = source.clone();
    if source.dim() < dst.dim() {
        let ones = Dims::from_elem(1, dst.dim());
        source = source.as_strided(&ones, &ones, 0);
    }
    let source = apart(call, &dst, &source)?;
    Ok((dst, index, source))
}

fn index_add(
    call: &mut Call,
    t: &Tensor,
    dim: i64,
    index: &Tensor,
    source: &Tensor,
    alpha: Number,
    out: Out,
) -> Result<()> {
    let dim = check_slices(call, t, dim, index, source)?;
    let out = destination(call, t, out)?;
    let (dst, index, mut source) = slices_of(call, &out, index, source)?;
    if t.dim() > 1 && t.numel() == 0 {
        // As on the CPU, nothing is added to nothing, wherever.
        call.ret(out);
        return Ok(());
    }
    if alpha.to_f64() != 1.0 && source.numel() > 0 {
        check_all_fit(&[alpha], source.dtype)?;
        let scaled = call.empty(source.dtype, &source.sizes)?;
        let inputs = [Input::Tensor(source.clone()), Input::Number(alpha, source.dtype)];
        let bool = source.dtype == DType::Bool;
        kernel::run(call, "index_add", &[&scaled], &inputs, source.dtype, |_, v| {
            vec![if bool { v[0] & v[1] } else { v[0] * v[1] }]
        })?;
        source = scaled;
    }
    Slices { dim, index: &index, negative: false }.combine(call, &dst, &source, Combine::Add, true)?;
    call.ret(out);
    Ok(())
}

#[allow(clippy::too_many_arguments)]
fn index_reduce(
    call: &mut Call,
    t: &Tensor,
    dim: i64,
    index: &Tensor,
    source: &Tensor,
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
    // Slices of several elements are combined by operators that take bools; a mean divides.
    let takes_bools = t.dim() > 1 && (reduce != Some("mean") || index.numel() == 0);
    check!(t.dtype != DType::Bool || takes_bools, NotImplemented, "\"index_reduce_func\" not implemented for 'Bool'");
    let out = destination(call, t, out)?;
    let (dst, index, source) = slices_of(call, &out, index, source)?;
    Slices { dim, index: &index, negative: false }.combine(call, &dst, &source, combine_of(reduce)?, include_self)?;
    call.ret(out);
    Ok(())
}

fn index_copy(call: &mut Call, t: &Tensor, dim: i64, index: &Tensor, source: &Tensor, out: Out) -> Result<()> {
    call.wrap_dim(dim, t.dim())?;
    // The CPU looks at its result before it looks at the rest.
    structured::check_given(out.given(), t.dtype)?;
    let dim = check_slices(call, t, dim, index, source)?;
    let out = destination(call, t, out)?;
    let (dst, index, source) = slices_of(call, &out, index, source)?;
    let slices = Slices { dim, index: &index, negative: false };
    if call.host.deterministic() {
        slices.combine(call, &dst, &source, Combine::Last, true)?;
    } else {
        slices.run(call, &dst, &source.sizes, &Action::Write(&source))?;
    }
    call.ret(out);
    Ok(())
}

fn index_fill(call: &mut Call, out: &Tensor, dim: i64, index: &Tensor, value: TensorOrScalar) -> Result<()> {
    let dim = call.wrap_dim(dim, out.dim())?;
    check!(index.dtype == DType::I64, Index, "index_fill_(): Expected dtype int64 for index.");
    check!(index.dim() <= 1, Index, "Index has to be a vector/scalar");
    warn_if_expanded(call, out, "index_fill_");
    let dst = at_least_1d(out);
    let index = apart(call, &dst, &at_least_1d(index))?;
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
            let value = cast(call, &apart(call, &dst, &value)?, dst.dtype)?;
            slices.run(call, &dst, &sizes, &Action::Write(&value.expand(&sizes)))?;
        }
    }
    call.ret(out.clone());
    Ok(())
}
