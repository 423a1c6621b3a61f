//! Compacted instructions: 64 bits, of which some index tables of what the others are.
//!
//! The tables are the hardware's. Each entry holds several fields of the full instruction, listed
//! from its lowest bit on by the constants named `…_FIELDS`.

use super::Generation;
use super::bits::{Bits, field};

const CONTROL: [u32; 32] = [
    0x4, 0x3, 0x2000, 0x2004, 0x2003, 0x80004, 0x24, 0xa0004, 0x0, 0x10004, 0x13, 0x60004, 0x20004, 0x22004, 0x40004,
    0x104, 0xa0003, 0x184, 0x2001, 0x144, 0x1c4, 0x82004, 0x23, 0x33, 0xa2004, 0x80003, 0x22000, 0x10003, 0xa0084,
    0x20003, 0x8003, 0x2024,
];
const DATATYPE: [u32; 32] = [
    0xd6954, 0x6954, 0x2b54, 0x56d54, 0xd4954, 0xd2954, 0x54d54, 0x800, 0xd0954, 0x2eccc, 0xb68cc, 0x52d54, 0x96844,
    0x50d54, 0x36ccc, 0x16c44, 0x7154, 0x2cccc, 0x822, 0x2844, 0x26c2a, 0xec22, 0x97044, 0x694c, 0x8c8cc, 0x6854,
    0x2ec4c, 0x2822, 0x6834, 0x6814, 0x68d4, 0x2954,
];
const SUBREGISTER: [u32; 32] = [
    0x0, 0x4000, 0x1000, 0x3000, 0x80, 0x2000, 0x5000, 0x8, 0x100, 0x6000, 0x7000, 0x200, 0x4, 0x300, 0x280, 0x180,
    0x380, 0x1c, 0x10, 0xc, 0x18, 0x14, 0x2, 0x140, 0x40, 0x84, 0x5c, 0x42, 0x18c, 0x20, 0x60, 0x6300,
];
const SOURCE_0: [u32; 16] =
    [0x464, 0x0, 0x466, 0x465, 0x2, 0x200, 0x240, 0x340, 0x224, 0x300, 0x226, 0x344, 0x467, 0x100, 0x1, 0xf10];
const SOURCE_1: [u32; 16] =
    [0x119, 0x0, 0x919, 0x800, 0x519, 0x8d0, 0x80, 0x89, 0x889, 0xd0, 0xd1, 0xc0, 0xd19, 0x400, 0xc00, 0x8d1];
const THREE_CONTROL: [u64; 32] = [
    0x4a540004, 0x4a540003, 0x48540003, 0x4a542003, 0x48542003, 0x48540013, 0x4a540013, 0x48542013, 0x4a542013,
    0x4a542004, 0x48540004, 0x4a550004, 0x4a540024, 0x48542004, 0x4a542000, 0x4a550003, 0x48542033, 0x48542023,
    0x4a542033, 0x4a542023, 0x48540023, 0x48540033, 0x4a540023, 0x4a540033, 0x48550004, 0x4a552004, 0x4a542024,
    0x4a442000, 0x48540024, 0x4a550024, 0x4a542002, 0x48550003,
];
const THREE_SOURCE: [u32; 32] = [
    0x12c300, 0x12c242, 0x16c343, 0x12c343, 0x160143, 0x16c34b, 0x14c343, 0x10c300, 0x16c300, 0x16cb43, 0x16e343,
    0x160100, 0x10c343, 0x12e300, 0x12e343, 0x12c34b, 0x120143, 0x12c308, 0x120100, 0x16e300, 0x12cb00, 0x14c300,
    0x12cb43, 0x16cb4b, 0x14c34b, 0x16e34b, 0x162143, 0x160943, 0x16c308, 0x16cb00, 0x120943, 0x14cb43,
];
const THREE_SUBREGISTER: [u32; 32] = [
    0x0, 0x20000, 0x180, 0xa0000, 0x80380, 0x60000, 0x40000, 0x2000, 0x1000, 0xc0000, 0x80000, 0xe0000, 0x6000, 0x80,
    0x4000, 0x3000, 0x5000, 0x7000, 0x100, 0x200, 0x300, 0x280, 0x380, 0xc0380, 0x20100, 0x20180, 0x40180, 0x80300,
    0x80280, 0x60080, 0xa0380, 0x40080,
];

