//! Reading and writing through one index tensor along one dimension: gather and scatter (an index for each element),
//! index_select and its kin (an index for each slice), take and put_ (an index over all elements).

use crate::check;
use crate::indexing::index::{is_index, number_tensor};
use crate::movement::copy::{as_contiguous, contiguous, device_copy};
use crate::operator::call::{Call, Scalar as Number};
use crate::operator::error::{Error, Result};
use crate::operator::host;
use crate::operator::{Operator, op};
use crate::pointwise::elementwise::{self, Out};
use crate::pointwise::kernel::{self, Input};
use crate::primitives::indexed_access::{self, Action, Selector, Walk};
use crate::primitives::keyed_reduction::{self, Accumulation, Combine};
use crate::tensor::overlap;
use crate::tensor::{Dims, Place, Tensor};
use crate::{Arg, overloads};
use dml_kernel::DType;

/// This family's overloads.
pub const OPERATORS: &[&[Operator]] = &[
    &[
        op("aten::gather", |c| gather(c, None)),
        op("aten::gather.out", |c| gather(c, Some(4))),
        op("aten::index_select", |c| index_select(c, None)),
        op("aten::index_select.out", |c| index_select(c, Some(3))),
        op("aten::take", |c| take(c, None)),
        op("aten::take.out", |c| take(c, Some(2))),
        op("aten::put_", put),
        op("aten::index_fill_.int_Scalar", index_fill),
        op("aten::index_fill_.int_Tensor", index_fill),
    ],
    &overloads!(
        |c: &mut Call, o| scatter(c, o, Mode::Plain),
        "aten::scatter.src", "aten::scatter_.src", "aten::scatter.src_out" @ 4
    ),
    &overloads!(
        |c: &mut Call, o| scatter(c, o, Mode::Plain),
        "aten::scatter.value", "aten::scatter_.value", "aten::scatter.value_out" @ 4
    ),
    &overloads!(
        |c: &mut Call, o| scatter(c, o, Mode::Named),
        "aten::scatter.reduce", "aten::scatter_.reduce", "aten::scatter.reduce_out" @ 5
    ),
    &overloads!(
        |c: &mut Call, o| scatter(c, o, Mode::Named),
        "aten::scatter.value_reduce", "aten::scatter_.value_reduce", "aten::scatter.value_reduce_out" @ 5
    ),
    &overloads!(
        |c: &mut Call, o| scatter(c, o, Mode::Add),
        "aten::scatter_add", "aten::scatter_add_", "aten::scatter_add.out" @ 4
    ),
    &overloads!(
        |c: &mut Call, o| scatter(c, o, Mode::Reduce),
        "aten::scatter_reduce.two", "aten::scatter_reduce_.two", "aten::scatter_reduce.two_out" @ 6
    ),
    &overloads!(index_add, "aten::index_add", "aten::index_add_", "aten::index_add.out" @ 5),
    &overloads!(index_copy, "aten::index_copy", "aten::index_copy_", "aten::index_copy.out" @ 4),
    &overloads!(index_reduce, "aten::index_reduce", "aten::index_reduce_", "aten::index_reduce.out" @ 6),
];

/// A 0-dim tensor as a row of one.
fn at_least_1d(t: &Tensor) -> Tensor {
    if t.dim() == 0 { t.as_strided(&[1], &[1], 0) } else { t.clone() }
}

/// The operator's name without its namespace and overload.
fn short(call: &Call) -> &'static str {
    let name = call.name.strip_prefix("aten::").unwrap_or(call.name);
    name.split('.').next().unwrap_or(name)
}

/// The tensor that an operator changes: a copy of argument 0, argument 0 itself, or `out=` with its contents.
fn destination(call: &Call, out: Out) -> Result<Tensor> {
    let t = call.tensor(0)?;
    match out {
        Out::New => contiguous(call, t),
        Out::InPlace => {
            elementwise::check_no_self_overlap(t)?;
            Ok(t.clone())
        }
        Out::Arg(i) => {
            let given = call.tensor(i)?.dtype;
            check!(given == t.dtype, Runtime, "Expected out tensor to have dtype {}, but got {given} instead", t.dtype);
            let out = call.out(Some(i), t.dtype, &t.sizes)?;
            elementwise::check_no_self_overlap(&out)?;
            if out.data != t.data || out.strides != t.strides {
                overlap::check_none(&out, &[t])?;
                device_copy(call, t, &out)?;
            }
            Ok(out)
        }
    }
}

