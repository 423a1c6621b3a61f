//! Unsigned integers that order elements as `sort` does: NaN above every number, both zeros equal.
//!
//! A float's bits with the sign flipped, or all bits for a negative one, compare like the float (M. Herf, "Radix
//! tricks", 2001). All ones is left to NaN.

use super::operands::Operands;
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::pointwise::kernel::{self, Operand, Variant};
use crate::tensor::Tensor;
use dml_kernel::{DType, Pointer, Value};
use smallvec::SmallVec;

/// The dtype of the keys of a dtype's elements.
pub fn dtype_of(dtype: DType) -> DType {
    if dtype.bytes() == 8 { DType::U64 } else { DType::U32 }
}

/// Bits in which keys of a dtype's elements may differ, from the lowest.
pub fn bits(dtype: DType) -> u32 {
    if dtype == DType::Bool { 1 } else { 8 * dtype.bytes() as u32 }
}

/// The largest key of a dtype: of a float, NaN's.
pub fn largest(dtype: DType) -> u64 {
    u64::MAX >> (64 - bits(dtype))
}

/// The key of an element given by its bits (a load through [`DType::bits`]), as a u32 or u64.
pub fn of_bits(raw: Value<'_>, dtype: DType, descending: bool) -> Value<'_> {
    let scalar = dtype_of(dtype).compute();
    let raw = raw.cast(scalar);
    let (all, b) = (largest(dtype), raw.builder());
    let sign = (all >> 1) + 1;
    let key = match dtype {
        d if d.is_signed_integer() => raw ^ sign,
        d if d.is_float() => {
            let infinity = match d {
                DType::F16 => 0x7c00,
                DType::BF16 => 0x7f80,
                DType::F32 => 0x7f80_0000,
                _ => 0x7ff0_0000_0000_0000u64,
            };
            let magnitude = raw & (sign - 1);
            let negative = (raw & sign).ne(0) & magnitude.ne(0);
            let number = negative.select(raw ^ all, magnitude | sign);
            magnitude.gt(infinity).select(b.int(scalar, all), number)
        }
        _ => raw,
    };
    if descending { key ^ all } else { key }
}

/// The key of the element `at`; the pointer is of the dtype's bits.
pub fn load<'b>(elements: Pointer<'b>, dtype: DType, at: Value<'b>) -> Value<'b> {
    of_bits(elements.load(at), dtype, false)
}

/// The keys of a tensor's elements, contiguous.
pub fn of_tensor(call: &Call, t: &Tensor, descending: bool) -> Result<Tensor> {
    let (dtype, keys) = (t.dtype, call.empty(dtype_of(t.dtype), &t.sizes)?);
    let raw = Tensor { dtype: dtype.bits(), ..t.clone() };
    let variant = Variant::Of(dtype, descending);
    kernel::run_variant(call, "sort_key", variant, &[&keys], &[Operand::Tensor(&raw)], keys.dtype, &|_, v| {
        vec![of_bits(v[0], dtype, descending)]
    })?;
    Ok(keys)
}

/// The keys of the input's elements row by row, contiguous.
pub fn of_rows(call: &Call, o: &Operands, descending: bool) -> Result<Tensor> {
    let input = &o.tensors[0];
    of_tensor(call, &input.permute(&order(input, o.dim)), descending)
}

/// The order of dimensions in which rows along `dim` lie one after the other.
pub fn order(t: &Tensor, dim: usize) -> SmallVec<[usize; 6]> {
    (0..t.dim()).filter(|&d| d != dim).chain((t.dim() > 0).then_some(dim)).collect()
}

/// Lowest index in `0..n` (u32) for which `before` is false; it must be true up to there only.
pub fn partition_point<'b>(n: Value<'b>, before: impl FnOnce(Value<'b>) -> Value<'b>) -> Value<'b> {
    let b = n.builder();
    let (low, high) = (b.var(n.like(0.0)), b.var(n));
    b.while_(
        || low.get().lt(high.get()),
        || {
            let middle = low.get() + ((high.get() - low.get()) >> 1);
            b.if_else(before(middle), || low.set(middle + 1), || high.set(middle));
        },
    );
    low.get()
}
