//! Writing through an index for each element: scatter and related operators.

use crate::indexing::arguments::{check_index, check_shapes, combine_of, destination, short};
use crate::movement::copies::without_overlap;
use crate::operator::argument::{Out, TensorOrScalar};
use crate::operator::call::Call;
use crate::operator::conversion::check_fits;
use crate::operator::error::Result;
use crate::tensor::overlap;
use crate::{check, operators};
use dml_compute::host;
use dml_compute::indexing::arguments::{at_least_1d, number_tensor};
use dml_compute::indexing::scatter::{Combined, write};
use dml_compute::primitives::combine::Combine;
use dml_compute::scalar::Scalar as Number;
use dml_compute::view::{Location, View};
use dml_kernel::DType;

operators! {
    scatter(self, dim, index, src, out).complex(Complex::Run(complex::by_parts)).runtime_index() {
        "aten::scatter.src(Tensor self, int dim, Tensor index, Tensor src) -> Tensor",
        "aten::scatter_.src(Tensor(a!) self, int dim, Tensor index, Tensor src) -> Tensor(a!)",
        "aten::scatter.src_out(Tensor self, int dim, Tensor index, Tensor src, *, Tensor(a!) out) -> Tensor(a!)",
    }
    scatter(self, dim, index, value, out).complex(Complex::Run(complex::by_parts)).runtime_index() {
        "aten::scatter.value(Tensor self, int dim, Tensor index, Scalar value) -> Tensor",
        "aten::scatter_.value(Tensor(a!) self, int dim, Tensor index, Scalar value) -> Tensor(a!)",
        "aten::scatter.value_out(Tensor self, int dim, Tensor index, Scalar value, *, Tensor(a!) out) -> Tensor(a!)",
    }
    scatter_named(self, dim, index, src, reduce, out).complex(Complex::Run(complex::by_parts)).runtime_index() {
        "aten::scatter.reduce(Tensor self, int dim, Tensor index, Tensor src, *, str reduce) -> Tensor",
        "aten::scatter_.reduce(Tensor(a!) self, int dim, Tensor index, Tensor src, *, str reduce) -> Tensor(a!)",
        "aten::scatter.reduce_out(Tensor self, int dim, Tensor index, Tensor src, *, str reduce, Tensor(a!) out) -> Tensor(a!)",
    }
    scatter_named(self, dim, index, value, reduce, out).complex(Complex::Run(complex::by_parts)).runtime_index() {
        "aten::scatter.value_reduce(Tensor self, int dim, Tensor index, Scalar value, *, str reduce) -> Tensor",
        "aten::scatter_.value_reduce(Tensor(a!) self, int dim, Tensor index, Scalar value, *, str reduce) -> Tensor(a!)",
        "aten::scatter.value_reduce_out(Tensor self, int dim, Tensor index, Scalar value, *, str reduce, Tensor(a!) out) -> Tensor(a!)",
    }
    scatter_add(self, dim, index, src, out).complex(Complex::Run(complex::by_parts)).runtime_index() {
        "aten::scatter_add(Tensor self, int dim, Tensor index, Tensor src) -> Tensor",
        "aten::scatter_add_(Tensor(a!) self, int dim, Tensor index, Tensor src) -> Tensor(a!)",
        "aten::scatter_add.out(Tensor self, int dim, Tensor index, Tensor src, *, Tensor(a!) out) -> Tensor(a!)",
    }
    scatter_reduce(self, dim, index, src, reduce, include_self, out).runtime_index() {
        "aten::scatter_reduce.two(Tensor self, int dim, Tensor index, Tensor src, str reduce, *, bool include_self=True) -> Tensor",
        "aten::scatter_reduce_.two(Tensor(a!) self, int dim, Tensor index, Tensor src, str reduce, *, bool include_self=True) -> Tensor(a!)",
        "aten::scatter_reduce.two_out(Tensor self, int dim, Tensor index, Tensor src, str reduce, *, bool include_self=True, Tensor(a!) out) -> Tensor(a!)",
    }
}

/// Values replace elements.
fn scatter(call: &mut Call, t: &View, dim: i64, index: &View, src: TensorOrScalar, out: Out) -> Result<()> {
    let combine = call.host.policy().deterministic().then_some(Combine::Last);
    run(call, t, dim, index, src, out, Combined { combine, include_self: true })
}

fn scatter_named(
    call: &mut Call,
    t: &View,
    dim: i64,
    index: &View,
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

fn scatter_add(call: &mut Call, t: &View, dim: i64, index: &View, src: TensorOrScalar, out: Out) -> Result<()> {
    run(call, t, dim, index, src, out, Combined { combine: Some(Combine::Add), include_self: true })
}

fn scatter_reduce(
    call: &mut Call,
    t: &View,
    dim: i64,
    index: &View,
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

fn run(call: &mut Call, t: &View, dim: i64, index: &View, src: TensorOrScalar, out: Out, how: Combined) -> Result<()> {
    let dim = call.wrap_dim(dim, t.dim())?;
    check_index(call, index)?;
    let (src, number) = match src {
        TensorOrScalar::Scalar(x) => {
            if index.numel() > 0 {
                check_fits(x, t.dtype)?;
            }
            (None, x)
        }
        TensorOrScalar::Tensor(src) if src.location == Location::Host && src.dim() == 0 && index.dim() == 0 => {
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
        // Also before the resize.
        overlap::check_internal(given)?;
    }
    let out = destination(call, t, out)?;
    if at.numel() > 0 {
        let dst = at_least_1d(&out);
        let at = without_overlap(call, &dst, &at)?;
        let src = match src {
            Some(src) => Some(without_overlap(call, &dst, &src)?),
            None if how.combine.is_some() => Some(number_tensor(call, t.dtype, number)?.expand(&at.sizes)),
            None => None,
        };
        write(call, &dst, dim, &at, src, number, how)?;
    }
    call.ret(out);
    Ok(())
}
