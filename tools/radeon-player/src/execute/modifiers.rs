//! Modifiers that an encoding has room for and an instruction has not, or that are not carried out:
//! an error, since results without them would be wrong in silence.

use super::{Group, Outcome, Trap, wave::Wave};
use crate::fault::FaultKind;
use crate::isa::instruction::{Encoding, Instruction, Operand};

/// A modifier that would be ignored.
#[must_use]
pub fn ignored(it: &Instruction) -> Option<&'static str> {
    if !matches!(it.encoding, Encoding::Vop1 | Encoding::Vop2 | Encoding::Vopc | Encoding::Vop3) {
        return None;
    }
    let used = |k: usize| it.source[k] != Operand::None;
    let signs = it.negate | it.absolute;
    let is_changed = |k: usize| signs >> k & 1 != 0 && used(k) && !takes_signs(it.name, k);
    if (0..3).any(is_changed) {
        return Some("a sign of an operand");
    }
    let unclamped = ["v_cndmask", "v_mbcnt", "v_mad_u64", "v_mad_i64", "v_div_scale", "v_cvt_pk_f32_"];
    if it.clamp && (unclamped.iter().any(|start| it.name.starts_with(start)) || it.name.contains("_co_")) {
        return Some("clamp");
    }
    if it.scale != 0 && !is_scaled(it.name) {
        return Some("a factor of the result");
    }
    let chosen = |k: usize| it.high >> k & 1 != 0 && used(k) && !takes_halves(it, it.signature, k);
    if (0..3).any(chosen) || it.high >> 3 & 1 != 0 && !takes_halves(it, it.results, 0) {
        return Some("a half of a register");
    }
    None
}

/// Whether the handler of an instruction changes the sign of source `k`.
fn takes_signs(name: &str, k: usize) -> bool {
    let is_float = ["_f16", "_f32", "_f64", "_bf16"].iter().any(|part| name.contains(part));
    let of_integer = ["v_cvt_f32_i", "v_cvt_f32_u", "v_cvt_f64_i", "v_cvt_f64_u", "v_cvt_f16_i", "v_cvt_f16_u"];
    let of_small = ["v_cvt_off_f32_i4", "v_cvt_f32_fp8", "v_cvt_f32_bf8", "v_cvt_pk_f32_", "v_pack_b32_f16"];
    if of_integer.iter().chain(&of_small).any(|start| name.starts_with(start)) {
        return false;
    }
    // These have whole numbers beside the float.
    let second = ["v_ldexp", "v_cmp_class", "v_cmpx_class", "v_cvt_pk_u8_f32", "v_cvt_sr_"];
    if k > 0 && second.iter().any(|start| name.starts_with(start)) {
        return false;
    }
    is_float || name == "v_cndmask_b32"
}

/// Whether the handler multiplies the result: that of floats, but for conversions from them.
fn is_scaled(name: &str) -> bool {
    let is_float = ["_f16", "_f32", "_f64"].iter().any(|part| name.contains(part));
    let others = ["v_cmp", "v_cvt_i", "v_cvt_u", "v_cvt_pk", "v_cvt_norm", "v_cvt_floor", "v_cvt_nearest", "v_cvt_flr"];
    let more = ["v_cvt_rpi", "v_cvt_sr", "v_frexp_exp", "v_div_scale", "v_pack"];
    is_float && !others.iter().chain(&more).any(|start| name.starts_with(start))
}

/// Whether the handler looks at which half an operand is, or uses the bit for something else.
fn takes_halves(it: &Instruction, types: &str, k: usize) -> bool {
    let others = ["v_permlane", "v_cvt_f32_fp8", "v_cvt_f32_bf8", "v_cvt_pk_f32_", "v_cvt_pk_fp8", "v_cvt_pk_bf8"];
    types.as_bytes().get(k) == Some(&b'h')
        || others.iter().any(|start| it.name.starts_with(start))
        || it.name.starts_with("v_cvt_sr_")
        || it.name.contains("dot2")
}

/// What is carried out of an instruction that has such a modifier.
pub fn refuse<const N: usize>(_: &mut Wave<N>, it: &Instruction, _: &mut Group) -> Outcome {
    let what = ignored(it).unwrap_or("a modifier");
    Err(Trap::new(FaultKind::Other(format!("the player lacks {what} in this instruction"))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn instruction(name: &'static str, signature: &'static str) -> Instruction {
        let source = [Operand::Vector(1), Operand::Vector(2), Operand::None, Operand::None];
        let (encoding, to) = (Encoding::Vop3, Operand::Vector(0));
        Instruction { name, encoding, signature, results: &signature[..1], source, to, ..Instruction::default() }
    }

    #[test]
    fn modifiers_are_carried_out_or_refused() {
        let negated = |name, signature| ignored(&Instruction { negate: 1, ..instruction(name, signature) });
        assert_eq!(negated("v_add_f32", "ww"), None);
        assert_eq!(negated("v_cndmask_b32", "ww"), None);
        assert!(negated("v_add_nc_u32", "ww").is_some() && negated("v_cvt_f32_i32", "w").is_some());
        let second = Instruction { absolute: 2, ..instruction("v_ldexp_f32", "ww") };
        assert!(ignored(&second).is_some());
        let half = |name, signature| ignored(&Instruction { high: 1, ..instruction(name, signature) });
        assert_eq!(half("v_add_f16", "hh"), None);
        assert!(half("v_add_f32", "ww").is_some());
        let scaled = |name| ignored(&Instruction { scale: 1, ..instruction(name, "ww") });
        assert_eq!(scaled("v_mul_f32"), None);
        assert!(scaled("v_cvt_i32_f32").is_some() && scaled("v_add_nc_u32").is_some());
        // Packed encodings have a meaning of their own.
        let packed = Instruction { negate: 1, encoding: Encoding::Vop3p, ..instruction("v_dot4_i32_iu8", "ww") };
        assert_eq!(ignored(&packed), None);
    }
}