fn check_index(call: &Call, index: &Tensor) -> Result<()> {
    check!(
        is_index(index.dtype) || index.numel() == 0,
        Runtime,
        "{}(): Expected dtype int32/int64 for index",
        short(call)
    );
    Ok(())
}

/// The index tensor of a gather or scatter must fit the tensor it points into, and the tensor of the values.
fn check_shapes(call: &Call, t: &Tensor, dim: usize, index: &Tensor, src: Option<&Tensor>) -> Result<()> {
    if index.numel() == 0 {
        return Ok(());
    }
    let name = if src.is_some() { "self" } else { "input" };
    check!(index.dim() == t.dim(), Runtime, "Index tensor must have the same number of dimensions as {name} tensor");
    let inside = (0..t.dim()).all(|d| d == dim || index.sizes[d] <= t.sizes[d]);
    let Some(src) = src else {
        check!(
            inside,
            Runtime,
            "Size does not match at dimension {} expected index {:?} to be no larger than self {:?} apart from \
             dimension {dim}",
            (0..t.dim()).find(|&d| d != dim && index.sizes[d] > t.sizes[d]).unwrap_or(0),
            index.sizes.as_slice(),
            t.sizes.as_slice()
        );
        return Ok(());
    };
    check!(index.dim() == src.dim(), Runtime, "Index tensor must have the same number of dimensions as src tensor");
    check!(
        inside && (0..src.dim()).all(|d| index.sizes[d] <= src.sizes[d]),
        Runtime,
        "{}(): Expected index {:?} to be no larger than self {:?} apart from dimension {dim} and to be no larger \
         than src {:?}",
        short(call),
        index.sizes.as_slice(),
        t.sizes.as_slice(),
        src.sizes.as_slice()
    );
    Ok(())
}

/// Strides with those along `dim` left to an index tensor.
fn without(strides: &[i64], dim: usize) -> Dims {
    strides.iter().enumerate().map(|(d, &s)| if d == dim { 0 } else { s }).collect()
}

/// `gather(self, dim, index, *, sparse_grad[, out])`
fn gather(call: &mut Call, out: Option<usize>) -> Result<()> {
    let (t, index) = (call.tensor(0)?, call.tensor(2)?);
    let dim = call.wrap_dim(call.int(1)?, t.dim())?;
    check_index(call, index)?;
    let (base, at) = (at_least_1d(t), at_least_1d(index));
    check_shapes(call, &base, dim, &at, None)?;
    if let Some(i) = out {
        let given = call.tensor(i)?.dtype;
        check!(given == t.dtype, Runtime, "gather(): Expected out to have dtype {}, but got {given}", t.dtype);
    }
    let out = call.out(out, t.dtype, &index.sizes)?;
    elementwise::check_no_self_overlap(&out)?;
    overlap::check_none(&out, &[t, index])?;
    if at.numel() > 0 {
        let selectors = [Selector { size: base.sizes[dim], stride: base.strides[dim], dim, index: at.clone() }];
        let strides = without(&base.strides, dim);
        let walk = Walk { sizes: &at.sizes, base: &base, strides: &strides, selectors: &selectors, negative: false };
        indexed_access::run(call, &walk, &Action::Read(&at_least_1d(&out)))?;
    }
    call.ret(out);
    Ok(())
}

/// Which overload of scatter it is, and so where the way of combining is found.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Mode {
    /// Values replace.
    Plain,
    /// `reduce` is "add" or "multiply".
    Named,
    /// Values are added.
    Add,
    /// `reduce` and `include_self` as in `scatter_reduce`.
    Reduce,
}

fn combine_of(name: Option<&str>) -> Result<Combine> {
    Ok(match name {
        Some("sum") => Combine::Add,
        Some("prod") => Combine::Mul,
        Some("mean") => Combine::Mean,
        Some("amax") => Combine::Max,
        Some("amin") => Combine::Min,
        other => {
            let other = other.unwrap_or("None");
            check!(false, Runtime, "reduce argument must be either sum, prod, mean, amax or amin, got {other}");
            Combine::Add
        }
    })
}

