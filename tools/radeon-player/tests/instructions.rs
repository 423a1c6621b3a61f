//! Instructions that compilers seldom make: roundings, registers by number, calls, buffers by
//! descriptors, parts of words. Code is as LLVM assembles it.

#![cfg(target_os = "linux")]

mod lanes;

use lanes::check;
use radeon_player::isa::Generation;

/// The least f32 that is no less.
fn up(value: f64) -> f32 {
    let near = value as f32;
    if f64::from(near) < value { near.next_up() } else { near }
}

fn four(words: Vec<u32>) -> [u32; 4] {
    words.try_into().expect("four words")
}

#[test]
fn rounding_of_words() {
    // v_cvt_f32_i32 v2, v4
    // v_cvt_f32_i32 v3, v5
    // s_round_mode 0x1
    // v_add_f32 v8, v2, v3
    // s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 2), 2
    // v_mul_f32 v9, v2, v3
    // s_mov_b32 s6, 3
    // s_setreg_b32 hwreg(HW_REG_MODE, 0, 2), s6
    // v_cvt_f32_u32 v10, v6
    // s_round_mode 0x0
    // s_getreg_b32 s6, hwreg(HW_REG_MODE, 4, 4)
    // v_mov_b32 v11, s6
    let code = [
        0x7e04_0b04,
        0x7e06_0b05,
        0xbf91_0001,
        0x0610_0702,
        0xb980_0801,
        0x0000_0002,
        0x1012_0702,
        0xbe86_0083,
        0xb906_0801,
        0x7e14_0d06,
        0xbf91_0000,
        0xb886_1901,
        0x7e16_0206,
    ];
    check(Generation::Rdna3, &code, |a, _, _| {
        four({
            let [x, y] = [a[0], a[1]].map(|word| f64::from(word as i32 as f32));
            [up(x + y), -up(-(x * y)), -up(-f64::from(a[2]))].map(f32::to_bits).into_iter().chain([15]).collect()
        })
    });
}

#[test]
fn rounding_of_halves() {
    // v_cvt_f32_i32 v2, v4
    // v_mul_f32 v2, 0x35800000, v2
    // s_round_mode 0xc
    // v_cvt_f16_f32 v8, v2
    // s_round_mode 0x8
    // v_cvt_f16_f32 v9, v2
    // s_round_mode 0x4
    // v_cvt_f16_f32 v10, v2
    // v_pk_add_f16 v11, v8, v9
    // s_round_mode 0x0
    // v_and_b32 v8, 0xffff, v8
    // v_and_b32 v9, 0xffff, v9
    // v_and_b32 v10, 0xffff, v10
    // v_and_b32 v11, 0xffff, v11
    let code = [
        0x7e04_0b04,
        0x1004_04ff,
        0x3580_0000,
        0xbf91_000c,
        0x7e10_1502,
        0xbf91_0008,
        0x7e12_1502,
        0xbf91_0004,
        0x7e14_1502,
        0xcc0f_400b,
        0x1802_1308,
        0xbf91_0000,
        0x3610_10ff,
        0x0000_ffff,
        0x3612_12ff,
        0x0000_ffff,
        0x3614_14ff,
        0x0000_ffff,
        0x3616_16ff,
        0x0000_ffff,
    ];
    check(Generation::Rdna3, &code, |a, _, _| {
        four({
            // Up to 2048, of which a half has all whole numbers.
            let value = f64::from(a[0] as i32 as f32) * 2f64.powi(-20);
            let near = half::f16::from_f64(value);
            let next = |near: half::f16, way: f64| {
                let step = if (near.to_f64() > 0.0) == (way > 0.0) { 1 } else { -1i32 };
                half::f16::from_bits((i32::from(near.to_bits()) + step) as u16)
            };
            let down = if near.to_f64() > value { next(near, -1.0) } else { near };
            let above = if near.to_f64() < value { next(near, 1.0) } else { near };
            let zero = if value > 0.0 { down } else { above };
            let sum = zero.to_f64() + down.to_f64();
            let rounded = half::f16::from_f64(sum);
            let sum = if rounded.to_f64() < sum { next(rounded, 1.0) } else { rounded };
            [zero, down, above, sum].map(|it| u32::from(it.to_bits())).to_vec()
        })
    });
}

