//! Which instructions of the tables nothing carries out, and why. The list may only get shorter.

use std::collections::BTreeSet;

use super::handler;
use crate::isa::{Generation, tables};

/// Starts of names, and why they are not carried out.
const LEFT_OUT: &[(&str, &str)] = &[
    // Of graphics and of textures.
    ("v_interp_", "interpolation, of pixel shaders"),
    ("buffer_load_format_", "conversions of texel formats"),
    ("buffer_store_format_", "conversions of texel formats"),
    ("buffer_load_d16_format_", "conversions of texel formats"),
    ("buffer_store_d16_format_", "conversions of texel formats"),
    ("buffer_load_d16_hi_format_", "conversions of texel formats"),
    ("buffer_store_d16_hi_format_", "conversions of texel formats"),
    ("ds_bvh_stack_rtn_b32", "rays"),
    ("s_endpgm_ordered_ps_done", "of pixel shaders"),
    // Of operating systems and debuggers.
    ("s_trap", "trap handlers"),
    ("s_rfe_b64", "trap handlers"),
    ("s_endpgm_saved", "trap handlers"),
    ("s_sethalt", "debuggers"),
    ("s_sendmsghalt", "debuggers"),
    ("s_atc_probe", "page tables"),
    // What no compiler for Vulkan makes.
    ("ds_add_src2_", "RDNA1 alone"),
    ("ds_sub_src2_", "RDNA1 alone"),
    ("ds_rsub_src2_", "RDNA1 alone"),
    ("ds_inc_src2_", "RDNA1 alone"),
    ("ds_dec_src2_", "RDNA1 alone"),
    ("ds_min_src2_", "RDNA1 alone"),
    ("ds_max_src2_", "RDNA1 alone"),
    ("ds_and_src2_", "RDNA1 alone"),
    ("ds_or_src2_", "RDNA1 alone"),
    ("ds_xor_src2_", "RDNA1 alone"),
    ("ds_write_src2_", "RDNA1 alone"),
    ("s_atomic_", "RDNA1 alone"),
    ("s_buffer_atomic_", "RDNA1 alone"),
    ("s_store_", "RDNA1 alone"),
    ("s_buffer_store_", "RDNA1 alone"),
    ("s_scratch_", "RDNA1 alone"),
    ("s_dcache_discard", "RDNA1 alone"),
    ("s_subvector_loop_", "waves of 64 in two halves"),
    ("s_barrier_init", "the driver knows the workgroup's barrier alone"),
    ("s_barrier_join", "the driver knows the workgroup's barrier alone"),
    ("s_barrier_leave", "the driver knows the workgroup's barrier alone"),
    ("s_wakeup_barrier", "the driver knows the workgroup's barrier alone"),
    ("s_get_barrier_state", "the driver knows the workgroup's barrier alone"),
    ("global_load_tr_", "the driver loads matrices by elements"),
    ("global_load_block", "spills of dynamic registers"),
    ("global_store_block", "spills of dynamic registers"),
    ("scratch_load_block", "spills of dynamic registers"),
    ("scratch_store_block", "spills of dynamic registers"),
    ("global_atomic_ordered_add_b64", "order of waves of a launch"),
    ("v_swmmac_", "sparse matrices, which Vulkan does not have"),
    ("v_trig_preop_f64", "digits of 2/pi"),
];

#[test]
fn every_instruction_has_a_handler_or_a_reason() {
    let mut unused: BTreeSet<&str> = LEFT_OUT.iter().map(|(name, _)| *name).collect();
    for generation in [Generation::Rdna1, Generation::Rdna2, Generation::Rdna3, Generation::Rdna4] {
        for row in tables::of(generation).values() {
            let reason = LEFT_OUT.iter().find(|(start, _)| row.name.starts_with(start));
            match (handler::<32>(row.name).and(handler::<64>(row.name)), reason) {
                (None, None) => panic!("{generation:?}: nothing carries out {}", row.name),
                (Some(_), Some((start, _))) => panic!("{} is carried out: take {start} off the list", row.name),
                (None, Some((start, _))) => {
                    unused.remove(start);
                }
                (Some(_), None) => {}
            }
        }
    }
    assert!(unused.is_empty(), "no such instructions: {unused:?}");
    assert!(LEFT_OUT.len() <= 47, "the list may only get shorter");
}
