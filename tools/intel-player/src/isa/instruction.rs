//! A decoded instruction.

use std::fmt;

/// Types of operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // their names in the assembler
pub enum Type {
    UB,
    UW,
    UD,
    UQ,
    B,
    W,
    D,
    Q,
    HF,
    BF,
    F,
    DF,
    V,
    UV,
    VF,
}

impl Type {
    /// Bytes of an element.
    #[must_use]
    pub fn bytes(self) -> usize {
        match self {
            Self::UB | Self::B => 1,
            Self::UW | Self::W | Self::HF | Self::BF => 2,
            Self::UD | Self::D | Self::F | Self::V | Self::UV | Self::VF => 4,
            Self::UQ | Self::Q | Self::DF => 8,
        }
    }

    /// Whether it is a floating-point type.
    #[must_use]
    pub fn is_float(self) -> bool {
        matches!(self, Self::HF | Self::BF | Self::F | Self::DF | Self::VF)
    }

    /// Whether it is a signed integer.
    #[must_use]
    pub fn is_signed(self) -> bool {
        matches!(self, Self::B | Self::W | Self::D | Self::Q | Self::V)
    }
}

/// Where an operand is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Nowhere: reads as zero.
    Null,
    /// A byte of the register file, in which the architecture's registers follow the general ones:
    /// see [`super::file`].
    File(u16),
    /// An element of the accumulators, counted in elements of the operand's type.
    Accumulator(u16),
    /// A byte of the register file that address register elements say, from this one on, plus so
    /// many bytes.
    Indirect {
        /// The element of `a0`.
        element: u8,
        /// What is added.
        offset: i16,
        /// An element of `a0` for each row, otherwise one for all.
        each: bool,
    },
    /// A value.
    Immediate(u64),
}

/// A source operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Source {
    /// Where it is.
    pub place: Place,
    /// Its type.
    pub kind: Type,
    /// Elements between rows.
    pub vertical: u8,
    /// Elements in a row.
    pub width: u8,
    /// Elements between elements of a row.
    pub horizontal: u8,
    /// Its sign is turned; of logical operations all its bits.
    pub negate: bool,
    /// Its magnitude.
    pub absolute: bool,
}

impl Source {
    /// No source.
    pub const NONE: Self = Self {
        place: Place::Null,
        kind: Type::UD,
        vertical: 0,
        width: 1,
        horizontal: 0,
        negate: false,
        absolute: false,
    };

    /// Elements from one channel to the next, if all are equally far apart.
    #[must_use]
    pub fn stride(&self) -> Option<usize> {
        let (v, w, h) = (self.vertical, self.width, self.horizontal);
        if w == 1 {
            Some(v.into())
        } else if v == w.wrapping_mul(h) {
            Some(h.into())
        } else {
            None
        }
    }
}

/// A destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// Where it is.
    pub place: Place,
    /// Its type.
    pub kind: Type,
    /// Elements between channels.
    pub stride: u8,
}

/// Operations, by the assembler's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Operation {
    Illegal,
    Sync,
    Nop,
    Mov,
    Sel,
    Not,
    And,
    Or,
    Xor,
    Shr,
    Shl,
    Asr,
    Ror,
    Rol,
    Cmp,
    Cmpn,
    Csel,
    Bfn,
    Bfrev,
    Bfe,
    Bfi1,
    Bfi2,
    Jmpi,
    If,
    Else,
    Endif,
    While,
    Break,
    Cont,
    Halt,
    Wait,
    Send,
    Sendc,
    Sends,
    Math,
    Add,
    Mul,
    Avg,
    Frc,
    Rndu,
    Rndd,
    Rnde,
    Rndz,
    Mac,
    Mach,
    Lzd,
    Fbh,
    Fbl,
    Cbit,
    Addc,
    Subb,
    Dp4a,
    Mad,
    Lrp,
    Add3,
    Dpas,
}

