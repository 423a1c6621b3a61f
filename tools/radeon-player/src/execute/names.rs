//! Names of instructions over the generations.
//!
//! Handlers are found by the name that an instruction has on RDNA3. What other generations call
//! otherwise is mapped to that name here, where it does the same; what does not has a handler of
//! its own name.

use std::borrow::Cow;

/// The name that an instruction of any generation has on RDNA3.
#[must_use]
pub fn of_rdna3(name: &str) -> Cow<'_, str> {
    if let Some((_, name)) = WHOLE.iter().find(|(other, _)| *other == name) {
        return Cow::Borrowed(name);
    }
    match name.split_once('_') {
        Some(("ds", _)) => parts(name, SHARED),
        Some((space @ ("global" | "flat" | "scratch" | "buffer"), rest)) => {
            if let Some(operation) = rest.strip_prefix("atomic_") {
                return atomic(space, operation).map_or(Cow::Borrowed(name), Cow::Owned);
            }
            parts(name, MEMORY)
        }
        Some(("s", _)) => parts(name, SCALAR),
        Some(("v", _)) => parts(name, VECTOR),
        _ => Cow::Borrowed(name),
    }
}

/// Replaces the first of the parts that the name has.
fn parts<'a>(name: &'a str, table: &[(&str, &str)]) -> Cow<'a, str> {
    match table.iter().find(|(part, _)| name.contains(part)) {
        Some((part, other)) => Cow::Owned(name.replacen(part, other, 1)),
        None => Cow::Borrowed(name),
    }
}

/// Names that are replaced as a whole.
const WHOLE: &[(&str, &str)] = &[
    ("ds_read_addtid_b32", "ds_load_addtid_b32"),
    ("ds_write_addtid_b32", "ds_store_addtid_b32"),
    ("s_flbit_i32", "s_cls_i32"),
    ("s_flbit_i32_b32", "s_clz_i32_u32"),
    ("s_flbit_i32_b64", "s_clz_i32_u64"),
    ("s_flbit_i32_i64", "s_cls_i32_i64"),
    ("s_inst_prefetch", "s_nop"),
    ("v_cvt_flr_i32_f32", "v_cvt_floor_i32_f32"),
    ("v_cvt_rpi_i32_f32", "v_cvt_nearest_i32_f32"),
    ("v_ffbh_i32", "v_cls_i32"),
    ("v_ffbh_u32", "v_clz_i32_u32"),
    ("v_ffbl_b32", "v_ctz_i32_b32"),
    ("v_mul_lo_i32", "v_mul_lo_u32"),
    ("v_dot2c_f32_f16", "v_dot2acc_f32_f16"),
    ("v_mad_co_u64_u32", "v_mad_u64_u32"),
    ("v_mad_co_i64_i32", "v_mad_i64_i32"),
];

const SHARED: &[(&str, &str)] = &[
    ("ds_read2st64_", "ds_load_2addr_stride64_"),
    ("ds_read2_", "ds_load_2addr_"),
    ("ds_read_", "ds_load_"),
    ("ds_write2st64_", "ds_store_2addr_stride64_"),
    ("ds_write2_", "ds_store_2addr_"),
    ("ds_write_", "ds_store_"),
    ("ds_wrxchg2st64_rtn_", "ds_storexchg_2addr_stride64_rtn_"),
    ("ds_wrxchg2_rtn_", "ds_storexchg_2addr_rtn_"),
    ("ds_wrxchg_", "ds_storexchg_"),
];