#[test]
fn registers_by_m0() {
    // v_mov_b32 v9, 0
    // v_mov_b32 v11, 0
    // s_mov_b32 m0, 1
    // v_movrels_b32 v8, v4
    // v_movreld_b32 v8, v6
    // s_mov_b32 s7, 77
    // s_movrels_b32 s8, s6
    // v_mov_b32 v10, s8
    // s_mov_b32 m0, 0x30002
    // v_movrelsd_2_b32 v8, v5
    let code = [
        0x7e12_0280,
        0x7e16_0280,
        0xbefd_0081,
        0x7e10_8704,
        0x7e10_8506,
        0xbe87_00ff,
        0x0000_004d,
        0xbe88_4006,
        0x7e14_0208,
        0xbefd_00ff,
        0x0003_0002,
        0x7e10_9105,
    ];
    check(Generation::Rdna3, &code, |a, _, _| four(vec![a[1], a[2], 77, a[3]]));
}

#[test]
fn calls_and_jumps() {
    // s_branch over
    // fn:
    // v_xor_b32 v8, v8, v5
    // s_setpc_b64 s[8:9]
    // over:
    // v_mov_b32 v8, v4
    // s_call_b64 s[8:9], fn
    // v_mov_b32 v9, v8
    // s_getpc_b64 s[6:7]
    // s_add_u32 s6, s6, -24
    // s_addc_u32 s7, s7, -1
    // s_swappc_b64 s[8:9], s[6:7]
    // v_mov_b32 v10, v8
    // v_mov_b32 v11, v6
    let code = [
        0xbfa0_0002,
        0x3a10_0b08,
        0xbe80_4808,
        0x7e10_0304,
        0xba08_fffc,
        0x7e12_0308,
        0xbe86_4700,
        0x8006_ff06,
        0xffff_ffe8,
        0x8207_c107,
        0xbe88_4906,
        0x7e14_0308,
        0x7e16_0306,
    ];
    check(Generation::Rdna3, &code, |a, _, _| four(vec![a[0], a[0] ^ a[1], a[0], a[2]]));
}

#[test]
fn buffers_end_where_they_say() {
    // s_mov_b32 s8, s0
    // s_mov_b32 s9, s1
    // s_mov_b32 s10, 0x3f8
    // s_mov_b32 s11, 0x30000000
    // buffer_load_dwordx4 v[8:11], v1, s[8:11], 0 offen
    // s_waitcnt vmcnt(0)
    let rdna2 = [
        0xbe88_0300,
        0xbe89_0301,
        0xbe8a_03ff,
        0x0000_03f8,
        0xbe8b_03ff,
        0x3000_0000,
        0xe038_1000,
        0x8002_0801,
        0xbf8c_3f70,
    ];
    // The same, but for the names: buffer_load_b128
    let rdna3 = [
        0xbe88_0000,
        0xbe89_0001,
        0xbe8a_00ff,
        0x0000_03f8,
        0xbe8b_00ff,
        0x3000_0000,
        0xe05c_0000,
        0x8042_0801,
        0xbf89_03f7,
    ];
    // and s_wait_loadcnt
    let rdna4 = [
        0xbe88_0000,
        0xbe89_0001,
        0xbe8a_00ff,
        0x0000_03f8,
        0xbe8b_00ff,
        0x3000_0000,
        0xc405_c07c,
        0x4080_1008,
        0x0000_0001,
        0xbfc0_0000,
    ];
    for (generation, code) in [
        (Generation::Rdna1, &rdna2[..]),
        (Generation::Rdna2, &rdna2),
        (Generation::Rdna3, &rdna3),
        (Generation::Rdna4, &rdna4),
    ] {
        check(generation, code, |a, _, lane| {
            std::array::from_fn(|word| if lane * 16 + word * 4 + 4 <= 0x3f8 { a[word] } else { 0 })
        });
    }
}

#[test]
fn records_of_buffers() {
    // s_mov_b32 s8, s0
    // s_or_b32 s9, s1, 0x100000
    // s_mov_b32 s10, 60
    // s_mov_b32 s11, 0x10000000
    // v_mov_b32 v8, v4
    // v_mov_b32 v9, v5
    // buffer_load_d16_hi_u8 v8, v0, s[8:11], 0 idxen offset:5
    // buffer_atomic_add_u32 v9, v0, s[8:11], 0 idxen offset:8 glc
    // s_mov_b32 s6, 12
    // buffer_store_d16_hi_b16 v4, v0, s[8:11], s6 idxen
    // s_waitcnt vmcnt(0)
    // global_load_b64 v[10:11], v1, s[0:1] offset:8
    // s_waitcnt vmcnt(0)
    let code = [
        0xbe88_0000,
        0x8c09_ff01,
        0x0010_0000,
        0xbe8a_00bc,
        0xbe8b_00ff,
        0x1000_0000,
        0x7e10_0304,
        0x7e12_0305,
        0xe084_0005,
        0x8082_0800,
        0xe0d4_4008,
        0x8082_0900,
        0xbe86_008c,
        0xe094_0000,
        0x0682_0400,
        0xbf89_03f7,
        0xdc56_0008,
        0x0a00_0001,
        0xbf89_03f7,
    ];
    check(Generation::Rdna3, &code, |a, _, lane| {
        four({
            let inside = lane < 60;
            let byte = if inside { a[1] >> 8 & 255 } else { 0 };
            let (sum, stored) = (a[2].wrapping_add(a[1]), a[3] & 0xffff_0000 | a[0] >> 16);
            let old = if inside { a[2] } else { 0 };
            vec![a[0] & 0xffff | byte << 16, old, if inside { sum } else { a[2] }, if inside { stored } else { a[3] }]
        })
    });
}

