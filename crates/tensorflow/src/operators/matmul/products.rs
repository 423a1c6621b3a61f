//! Products of matrices and of vectors.

use crate::c_api::Attributes;
use crate::error::{Error, Result, code};
use crate::kernel::{Call, Operator};
use crate::operators::common::dtypes::{FIELDS, FLOATS, REALS_AND_I32};
use crate::operators::common::elementwise::{broadcast, compute};
use crate::operators::common::functions;
use crate::require;
use dml_compute::linear_algebra::cross;
use dml_compute::linear_algebra::matrices::{self, Update, adjoint, to_contiguous_matrices, transposed};
use dml_compute::matmul::product::Product;
use dml_compute::pointwise::function::Function;
use dml_compute::pointwise::{activation, unary};
use dml_compute::{Context, Dims, Scalar, View};
use dml_kernel::DType;

/// A matrix, or its transpose.
fn matrix(t: View, is_transposed: bool) -> View {
    if is_transposed { transposed(&t) } else { t }
}

/// Multiplies `[.., m, k]` and `[.., k, n]`, whose batches broadcast to that of `out`, which is
/// contiguous.
pub fn multiply(cx: &Context, a: &View, b: &View, out: &View) -> Result<()> {
    if out.numel() == 0 {
        return Ok(());
    }
    if a.size(-1) == 0 {
        return Ok(matrices::fill_with(cx, out, Scalar::Int(0))?);
    }
    let batch = matrices::batch_of(out);
    let [a, b] = [to_contiguous_matrices(cx, a, batch)?, to_contiguous_matrices(cx, b, batch)?];
    let out = matrices::flat(out);
    if out.dtype.is_complex() {
        return Ok(matrices::multiply(cx, [&a, &b], &out, Update::Overwrite)?);
    }
    Ok(Product::new(&a, &b).run(cx, &out)?)
}

/// The operands of a product of two matrices, as they are multiplied.
fn two_matrices(call: &Call, transposes: [bool; 2]) -> Result<[View; 2]> {
    let [a, b] = [call.input(0)?, call.input(1)?];
    require!(a.dim() == 2 && b.dim() == 2, "In[0] and In[1] of MatMul must be matrices: {:?}, {:?}", a.sizes, b.sizes);
    let [a, b] = [matrix(a, transposes[0]), matrix(b, transposes[1])];
    require!(
        a.sizes[1] == b.sizes[0],
        "Matrix size-incompatible: In[0]: {:?}, In[1]: {:?}",
        call.sizes(0)?,
        call.sizes(1)?
    );
    Ok([a, b])
}

fn transposes(attributes: &Attributes) -> Result<[bool; 2]> {
    Ok([attributes.bool("transpose_a")?, attributes.bool("transpose_b")?])
}

/// `MatMul`.
fn mat_mul(attributes: &Attributes) -> Result<impl Fn(&Call) -> Result<()> + use<>> {
    let transposes = transposes(attributes)?;
    Ok(move |call: &Call| {
        let [a, b] = two_matrices(call, transposes)?;
        let out = call.output(0, &[a.sizes[0], b.sizes[1]])?;
        multiply(&call.cx(), &a, &b, &out)
    })
}

/// The activation at the end of a fused product.
fn activation_named(name: &str) -> Result<&'static Function> {
    Ok(match name {
        "Relu" => &activation::RELU,
        "Relu6" => &functions::RELU6,
        "Elu" => &functions::ELU,
        "LeakyRelu" => &activation::LEAKY_RELU,
        "Tanh" => &unary::TANH,
        "Sigmoid" => &unary::SIGMOID,
        "GeluExact" => &activation::GELU,
        "GeluApproximate" => &activation::GELU_TANH,
        _ => return Err(Error::Unimplemented(format!("_FusedMatMul with {name}"))),
    })
}

