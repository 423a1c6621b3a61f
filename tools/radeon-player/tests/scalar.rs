//! Scalar instructions against models of a line each, with seeded numbers: a program of one
//! instruction that leaves its result and the condition bit in memory.

#![cfg(target_os = "linux")]

use std::sync::LazyLock;

use radeon_player::dispatch::Dispatch;
use radeon_player::execute::run_workgroup;
use radeon_player::isa::instruction::Encoding;
use radeon_player::isa::{Generation, Program, tables};
use radeon_player::memory::Memory;
use radeon_player::report::{Counts, Options};

const BUFFER: u64 = 0x8000_0000_0000;

static MEMORY: LazyLock<Memory> = LazyLock::new(|| {
    let memory = Memory::new();
    memory.map_anonymous(BUFFER, 4096);
    memory
});

/// The first word of an instruction that writes s8, of s4 and s6 (pairs where it takes 64 bits).
fn encode(name: &str) -> u32 {
    let find = |(key, row): (&(Encoding, u16), &tables::Row)| (row.name == name).then_some(*key);
    let (encoding, number) = tables::of(Generation::Rdna3).iter().find_map(find).expect("an instruction of the table");
    let number = u32::from(number);
    match encoding {
        Encoding::Sop1 => 0x17d << 23 | 8 << 16 | number << 8 | 4,
        Encoding::Sop2 => 2 << 30 | number << 23 | 8 << 16 | 6 << 8 | 4,
        Encoding::Sopc => 0x17e << 23 | number << 16 | 6 << 8 | 4,
        other => panic!("{name} is {other:?}"),
    }
}

/// The result in 64 bits, and the condition bit after it, which was set before.
fn run(name: &str, a: u64, b: u64) -> (u64, bool) {
    static ONE_AT_A_TIME: std::sync::Mutex<()> = std::sync::Mutex::new(());
    let _held = ONE_AT_A_TIME.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let code = [
        // s_mov_b32 s8, 0; s_mov_b32 s9, 0; s_cmp_eq_u32 0, 0
        0xbe88_0080,
        0xbe89_0080,
        0xbf06_8080,
        encode(name),
        // s_cselect_b32 s10, 1, 0; v_mov_b32 v1, s8; v_mov_b32 v2, s9; v_mov_b32 v3, s10; v_mov_b32
        // v0, 0
        0x980a_8081,
        0x7e02_0208,
        0x7e04_0209,
        0x7e06_020a,
        0x7e00_0280,
        // global_store_b96 v0, v[1:3], s[0:1]; s_endpgm
        0xdc72_0000,
        0x0000_0100,
        0xbfb0_0000,
    ];
    let program = Program::decode(Generation::Rdna3, &code, 0x1000).expect("a program");
    let mut user = [0; 16];
    for (register, value) in [(0, BUFFER), (4, a), (6, b)] {
        (user[register], user[register + 1]) = (value as u32, (value >> 32) as u32);
    }
    let dispatch = Dispatch {
        generation: Generation::Rdna3,
        number: 1,
        code: 0x1000,
        wave: 32,
        user,
        rsrc1: 0xf0 << 12,
        rsrc2: 8 << 1,
        rsrc3: 0,
        threads: [1; 3],
        groups: [1; 3],
        start: [0; 3],
        last: [1; 3],
        scratch: 0,
    };
    let options = Options { threads: 1, ..Options::default() };
    run_workgroup(&program, &dispatch, [0; 3], &MEMORY, &options, &mut Counts::default()).expect(name);
    let mut bytes = [0; 12];
    assert!(MEMORY.read(BUFFER, &mut bytes));
    let word = |k: usize| u32::from_le_bytes(bytes[4 * k..][..4].try_into().expect("four bytes"));
    (u64::from(word(0)) | u64::from(word(1)) << 32, word(2) != 0)
}

/// Numbers of every size, with the ends of each range.
fn numbers() -> Vec<u64> {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut numbers =
        vec![0, 1, 31, 32, 63, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff, 1 << 63, u64::MAX, 0x10_0005, 0x40_0000];
    for shift in 0..24 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        numbers.push(state >> (shift * 2));
    }
    numbers
}

type Model = fn(u64, u64) -> (u64, Option<bool>);

fn check(models: &[(&str, Model)]) {
    for &(name, model) in models {
        for &a in &numbers() {
            for &b in &numbers() {
                let (value, bit) = model(a, b);
                // Where a model has no condition bit it stays as it was.
                assert_eq!(run(name, a, b), (value, bit.unwrap_or(true)), "{name} of {a:#x} and {b:#x}");
            }
        }
    }
}

fn low(value: u64) -> u64 {
    value & 0xffff_ffff
}

/// A result of 32 bits and whether it is not zero.
fn set(value: u64) -> (u64, Option<bool>) {
    (low(value), Some(low(value) != 0))
}

fn set64(value: u64) -> (u64, Option<bool>) {
    (value, Some(value != 0))
}