const HPG_SOURCE_0: [u32; 16] =
    [0x100, 0x0, 0x102, 0x101, 0x2, 0x200, 0x240, 0x340, 0x300, 0x103, 0x1, 0xf10, 0x460, 0x140, 0x448, 0x202];
const HPG_SOURCE_1: [u32; 16] =
    [0x40, 0x0, 0x840, 0x800, 0x440, 0x8d0, 0x80, 0xd0, 0xc0, 0xc40, 0x400, 0xc00, 0x118, 0x880, 0x809, 0x844];
const HPG_THREE_CONTROL: [u64; 32] = [
    0x94540004,
    0x94540003,
    0x90540003,
    0x94542003,
    0x90542003,
    0x90540013,
    0x94540013,
    0x90542013,
    0x94542013,
    0x94542004,
    0x90540004,
    0x94550004,
    0x94540024,
    0x90542004,
    0x94542000,
    0x94550003,
    0x90542023,
    0x90542033,
    0x94542023,
    0x94542033,
    0x90540033,
    0x90540023,
    0x27cc0003,
    0x7cc4003,
    0x127cc4003,
    0x107cc4003,
    0x127cc0003,
    0x7cc0003,
    0x27cc4003,
    0x107cc0003,
    0x16f544003,
    0x16f540003,
];
const HPG_THREE_SOURCE: [u32; 32] = [
    0x120300, 0x120201, 0x160301, 0x120301, 0x160101, 0x160309, 0x140301, 0x160300, 0x100300, 0x160b01, 0x162301,
    0x160100, 0x100301, 0x122300, 0x122301, 0x120309, 0x120101, 0x120308, 0x120100, 0x162300, 0x120b00, 0x140300,
    0x120b01, 0x160b09, 0x122100, 0x120900, 0x122900, 0x121100, 0x121900, 0x120500, 0x121500, 0x122500,
];

/// First and last bit of each field that an entry has, from the lowest on.
pub type Fields = &'static [(u32, u32)];

const CONTROL_FIELDS: Fields =
    &[(16, 18), (19, 21), (22, 23), (24, 27), (28, 28), (31, 31), (32, 32), (33, 33), (34, 34), (92, 95)];
const DATATYPE_FIELDS: Fields =
    &[(35, 35), (36, 39), (40, 43), (46, 46), (47, 47), (48, 49), (50, 50), (66, 66), (88, 91), (98, 98)];
const SUBREGISTER_FIELDS: Fields = &[(51, 55), (67, 71), (99, 103)];
const SOURCE_0_FIELDS: Fields = &[(44, 45), (64, 65), (80, 80), (81, 83), (84, 87)];
const SOURCE_1_FIELDS: Fields = &[(96, 97), (112, 112), (113, 115), (116, 119), (120, 121)];
const THREE_CONTROL_FIELDS: Fields = &[
    (16, 18),
    (19, 21),
    (22, 22),
    (23, 23),
    (24, 27),
    (28, 28),
    (31, 31),
    (32, 32),
    (33, 33),
    (34, 34),
    (36, 38),
    (39, 39),
    (40, 42),
    (48, 48),
    (50, 50),
    (80, 82),
    (88, 90),
    (92, 95),
];
const HPG_THREE_CONTROL_FIELDS: Fields = &[
    (16, 18),
    (19, 21),
    (22, 22),
    (23, 23),
    (24, 27),
    (28, 28),
    (31, 31),
    (32, 32),
    (33, 33),
    (34, 34),
    (36, 38),
    (39, 39),
    (40, 42),
    (48, 49),
    (50, 50),
    (80, 82),
    (88, 90),
    (92, 95),
];
const THREE_SOURCE_FIELDS: Fields = &[
    (35, 35),
    (43, 43),
    (44, 45),
    (46, 46),
    (47, 47),
    (64, 65),
    (66, 66),
    (83, 83),
    (84, 85),
    (86, 87),
    (91, 91),
    (96, 97),
    (98, 98),
    (112, 113),
    (114, 114),
];
const THREE_SUBREGISTER_FIELDS: Fields = &[(51, 55), (67, 71), (99, 103), (115, 119)];

