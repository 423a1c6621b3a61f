//! Operands of `dpas`, the matrix units' instruction. Its fields are its own.

use super::bits::{Bits, bit, field};
use super::decode::{kind, place};
use super::file;
use super::instruction::{Instruction, Place, Source, Target, Type};

/// Registers of the second matrix, of which each has the factors of one step.
pub const DEPTH: usize = 8;

/// Channels of an instruction: columns of the result.
const CHANNELS: usize = 8;

/// Reads them: the matrix that is added to, the right factor and the left one.
pub(super) fn operands(bits: Bits, it: &mut Instruction) -> Result<(), String> {
    let get = |last, first| field(bits, last, first);
    let float = if bit(bits, 39) { 8 } else { 0 };
    let kinds = [(38, 36), (42, 40), (90, 88), (82, 80)].map(|(last, first)| kind(get(last, first) | float, false));
    let [to, sum, right, left] = kinds;
    let (to, kinds) = (to?, [sum?, right?, left?]);
    let rows = get(45, 43) as usize + 1;
    if get(49, 48) != 3 || usize::from(it.channels) != CHANNELS || get(87, 84) != 0 {
        return Err("a product of matrices of this depth, width or of parts of bytes".into());
    }
    let sums = |kind| matches!(kind, Type::F | Type::HF | Type::BF | Type::D | Type::UD);
    let factors = |kind| matches!(kind, Type::HF | Type::BF | Type::B | Type::UB);
    let [_, right, left] = kinds;
    if !sums(to) || !sums(kinds[0]) || !factors(right) || !factors(left) || right.bytes() != left.bytes() {
        return Err(format!("a product of matrices of {right:?} and {left:?} in {to:?}"));
    }
    let at = |file, number: (u32, u32), byte: (u32, u32), kind| {
        place(bit(bits, file), get(number.0, number.1), get(byte.0, byte.1), kind)
    };
    let within = |place: Place, bytes: usize| match place {
        Place::File(byte) if usize::from(byte) + bytes <= file::GENERAL => Ok(()),
        _ => Err("a matrix beyond the registers".to_owned()),
    };
    it.to = Target { place: at(50, (63, 56), (55, 51), to)?, kind: to, stride: 1 };
    within(it.to.place, rows * CHANNELS * to.bytes())?;
    let fields = [(66, (79, 72), (71, 67)), (98, (111, 104), (103, 99)), (114, (127, 120), (119, 115))];
    let sizes = [rows * CHANNELS * kinds[0].bytes(), DEPTH * CHANNELS * 4, rows * DEPTH * 4];
    for (k, (file, number, byte)) in fields.into_iter().enumerate() {
        let place = at(file, number, byte, kinds[k])?;
        // Without a first source nothing is added to.
        if k > 0 || place != Place::Null {
            within(place, sizes[k])?;
        }
        it.source[k] = Source { place, kind: kinds[k], vertical: 1, ..Source::NONE };
    }
    it.condition = 0;
    it.message.function = rows as u8;
    Ok(())
}