fn int(value: u64) -> i64 {
    i64::from(value as i32)
}

fn fits(value: i64) -> bool {
    i32::try_from(value).is_ok()
}

#[test]
fn arithmetic() {
    check(&[
        ("s_add_u32", |a, b| (low(low(a) + low(b)), Some(low(a) + low(b) > 0xffff_ffff))),
        ("s_sub_u32", |a, b| (low(low(a).wrapping_sub(low(b))), Some(low(b) > low(a)))),
        ("s_add_i32", |a, b| (low((int(a) + int(b)) as u64), Some(!fits(int(a) + int(b))))),
        ("s_sub_i32", |a, b| (low((int(a) - int(b)) as u64), Some(!fits(int(a) - int(b))))),
        // With the condition bit set.
        ("s_addc_u32", |a, b| (low(low(a) + low(b) + 1), Some(low(a) + low(b) + 1 > 0xffff_ffff))),
        ("s_subb_u32", |a, b| (low(low(a).wrapping_sub(low(b) + 1)), Some(low(b) + 1 > low(a)))),
        ("s_mul_i32", |a, b| (low((u128::from(low(a)) * u128::from(low(b))) as u64), None)),
        ("s_mul_hi_u32", |a, b| (((u128::from(low(a)) * u128::from(low(b))) >> 32) as u64, None)),
        ("s_mul_hi_i32", |a, b| (low(((int(a) * int(b)) >> 32) as u64), None)),
        ("s_min_i32", |a, b| (low(int(a).min(int(b)) as u64), Some(int(a) < int(b)))),
        ("s_max_u32", |a, b| (low(a).max(low(b)), Some(low(a) > low(b)))),
        ("s_absdiff_i32", |a, b| set(i64::from((a as i32).wrapping_sub(b as i32)).unsigned_abs())),
        ("s_abs_i32", |a, _| set(int(a).unsigned_abs())),
        ("s_lshl3_add_u32", |a, b| (low(low(a) * 8 + low(b)), Some(low(a) * 8 + low(b) > 0xffff_ffff))),
        ("s_sext_i32_i8", |a, _| (low(i64::from(a as i8) as u64), None)),
    ]);
}

#[test]
fn logic_and_shifts() {
    check(&[
        ("s_and_b64", |a, b| set64(a & b)),
        ("s_nand_b32", |a, b| set(!(a & b))),
        ("s_or_not1_b64", |a, b| set64(a | !b)),
        ("s_and_not1_b32", |a, b| set(a & !b)),
        ("s_xnor_b64", |a, b| set64(!(a ^ b))),
        ("s_not_b64", |a, _| set64(!a)),
        ("s_lshl_b32", |a, b| set(low(a) << (b & 31))),
        ("s_lshl_b64", |a, b| set64(a << (b & 63))),
        ("s_ashr_i32", |a, b| set((int(a) >> (b & 31)) as u64)),
        ("s_ashr_i64", |a, b| set64((a as i64 >> (b & 63)) as u64)),
        ("s_brev_b64", |a, _| (a.reverse_bits(), None)),
        ("s_bcnt1_i32_b64", |a, _| set(u64::from(a.count_ones()))),
        ("s_ctz_i32_b32", |a, _| (if low(a) == 0 { 0xffff_ffff } else { u64::from(a.trailing_zeros()) }, None)),
        ("s_clz_i32_u64", |a, _| (if a == 0 { 0xffff_ffff } else { u64::from(a.leading_zeros()) }, None)),
        ("s_bfm_b32", |a, b| (low(((1 << (a & 31)) - 1) << (b & 31)), None)),
        ("s_pack_hl_b32_b16", |a, b| (low(a) >> 16 | low(b << 16), None)),
    ]);
}

#[test]
fn fields() {
    check(&[
        ("s_bfe_u32", |a, b| {
            let count = b >> 16 & 127;
            set(low(a) >> (b & 31) & if count < 32 { (1 << count) - 1 } else { 0xffff_ffff })
        }),
        ("s_bfe_i64", |a, b| {
            let (first, count) = (b & 63, (b >> 16 & 127) as u32);
            let value = i128::from(a as i64) >> first;
            let field = match count {
                0 => 0,
                count if count >= 64 => value,
                count => (value << (128 - count)) >> (128 - count),
            };
            set64(field as u64)
        }),
    ]);
}

#[test]
fn conditions() {
    check(&[
        ("s_cmp_lt_i32", |a, b| (0, Some(int(a) < int(b)))),
        ("s_cmp_ge_u32", |a, b| (0, Some(low(a) >= low(b)))),
        ("s_cmp_lg_u64", |a, b| (0, Some(a != b))),
        ("s_bitcmp0_b32", |a, b| (0, Some(a >> (b & 31) & 1 == 0))),
        ("s_bitcmp1_b64", |a, b| (0, Some(a >> (b & 63) & 1 == 1))),
        ("s_cselect_b64", |a, _| (a, None)),
        ("s_cmov_b32", |a, _| (low(a), None)),
    ]);
}
