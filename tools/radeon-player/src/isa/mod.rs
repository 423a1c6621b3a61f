//! Machine code to instructions.

mod decode;
pub mod instruction;
mod operand;
pub mod tables;

use crate::execute::Handlers;
use crate::fault::Fault;
use instruction::Instruction;

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

/// Words of the longest program: a shader that does not end before is none.
const LONGEST: usize = 1 << 20;

/// The decoded code of a shader.
#[derive(Debug)]
pub struct Program {
    code: Vec<u32>,
    /// Its instructions, in the order of the code.
    pub instructions: Vec<Instruction>,
    /// Where the first one lies.
    pub address: u64,
    pub(crate) handlers: Handlers,
    sets_rounding: bool,
}

impl Program {
    /// Decodes the shader that starts at `code[0]`; `code` reaches to the end of its buffer. It
    /// ends at the first end of program that no branch goes beyond. What cannot be decoded becomes
    /// an instruction that nothing carries out.
    ///
    /// # Errors
    ///
    /// A shader without an end.
    pub fn decode(generation: Generation, code: &[u32], address: u64) -> Result<Self, Fault> {
        let table = tables::of(generation);
        let mut instructions: Vec<Instruction> = Vec::new();
        let mut index = vec![u32::MAX; code.len().min(LONGEST)];
        let (mut at, mut farthest) = (0, 0);
        loop {
            if at >= index.len() {
                let kind = crate::fault::FaultKind::Other("the shader does not end".to_owned());
                return Err(Fault::new(kind, "", address));
            }
            index[at] = instructions.len() as u32;
            let mut instruction = decode::decode(generation, table, &code[at..]);
            instruction.at = (at * 4) as u32;
            at += usize::from(instruction.size) / 4;
            if let Some(target) = branch_target(&instruction) {
                farthest = farthest.max(target);
            }
            let ends = instruction.name == "s_endpgm";
            instructions.push(instruction);
            if ends && at > farthest {
                break;
            }
        }
        for instruction in &mut instructions {
            if let Some(target) = branch_target(instruction) {
                instruction.target = index.get(target).copied().unwrap_or(u32::MAX);
            }
        }
        let sets_rounding =
            instructions.iter().any(|it| matches!(it.name, "s_round_mode" | "s_setreg_b32" | "s_setreg_imm32_b32"));
        let handlers = Handlers::default();
        Ok(Self { code: code[..at].to_vec(), instructions, address, handlers, sets_rounding })
    }

    /// Whether it may change how floats are rounded.
    #[must_use]
    pub fn sets_rounding(&self) -> bool {
        self.sets_rounding
    }

    /// The index of the instruction at an address.
    #[must_use]
    pub fn index_of(&self, address: u64) -> Option<usize> {
        let at = u32::try_from(address.checked_sub(self.address)?).ok()?;
        self.instructions.binary_search_by_key(&at, |instruction| instruction.at).ok()
    }

    /// The words that were decoded: while they stand in memory, the program holds.
    #[must_use]
    pub fn code(&self) -> &[u32] {
        &self.code
    }
}

/// The word that a branch goes to.
fn branch_target(instruction: &Instruction) -> Option<usize> {
    let branches = matches!(instruction.name, "s_branch" | "s_call_b64") || instruction.name.starts_with("s_cbranch");
    branches.then(|| (i64::from(instruction.at) / 4 + 1 + i64::from(instruction.offset)) as usize)
}
