//! Accesses of memory and shared memory, exchanges of lanes, masks, pairs and parts of registers:
//! programs that load four words a lane, do something to them, and store four words, against a
//! model of a lane. Code is as LLVM assembles it.

#![cfg(target_os = "linux")]

mod lanes;

use lanes::check;
use radeon_player::isa::Generation;

#[test]
fn bytes_and_halves_of_shared_memory() {
    // ds_store_b128 v1, v[4:7]
    // ds_store_b8 v1, v5 offset:1
    // ds_store_b16_d16_hi v1, v6 offset:4
    // ds_load_i8 v8, v1 offset:3
    // ds_load_u16 v9, v1
    // v_mov_b32 v10, v4
    // ds_load_u16_d16_hi v10, v1 offset:4
    // ds_load_2addr_b32 v[10:11], v1 offset0:1 offset1:3
    // s_waitcnt lgkmcnt(0)
    let code = [
        0xdb7c_0000,
        0x0000_0401,
        0xd878_0001,
        0x0000_0501,
        0xda84_0004,
        0x0000_0601,
        0xd8e4_0003,
        0x0800_0001,
        0xd8f0_0000,
        0x0900_0001,
        0x7e14_0304,
        0xda9c_0004,
        0x0a00_0001,
        0xd8dc_0301,
        0x0a00_0001,
        0xbf89_fc07,
    ];
    check(Generation::Rdna3, &code, |a, _, _| {
        let word = a[0] & 0xffff_00ff | (a[1] & 255) << 8;
        [(word as i32 >> 24) as u32, word & 0xffff, a[1] & 0xffff_0000 | a[2] >> 16, a[3]]
    });
}

#[test]
fn atomics_of_shared_memory_give_what_was_there() {
    // ds_store_b128 v1, v[4:7]
    // ds_add_rtn_u32 v8, v1, v5
    // ds_min_rtn_i32 v9, v1, v6 offset:4
    // ds_cmpstore_rtn_b32 v10, v1, v4, v6 offset:8
    // ds_load_b32 v11, v1 offset:8
    // s_waitcnt lgkmcnt(0)
    // ds_load_b32 v9, v1 offset:4
    // s_waitcnt lgkmcnt(0)
    let code = [
        0xdb7c_0000,
        0x0000_0401,
        0xd880_0000,
        0x0800_0501,
        0xd894_0004,
        0x0900_0601,
        0xd8c0_0008,
        0x0a06_0401,
        0xd8d8_0008,
        0x0b00_0001,
        0xbf89_fc07,
        0xd8d8_0004,
        0x0900_0001,
        0xbf89_fc07,
    ];
    check(Generation::Rdna3, &code, |a, _, _| [a[0], (a[1] as i32).min(a[2] as i32) as u32, a[2], a[0]]);
}

#[test]
fn lanes_read_and_write_each_other() {
    // v_lshlrev_b32 v2, 2, v5
    // ds_bpermute_b32 v8, v2, v4
    // v_xor_b32 v3, 12, v0
    // v_lshlrev_b32 v3, 2, v3
    // ds_permute_b32 v9, v3, v4
    // ds_swizzle_b32 v10, v4 offset:swizzle(QUAD_PERM, 3, 2, 0, 1)
    // ds_swizzle_b32 v11, v4 offset:swizzle(BITMASK_PERM, "01pip")
    // s_waitcnt lgkmcnt(0)
    let code = [
        0x3004_0a82,
        0xdacc_0000,
        0x0800_0402,
        0x3a06_008c,
        0x3006_0682,
        0xdac8_0000,
        0x0900_0403,
        0xd8d4_804b,
        0x0a00_0004,
        0xd8d4_0907,
        0x0b00_0004,
        0xbf89_fc07,
    ];
    check(Generation::Rdna3, &code, |a, lanes, lane| {
        let half = lane & 32;
        let at = |other: usize| lanes[half | other & 31][0];
        [at(a[1] as usize & 31), at(lane ^ 12), at(lane & 28 | [3, 2, 0, 1][lane & 3]), at((lane & 7 | 8) ^ 2)]
    });
}