const MEMORY: &[(&str, &str)] = &[
    ("_dwordx4", "_b128"),
    ("_dwordx3", "_b96"),
    ("_dwordx2", "_b64"),
    ("_dword", "_b32"),
    ("load_sbyte_d16_hi", "load_d16_hi_i8"),
    ("load_sbyte_d16", "load_d16_i8"),
    ("load_ubyte_d16_hi", "load_d16_hi_u8"),
    ("load_ubyte_d16", "load_d16_u8"),
    ("load_short_d16_hi", "load_d16_hi_b16"),
    ("load_short_d16", "load_d16_b16"),
    ("load_sbyte", "load_i8"),
    ("load_ubyte", "load_u8"),
    ("load_sshort", "load_i16"),
    ("load_ushort", "load_u16"),
    ("store_byte_d16_hi", "store_d16_hi_b8"),
    ("store_short_d16_hi", "store_d16_hi_b16"),
    ("store_byte", "store_b8"),
    ("store_short", "store_b16"),
];

const SCALAR: &[(&str, &str)] = &[
    ("_dwordx16", "_b512"),
    ("_dwordx8", "_b256"),
    ("_dwordx4", "_b128"),
    ("_dwordx2", "_b64"),
    ("_dword", "_b32"),
    ("s_andn1_", "s_and_not0_"),
    ("s_andn2_", "s_and_not1_"),
    ("s_orn1_", "s_or_not0_"),
    ("s_orn2_", "s_or_not1_"),
    ("s_ff1_", "s_ctz_"),
    ("s_add_co_ci_", "s_addc_"),
    ("s_sub_co_ci_", "s_subb_"),
    ("s_add_co_", "s_add_"),
    ("s_sub_co_", "s_sub_"),
    ("s_addk_co_", "s_addk_"),
];

const VECTOR: &[(&str, &str)] = &[
    ("_cvt_pkrtz_", "_cvt_pk_rtz_"),
    ("_cvt_pknorm_", "_cvt_pk_norm_"),
    ("_legacy_", "_dx9_zero_"),
    ("v_cmp_tru_", "v_cmp_t_"),
    ("v_cmpx_tru_", "v_cmpx_t_"),
    ("_num_", "_"),
];

/// The atomics of RDNA1 and RDNA2, which name their type by a letter and their size by a suffix.
fn atomic(space: &str, operation: &str) -> Option<String> {
    let (short, bits) = match operation.strip_suffix("_x2") {
        Some(short) => (short, 64),
        None => (operation, 32),
    };
    let (name, letter) = match short {
        "swap" | "cmpswap" | "and" | "or" | "xor" => (short, 'b'),
        "add" | "sub" | "inc" | "dec" | "csub" => (short, 'u'),
        "smin" | "smax" => (&short[1..], 'i'),
        "umin" | "umax" => (&short[1..], 'u'),
        "fmin" | "fmax" | "fcmpswap" => (&short[1..], 'f'),
        _ => return None,
    };
    Some(format!("{space}_atomic_{name}_{letter}{bits}"))
}

#[cfg(test)]
mod tests {
    use super::of_rdna3;

    #[test]
    fn names_are_those_of_rdna3() {
        for (name, expected) in [
            ("global_load_dwordx3", "global_load_b96"),
            ("s_load_dwordx16", "s_load_b512"),
            ("s_buffer_load_dword", "s_buffer_load_b32"),
            ("scratch_load_ubyte_d16_hi", "scratch_load_d16_hi_u8"),
            ("flat_store_short", "flat_store_b16"),
            ("global_atomic_smax_x2", "global_atomic_max_i64"),
            ("global_atomic_cmpswap", "global_atomic_cmpswap_b32"),
            ("global_atomic_add_u32", "global_atomic_add_u32"),
            ("ds_read2st64_b64", "ds_load_2addr_stride64_b64"),
            ("ds_write_b8_d16_hi", "ds_store_b8_d16_hi"),
            ("s_andn2_saveexec_b64", "s_and_not1_saveexec_b64"),
            ("s_add_co_ci_u32", "s_addc_u32"),
            ("v_max3_num_f32", "v_max3_f32"),
            ("v_cvt_pkrtz_f16_f32", "v_cvt_pk_rtz_f16_f32"),
            ("v_add_f32", "v_add_f32"),
        ] {
            assert_eq!(of_rdna3(name), expected);
        }
    }
}
