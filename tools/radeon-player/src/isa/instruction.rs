//! A decoded instruction.

use std::fmt;

/// Where a value comes from or goes to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Operand {
    /// Nothing: reads as zero, and takes anything.
    #[default]
    None,
    /// A vector register, the first of several if the value has more bits.
    Vector(u16),
    /// A scalar register by its number in the encoding: 106 is vcc, 125 m0, 126 exec.
    Scalar(u16),
    /// The condition bit, as a number.
    Scc,
    /// A number from the encoding.
    Inline(Inline),
    /// A word that follows the instruction.
    Literal(u32),
}

/// A number from the encoding, which has a value for each size of the operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inline {
    /// As 16 bits.
    pub half: u16,
    /// As 32 bits.
    pub word: u32,
    /// As 64 bits.
    pub double: u64,
}

/// Of a vector instruction, what becomes of its first source before it is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dpp {
    /// From which lane of its row of 16 each lane takes the source; `NONE` if from none. For eights
    /// and quads the lane counts within the row too.
    pub from: [u8; 16],
    /// Rows that take part.
    pub rows: u8,
    /// Banks of four lanes that take part.
    pub banks: u8,
    /// A lane that takes from none gets zero, instead of keeping its result.
    pub zero: bool,
    /// Lanes that are off give their value too.
    pub inactive: bool,
    /// Whether lanes move within eights: then a source lane that is off gives zero.
    pub eights: bool,
}

impl Dpp {
    /// No lane of the row.
    pub const NONE: u8 = 255;
}

/// Of a vector instruction of RDNA1 and RDNA2, which parts of registers it takes and writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sdwa {
    /// The parts of the first two sources.
    pub sources: [Part; 2],
    /// The part of the result's register that is written.
    pub result: u8,
    /// What becomes of the rest of it.
    pub rest: Rest,
}

/// A part of a register, widened to all of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// 0 to 3 for a byte, 4 and 5 for a half, 6 for all of it.
    pub select: u8,
    /// With its sign.
    pub signed: bool,
}

/// What becomes of the bits of a register of which a part is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rest {
    /// They are zero.
    Zero,
    /// Those above are the sign, those below zero.
    Sign,
    /// They stay.
    Keep,
}

impl Part {
    /// All of a register.
    pub const ALL: u8 = 6;

    /// The first bit of a part and how many it has.
    #[must_use]
    pub fn bits(select: u8) -> (u32, u32) {
        match select {
            0..=3 => (u32::from(select) * 8, 8),
            4 | 5 => (u32::from(select - 4) * 16, 16),
            _ => (0, 32),
        }
    }
}

/// One instruction, ready to be carried out. The meaning of `offset` and the order of `source` are
/// those of the assembler.
#[derive(Clone, Debug, Default)]
pub struct Instruction {
    /// The assembler's mnemonic, without the suffix of its encoding.
    pub name: &'static str,
    /// Bytes from the start of the program.
    pub at: u32,
    /// Bytes of the encoding.
    pub size: u8,
    /// The result: of stores and scalar comparisons none.
    pub to: Operand,
    /// A second result: the lane mask of carries.
    pub also: Operand,
    /// Sources, in the assembler's order: address, data, base for memory; address, data, descriptor
    /// and scalar offset for buffers.
    pub source: [Operand; 4],
    /// Which sources are negated, by bit; of packed instructions in their low half.
    pub negate: u8,
    /// Which sources lose their sign, by bit; of packed instructions which are negated in their
    /// high half.
    pub absolute: u8,
    /// Which sources of 16 bits are the high half of their register, by bit; bit 3 is that of the
    /// result.
    pub high: u8,
    /// Of packed and mixed instructions `op_sel_hi`.
    pub high_of_high: u8,
    /// The result is put between 0 and 1, or saturated.
    pub clamp: bool,
    /// The result is times 2 (1), times 4 (2), halved (3).
    pub scale: u8,
    /// Offset of a memory access; `offset0` of two; immediate of scalar instructions.
    pub offset: i32,
    /// Second offset of shared memory.
    pub offset1: u8,
    /// An access of a buffer has the number of a record in a vector register.
    pub indexed: bool,
    /// An access of a buffer has an offset in a vector register, that after the number's if there
    /// is one.
    pub offset_in_register: bool,
    /// An atomic returns what memory had before (glc).
    pub returns: bool,
    /// Where the first source comes from.
    pub dpp: Option<Box<Dpp>>,
    /// Which parts of registers it takes and writes.
    pub sdwa: Option<Box<Sdwa>>,
    /// The second of a pair. With `dpp` or `sdwa` the instruction as it is carried out between
    /// registers that hold what was taken and what is to be written.
    pub second: Option<Box<Instruction>>,
    /// Index of the instruction that a branch goes to.
    pub target: u32,
    /// Types of sources: see [`tables`](super::tables).
    pub signature: &'static str,
    /// Types of results.
    pub results: &'static str,
    /// Index of the encoding's name, for messages.
    pub encoding: Encoding,
}

