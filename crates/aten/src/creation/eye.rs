//! Identity matrices.

use crate::operator::argument::Out;
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::{check, operators};
use dml_compute::movement::copy::fill_with;
use dml_compute::scalar::Scalar;

operators! {
    square(n, out).complex(Complex::Run(complex::creation::of_reals)) {
        "aten::eye.out(SymInt n, *, Tensor(a!) out) -> Tensor(a!)",
    }
    eye(n, m, out).complex(Complex::Run(complex::creation::of_reals)) {
        "aten::eye.m_out(SymInt n, SymInt m, *, Tensor(a!) out) -> Tensor(a!)",
    }
}

fn square(call: &mut Call, n: i64, out: Out) -> Result<()> {
    eye(call, n, n, out)
}

fn eye(call: &mut Call, n: i64, m: i64, out: Out) -> Result<()> {
    check!(n >= 0, Runtime, "n must be greater or equal to 0, got {n}");
    check!(m >= 0, Runtime, "m must be greater or equal to 0, got {m}");
    let mut t = out.tensor()?.clone();
    if t.sizes.as_slice() != [n, m] {
        call.host.resize(&mut t, &[n, m], &[m.max(1), 1])?;
    }
    fill_with(call, &t, Scalar::Int(0))?;
    let diagonal = t.as_strided(&[n.min(m)], &[t.strides[0] + t.strides[1]], 0);
    fill_with(call, &diagonal, Scalar::Int(1))?;
    call.ret(t);
    Ok(())
}