/// Puts an entry's fields where the full instruction has them.
pub fn spread(mut entry: u64, fields: Fields) -> Bits {
    let mut bits = 0;
    for &(first, last) in fields {
        let width = last - first + 1;
        bits |= u128::from(entry & ((1 << width) - 1)) << first;
        entry >>= width;
    }
    bits
}

/// The full instruction of a compacted one, of an operation with two sources at most.
pub fn expand_two(generation: Generation, compact: u64) -> Bits {
    let hpg = generation == Generation::XeHpg;
    let part = |last, first| field(u128::from(compact), last, first);
    let entry = |table: &[u32], index: u64| u64::from(table[index as usize]);
    let mut bits = u128::from(compact & 0x7f);
    bits |= u128::from(part(7, 7)) << 30;
    bits |= u128::from(part(15, 8)) << 8;
    bits |= spread(entry(&CONTROL, part(28, 24)), CONTROL_FIELDS);
    bits |= spread(entry(&DATATYPE, part(34, 30)), DATATYPE_FIELDS);
    bits |= spread(entry(&SUBREGISTER, part(39, 35)), SUBREGISTER_FIELDS);
    bits |= spread(entry(if hpg { &HPG_SOURCE_0 } else { &SOURCE_0 }, part(51, 48)), SOURCE_0_FIELDS);
    bits |= u128::from(part(23, 16)) << 56;
    bits |= u128::from(part(47, 40)) << 72;
    let (first, second) = (field(bits, 46, 46) != 0, field(bits, 47, 47) != 0);
    if first || second {
        let kind = if first { field(bits, 43, 40) } else { field(bits, 91, 88) };
        // What the value covers is not the second source's.
        bits &= !(0xffff_ffff << 96);
        bits |= u128::from(immediate(kind, part(63, 52) as u32)) << 96;
    } else {
        bits |= spread(entry(if hpg { &HPG_SOURCE_1 } else { &SOURCE_1 }, part(55, 52)), SOURCE_1_FIELDS);
        bits |= u128::from(part(63, 56)) << 104;
    }
    bits
}

/// The full instruction of a compacted one, of an operation with three sources.
pub fn expand_three(generation: Generation, compact: u64) -> Bits {
    let hpg = generation == Generation::XeHpg;
    let part = |last, first| field(u128::from(compact), last, first);
    let mut bits = u128::from(compact & 0x7f);
    bits |= u128::from(part(7, 7)) << 30;
    bits |= u128::from(part(15, 8)) << 8;
    let control = part(28, 24) as usize;
    bits |= if hpg {
        spread(HPG_THREE_CONTROL[control], HPG_THREE_CONTROL_FIELDS)
    } else {
        spread(THREE_CONTROL[control], THREE_CONTROL_FIELDS)
    };
    let table = if hpg { &HPG_THREE_SOURCE } else { &THREE_SOURCE };
    bits |= spread(u64::from(table[part(34, 30) as usize]), THREE_SOURCE_FIELDS);
    bits |= spread(u64::from(THREE_SUBREGISTER[part(39, 35) as usize]), THREE_SUBREGISTER_FIELDS);
    bits |= u128::from(part(23, 16)) << 56;
    bits |= u128::from(part(47, 40)) << 72;
    bits |= u128::from(part(63, 56)) << 104;
    bits |= u128::from(part(55, 48)) << 120;
    bits
}

/// 12 bits as a value of the type that has this number.
fn immediate(kind: u64, compact: u32) -> u32 {
    let signed = (compact << 20) as i32 >> 20;
    match kind {
        // HF: its upper bits, twice.
        9 => compact << 20 | compact << 4,
        // F: its upper bits.
        10 => compact << 20,
        // UW, twice.
        1 => compact << 16 | compact,
        // W, twice.
        5 => (signed as u32) << 16 | (signed as u32 & 0xffff),
        // D.
        6 => signed as u32,
        // UD and vectors.
        _ => compact,
    }
}