/// Families of encodings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs)] // Names of the manual.
pub enum Encoding {
    #[default]
    Sop1,
    Sop2,
    Sopk,
    Sopc,
    Sopp,
    Smem,
    Vop1,
    Vop2,
    Vopc,
    Vop3,
    Vop3p,
    Vopd,
    Vinterp,
    Ds,
    Flat,
    Scratch,
    Global,
    Mubuf,
    Mtbuf,
    Mimg,
    Exp,
}

impl Instruction {
    /// The second instruction of a pair.
    #[must_use]
    pub fn pair(&self) -> Option<&Self> {
        self.second.as_deref().filter(|_| self.dpp.is_none() && self.sdwa.is_none())
    }
}

impl fmt::Display for Operand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => write!(f, "off"),
            Self::Vector(register) => write!(f, "v{register}"),
            Self::Scalar(register @ 0..106) => write!(f, "s{register}"),
            Self::Scalar(106) => write!(f, "vcc_lo"),
            Self::Scalar(107) => write!(f, "vcc_hi"),
            Self::Scalar(register @ 108..124) => write!(f, "ttmp{}", register - 108),
            Self::Scalar(124) => write!(f, "null"),
            Self::Scalar(125) => write!(f, "m0"),
            Self::Scalar(126) => write!(f, "exec_lo"),
            Self::Scalar(127) => write!(f, "exec_hi"),
            Self::Scalar(register) => write!(f, "src{register}"),
            Self::Scc => write!(f, "src_scc"),
            Self::Inline(Inline { word, .. }) if (*word as i32) >= -16 && (*word as i32) <= 64 => {
                write!(f, "{}", *word as i32)
            }
            Self::Inline(Inline { word, .. }) => write!(f, "{:?}", f32::from_bits(*word)),
            Self::Literal(word) => write!(f, "{word:#x}"),
        }
    }
}

impl fmt::Display for Instruction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.name)?;
        let mut separator = " ";
        // Bits of modifiers: those of sources, then the result's; a second result has none.
        let all = [(&self.to, 3), (&self.also, 7)].into_iter().chain(self.source.iter().zip(0..));
        for (operand, k) in all.filter(|(operand, _)| **operand != Operand::None) {
            let has = |bits: u8| bits >> k & 1 != 0;
            let (minus, bar) = (has(self.negate) && k < 3, has(self.absolute) && k < 3);
            write!(f, "{separator}{}{}", if minus { "-" } else { "" }, if bar { "|" } else { "" })?;
            write!(f, "{operand}{}{}", if has(self.high) { ".h" } else { "" }, if bar { "|" } else { "" })?;
            separator = ", ";
        }
        if self.offset != 0 {
            write!(f, " offset:{}", self.offset)?;
        }
        if self.offset1 != 0 {
            write!(f, " offset1:{}", self.offset1)?;
        }
        for (word, there) in [
            ("idxen", self.indexed),
            ("offen", self.offset_in_register),
            ("clamp", self.clamp),
            ("dpp", self.dpp.is_some()),
            ("glc", self.returns),
        ] {
            if there {
                write!(f, " {word}")?;
            }
        }
        // What moves between lanes has the same instruction as a second.
        match &self.second {
            Some(second) if self.dpp.is_none() => write!(f, " :: {second}"),
            _ => Ok(()),
        }
    }
}
