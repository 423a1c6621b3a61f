//! Families of vector arithmetic against straightforward models, with seeded operands: random bits,
//! and those numbers where types end.

use super::wave::{EXEC, Wave};
use super::{Group, handler, local};
use crate::dispatch::Dispatch;
use crate::isa::Generation;
use crate::isa::instruction::{Instruction, Operand};
use crate::memory::Memory;
use crate::pm4::SHADER_REGISTER_COUNT;
use crate::report::{Counts, Options};

/// Numbers at the ends of types: of f32, f16 and integers.
const ENDS: [u32; 20] = [
    0,
    1,
    2,
    31,
    32,
    0x3c00,
    0x7bff,
    0x7c00,
    0xffff,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
    0x3f80_0000,
    0xbf80_0000,
    0x7f80_0000,
    0xff80_0000,
    0x0000_0001,
    0x007f_ffff,
    0x7f7f_ffff,
    0x4f00_0000,
];

struct Noise(u64);

impl Noise {
    fn next(&mut self) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 32) as u32
    }

    /// An operand: any bits, an end of a type, or an f32 or a pair of f16 of middling size.
    fn operand(&mut self) -> u32 {
        match self.next() % 4 {
            0 => self.next(),
            1 => ENDS[self.next() as usize % ENDS.len()],
            2 => ((self.next() % 2000) as f32 / 8.0 - 125.0).to_bits(),
            _ => self.next() & 0x83ff_83ff | 0x4000_3800,
        }
    }
}

/// Carries an instruction out on rows of operands, registers 0 to 5, of which it takes the first of
/// two each, and gives the two registers of the result. Lanes that are off must keep what they had.
fn carry_out<const N: usize>(name: &str, rows: &[[u32; N]; 6], exec: u64) -> [[u32; N]; 2] {
    let registers = [0; SHADER_REGISTER_COUNT as usize];
    let dispatch = Dispatch::new(Generation::Rdna3, 1, &registers, [1, 1, 1], 0);
    let (memory, options, mut counts) = (Memory::new(), Options::default(), Counts::default());
    let shared = local::Shared::new(0, false);
    let mut group = Group {
        dispatch: &dispatch,
        memory: &memory,
        options: &options,
        counts: &mut counts,
        id: [0; 3],
        shared,
        scratch: Vec::new(),
        sample: None,
    };
    let mut wave = Wave::<N>::new();
    wave.mode = 0xf0;
    wave.vectors[..6].copy_from_slice(rows);
    wave.vectors[6..8].fill([7; N]);
    (wave.scalars[usize::from(EXEC)], wave.scalars[usize::from(EXEC) + 1]) = (exec as u32, (exec >> 32) as u32);
    let instruction = Instruction {
        name: "of a test",
        to: Operand::Vector(6),
        source: [Operand::Vector(0), Operand::Vector(2), Operand::Vector(4), Operand::None],
        high_of_high: 7,
        ..Instruction::default()
    };
    let handler = handler::<N>(name).unwrap_or_else(|| panic!("no {name}"));
    handler(&mut wave, &instruction, &mut group).expect("no fault");
    for lane in (0..N).filter(|lane| exec >> lane & 1 == 0) {
        assert_eq!((wave.vectors[6][lane], wave.vectors[7][lane]), (7, 7), "{name}, lane {lane}, which is off");
    }
    [wave.vectors[6], wave.vectors[7]]
}

