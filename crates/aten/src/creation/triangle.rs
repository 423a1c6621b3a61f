//! The operators triu and tril.

use crate::operator::argument::Out;
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::operator::structured;
use crate::tensor::overlap;
use crate::{check, operators};
use dml_compute::creation::triangle::{Half, copy_half};
use dml_compute::view::View;

operators! {
    triangle(self, diagonal, out; Half::Upper).complex(Complex::Run(complex::run_as_bits)) {
        "aten::triu(Tensor self, SymInt diagonal=0) -> Tensor",
        "aten::triu_(Tensor(a!) self, SymInt diagonal=0) -> Tensor(a!)",
        "aten::triu.out(Tensor self, SymInt diagonal=0, *, Tensor(a!) out) -> Tensor(a!)",
    }
    triangle(self, diagonal, out; Half::Lower).complex(Complex::Run(complex::run_as_bits)) {
        "aten::tril(Tensor self, SymInt diagonal=0) -> Tensor",
        "aten::tril_(Tensor(a!) self, SymInt diagonal=0) -> Tensor(a!)",
        "aten::tril.out(Tensor self, SymInt diagonal=0, *, Tensor(a!) out) -> Tensor(a!)",
    }
}

fn triangle(call: &mut Call, t: &View, diagonal: i64, out: Out, half: Half) -> Result<()> {
    check!(
        t.dim() >= 2,
        Runtime,
        "{}: input tensor must have at least 2 dimensions",
        if half == Half::Upper { "triu" } else { "tril" }
    );
    let out = match out {
        Out::InPlace(t) => {
            overlap::check_internal(t)?;
            t.clone()
        }
        _ => structured::result(call, out.given(), t.dtype, &t.sizes)?,
    };
    if t.numel() > 0 {
        copy_half(call, t, &out, diagonal, half)?;
    }
    call.ret(out);
    Ok(())
}