#[test]
fn shared_memory_by_lane() {
    // s_mov_b32 m0, 0x100
    // ds_store_addtid_b32 v4 offset:4
    // ds_load_addtid_b32 v8 offset:4
    // v_lshlrev_b32 v2, 3, v0
    // v_and_b32 v2, 0xf8, v2
    // ds_store_b64 v2, v[4:5]
    // ds_min_rtn_f64 v[10:11], v2, v[6:7]
    // ds_load_b64 v[10:11], v2
    // s_waitcnt lgkmcnt(0)
    // v_mov_b32 v9, v11
    // ds_storexchg_2addr_rtn_b32 v[10:11], v2, v6, v7 offset0:0 offset1:1
    // s_waitcnt lgkmcnt(0)
    let code = [
        0xbefd_00ff,
        0x0000_0100,
        0xdac0_0004,
        0x0000_0400,
        0xdac4_0004,
        0x0800_0000,
        0x3004_0083,
        0x3604_04ff,
        0x0000_00f8,
        0xd934_0000,
        0x0000_0402,
        0xd9c8_0000,
        0x0a00_0602,
        0xd9d8_0000,
        0x0a00_0002,
        0xbf89_fc07,
        0x7e12_030b,
        0xd8b8_0100,
        0x0a07_0602,
        0xbf89_fc07,
    ];
    check(Generation::Rdna3, &code, |a, _, _| {
        four({
            let wide = |low: u32, high: u32| f64::from_bits(u64::from(high) << 32 | u64::from(low));
            let least = wide(a[0], a[1]).min(wide(a[2], a[3])).to_bits();
            vec![a[0], (least >> 32) as u32, least as u32, (least >> 32) as u32]
        })
    });
}

#[test]
fn memory_by_lane() {
    // global_load_addtid_b32 v8, s[0:1] offset:8
    // v_mov_b32 v9, v4
    // v_mov_b32 v10, v5
    // s_waitcnt vmcnt(0)
    // v_swap_b16 v9.l, v10.h
    // v_mov_b32 v11, 0
    // v_cmpx_lt_u32_e64 v4, v5
    // v_mov_b32 v11, 1
    // s_mov_b32 exec_lo, -1
    let code = [
        0xdca2_0008,
        0x0800_0000,
        0x7e12_0304,
        0x7e14_0305,
        0xbf89_03f7,
        0x7e12_cd8a,
        0x7e16_0280,
        0xd4c9_007e,
        0x0002_0b04,
        0x7e16_0281,
        0xbefe_00c1,
    ];
    check(Generation::Rdna3, &code, |a, lanes, lane| {
        four({
            let word = lanes.as_flattened()[lane % 32 + 2];
            vec![word, a[0] & 0xffff_0000 | a[1] >> 16, a[1] & 0xffff | a[0] << 16, u32::from(a[0] < a[1])]
        })
    });
}