/// `scatter(self, dim, index, src or value, ..)` and its kin.
fn scatter(call: &mut Call, out: Out, mode: Mode) -> Result<()> {
    let (t, index) = (call.tensor(0)?, call.tensor(2)?);
    let dim = call.wrap_dim(call.int(1)?, t.dim())?;
    check_index(call, index)?;
    let (combine, include_self) = match mode {
        Mode::Plain => (call.host.deterministic().then_some(Combine::Last), true),
        Mode::Add => (Some(Combine::Add), true),
        Mode::Named => match call.opt_str(4)? {
            Some("add") => (Some(Combine::Add), true),
            Some("multiply") => (Some(Combine::Mul), true),
            _ => {
                check!(false, Runtime, "reduce argument must be either add or multiply.");
                (None, true)
            }
        },
        Mode::Reduce => (Some(combine_of(call.opt_str(4)?)?), call.flag(5)?),
    };
    let number = match &call.args[3] {
        Arg::Scalar(x) => Some(*x),
        Arg::Tensor(src) if src.place == Place::Cpu && src.dim() == 0 && index.dim() == 0 => {
            Some(host::read_number(src)?)
        }
        _ => None,
    };
    let src = match number {
        Some(_) => None,
        None => {
            let src = call.tensor(3)?;
            check!(t.dtype == src.dtype, Runtime, "{}(): Expected self.dtype to be equal to src.dtype", short(call));
            Some(at_least_1d(src))
        }
    };
    let (shape, at) = (at_least_1d(t), at_least_1d(index));
    check_shapes(call, &shape, dim, &at, src.as_ref().or(Some(&at)))?;
    let out = destination(call, out)?;
    if at.numel() > 0 {
        let dst = at_least_1d(&out);
        let at = overlap::apart(call, &dst, &at)?;
        let src = match (src, number) {
            (Some(src), _) => Some(overlap::apart(call, &dst, &src)?),
            (None, Some(x)) if combine.is_some() => Some(number_tensor(call, t.dtype, x)?.expand(&at.sizes)),
            _ => None,
        };
        scatter_into(call, &dst, dim, &at, src, number.unwrap_or(Number::Int(0)), combine, include_self)?;
    }
    call.ret(out);
    Ok(())
}

