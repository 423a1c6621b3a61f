//! Writing through an index for each element: scatter and its kin.

use super::arguments::{
    at_least_1d, check_index, check_shapes, combine_of, destination, number_tensor, short, without,
};
use crate::movement::copy::apart;
use crate::operator::argument::{Out, TensorOrScalar};
use crate::operator::call::{Call, Scalar as Number};
use crate::operator::conversion::check_fits;
use crate::operator::error::Result;
use crate::operator::host;
use crate::primitives::indexed_access::{self, Action, Selector, Walk};
use crate::primitives::keyed_reduction::{self, Accumulation, Combine};
use crate::tensor::{DeviceKind, Tensor, overlap};
use crate::{check, operators};
use dml_kernel::DType;

operators! {
    scatter(self, dim, index, src, out) {
        "aten::scatter.src(Tensor self, int dim, Tensor index, Tensor src) -> Tensor",
        "aten::scatter_.src(Tensor(a!) self, int dim, Tensor index, Tensor src) -> Tensor(a!)",
        "aten::scatter.src_out(Tensor self, int dim, Tensor index, Tensor src, *, Tensor(a!) out) -> Tensor(a!)",
    }
    scatter(self, dim, index, value, out) {
        "aten::scatter.value(Tensor self, int dim, Tensor index, Scalar value) -> Tensor",
        "aten::scatter_.value(Tensor(a!) self, int dim, Tensor index, Scalar value) -> Tensor(a!)",
        "aten::scatter.value_out(Tensor self, int dim, Tensor index, Scalar value, *, Tensor(a!) out) -> Tensor(a!)",
    }
    scatter_named(self, dim, index, src, reduce, out) {
        "aten::scatter.reduce(Tensor self, int dim, Tensor index, Tensor src, *, str reduce) -> Tensor",
        "aten::scatter_.reduce(Tensor(a!) self, int dim, Tensor index, Tensor src, *, str reduce) -> Tensor(a!)",
        "aten::scatter.reduce_out(Tensor self, int dim, Tensor index, Tensor src, *, str reduce, Tensor(a!) out) -> Tensor(a!)",
    }
    scatter_named(self, dim, index, value, reduce, out) {
        "aten::scatter.value_reduce(Tensor self, int dim, Tensor index, Scalar value, *, str reduce) -> Tensor",
        "aten::scatter_.value_reduce(Tensor(a!) self, int dim, Tensor index, Scalar value, *, str reduce) -> Tensor(a!)",
        "aten::scatter.value_reduce_out(Tensor self, int dim, Tensor index, Scalar value, *, str reduce, Tensor(a!) out) -> Tensor(a!)",
    }
    scatter_add(self, dim, index, src, out) {
        "aten::scatter_add(Tensor self, int dim, Tensor index, Tensor src) -> Tensor",
        "aten::scatter_add_(Tensor(a!) self, int dim, Tensor index, Tensor src) -> Tensor(a!)",
        "aten::scatter_add.out(Tensor self, int dim, Tensor index, Tensor src, *, Tensor(a!) out) -> Tensor(a!)",
    }
    scatter_reduce(self, dim, index, src, reduce, include_self, out) {
        "aten::scatter_reduce.two(Tensor self, int dim, Tensor index, Tensor src, str reduce, *, bool include_self=True) -> Tensor",
        "aten::scatter_reduce_.two(Tensor(a!) self, int dim, Tensor index, Tensor src, str reduce, *, bool include_self=True) -> Tensor(a!)",
        "aten::scatter_reduce.two_out(Tensor self, int dim, Tensor index, Tensor src, str reduce, *, bool include_self=True, Tensor(a!) out) -> Tensor(a!)",
    }
}

/// Values replace.
fn scatter(call: &mut Call, t: &Tensor, dim: i64, index: &Tensor, src: TensorOrScalar, out: Out) -> Result<()> {
    let combine = call.host.deterministic().then_some(Combine::Last);
    run(call, t, dim, index, src, out, Combined { combine, include_self: true })
}