/// Compares words of many operands with a model; `same` says whether two results are.
fn check(name: &str, same: impl Fn(u32, u32) -> bool, model: impl Fn(u32, u32, u32) -> u32) {
    fn lanes<const N: usize>(
        name: &str,
        seed: u64,
        same: &impl Fn(u32, u32) -> bool,
        model: &impl Fn(u32, u32, u32) -> u32,
    ) {
        let mut noise = Noise(seed);
        let rows: [[u32; N]; 6] = std::array::from_fn(|_| std::array::from_fn(|_| noise.operand()));
        let exec = if seed.is_multiple_of(3) { u64::MAX >> (64 - N) } else { u64::from(noise.next()) << (N - 32) | 5 };
        let [out, _] = carry_out(name, &rows, exec);
        for lane in (0..N).filter(|lane| exec >> lane & 1 != 0) {
            let [a, b, c] = [0, 2, 4].map(|k| rows[k][lane]);
            let expected = model(a, b, c);
            assert!(same(out[lane], expected), "{name} {a:#x} {b:#x} {c:#x}: {:#x}, not {expected:#x}", out[lane]);
        }
    }
    for seed in 0..12 {
        lanes::<32>(name, seed, &same, &model);
        lanes::<64>(name, seed, &same, &model);
    }
}

fn words(name: &str, model: impl Fn(u32, u32, u32) -> u32) {
    check(name, |a, b| a == b, model);
}

/// Of f32: bits are the same, or both are no number.
fn singles(name: &str, model: impl Fn(f64, f64, f64) -> f64) {
    let value = |bits: u32| f64::from(f32::from_bits(bits));
    check(
        name,
        |a, b| a == b || f32::from_bits(a).is_nan() && f32::from_bits(b).is_nan(),
        |a, b, c| (model(value(a), value(b), value(c)) as f32).to_bits(),
    );
}

/// Of the low halves as f16; the high half of the result stays.
fn halves(name: &str, model: impl Fn(f32, f32) -> f32) {
    let value = |bits: u32| half::f16::from_bits(bits as u16).to_f32();
    let nan = |bits: u32| bits & 0x7fff > 0x7c00;
    check(
        name,
        |a, b| a >> 16 == 0 && (a & 0xffff == b & 0xffff || nan(a) && nan(b)),
        |a, b, _| u32::from(half::f16::from_f32(model(value(a), value(b))).to_bits()),
    );
}

#[test]
fn singles_are_those_of_f64() {
    // The sum and the product of two f32 round once more without harm.
    singles("v_add_f32", |a, b, _| a + b);
    singles("v_sub_f32", |a, b, _| a - b);
    singles("v_subrev_f32", |a, b, _| b - a);
    singles("v_mul_f32", |a, b, _| a * b);
    singles("v_floor_f32", |a, _, _| a.floor());
    singles("v_ceil_f32", |a, _, _| a.ceil());
    singles("v_trunc_f32", |a, _, _| a.trunc());
    singles("v_rndne_f32", |a, _, _| a.round_ties_even());
    // These take subnormal numbers as zeros.
    let given = |a: f64| if (a as f32).is_subnormal() { 0f64.copysign(a) } else { a };
    singles("v_rcp_f32", |a, _, _| 1.0 / given(a));
    singles("v_sqrt_f32", |a, _, _| given(a).sqrt());
    singles("v_log_f32", |a, _, _| given(a).log2());
    singles("v_exp_f32", |a, _, _| a.exp2());
    check(
        "v_fma_f32",
        |a, b| a == b || f32::from_bits(a).is_nan() && f32::from_bits(b).is_nan(),
        |a, b, c| f32::from_bits(a).mul_add(f32::from_bits(b), f32::from_bits(c)).to_bits(),
    );
}

#[test]
fn halves_are_those_of_f32() {
    halves("v_add_f16", |a, b| a + b);
    halves("v_sub_f16", |a, b| a - b);
    halves("v_mul_f16", |a, b| a * b);
    halves("v_floor_f16", |a, _| a.floor());
    halves("v_sqrt_f16", |a, _| a.sqrt());
    halves("v_rcp_f16", |a, _| 1.0 / a);
}

