//! Compacted instructions of the 9th generation, as [`super::compaction`] has those of Xe.

use super::bits::{Bits, bit, field};
use super::compaction::{Fields, spread};

const CONTROL: [u32; 32] = [
    0x2, 0x4000, 0x4001, 0x4002, 0x4003, 0x4004, 0x4005, 0x4007, 0x4008, 0x4009, 0x400d, 0x6000, 0x6001, 0x6002,
    0x6003, 0x6004, 0x6005, 0x6007, 0x6009, 0x600d, 0x6010, 0x6100, 0x8000, 0x8002, 0x8004, 0x8100, 0x16000, 0x16010,
    0x18000, 0x18100, 0x28000, 0x28100,
];
const DATATYPE: [u32; 32] = [
    0x40001, 0x40040, 0x40041, 0x400c1, 0x4015d, 0x405dd, 0x40741, 0x40745, 0x4075d, 0x41041, 0x43040, 0x43041,
    0x45145, 0x47144, 0x47145, 0x5c75d, 0x5d71d, 0x5d75c, 0x5d75d, 0x5f75c, 0x40c, 0x4005d, 0x40145, 0x41040, 0x45144,
    0x47104, 0x49209, 0x5775d, 0x5f75d, 0x4f34c, 0x49248, 0x4b248,
];
const SUBREGISTER: [u32; 32] = [
    0x0, 0x1, 0x8, 0xf, 0x10, 0x80, 0x100, 0x180, 0x200, 0x210, 0x280, 0x1000, 0x1001, 0x1081, 0x1082, 0x1083, 0x1084,
    0x1087, 0x1088, 0x108e, 0x108f, 0x1180, 0x11e8, 0x2000, 0x2180, 0x3000, 0x3c87, 0x4000, 0x5000, 0x6000, 0x7000,
    0x701c,
];
const SOURCE: [u32; 32] = [
    0x0, 0x2, 0x10, 0x12, 0x18, 0x20, 0x28, 0x48, 0x50, 0x70, 0x78, 0x300, 0x302, 0x308, 0x310, 0x312, 0x320, 0x328,
    0x338, 0x340, 0x342, 0x348, 0x350, 0x360, 0x368, 0x370, 0x371, 0x378, 0x468, 0x469, 0x46a, 0x588,
];
const THREE_CONTROL: [u32; 4] = [0x806001, 0x6001, 0x8001, 0x8021];
const THREE_SOURCE: [u64; 4] = [0x7272720f000, 0x7272720f002, 0x7272720f008, 0x7272720f020];

const CONTROL_FIELDS: Fields = &[(8, 8), (34, 34), (9, 10), (12, 23), (31, 33)];
const DATATYPE_FIELDS: Fields = &[(35, 46), (89, 94), (61, 63)];
const SUBREGISTER_FIELDS: Fields = &[(48, 52), (64, 68), (96, 100)];
const SOURCE_0_FIELDS: Fields = &[(77, 88)];
const SOURCE_1_FIELDS: Fields = &[(109, 120)];
const THREE_CONTROL_FIELDS: Fields = &[(8, 28), (32, 34), (35, 36)];
const THREE_SOURCE_FIELDS: Fields =
    &[(37, 55), (65, 72), (86, 93), (107, 114), (83, 83), (84, 84), (104, 105), (125, 126)];

/// The full instruction of a compacted one, of an operation with two sources at most.
pub fn expand_two(compact: u64) -> Bits {
    let part = |last, first| field(u128::from(compact), last, first);
    let entry = |table: &[u32], index: u64| u64::from(table[index as usize]);
    let mut bits = u128::from(compact & 0x7f);
    bits |= u128::from(part(7, 7)) << 30;
    bits |= spread(entry(&CONTROL, part(12, 8)), CONTROL_FIELDS);
    bits |= spread(entry(&DATATYPE, part(17, 13)), DATATYPE_FIELDS);
    bits |= spread(entry(&SUBREGISTER, part(22, 18)), SUBREGISTER_FIELDS);
    bits |= spread(entry(&SOURCE, part(34, 30)), SOURCE_0_FIELDS);
    bits |= u128::from(part(23, 23)) << 28;
    bits |= u128::from(part(27, 24)) << 24;
    bits |= u128::from(part(47, 40)) << 53;
    bits |= u128::from(part(55, 48)) << 69;
    if field(bits, 42, 41) == 3 || field(bits, 90, 89) == 3 {
        // 13 bits, of which the last is the sign.
        let value = ((part(39, 35) << 8 | part(63, 56)) as u32) << 19;
        bits &= !(0xffff_ffff << 96);
        bits |= u128::from((value as i32 >> 19) as u32) << 96;
    } else {
        bits |= spread(entry(&SOURCE, part(39, 35)), SOURCE_1_FIELDS);
        bits |= u128::from(part(63, 56)) << 101;
    }
    bits
}

/// The full instruction of a compacted one, of an operation with three sources.
pub fn expand_three(compact: u64) -> Bits {
    let part = |last, first| field(u128::from(compact), last, first);
    let mut bits = u128::from(compact & 0x7f);
    bits |= spread(u64::from(THREE_CONTROL[part(9, 8) as usize]), THREE_CONTROL_FIELDS);
    bits |= spread(THREE_SOURCE[part(11, 10) as usize], THREE_SOURCE_FIELDS);
    for (from, to) in [(28, 64), (30, 30), (31, 31), (32, 85), (33, 106)] {
        bits |= u128::from(bit(compact.into(), from)) << to;
    }
    for (last, first, to) in
        [(18, 12, 56), (49, 43, 76), (56, 50, 97), (63, 57, 118), (36, 34, 73), (39, 37, 94), (42, 40, 115)]
    {
        bits |= u128::from(part(last, first)) << to;
    }
    bits
}