#[test]
fn lanes_of_a_row_move() {
    // v_mov_b32 v8, 7
    // v_mov_b32 v9, 7
    // v_mov_b32_dpp v8, v4 row_shr:3 row_mask:0xf bank_mask:0xf
    // v_mov_b32_dpp v9, v4 quad_perm:[1,1,3,0] row_mask:0xf bank_mask:0x5
    // v_add_nc_u32_dpp v10, v4, v5 row_ror:5 row_mask:0xf bank_mask:0xf bound_ctrl:1
    // v_mov_b32_dpp v11, v4 dpp8:[7,1,0,3,2,5,4,6]
    let code = [
        0x7e10_0287,
        0x7e12_0287,
        0x7e10_02fa,
        0xff01_1304,
        0x7e12_02fa,
        0xf500_3504,
        0x4a14_0afa,
        0xff09_2504,
        0x7e16_02e9,
        0xd2a6_0f04,
    ];
    check(Generation::Rdna3, &code, |a, lanes, lane| {
        let row = |other: usize| lanes[lane & !15 | other & 15][0];
        let quad = lanes[lane & !3 | [1, 1, 3, 0][lane & 3]][0];
        [
            if lane & 15 >= 3 { row(lane - 3) } else { 7 },
            if lane >> 2 & 1 == 0 { quad } else { 7 },
            row((lane & 15) + 11).wrapping_add(a[1]),
            lanes[lane & !7 | [7, 1, 0, 3, 2, 5, 4, 6][lane & 7]][0],
        ]
    });
}

#[test]
fn atomics_of_memory() {
    // global_atomic_add_u32 v8, v1, v5, s[0:1] glc
    // s_waitcnt vmcnt(0)
    // v_mov_b32 v2, v7
    // v_add_nc_u32 v3, v4, v5
    // global_atomic_cmpswap_b32 v9, v1, v[2:3], s[0:1] glc
    // global_atomic_max_i32 v10, v1, v6, s[0:1] offset:8 glc
    // s_waitcnt vmcnt(0)
    // global_load_b32 v11, v1, s[0:1]
    // s_waitcnt vmcnt(0)
    let code = [
        0xdcd6_4000,
        0x0800_0501,
        0xbf89_03f7,
        0x7e04_0307,
        0x4a06_0b04,
        0xdcd2_4000,
        0x0900_0201,
        0xdcea_4008,
        0x0a00_0601,
        0xbf89_03f7,
        0xdc52_0000,
        0x0b00_0001,
        0xbf89_03f7,
    ];
    check(Generation::Rdna3, &code, |a, _, _| [a[0], a[0].wrapping_add(a[1]), a[2], a[3]]);
}

#[test]
fn parts_of_memory() {
    // global_store_b8 v1, v5, s[0:1] offset:2
    // global_store_d16_hi_b16 v1, v6, s[0:1] offset:4
    // global_load_i16 v8, v1, s[0:1] offset:2
    // v_mov_b32 v9, v4
    // s_waitcnt vmcnt(0)
    // global_load_d16_hi_u8 v9, v1, s[0:1] offset:5
    // global_load_b64 v[10:11], v1, s[0:1] offset:4
    // s_waitcnt vmcnt(0)
    let code = [
        0xdc62_0002,
        0x0000_0501,
        0xdc96_0004,
        0x0000_0601,
        0xdc4e_0002,
        0x0800_0001,
        0x7e12_0304,
        0xbf89_03f7,
        0xdc86_0005,
        0x0900_0001,
        0xdc56_0004,
        0x0a00_0001,
        0xbf89_03f7,
    ];
    check(Generation::Rdna3, &code, |a, _, _| {
        let half = a[0] >> 24 << 8 | a[1] & 255;
        let second = a[1] & 0xffff_0000 | a[2] >> 16;
        [half as i16 as u32, a[0] & 0xffff | (second >> 8 & 255) << 16, second, a[2]]
    });
}