#[test]
fn products_of_parts() {
    // v_dot4_i32_i8 v8, v4, v5, v6
    // v_mov_b32 v9, v6
    // v_dot4c_i32_i8 v9, v4, v5
    // v_dot2_i32_i16 v10, v4, v5, v6 op_sel:[1,0,0] op_sel_hi:[0,1,1]
    // s_memtime s[6:7]
    // s_waitcnt lgkmcnt(0)
    // s_memtime s[8:9]
    // s_waitcnt lgkmcnt(0)
    // s_sub_u32 s8, s8, s6
    // s_subb_u32 s9, s9, s7
    // s_cmp_ge_i32 s9, 0
    // s_cselect_b32 s6, 1, 0
    // v_mov_b32 v11, s6
    let code = [
        0xcc16_4008,
        0x1c1a_0b04,
        0x7e12_0306,
        0x1a12_0b04,
        0xcc14_480a,
        0x141a_0b04,
        0xf490_0180,
        0x0000_0000,
        0xbf8c_c07f,
        0xf490_0200,
        0x0000_0000,
        0xbf8c_c07f,
        0x8088_0608,
        0x8289_0709,
        0xbf03_8009,
        0x8506_8081,
        0x7e16_0206,
    ];
    check(Generation::Rdna2, &code, |a, _, _| {
        four({
            let byte = |word: u32, k: usize| i32::from(word.to_le_bytes()[k] as i8);
            let bytes: i32 = (0..4).map(|k| byte(a[0], k) * byte(a[1], k)).sum();
            let half = |word: u32| i64::from(word as i16);
            let halves = half(a[0] >> 16) * half(a[1]) + half(a[0]) * half(a[1] >> 16) + i64::from(a[2] as i32);
            let sum = a[2].wrapping_add(bytes as u32);
            vec![sum, sum, halves as u32, 1]
        })
    });
}

#[test]
fn halves_of_integers() {
    // v_mad_u32_u16 v8, v4, v5, v6 op_sel:[1,0,0,0]
    // v_mad_i32_i16 v9, v4, v5, v6 op_sel:[0,1,0,0]
    // v_mov_b32 v10, v7
    // v_mad_u16 v10, v4, v5, v6 op_sel:[0,1,1,1]
    // v_pack_b32_f16 v11, v4, v5 op_sel:[1,0,0]
    let code = [
        0xd773_0808,
        0x041a_0b04,
        0xd775_1009,
        0x041a_0b04,
        0x7e14_0307,
        0xd740_700a,
        0x041a_0b04,
        0xd711_080b,
        0x0002_0b04,
    ];
    for generation in [Generation::Rdna1, Generation::Rdna2] {
        check(generation, &code, |a, _, _| {
            let (low, high) = (a.map(|word| word & 0xffff), a.map(|word| word >> 16));
            let signed = |half: u32| i32::from(half as i16);
            [
                (high[0] * low[1]).wrapping_add(a[2]),
                signed(low[0]).wrapping_mul(signed(high[1])).wrapping_add(a[2] as i32) as u32,
                low[3] | (low[0] * high[1] + high[2]) << 16,
                high[0] | low[1] << 16,
            ]
        });
    }
}

#[test]
fn small_floats_and_barriers() {
    // s_cmp_eq_u32 0, 1
    // s_barrier_signal_isfirst -1
    // s_cselect_b32 s6, 1, 0
    // s_barrier_wait -1
    // v_mov_b32 v11, s6
    // v_and_b32 v2, 0x3f3f3f3f, v4
    // v_and_b32 v3, 0x3f3f3f3f, v5
    // v_cvt_f32_fp8_e64 v8, v2 byte_sel:1
    // v_cvt_f32_bf8_e64 v9, v3 byte_sel:3
    // v_dot4_f32_fp8_bf8 v10, v2, v3, 1.0
    let code = [
        0xbf06_8180,
        0xbe80_4fc1,
        0x9806_8081,
        0xbf94_ffff,
        0x7e16_0206,
        0x3604_08ff,
        0x3f3f_3f3f,
        0x3606_0aff,
        0x3f3f_3f3f,
        0xd5ec_1008,
        0x0000_0102,
        0xd5ed_1809,
        0x0000_0103,
        0xcc24_400a,
        0x1bca_0702,
    ];
    check(Generation::Rdna4, &code, |a, _, lane| {
        four({
            // Below 2 there is no number that is none.
            let fp8 = |byte: u32| {
                let (exponent, fraction) = (byte >> 3, f64::from(byte & 7));
                if exponent == 0 { fraction / 512.0 } else { (8.0 + fraction) * 2f64.powi(exponent as i32 - 10) }
            };
            let bf8 = |byte: u32| {
                let (exponent, fraction) = (byte >> 2, f64::from(byte & 3));
                if exponent == 0 { fraction / 65536.0 } else { (4.0 + fraction) * 2f64.powi(exponent as i32 - 17) }
            };
            let part = |word: u32, k: u32| word >> (8 * k) & 0x3f;
            let dot: f64 = (0..4).map(|k| fp8(part(a[0], k)) * bf8(part(a[1], k))).sum();
            let floats = [fp8(part(a[0], 1)), bf8(part(a[1], 3)), 1.0 + dot].map(|value| (value as f32).to_bits());
            floats.into_iter().chain([u32::from(lane < 32)]).collect()
        })
    });
}