#[test]
fn words_are_those_of_integers() {
    words("v_add_nc_u32", |a, b, _| a.wrapping_add(b));
    words("v_sub_nc_u32", |a, b, _| a.wrapping_sub(b));
    words("v_mul_lo_u32", |a, b, _| a.wrapping_mul(b));
    words("v_mul_hi_u32", |a, b, _| ((u128::from(a) * u128::from(b)) >> 32) as u32);
    words("v_mul_hi_i32", |a, b, _| ((i128::from(a as i32) * i128::from(b as i32)) >> 32) as u32);
    words("v_mad_u32_u24", |a, b, c| (a & 0xff_ffff).wrapping_mul(b & 0xff_ffff).wrapping_add(c));
    words("v_lshlrev_b32", |a, b, _| (u64::from(b) << (a % 32)) as u32);
    words("v_lshrrev_b32", |a, b, _| b / (1u32 << (a % 32)));
    words("v_ashrrev_i32", |a, b, _| (i64::from(b as i32) >> (a % 32)) as u32);
    words("v_bfe_u32", |a, b, c| ((u64::from(a) >> (b % 32)) % (1u64 << (c % 32))) as u32);
    words("v_bfi_b32", |a, b, c| (0..32).map(|k| (if a >> k & 1 != 0 { b } else { c }) & 1 << k).sum());
    words("v_perm_b32", |a, b, c| {
        let bytes: Vec<u8> = b.to_le_bytes().into_iter().chain(a.to_le_bytes()).collect();
        u32::from_le_bytes(c.to_le_bytes().map(|which| match which {
            0..=7 => bytes[usize::from(which)],
            8..=11 => {
                if bytes[usize::from(which - 8) * 2 + 1] >= 128 {
                    255
                } else {
                    0
                }
            }
            12 => 0,
            _ => 255,
        }))
    });
    words("v_min_i32", |a, b, _| if (a as i32) < b as i32 { a } else { b });
    words("v_max_u32", |a, b, _| if a > b { a } else { b });
    words("v_med3_i32", |a, b, c| {
        let mut all = [a as i32, b as i32, c as i32];
        all.sort_unstable();
        all[1] as u32
    });
    words("v_bfrev_b32", |a, _, _| (0..32).map(|k| (a >> k & 1) << (31 - k)).sum());
    words("v_bcnt_u32_b32", |a, b, _| b.wrapping_add((0..32).map(|k| a >> k & 1).sum()));
    words("v_xor3_b32", |a, b, c| a ^ b ^ c);
    words("v_add3_u32", |a, b, c| (u64::from(a) + u64::from(b) + u64::from(c)) as u32);
    words("v_lshl_add_u32", |a, b, c| ((u64::from(a) << (b % 32)) + u64::from(c)) as u32);
}

/// The differences of bytes, without those that are zero in the second word where `masked`.
fn byte_differences(a: u32, b: u32, masked: bool) -> i64 {
    let pairs = a.to_le_bytes().into_iter().zip(b.to_le_bytes());
    pairs.filter(|(_, b)| !masked || *b != 0).map(|(a, b)| (i64::from(a) - i64::from(b)).abs()).sum()
}

#[test]
fn sums_of_differences() {
    words("v_sad_hi_u8", |a, b, c| ((byte_differences(a, b, false) << 16) + i64::from(c)) as u32);
    words("v_msad_u8", |a, b, c| (byte_differences(a, b, true) + i64::from(c)) as u32);
    words("v_lerp_u8", |a, b, c| {
        let [a, b, c] = [a, b, c].map(u32::to_le_bytes);
        u32::from_le_bytes(std::array::from_fn(|k| {
            ((i64::from(a[k]) + i64::from(b[k]) + i64::from(c[k] & 1)) / 2) as u8
        }))
    });
    let mut noise = Noise(9);
    let rows: [[u32; 32]; 6] = std::array::from_fn(|_| std::array::from_fn(|_| noise.next()));
    for (name, masked) in [("v_qsad_pk_u16_u8", false), ("v_mqsad_pk_u16_u8", true)] {
        let out = carry_out(name, &rows, u64::from(u32::MAX));
        for lane in 0..32 {
            let bytes = [rows[0][lane].to_le_bytes(), rows[1][lane].to_le_bytes()].concat();
            let sums = [rows[4][lane] as u16, (rows[4][lane] >> 16) as u16, rows[5][lane] as u16];
            for (place, before) in sums.into_iter().enumerate() {
                let a = u32::from_le_bytes(bytes[place..place + 4].try_into().expect("four bytes"));
                let expected = (byte_differences(a, rows[2][lane], masked) + i64::from(before)) as u16;
                assert_eq!((out[place / 2][lane] >> (16 * (place % 2))) as u16, expected, "{name} {place}");
            }
        }
    }
}