#[allow(clippy::too_many_arguments)]
fn scatter_into(
    call: &Call,
    dst: &Tensor,
    dim: usize,
    index: &Tensor,
    src: Option<Tensor>,
    number: Number,
    combine: Option<Combine>,
    include_self: bool,
) -> Result<()> {
    let sizes = index.sizes.as_slice();
    let (Some(combine), Some(src)) = (combine, &src) else {
        let selectors = [Selector { size: dst.sizes[dim], stride: dst.strides[dim], dim, index: index.clone() }];
        let strides = without(&dst.strides, dim);
        let walk = Walk { sizes, base: dst, strides: &strides, selectors: &selectors, negative: false };
        return match &src {
            Some(src) => indexed_access::run(call, &walk, &Action::Write(&src.as_strided(sizes, &src.strides, 0))),
            None => indexed_access::run(call, &walk, &Action::Fill(host::bits(dst.dtype, number))),
        };
    };
    let numbering = Tensor::contiguous_strides(&dst.sizes);
    let selectors = [Selector { size: dst.sizes[dim], stride: numbering[dim], dim, index: index.clone() }];
    let strides = without(&numbering, dim);
    let row = call.empty(DType::U32, &[index.numel()])?;
    let none = keyed_reduction::no_key(call.name, &dst.sizes)?;
    let walk = Walk { sizes, base: dst, strides: &strides, selectors: &selectors, negative: false };
    indexed_access::run(call, &walk, &Action::Number { row: &row, none })?;
    keyed_reduction::run(
        call,
        &Accumulation {
            dst,
            key_sizes: &dst.sizes,
            key_strides: &dst.strides,
            keys: &row,
            src,
            part_sizes: sizes,
            part_strides: &src.strides,
            slice_sizes: &[],
            dst_strides: &[],
            src_strides: &[],
            combine,
            include_self,
            skip: None,
        },
    )
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

    /// Combines the slices of `src` into those of `dst`.
    fn combine(&self, call: &Call, dst: &Tensor, src: &Tensor, combine: Combine, include_self: bool) -> Result<()> {
        let n = self.index.numel();
        if n == 0 {
            return Ok(());
        }
        let d = self.dim;
        let row = call.empty(DType::U32, &[n])?;
        let none = keyed_reduction::no_key(call.name, &[dst.sizes[d]])?;
        let selectors = [Selector { index: self.index.clone(), size: dst.sizes[d], stride: 1, dim: d }];
        let walk = Walk { sizes: &[n], base: dst, strides: &[0], selectors: &selectors, negative: self.negative };
        indexed_access::run(call, &walk, &Action::Number { row: &row, none })?;
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

/// `index_select(self, dim, index[, out])`
fn index_select(call: &mut Call, out: Option<usize>) -> Result<()> {
    let (t, index) = (call.tensor(0)?, call.tensor(2)?);
    let dim = call.wrap_dim(call.int(1)?, t.dim())?;
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
    if let Some(i) = out {
        let given = call.tensor(i)?.dtype;
        check!(
            given == t.dtype,
            Runtime,
            "index_select(): self and result must have the same scalar type, but got {} and {given}",
            t.dtype
        );
    }
    let (base, index) = (at_least_1d(t), at_least_1d(index));
    let mut sizes = base.sizes.clone();
    sizes[dim] = index.numel();
    let out = call.out(out, t.dtype, if t.dim() == 0 { &[] } else { &sizes })?;
    elementwise::check_no_self_overlap(&out)?;
    overlap::check_none(&out, &[t, &index])?;
    let slices = Slices { dim, index: &index, negative: false };
    slices.run(call, &base, &sizes, &Action::Read(&at_least_1d(&out)))?;
    call.ret(out);
    Ok(())
}

/// Checks the arguments `(self, dim, index, source)` of an operator that writes slices; yields the dimension.
fn check_slices(call: &Call) -> Result<usize> {
    let (t, index, source) = (call.tensor(0)?, call.tensor(2)?, call.tensor(3)?);
    let (name, copy) = (short(call).trim_end_matches('_'), short(call).starts_with("index_copy"));
    let dim = call.wrap_dim(call.int(1)?, t.dim())?;
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
fn slices_of(call: &Call, out: &Tensor) -> Result<(Tensor, Tensor, Tensor)> {
    let dst = at_least_1d(out);
    let index = overlap::apart(call, &dst, &at_least_1d(call.tensor(2)?))?;
    let mut source = call.tensor(3)?.clone();
    if source.dim() < dst.dim() {
        let ones = Dims::from_elem(1, dst.dim());
        source = source.as_strided(&ones, &ones, 0);
    }
    let source = overlap::apart(call, &dst, &source)?;
    Ok((dst, index, source))
}

/// `index_add(self, dim, index, source, *, alpha[, out])`
fn index_add(call: &mut Call, out: Out) -> Result<()> {
    let dim = check_slices(call)?;
    let alpha = call.scalar(4)?;
    let out = destination(call, out)?;
    let (dst, index, mut source) = slices_of(call, &out)?;
    if alpha.to_f64() != 1.0 && source.numel() > 0 {
        let scaled = call.empty(source.dtype, &source.sizes)?;
        let inputs = [Input::Tensor(source.clone()), Input::Number(alpha, source.dtype)];
        let bool = source.dtype == DType::Bool;
        kernel::run(call, "index_add", 0, &[&scaled], &inputs, source.dtype, |_, v| {
            vec![if bool { v[0] & v[1] } else { v[0] * v[1] }]
        })?;
        source = scaled;
    }
    Slices { dim, index: &index, negative: false }.combine(call, &dst, &source, Combine::Add, true)?;
    call.ret(out);
    Ok(())
}

/// `index_reduce(self, dim, index, source, reduce, *, include_self[, out])`
fn index_reduce(call: &mut Call, out: Out) -> Result<()> {
    let reduce = call.opt_str(4)?;
    check!(
        matches!(reduce, Some("prod" | "mean" | "amax" | "amin")),
        Runtime,
        "index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got {}.",
        reduce.unwrap_or("None")
    );
    let dim = check_slices(call)?;
    let include_self = call.flag(5)?;
    let out = destination(call, out)?;
    let (dst, index, source) = slices_of(call, &out)?;
    Slices { dim, index: &index, negative: false }.combine(call, &dst, &source, combine_of(reduce)?, include_self)?;
    call.ret(out);
    Ok(())
}

/// `index_copy(self, dim, index, source[, out])`
fn index_copy(call: &mut Call, out: Out) -> Result<()> {
    let dim = check_slices(call)?;
    let out = destination(call, out)?;
    let (dst, index, source) = slices_of(call, &out)?;
    let slices = Slices { dim, index: &index, negative: false };
    if call.host.deterministic() {
        slices.combine(call, &dst, &source, Combine::Last, true)?;
    } else {
        slices.run(call, &dst, &source.sizes, &Action::Write(&source))?;
    }
    call.ret(out);
    Ok(())
}

/// `index_fill_(self, dim, index, value)`
fn index_fill(call: &mut Call) -> Result<()> {
    let (out, index) = (call.tensor(0)?.clone(), call.tensor(2)?);
    let dim = call.wrap_dim(call.int(1)?, out.dim())?;
    check!(index.dtype == DType::I64, Index, "index_fill_(): Expected dtype int64 for index.");
    check!(index.dim() <= 1, Index, "Index has to be a vector/scalar");
    overlap::warn_if_expanded(call, &out, "index_fill_");
    let dst = at_least_1d(&out);
    let index = overlap::apart(call, &dst, &at_least_1d(index))?;
    let mut sizes = dst.sizes.clone();
    sizes[dim] = index.numel();
    let slices = Slices { dim, index: &index, negative: true };
    let number = match &call.args[3] {
        Arg::Scalar(x) => Some(*x),
        _ => {
            let value = call.any_tensor(3)?;
            check!(
                value.dim() == 0,
                Runtime,
                "index_fill_ only supports a 0-dimensional value tensor, but got tensor with {} dimension(s).",
                value.dim()
            );
            if value.place == Place::Cpu { Some(host::read_number(value)?) } else { None }
        }
    };
    match number {
        Some(x) => slices.run(call, &dst, &sizes, &Action::Fill(host::bits(dst.dtype, x)))?,
        None => {
            let value = crate::movement::copy::cast(call, &overlap::apart(call, &dst, call.tensor(3)?)?, dst.dtype)?;
            slices.run(call, &dst, &sizes, &Action::Write(&value.expand(&sizes)))?;
        }
    }
    call.ret(out);
    Ok(())
}

/// `take(self, index[, out])`: an index counts elements in row-major order.
fn take(call: &mut Call, out: Option<usize>) -> Result<()> {
    let (t, index) = (call.tensor(0)?, call.tensor(1)?);
    check!(index.dtype == DType::I64, Runtime, "take(): Expected a long tensor for index, but got {}", index.dtype);
    if let Some(i) = out {
        let given = call.tensor(i)?.dtype;
        check!(
            given == t.dtype,
            Index,
            "take(): self and out expected to have the same dtype, but got self.dtype = {} and out.dtype = {given}",
            t.dtype
        );
    }
    check!(t.numel() > 0 || index.numel() == 0, Index, "take(): tried to take from an empty tensor");
    let out = call.out(out, t.dtype, &index.sizes)?;
    elementwise::check_no_self_overlap(&out)?;
    overlap::check_none(&out, &[t, index])?;
    let base = as_contiguous(call, t)?;
    let selectors = [Selector { index: index.clone(), size: t.numel(), stride: 1, dim: 0 }];
    let own = Dims::from_elem(0, index.dim());
    let walk = Walk { sizes: &index.sizes, base: &base, strides: &own, selectors: &selectors, negative: true };
    indexed_access::run(call, &walk, &Action::Read(&out))?;
    call.ret(out);
    Ok(())
}

/// `put_(self, index, source, accumulate)`: the counterpart of take.
fn put(call: &mut Call) -> Result<()> {
    let (out, index, source) = (call.tensor(0)?.clone(), call.tensor(1)?, call.tensor(2)?);
    let accumulate = call.flag(3)?;
    check!(index.dtype == DType::I64, Runtime, "put_(): Expected a long tensor for index, but got {}", index.dtype);
    check!(
        out.dtype == source.dtype,
        Index,
        "put_(): self and source expected to have the same dtype, but got self.dtype = {} and source.dtype = {}",
        out.dtype,
        source.dtype
    );
    check!(
        source.numel() == index.numel(),
        Index,
        "put_(): Expected source and index to have the same number of elements, but got source.numel() = {}, \
         index.numel() = {}",
        source.numel(),
        index.numel()
    );
    check!(out.numel() > 0 || source.numel() == 0, Index, "put_(): Tried to put elements into an empty tensor");
    elementwise::check_no_self_overlap(&out)?;
    let n = index.numel();
    if n > 0 {
        let index = as_contiguous(call, &overlap::apart(call, &out, index)?)?.as_strided(&[n], &[1], 0);
        let source = as_contiguous(call, &overlap::apart(call, &out, source)?)?.as_strided(&[n], &[1], 0);
        // As one row, and back if it is not one.
        let dense = as_contiguous(call, &out)?;
        let row = dense.as_strided(&[dense.numel()], &[1], 0);
        let slices = Slices { dim: 0, index: &index, negative: true };
        if accumulate || call.host.deterministic() {
            let combine = if accumulate { Combine::Add } else { Combine::Last };
            slices.combine(call, &row, &source, combine, true)?;
        } else {
            slices.run(call, &row, &[n], &Action::Write(&source))?;
        }
        if dense.data != out.data {
            device_copy(call, &dense, &out)?;
        }
    }
    call.ret(out);
    Ok(())
}