#[test]
fn halves_of_a_pair_read_before_either_writes() {
    // v_mov_b32 v8, v5
    // v_mov_b32 v9, v4
    // v_dual_mov_b32 v8, v9 :: v_dual_mov_b32 v9, v8
    // v_dual_mov_b32 v10, v11 :: v_dual_lshlrev_b32 v11, 3, v5
    let code = [0x7e10_0305, 0x7e12_0304, 0xca10_0109, 0x0808_0108, 0xca22_010b, 0x0a0a_0a83];
    check(Generation::Rdna3, &code, |a, _, _| [a[0], a[1], 0xa5a5_a5a5, a[1] << 3]);
}

#[test]
fn only_lanes_that_are_on_write() {
    // v_mov_b32 v8, v4
    // v_mov_b32 v9, v4
    // v_mov_b32 v10, 0
    // v_cmp_lt_u32 vcc_lo, v4, v5
    // v_cndmask_b32 v11, v4, v5, vcc_lo
    // s_mov_b32 s6, exec_lo
    // s_and_b32 exec_lo, exec_lo, vcc_lo
    // v_mov_b32 v8, v5
    // v_add_co_u32 v9, vcc_lo, v6, v7
    // v_add_co_ci_u32_e32 v10, vcc_lo, v10, v10, vcc_lo
    // s_mov_b32 exec_lo, s6
    let code = [
        0x7e10_0304,
        0x7e12_0304,
        0x7e14_0280,
        0x7c92_0b04,
        0x0216_0b04,
        0xbe86_007e,
        0x8b7e_6a7e,
        0x7e10_0305,
        0xd700_6a09,
        0x0002_0f06,
        0x4014_150a,
        0xbefe_0006,
    ];
    check(Generation::Rdna3, &code, |a, _, _| {
        let (sum, carry) = a[2].overflowing_add(a[3]);
        let (on, second) = (a[0] < a[1], a[0].max(a[1]));
        if on { [a[1], sum, carry.into(), second] } else { [a[0], a[0], 0, second] }
    });
}

#[test]
fn parts_of_registers() {
    // v_mov_b32 v8, v4
    // v_mov_b32 v9, v4
    // v_mov_b32 v11, v4
    // v_mov_b32_sdwa v8, v5 dst_sel:BYTE_2 dst_unused:UNUSED_PRESERVE src0_sel:BYTE_3
    // v_mov_b32_sdwa v9, sext(v5) dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1
    // v_add_nc_u32_sdwa v10, v4, v5 dst_sel:WORD_1 dst_unused:UNUSED_PAD src0_sel:BYTE_1
    // src1_sel:WORD_0 v_sub_nc_u32_sdwa v11, v4, sext(v5) dst_sel:BYTE_1 dst_unused:UNUSED_SEXT
    // src0_sel:BYTE_0 src1_sel:BYTE_2
    let code = [
        0x7e10_0304,
        0x7e12_0304,
        0x7e16_0304,
        0x7e10_02f9,
        0x0003_1205,
        0x7e12_02f9,
        0x000d_0605,
        0x4a14_0af9,
        0x0401_0504,
        0x4c16_0af9,
        0x0a00_0904,
    ];
    check(Generation::Rdna2, &code, |a, _, _| {
        let byte = |word: u32, k: u32| word >> (8 * k) & 255;
        let difference = byte(a[0], 0).wrapping_sub(byte(a[1], 2) as i8 as u32);
        [
            a[0] & 0xff00_ffff | byte(a[1], 3) << 16,
            (a[1] as i32 >> 16) as u32,
            (byte(a[0], 1) + (a[1] & 0xffff)) << 16,
            (difference as i8 as u32) << 8,
        ]
    });
}
