//! The matrix units: `dpas`.
//!
//! A channel has a column of the result. Registers of the second source have factors of it: a word
//! of each channel for a step, in which two or four elements follow each other. The third source
//! has as many words for each row, which all channels share.
//!
//! In which order the unit adds and how often it rounds was not seen. Here sums are exact as far as
//! f64 goes, and are rounded once. Whole numbers are exact.

use half::{bf16, f16};

use super::thread::Thread;
use super::{Outcome, Trap};
use crate::isa::DEPTH;
use crate::isa::instruction::{Instruction, Place, Source, Target, Type};

/// Carries it out.
///
/// # Errors
///
/// Operands that are in no registers, which decoding leaves out.
pub fn run(thread: &mut Thread, it: &Instruction, mask: u32) -> Outcome {
    let channels = usize::from(it.channels);
    let [added, right, left] = &it.source;
    let parts = 4 / right.kind.bytes();
    let mut rows = Vec::with_capacity(it.message.function.into());
    for row in 0..usize::from(it.message.function) {
        let mut results = [0; 32];
        for (channel, result) in results.iter_mut().enumerate().take(channels) {
            let factors = (0..DEPTH * parts).map(|k| {
                let (step, part) = (k / parts, k % parts);
                ((step * channels + channel) * parts + part, row * DEPTH * parts + k)
            });
            *result = if it.to.kind.is_float() {
                let before = float(thread, added, row * channels + channel)?;
                let mut sum = before;
                for (of_right, of_left) in factors {
                    sum += float(thread, left, of_left)? * float(thread, right, of_right)?;
                }
                bits(it.to.kind, sum)
            } else {
                let mut sum = integer(thread, added, row * channels + channel)?;
                for (of_right, of_left) in factors {
                    sum += integer(thread, left, of_left)? * integer(thread, right, of_right)?;
                }
                let (low, high) = super::region::limits(it.to.kind);
                (if it.saturate { sum.clamp(low, high) } else { sum }) as u64
            };
        }
        rows.push(results);
    }
    let Place::File(first) = it.to.place else { return Err(Trap::missing("a matrix in no registers")) };
    for (row, results) in rows.iter().enumerate() {
        let place = Place::File(first + (row * channels * it.to.kind.bytes()) as u16);
        thread.put(&Target { place, ..it.to }, channels, mask, results)?;
    }
    Ok(())
}

/// The element of a matrix by its number.
fn element(thread: &Thread, source: &Source, number: usize) -> Outcome<u64> {
    match source.place {
        Place::Null => Ok(0),
        Place::File(first) => Ok(thread.bits(usize::from(first) + number * source.kind.bytes(), source.kind.bytes())),
        _ => Err(Trap::missing("a matrix in no registers")),
    }
}

fn float(thread: &Thread, source: &Source, number: usize) -> Outcome<f64> {
    let bits = element(thread, source, number)?;
    Ok(match source.kind {
        Type::HF => f16::from_bits(bits as u16).to_f64(),
        Type::BF => bf16::from_bits(bits as u16).to_f64(),
        _ => f32::from_bits(bits as u32).into(),
    })
}

fn integer(thread: &Thread, source: &Source, number: usize) -> Outcome<i64> {
    Ok(super::region::extend(source.kind, element(thread, source, number)?))
}

fn bits(kind: Type, value: f64) -> u64 {
    match kind {
        Type::HF => f16::from_f64(value).to_bits().into(),
        Type::BF => bf16::from_f64(value).to_bits().into(),
        _ => (value as f32).to_bits().into(),
    }
}