fn scatter_named(
    call: &mut Call,
    t: &Tensor,
    dim: i64,
    index: &Tensor,
    src: TensorOrScalar,
    reduce: Option<&str>,
    out: Out,
) -> Result<()> {
    let combine = match reduce {
        Some("add") => Some(Combine::Add),
        Some("multiply") => Some(Combine::Mul),
        _ => None,
    };
    check!(combine.is_some(), Runtime, "reduce argument must be either add or multiply.");
    run(call, t, dim, index, src, out, Combined { combine, include_self: true })
}

fn scatter_add(call: &mut Call, t: &Tensor, dim: i64, index: &Tensor, src: TensorOrScalar, out: Out) -> Result<()> {
    run(call, t, dim, index, src, out, Combined { combine: Some(Combine::Add), include_self: true })
}

#[allow(clippy::too_many_arguments)]
fn scatter_reduce(
    call: &mut Call,
    t: &Tensor,
    dim: i64,
    index: &Tensor,
    src: TensorOrScalar,
    reduce: Option<&str>,
    include_self: bool,
    out: Out,
) -> Result<()> {
    check!(
        t.dtype != DType::Bool || reduce != Some("mean"),
        NotImplemented,
        "\"scatter_gather_tensor_cpu_reduce_mean\" not implemented for 'Bool'"
    );
    let combine = Some(combine_of(reduce)?);
    run(call, t, dim, index, src, out, Combined { combine, include_self })
}

/// How values meet what is there, and each other.
struct Combined {
    /// In the order of the values; `None` if any may stay.
    combine: Option<Combine>,
    /// What is there counts.
    include_self: bool,
}

fn run(
    call: &mut Call,
    t: &Tensor,
    dim: i64,
    index: &Tensor,
    src: TensorOrScalar,
    out: Out,
    how: Combined,
) -> Result<()> {
    let dim = call.wrap_dim(dim, t.dim())?;
    check_index(call, index)?;
    let (src, number) = match src {
        TensorOrScalar::Scalar(x) => {
            if index.numel() > 0 {
                check_fits(x, t.dtype)?;
            }
            (None, x)
        }
        TensorOrScalar::Tensor(src) if src.place == DeviceKind::Cpu && src.dim() == 0 && index.dim() == 0 => {
            (None, host::read_number(&src)?)
        }
        TensorOrScalar::Tensor(src) => {
            call.check_place(&src)?;
            check!(t.dtype == src.dtype, Runtime, "{}(): Expected self.dtype to be equal to src.dtype", short(call));
            (Some(at_least_1d(&src)), Number::Int(0))
        }
    };
    let (shape, at) = (at_least_1d(t), at_least_1d(index));
    check_shapes(call, &shape, dim, &at, src.as_ref().or(Some(&at)))?;
    if let Out::Into(given) = out {
        // Before it is resized, too.
        overlap::check_internal(given)?;
    }
    let out = destination(call, t, out)?;
    if at.numel() > 0 {
        let dst = at_least_1d(&out);
        let at = apart(call, &dst, &at)?;
        let src = match src {
            Some(src) => Some(apart(call, &dst, &src)?),
            None if how.combine.is_some() => Some(number_tensor(call, t.dtype, number)?.expand(&at.sizes)),
            None => None,
        };
        write(call, &dst, dim, &at, src, number, how)?;
    }
    call.ret(out);
    Ok(())
}

/// Writes `src`, or the number where there is none.
fn write(
    call: &Call,
    dst: &Tensor,
    dim: usize,
    index: &Tensor,
    src: Option<Tensor>,
    number: Number,
    how: Combined,
) -> Result<()> {
    let sizes = index.sizes.as_slice();
    let (Some(combine), Some(src)) = (how.combine, &src) else {
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
            include_self: how.include_self,
            skip: None,
        },
    )
}