#[test]
fn faces_of_a_cube() {
    let value = |bits: u32| f64::from(f32::from_bits(bits));
    // The axis of the greatest size; of equal ones z before y before x.
    let axis = |a: f64, b: f64, c: f64| {
        let most = a.abs().max(b.abs()).max(c.abs());
        [c, b, a].iter().position(|it| it.abs() == most).map_or(0, |at| 2 - at)
    };
    let same = |a: u32, b: u32| a == b || value(a).is_nan() || value(a) == value(b);
    let known = |a: u32, b: u32, c: u32| ![a, b, c].iter().any(|&bits| value(bits).is_nan());
    check("v_cubeid_f32", same, |a, b, c| {
        let [x, y, z] = [a, b, c].map(value);
        let at = axis(x, y, z);
        let behind = f64::from([x, y, z][at] < 0.0);
        if known(a, b, c) {
            ((2.0 * at as f64 + behind) as f32).to_bits()
        } else {
            carry_one("v_cubeid_f32", [a, b, c])
        }
    });
    check("v_cubema_f32", same, |a, b, c| {
        let all = [a, b, c].map(value);
        let twice = (2.0 * all[axis(all[0], all[1], all[2])]) as f32;
        if known(a, b, c) { twice.to_bits() } else { carry_one("v_cubema_f32", [a, b, c]) }
    });
}

/// One lane's result, where a model has nothing to say.
fn carry_one(name: &str, [a, b, c]: [u32; 3]) -> u32 {
    carry_out(name, &[[a; 32], [0; 32], [b; 32], [0; 32], [c; 32], [0; 32]], 1)[0][0]
}

#[test]
fn conversions_end_at_limits() {
    let single = |bits: u32| f64::from(f32::from_bits(bits));
    let toward = |value: f64, low: f64, high: f64| if value.is_nan() { 0.0 } else { value.trunc().clamp(low, high) };
    words("v_cvt_i32_f32", |a, _, _| toward(single(a), -2f64.powi(31), 2f64.powi(31) - 1.0) as i64 as u32);
    words("v_cvt_u32_f32", |a, _, _| toward(single(a), 0.0, 2f64.powi(32) - 1.0) as u64 as u32);
    words("v_cvt_f32_i32", |a, _, _| (f64::from(a as i32) as f32).to_bits());
    words("v_cvt_f32_u32", |a, _, _| (f64::from(a) as f32).to_bits());
    words("v_cvt_pk_i16_i32", |a, b, _| {
        let short = |word: u32| (word as i32).clamp(-0x8000, 0x7fff) as u32 & 0xffff;
        short(a) | short(b) << 16
    });
}

#[test]
fn pairs_of_halves_are_two() {
    let value = |bits: u32| half::f16::from_bits(bits as u16).to_f32();
    let one = |a: u32, b: u32, f: fn(f32, f32) -> f32| u32::from(half::f16::from_f32(f(value(a), value(b))).to_bits());
    let nan = |bits: u32| bits & 0x7fff > 0x7c00;
    let same = |a: u32, b: u32| [0, 16].iter().all(|&k| (a ^ b) >> k & 0xffff == 0 || nan(a >> k) && nan(b >> k));
    type Function = fn(f32, f32) -> f32;
    let functions: [(&str, Function); 2] = [("v_pk_add_f16", |a, b| a + b), ("v_pk_mul_f16", |a, b| a * b)];
    for (name, f) in functions {
        check(name, same, |a, b, _| one(a, b, f) | one(a >> 16, b >> 16, f) << 16);
    }
    words("v_pk_add_u16", |a, b, _| (a.wrapping_add(b) & 0xffff) | (a >> 16).wrapping_add(b >> 16) << 16);
}