impl Operation {
    /// Whether it is one of three sources.
    #[must_use]
    pub fn has_three(self) -> bool {
        matches!(
            self,
            Self::Bfn
                | Self::Csel
                | Self::Bfe
                | Self::Bfi2
                | Self::Dp4a
                | Self::Mad
                | Self::Lrp
                | Self::Add3
                | Self::Dpas
        )
    }
}

/// What a message has beside registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Message {
    /// The shared function it goes to; of `bfn` its results for each choice of three bits; of
    /// `dpas` the rows of its result.
    pub function: u8,
    /// The descriptor; none if it is in `a0.0`.
    pub descriptor: Option<u32>,
    /// The extended descriptor, or the element of `a0` as words of 32 bits that has it.
    pub extended: Extended,
    /// The thread ends with it.
    pub end: bool,
    /// The first general registers of both parts of what is sent, if there are.
    pub registers: [Option<u8>; 2],
    /// The first general register of what comes back.
    pub answer: Option<u8>,
}

/// The extended descriptor of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extended {
    /// A value.
    Value(u32),
    /// The address register of so many words of 32 bits.
    Address(u8),
}

impl Default for Extended {
    fn default() -> Self {
        Self::Value(0)
    }
}

/// How an instruction is carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Plan {
    /// By what has all types and operations.
    #[default]
    General,
    /// As words of 32 bits.
    Words,
    /// As f32.
    Singles,
}

/// An instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instruction {
    /// Bytes from the start of the kernel.
    pub at: u32,
    /// What it does.
    pub operation: Operation,
    /// Channels.
    pub channels: u8,
    /// Its first channel of those of the thread.
    pub first: u8,
    /// It is carried out for channels that are off too (`WE_all`).
    pub all: bool,
    /// The predicate's kind: 0 for none.
    pub predicate: u8,
    /// The predicate is turned.
    pub inverted: bool,
    /// The first bit of the flags that it reads or writes.
    pub flag: u8,
    /// The condition that sets flags, the function of `math` and `sync`; 0 for none.
    pub condition: u8,
    /// Results are clamped.
    pub saturate: bool,
    /// Results are written to the accumulator too.
    pub accumulate: bool,
    /// How it is carried out.
    pub plan: Plan,
    /// Something else joins at it.
    pub is_target: bool,
    /// Where results go.
    pub to: Target,
    /// Sources.
    pub source: [Source; 3],
    /// Of branches: numbers of the instructions that they lead to (`JIP`, `UIP`).
    pub jump: [u32; 2],
    /// Of messages.
    pub message: Message,
}

const CONDITIONS: [&str; 16] =
    ["", ".z", ".nz", ".g", ".ge", ".l", ".le", ".7", ".o", ".u", ".10", ".11", ".12", ".13", ".14", ".15"];

/// Names of the functions of `math`.
pub const MATH: [&str; 16] = [
    "0",
    "inv",
    "log",
    "exp",
    "sqrt",
    "rsq",
    "sin",
    "cos",
    "8",
    "fdiv",
    "pow",
    "intdivmod",
    "intdiv",
    "intmod",
    "invm",
    "rsqrtm",
];