/// `_FusedMatMul`: a product, a bias, and an activation.
fn fused_mat_mul(attributes: &Attributes) -> Result<impl Fn(&Call) -> Result<()> + use<>> {
    let transposes = transposes(attributes)?;
    let fused = attributes.strings("fused_ops")?;
    require!(
        fused.first().is_some_and(|name| name == "BiasAdd") && fused.len() <= 2,
        "Unsupported fusion in _FusedMatMul: {fused:?}"
    );
    let function = fused.get(1).map(|name| activation_named(name)).transpose()?;
    let slope = Scalar::Double(attributes.float("leakyrelu_alpha")?.into());
    Ok(move |call: &Call| {
        let [a, b] = two_matrices(call, transposes)?;
        let sizes = [a.sizes[0], b.sizes[1]];
        let bias = call.input(2)?;
        require!(
            bias.sizes[..] == sizes[1..],
            "the bias of _FusedMatMul is {:?} of a product of {:?}",
            bias.sizes,
            sizes
        );
        let out = call.output(0, &sizes)?;
        let cx = call.cx();
        let addend = Some((bias.expand(&sizes), Scalar::Int(1)));
        let alone = function.filter(|f| f.arguments.is_some_and(|arguments| arguments.len() == 1));
        Product { addend, then: alone.map(|function| (function.into(), &[][..])), ..Product::new(&a, &b) }
            .run(&cx, &out)?;
        match function {
            Some(function) if alone.is_none() => compute(&cx, function, &out, std::slice::from_ref(&out), &[slope]),
            _ => Ok(()),
        }
    })
}

/// `BatchMatMul` and its successors. `broadcasts`: batches do; else they are the same.
fn batch_mat_mul(name: &'static str, broadcasts: bool) -> Operator {
    Operator::new(name, move |attributes: &Attributes| {
        let adjoints = [attributes.bool("adj_x")?, attributes.bool("adj_y")?];
        Ok(move |call: &Call| {
            let [a, b] = [call.input(0)?, call.input(1)?];
            require!(a.dim() >= 2, "In[0] ndims must be >= 2: {}", a.dim());
            require!(b.dim() >= 2, "In[1] ndims must be >= 2: {}", b.dim());
            let turned = |t: View, is_adjoint: bool| if is_adjoint { adjoint(&t) } else { t };
            let [a, b] = [turned(a, adjoints[0]), turned(b, adjoints[1])];
            let batches = [&a, &b].map(|t| Dims::from_slice(matrices::batch_of(t)));
            require!(
                broadcasts || batches[0] == batches[1],
                "In[0] and In[1] must have compatible batch dimensions: {:?} vs. {:?}",
                batches[0],
                batches[1]
            );
            require!(
                a.size(-1) == b.size(-2),
                "Matrix size-incompatible: In[0]: {:?}, In[1]: {:?}",
                call.sizes(0)?,
                call.sizes(1)?
            );
            let batch = broadcast(call.operator(), &batches[0], &batches[1])?;
            let out = call.output(0, &matrices::sizes_of(&batch, &[a.size(-2), b.size(-1)]))?;
            multiply(&call.cx(), &a, &b, &out)
        })
    })
}

/// `Cross`, of vectors of three elements along the last dimension.
fn cross_product(call: &Call) -> Result<()> {
    let [a, b] = [call.input(0)?, call.input(1)?];
    require!(a.sizes == b.sizes, "Both inputs must be of same shape: {:?} vs. {:?}", a.sizes, b.sizes);
    require!(a.dim() >= 1, "input must be at least 1D, got {:?}", a.sizes);
    if a.size(-1) != 3 {
        let message = format!("Cross-products are only defined for 3-element vectors, not for {:?}", a.sizes);
        return Err(Error::TensorFlow { code: code::FAILED_PRECONDITION, message });
    }
    let out = call.output(0, &a.sizes)?;
    Ok(cross::cross(&call.cx(), &a, &b, a.dim() - 1, &out)?)
}

/// The same dtype.
fn same(dtype: DType) -> DType {
    dtype
}

/// The operators of this file.
pub fn operators() -> Vec<Operator> {
    vec![
        Operator::new("MatMul", mat_mul).of("T", FIELDS),
        Operator::new("_FusedMatMul", fused_mat_mul).of("T", FLOATS),
        Operator::plain("Cross", cross_product).of("T", REALS_AND_I32),
        batch_mat_mul("BatchMatMul", false).of("T", FIELDS),
        batch_mat_mul("BatchMatMulV2", true).of("T", FIELDS),
        batch_mat_mul("BatchMatMulV3", true).of("Ta", FIELDS).tied("Tb", "Ta", same).tied("Tout", "Ta", same),
    ]
}