impl fmt::Display for Instruction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.predicate != 0 {
            let sign = if self.inverted { '-' } else { '+' };
            write!(f, "({sign}f{}.{}", self.flag / 32, self.flag / 16 % 2)?;
            match self.predicate {
                1 => {}
                2 => write!(f, ".anyv")?,
                3 => write!(f, ".allv")?,
                n => write!(f, ".{}{}h", if n % 2 == 0 { "any" } else { "all" }, 1 << (n / 2 - 1))?,
            }
            write!(f, ") ")?;
        }
        let name = format!("{:?}", self.operation).to_lowercase();
        write!(f, "{name}")?;
        match self.operation {
            Operation::Bfn => write!(f, "[{:#04x}]", self.message.function)?,
            Operation::Dpas => write!(f, ".{}x{}", super::systolic::DEPTH, self.message.function)?,
            Operation::Math => write!(f, " {}", MATH[self.condition as usize & 15])?,
            Operation::Sync => {
                let name = match self.condition {
                    0 => "nop",
                    2 => "allrd",
                    3 => "allwr",
                    14 => "bar",
                    15 => "host",
                    _ => "?",
                };
                write!(f, " {name}")?;
            }
            _ => {
                let saturate = if self.saturate { ".sat" } else { "" };
                write!(f, "{saturate}{}", CONDITIONS[self.condition as usize & 15])?;
                if self.condition != 0 && !matches!(self.operation, Operation::Sel | Operation::Csel) {
                    write!(f, ".f{}.{}", self.flag / 32, self.flag / 16 % 2)?;
                }
            }
        }
        if self.operation == Operation::Nop {
            return Ok(());
        }
        write!(f, "({})", self.channels)?;
        match self.operation {
            Operation::If | Operation::Else | Operation::Break | Operation::Cont | Operation::Halt => {
                write!(f, " JIP: {} UIP: {}", self.jump[0], self.jump[1])
            }
            Operation::Endif | Operation::While | Operation::Jmpi => write!(f, " JIP: {}", self.jump[0]),
            Operation::Sync => Ok(()),
            Operation::Wait => write!(f, " n0<1>UD"),
            Operation::Send | Operation::Sendc | Operation::Sends => {
                let Message { function, descriptor, extended, end, registers: [a, b], answer } = self.message;
                for register in [answer, a, b] {
                    match register {
                        Some(register) => write!(f, " g{register}UD")?,
                        None => write!(f, " nullUD")?,
                    }
                }
                match descriptor {
                    Some(value) => write!(f, " {value:#010x}")?,
                    None => write!(f, " a0.0")?,
                }
                match extended {
                    Extended::Value(value) => write!(f, " {value:#010x}")?,
                    Extended::Address(element) => write!(f, " a0.{element}")?,
                }
                write!(f, " function {function}{}", if end { " EOT" } else { "" })
            }
            _ => {
                write!(f, " {}<{}>{:?}", place(self.to.place, self.to.kind), self.to.stride, self.to.kind)?;
                for source in &self.source[..super::sources(self.operation, self.condition)] {
                    // Of logical operations the modifier turns all bits.
                    let logical =
                        matches!(self.operation, Operation::And | Operation::Or | Operation::Xor | Operation::Not);
                    let text = source.to_string();
                    match text.strip_prefix('-').filter(|_| logical) {
                        Some(rest) => write!(f, " ~{rest}")?,
                        None => write!(f, " {text}")?,
                    }
                }
                Ok(())
            }
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { place: at, kind, vertical, width, horizontal, negate, absolute } = *self;
        let (sign, magnitude) = (if negate { "-" } else { "" }, if absolute { "(abs)" } else { "" });
        match at {
            Place::Immediate(value) if kind.bytes() == 8 => write!(f, "{value:#018x}{kind:?}"),
            Place::Immediate(value) => write!(f, "{value:#010x}{kind:?}"),
            _ => {
                write!(f, "{sign}{magnitude}{}<{vertical},{width},{horizontal}>{kind:?}", place(at, kind))
            }
        }
    }
}

/// The name of a place.
fn place(place: Place, kind: Type) -> String {
    let dotted = |name: String, byte: usize| match byte / kind.bytes() {
        0 => name,
        element => format!("{name}.{element}"),
    };
    match place {
        Place::Null => "null".into(),
        Place::File(byte) => {
            let (name, byte) = super::file::name(byte);
            dotted(name, byte)
        }
        Place::Accumulator(element) => {
            let each = 32 / kind.bytes();
            let (register, element) = (usize::from(element) / each, usize::from(element) % each);
            dotted(format!("acc{register}"), element * kind.bytes())
        }
        Place::Indirect { element, offset, .. } => format!("g[a0.{element} {offset}]"),
        Place::Immediate(value) => format!("{value:#x}"),
    }
}
