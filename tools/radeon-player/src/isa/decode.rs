//! One instruction of machine code.

use super::Generation;
use super::instruction::{Dpp, Encoding, Instruction, Operand, Part, Rest, Sdwa};
use super::operand::{DPP8, DPP16, LITERAL, SDWA, VECTOR, scalar, source};
use super::tables::{Row, Table};
use crate::execute::wave::{EXEC, NULL, VCC};

/// The name of what is no instruction.
pub const UNDECODABLE: &str = "undecodable";

/// Bits of a word.
fn bits(word: u32, low: u32, count: u32) -> u32 {
    word >> low & ((1 << count) - 1)
}

/// The lowest bits of a word as a number with a sign.
fn signed(word: u32, count: u32) -> i32 {
    (word << (32 - count)) as i32 >> (32 - count)
}

/// What decoding of an instruction needs.
struct Decoder<'a> {
    generation: Generation,
    table: &'static Table,
    code: &'a [u32],
}

/// Decodes the instruction at the start of `code`.
pub fn decode(generation: Generation, table: &'static Table, code: &[u32]) -> Instruction {
    let decoder = Decoder { generation, table, code };
    decoder.instruction().filter(has_registers).unwrap_or_else(|| Instruction {
        name: UNDECODABLE,
        size: 4,
        source: [Operand::Literal(decoder.word(0)), Operand::Literal(decoder.word(1)), Operand::None, Operand::None],
        ..Instruction::default()
    })
}

/// Whether the registers of an instruction exist: values of several may not go beyond the last.
/// (How many those of matrices are depends on the wave.)
fn has_registers(it: &Instruction) -> bool {
    // With a scalar base the address is an offset of one register.
    let based = it.encoding == Encoding::Global && it.source.iter().any(|it| matches!(it, Operand::Scalar(_)));
    let exists = |(k, (operand, kind)): (usize, (&Operand, u8))| match operand {
        Operand::Vector(first) => {
            let count = match kind {
                _ if based && k == 0 => 1,
                _ if it.indexed && it.offset_in_register && k == 0 => 2,
                kind => super::tables::registers(kind),
            };
            // A row beyond the last holds what was taken from other lanes.
            *first >= 256 || first + count <= 256
        }
        _ => true,
    };
    it.source.iter().zip(it.signature.bytes()).enumerate().all(exists)
        && [it.to].iter().zip(it.results.bytes()).enumerate().all(exists)
}

impl Decoder<'_> {
    fn word(&self, k: usize) -> u32 {
        self.code.get(k).copied().unwrap_or(0)
    }

    fn instruction(&self) -> Option<Instruction> {
        let word = self.word(0);
        match word >> 23 {
            0x17d => return self.scalar(Encoding::Sop1, bits(word, 8, 8)),
            0x17e => return self.scalar(Encoding::Sopc, bits(word, 16, 7)),
            0x17f => return self.scalar(Encoding::Sopp, bits(word, 16, 7)),
            _ => {}
        }
        match word >> 28 {
            0..=7 => return self.short(),
            0xb => return self.scalar(Encoding::Sopk, bits(word, 23, 5)),
            8..=0xb => return self.scalar(Encoding::Sop2, bits(word, 23, 7)),
            _ => {}
        }
        let rdna4 = self.generation == Generation::Rdna4;
        match word >> 26 {
            0x3d => self.scalar_memory(),
            0x35 => self.long(),
            0x33 if word >> 24 == 0xcc => self.packed(),
            0x32 if self.generation >= Generation::Rdna3 => self.pair(),
            0x36 => self.shared(),
            0x37 if !rdna4 => self.memory(),
            0x3b if rdna4 => self.memory_of_rdna4(),
            0x38 if !rdna4 => self.buffer(),
            0x31 if rdna4 => self.buffer_of_rdna4(),
            _ => None,
        }
    }

    /// An instruction of the table, without operands.
    fn start(&self, encoding: Encoding, number: u32, size: u8) -> Option<(Instruction, Row)> {
        let row = *self.table.get(&(encoding, number as u16))?;
        let (name, signature, results) = (row.name, row.sources, row.results);
        Some((Instruction { name, encoding, size, signature, results, ..Instruction::default() }, row))
    }

    /// A source and the literal that may follow the instruction.
    fn operand(&self, number: u32, size: &mut u8, base: u8) -> Option<Operand> {
        if number == LITERAL {
            *size = base + 4;
        }
        source(self.generation, number, self.word(usize::from(base) / 4))
    }

    fn scalar(&self, encoding: Encoding, number: u32) -> Option<Instruction> {
        let word = self.word(0);
        let (mut instruction, row) = self.start(encoding, number, 4)?;
        let to = scalar(self.generation, bits(word, 16, 7));
        let mut size = 4;
        let mut sources = [bits(word, 0, 8), bits(word, 8, 8)];
        match encoding {
            Encoding::Sop1 => {
                instruction.to = if row.results.is_empty() { Operand::None } else { to };
                sources[1] = 0x80;
            }
            Encoding::Sop2 => instruction.to = to,
            Encoding::Sopk => {
                instruction.offset = signed(word, 16);
                // The register is the source too: of comparisons that alone.
                instruction.source[0] = to;
                instruction.to = if row.results.is_empty() { Operand::None } else { to };
            }
            Encoding::Sopp => instruction.offset = signed(word, 16),
            _ => {}
        }
        if !matches!(encoding, Encoding::Sopk | Encoding::Sopp) {
            let count = row.sources.len().min(2);
            for (k, number) in sources.into_iter().enumerate().take(count) {
                instruction.source[k] = self.operand(number, &mut size, 4)?;
            }
        }
        // The constant stands between the factors, or after them.
        let constant = Operand::Literal(self.word(1));
        match row.name {
            "s_fmamk_f32" => {
                (instruction.source[1], instruction.source[2]) = (constant, instruction.source[1]);
                size = 8;
            }
            "s_fmaak_f32" => (instruction.source[2], size) = (constant, 8),
            "s_setreg_imm32_b32" => (instruction.source[0], size) = (constant, 8),
            "s_call_b64" | "s_version" => instruction.source[0] = Operand::None,
            _ => {}
        }
        instruction.size = size;
        Some(instruction)
    }

    fn scalar_memory(&self) -> Option<Instruction> {
        let (word, next) = (self.word(0), self.word(1));
        let number = if self.generation == Generation::Rdna4 { bits(word, 13, 6) } else { bits(word, 18, 8) };
        let (mut instruction, row) = self.start(Encoding::Smem, number, 8)?;
        if !row.results.is_empty() {
            instruction.to = scalar(self.generation, bits(word, 6, 7));
        }
        instruction.source[0] = Operand::Scalar(bits(word, 0, 6) as u16 * 2);
        instruction.source[1] = scalar(self.generation, bits(next, 25, 7));
        instruction.offset = signed(next, if self.generation == Generation::Rdna4 { 24 } else { 21 });
        Some(instruction)
    }

    /// A vector register of a short encoding: of halves bit 7 says which.
    fn short_vector(&self, number: u32, half: bool, k: u8, instruction: &mut Instruction) -> Operand {
        if half && self.generation >= Generation::Rdna3 {
            instruction.high |= (number as u8 >> 7 & 1) << k;
            return Operand::Vector(number as u16 & 127);
        }
        Operand::Vector(number as u16)
    }

    /// VOP1, VOP2 and VOPC.
    fn short(&self) -> Option<Instruction> {
        let word = self.word(0);
        let (encoding, number) = match word >> 25 {
            0x3e => (Encoding::Vopc, bits(word, 17, 8)),
            0x3f => (Encoding::Vop1, bits(word, 9, 8)),
            _ => (Encoding::Vop2, bits(word, 25, 6)),
        };
        let (mut instruction, row) = self.start(encoding, number, 4)?;
        let half = |types: &str, k: usize| types.as_bytes().get(k) == Some(&b'h');
        let mut size = 4;
        let first = bits(word, 0, 9);
        let parts = first == SDWA && self.generation < Generation::Rdna3;
        let over = (first == DPP16 || DPP8.contains(&first) || parts).then(|| self.word(1));
        let first_vector = over.map(|over| bits(over, 0, 8)).or((first >= VECTOR).then(|| first - VECTOR));
        instruction.source[0] = match first_vector {
            Some(number) => self.short_vector(number, half(row.sources, 0), 0, &mut instruction),
            None => self.operand(first, &mut size, 4)?,
        };
        let second = bits(word, 9, 8);
        match encoding {
            Encoding::Vopc => {
                instruction.source[1] = self.short_vector(second, half(row.sources, 1), 1, &mut instruction);
                instruction.to = Operand::Scalar(if row.name.starts_with("v_cmpx") { EXEC } else { VCC });
            }
            Encoding::Vop1 => {
                let to = bits(word, 17, 8);
                instruction.to = if row.name == "v_readfirstlane_b32" {
                    scalar(self.generation, to)
                } else {
                    self.short_vector(to, half(row.results, 0), 3, &mut instruction)
                };
                if row.sources.is_empty() {
                    (instruction.to, instruction.source[0]) = (Operand::None, Operand::None);
                }
            }
            _ => {
                instruction.to = self.short_vector(bits(word, 17, 8), half(row.results, 0), 3, &mut instruction);
                let is = |name: &str| row.name.starts_with(name);
                if is("v_fmamk") || is("v_madmk") {
                    (instruction.source[1], size) = (Operand::Literal(self.word(1)), 8);
                    instruction.source[2] = self.short_vector(second, half(row.sources, 2), 2, &mut instruction);
                } else {
                    instruction.source[1] = self.short_vector(second, half(row.sources, 1), 1, &mut instruction);
                }
                if is("v_fmaak") || is("v_madak") {
                    (instruction.source[2], size) = (Operand::Literal(self.word(1)), 8);
                }
                if row.sources.ends_with('m') {
                    instruction.source[2] = Operand::Scalar(VCC);
                }
                if row.results.ends_with('m') {
                    instruction.also = Operand::Scalar(VCC);
                }
            }
        }
        instruction.size = size;
        if let Some(over) = over {
            instruction.size = 8;
            if first == DPP16 {
                instruction.negate = (bits(over, 20, 1) | bits(over, 22, 1) << 1) as u8;
                instruction.absolute = (bits(over, 21, 1) | bits(over, 23, 1) << 1) as u8;
            }
            if parts {
                self.take_parts(&mut instruction, over)?;
            } else {
                move_lanes(&mut instruction, first, over)?;
            }
        }
        Some(instruction)
    }

    /// Has an instruction take and write parts of registers. What is carried out reads registers
    /// that hold the parts.
    fn take_parts(&self, instruction: &mut Instruction, word: u32) -> Option<()> {
        let registers = [bits(word, 0, 8), bits(self.word(0), 9, 8)];
        let mut sources = [Part { select: Part::ALL, signed: false }; 2];
        for k in 0..2 {
            let at = 16 + 8 * k as u32;
            if instruction.source[k] == Operand::None {
                continue;
            }
            if bits(word, at, 3) > u32::from(Part::ALL) {
                return None;
            }
            sources[k] = Part { select: bits(word, at, 3) as u8, signed: bits(word, at + 3, 1) != 0 };
            instruction.negate |= (bits(word, at + 4, 1) as u8) << k;
            instruction.absolute |= (bits(word, at + 5, 1) as u8) << k;
            if bits(word, at + 7, 1) != 0 {
                instruction.source[k] = source(self.generation, registers[k], 0)?;
            }
        }
        let (mut result, mut rest) = (Part::ALL, Rest::Zero);
        if instruction.encoding == Encoding::Vopc {
            if bits(word, 15, 1) != 0 && instruction.to != Operand::Scalar(EXEC) {
                instruction.to = scalar(self.generation, bits(word, 8, 7));
            }
        } else {
            result = bits(word, 8, 3) as u8;
            if result > Part::ALL {
                return None;
            }
            rest = *[Rest::Zero, Rest::Sign, Rest::Keep].get(bits(word, 11, 2) as usize)?;
            instruction.clamp = bits(word, 13, 1) != 0;
            instruction.scale = bits(word, 14, 2) as u8;
        }
        let mut inner = instruction.clone();
        for k in (0..2).filter(|&k| sources[k].select != Part::ALL) {
            inner.source[k] = Operand::Vector(256 + k as u16);
        }
        if result != Part::ALL {
            inner.to = Operand::Vector(258);
        }
        instruction.second = Some(Box::new(inner));
        instruction.sdwa = Some(Box::new(Sdwa { sources, result, rest }));
        Some(())
    }

    /// VOP3 in its two forms: with modifiers of sign and half, or with a second result.
    fn long(&self) -> Option<Instruction> {
        let (word, next) = (self.word(0), self.word(1));
        let (mut instruction, row) = self.start(Encoding::Vop3, bits(word, 16, 10), 8)?;
        let mut size = 8;
        let fields = [bits(next, 0, 9), bits(next, 9, 9), bits(next, 18, 9)];
        let over = (fields[0] == DPP16 || DPP8.contains(&fields[0])).then(|| self.word(2));
        for (k, field) in fields.into_iter().enumerate().take(row.sources.len()) {
            instruction.source[k] = match over {
                Some(over) if k == 0 => Operand::Vector(bits(over, 0, 8) as u16),
                _ => self.operand(field, &mut size, 8)?,
            };
        }
        let to = bits(word, 0, 8);
        let scalar_result = row.results.starts_with('m')
            || ["v_readlane", "v_readfirstlane", "v_s_"].iter().any(|start| row.name.starts_with(start));
        instruction.to = match () {
            () if row.name.starts_with("v_cmpx") => Operand::Scalar(EXEC),
            () if row.results.is_empty() => Operand::None,
            () if scalar_result => scalar(self.generation, to),
            () => Operand::Vector(to as u16),
        };
        if row.results.len() == 2 {
            instruction.also = scalar(self.generation, bits(word, 8, 7));
        } else {
            instruction.absolute = bits(word, 8, 3) as u8;
            instruction.high = bits(word, 11, 4) as u8;
        }
        instruction.clamp = bits(word, 15, 1) != 0;
        instruction.scale = bits(next, 27, 2) as u8;
        instruction.negate = bits(next, 29, 3) as u8;
        instruction.size = size;
        if let Some(over) = over {
            instruction.size = 12;
            move_lanes(&mut instruction, fields[0], over)?;
        }
        Some(instruction)
    }

    fn packed(&self) -> Option<Instruction> {
        let (word, next) = (self.word(0), self.word(1));
        let (mut instruction, row) = self.start(Encoding::Vop3p, bits(word, 16, 7), 8)?;
        let mut size = 8;
        let fields = [bits(next, 0, 9), bits(next, 9, 9), bits(next, 18, 9)];
        let over = (fields[0] == DPP16 || DPP8.contains(&fields[0])).then(|| self.word(2));
        for (k, field) in fields.into_iter().enumerate().take(row.sources.len()) {
            instruction.source[k] = match over {
                Some(over) if k == 0 => Operand::Vector(bits(over, 0, 8) as u16),
                _ => self.operand(field, &mut size, 8)?,
            };
        }
        instruction.to = Operand::Vector(bits(word, 0, 8) as u16);
        instruction.absolute = bits(word, 8, 3) as u8;
        instruction.high = bits(word, 11, 3) as u8;
        instruction.high_of_high = (bits(next, 27, 2) | bits(word, 14, 1) << 2) as u8;
        instruction.clamp = bits(word, 15, 1) != 0;
        instruction.negate = bits(next, 29, 3) as u8;
        instruction.size = size;
        if let Some(over) = over {
            instruction.size = 12;
            move_lanes(&mut instruction, fields[0], over)?;
        }
        Some(instruction)
    }

    /// Two vector instructions in one.
    fn pair(&self) -> Option<Instruction> {
        let (word, next) = (self.word(0), self.word(1));
        let first_to = bits(next, 24, 8);
        let second_to = bits(next, 17, 7) << 1 | !first_to & 1;
        let mut size = 8;
        let mut half = |number: u32, first: u32, second: u32, to: u32| -> Option<Instruction> {
            let (name, signature) = pair_name(self.generation, number)?;
            let to = Operand::Vector(to as u16);
            let mut instruction =
                Instruction { name, encoding: Encoding::Vopd, size: 8, to, signature, ..Instruction::default() };
            instruction.source[0] = self.operand(first, &mut size, 8)?;
            let second = Operand::Vector(second as u16);
            let literal = Operand::Literal(self.word(2));
            match name {
                "v_mov_b32" => {}
                "v_fmamk_f32" => (instruction.source[1], instruction.source[2], size) = (literal, second, 12),
                "v_fmaak_f32" => (instruction.source[1], instruction.source[2], size) = (second, literal, 12),
                "v_cndmask_b32" => {
                    (instruction.source[1], instruction.source[2]) = (second, Operand::Scalar(VCC));
                }
                _ => instruction.source[1] = second,
            }
            Some(instruction)
        };
        let mut instruction = half(bits(word, 22, 4), bits(word, 0, 9), bits(word, 9, 8), first_to)?;
        let second = half(bits(word, 17, 5), bits(next, 0, 9), bits(next, 9, 8), second_to)?;
        instruction.size = size;
        instruction.second = Some(Box::new(second));
        Some(instruction)
    }

    fn shared(&self) -> Option<Instruction> {
        let (word, next) = (self.word(0), self.word(1));
        let (mut instruction, row) = self.start(Encoding::Ds, bits(word, 18, 8), 8)?;
        // The other shared memory, of the whole GPU, is not of compute shaders.
        if bits(word, 17, 1) != 0 {
            return None;
        }
        if !row.results.is_empty() {
            instruction.to = Operand::Vector(bits(next, 24, 8) as u16);
        }
        let without_address = row.name.contains("addtid");
        for k in 0..row.sources.len().min(3) {
            let field = 8 * (k as u32 + u32::from(without_address));
            instruction.source[k] = Operand::Vector(bits(next, field, 8) as u16);
        }
        if ["2addr", "read2", "write2", "wrxchg2"].iter().any(|two| row.name.contains(two)) {
            instruction.offset = bits(word, 0, 8) as i32;
            instruction.offset1 = bits(word, 8, 8) as u8;
        } else {
            instruction.offset = bits(word, 0, 16) as i32;
        }
        Some(instruction)
    }

    /// Flat, scratch and global memory before RDNA4.
    fn memory(&self) -> Option<Instruction> {
        let (word, next) = (self.word(0), self.word(1));
        let third = self.generation >= Generation::Rdna3;
        let family = [Encoding::Flat, Encoding::Scratch, Encoding::Global];
        let encoding = *family.get(bits(word, if third { 16 } else { 14 }, 2) as usize)?;
        let (mut instruction, row) = self.start(encoding, bits(word, 18, 7), 8)?;
        instruction.offset = if third { signed(word, 13) } else { signed(word, 12) };
        if encoding == Encoding::Flat && self.generation == Generation::Rdna1 {
            instruction.offset = 0;
        }
        let returns = bits(word, if third { 14 } else { 16 }, 1) != 0;
        let mut base = scalar(self.generation, bits(next, 16, 7));
        let vector = if encoding != Encoding::Scratch {
            true
        } else if third {
            bits(next, 23, 1) != 0
        } else {
            base_is_off(base)
        };
        // Before RDNA3 this register in place of a base says that the offset is the whole address.
        if encoding == Encoding::Scratch && !third && base == Operand::Scalar(EXEC + 1) {
            base = Operand::None;
        }
        let registers = [bits(next, 0, 8), bits(next, 8, 8), bits(next, 24, 8)];
        self.address(&mut instruction, row, registers, base, vector, returns);
        Some(instruction)
    }

    fn memory_of_rdna4(&self) -> Option<Instruction> {
        let (word, next, last) = (self.word(0), self.word(1), self.word(2));
        let family = [Encoding::Flat, Encoding::Scratch, Encoding::Global];
        let encoding = *family.get(bits(word, 24, 2) as usize)?;
        let (mut instruction, row) = self.start(encoding, bits(word, 14, 8), 12)?;
        instruction.offset = signed(last >> 8, 24);
        let base = scalar(self.generation, bits(word, 0, 7));
        let vector = encoding != Encoding::Scratch || bits(next, 17, 1) != 0;
        let registers = [bits(last, 0, 8), bits(next, 23, 8), bits(next, 0, 8)];
        // Of an atomic the lowest bit of its temporal hint asks for what was there.
        self.address(&mut instruction, row, registers, base, vector, bits(next, 20, 1) != 0);
        Some(instruction)
    }

    /// Memory through a descriptor, before RDNA4.
    fn buffer(&self) -> Option<Instruction> {
        let (word, next) = (self.word(0), self.word(1));
        let (mut instruction, row) = self.start(Encoding::Mubuf, bits(word, 18, 8), 8)?;
        let third = self.generation >= Generation::Rdna3;
        // A load to shared memory, and one with an answer whether there is a page.
        let others = if third { bits(next, 21, 1) } else { bits(word, 16, 1) | bits(next, 23, 1) };
        if others != 0 {
            return None;
        }
        instruction.offset = bits(word, 0, 12) as i32;
        let flags = if third { bits(next, 22, 2) } else { bits(word, 12, 2) };
        (instruction.offset_in_register, instruction.indexed) = (flags & 1 != 0, flags & 2 != 0);
        let registers = [bits(next, 0, 8), bits(next, 8, 8)];
        let scalars = [bits(next, 16, 5) * 4, bits(next, 24, 8)];
        self.buffer_operands(&mut instruction, row, registers, scalars, bits(word, 14, 1) != 0)?;
        Some(instruction)
    }

    fn buffer_of_rdna4(&self) -> Option<Instruction> {
        let (word, next, last) = (self.word(0), self.word(1), self.word(2));
        let (mut instruction, row) = self.start(Encoding::Mubuf, bits(word, 14, 8), 12)?;
        if bits(word, 22, 1) != 0 {
            return None; // with an answer whether there is a page
        }
        instruction.offset = bits(last, 8, 23) as i32;
        let flags = bits(next, 30, 2);
        (instruction.offset_in_register, instruction.indexed) = (flags & 1 != 0, flags & 2 != 0);
        let registers = [bits(last, 0, 8), bits(next, 0, 8)];
        let scalars = [bits(next, 9, 9), bits(word, 0, 7)];
        self.buffer_operands(&mut instruction, row, registers, scalars, bits(next, 20, 1) != 0)?;
        Some(instruction)
    }

    /// Operands of an access of a buffer: vector registers of address and data, the descriptor's
    /// first scalar register, and the source of the scalar offset.
    fn buffer_operands(
        &self,
        instruction: &mut Instruction,
        row: Row,
        [address, data]: [u32; 2],
        [descriptor, offset]: [u32; 2],
        returns: bool,
    ) -> Option<()> {
        // What empties caches has none.
        if row.sources.is_empty() {
            (instruction.indexed, instruction.offset_in_register, instruction.offset) = (false, false, 0);
            return Some(());
        }
        let data = Operand::Vector(data as u16);
        if instruction.indexed || instruction.offset_in_register {
            instruction.source[0] = Operand::Vector(address as u16);
        }
        instruction.source[2] = scalar(self.generation, descriptor);
        instruction.source[3] = source(self.generation, offset, 0)?;
        instruction.returns = row.name.contains("atomic") && returns;
        if row.name.contains("load") {
            instruction.to = data;
        } else {
            instruction.source[1] = data;
            instruction.to = if instruction.returns { data } else { Operand::None };
        }
        Some(())
    }

    /// Operands of a memory access: registers are those of the address, of data and of the result.
    fn address(
        &self,
        instruction: &mut Instruction,
        row: Row,
        registers: [u32; 3],
        base: Operand,
        vector: bool,
        returns: bool,
    ) {
        let [address, data, to] = registers.map(|register| Operand::Vector(register as u16));
        let base = if base_is_off(base) || instruction.encoding == Encoding::Flat { Operand::None } else { base };
        // Where each lane has the word of its number there is no address.
        let address = if vector && !row.name.contains("addtid") { address } else { Operand::None };
        let atomic = row.name.contains("atomic");
        if row.name.contains("load") {
            instruction.to = to;
            (instruction.source[0], instruction.source[1]) = (address, base);
        } else {
            instruction.returns = atomic && returns;
            instruction.to = if instruction.returns { to } else { Operand::None };
            (instruction.source[0], instruction.source[1], instruction.source[2]) = (address, data, base);
        }
    }
}

fn base_is_off(base: Operand) -> bool {
    base == Operand::Scalar(NULL)
}

/// The halves of a pair by their number, with the types of their sources.
fn pair_name(generation: Generation, number: u32) -> Option<(&'static str, &'static str)> {
    let latest = generation == Generation::Rdna4;
    Some(match number {
        0 => ("v_fmac_f32", "ww"),
        1 => ("v_fmaak_f32", "www"),
        2 => ("v_fmamk_f32", "www"),
        3 => ("v_mul_f32", "ww"),
        4 => ("v_add_f32", "ww"),
        5 => ("v_sub_f32", "ww"),
        6 => ("v_subrev_f32", "ww"),
        7 => ("v_mul_dx9_zero_f32", "ww"),
        8 => ("v_mov_b32", "w"),
        9 => ("v_cndmask_b32", "wwm"),
        10 => (if latest { "v_max_num_f32" } else { "v_max_f32" }, "ww"),
        11 => (if latest { "v_min_num_f32" } else { "v_min_f32" }, "ww"),
        12 => ("v_dot2acc_f32_f16", "ww"),
        13 => ("v_dot2acc_f32_bf16", "ww"),
        16 => ("v_add_nc_u32", "ww"),
        17 => ("v_lshlrev_b32", "ww"),
        18 => ("v_and_b32", "ww"),
        _ => return None,
    })
}

/// Has the first source come from other lanes. The instruction that is carried out then reads the
/// register that they were gathered in.
fn move_lanes(instruction: &mut Instruction, kind: u32, word: u32) -> Option<()> {
    let mut dpp =
        Dpp { from: [Dpp::NONE; 16], rows: 15, banks: 15, zero: true, inactive: kind == DPP8[1], eights: true };
    if kind == DPP16 {
        dpp.eights = false;
        dpp.zero = bits(word, 19, 1) != 0;
        dpp.inactive = bits(word, 18, 1) != 0;
        dpp.banks = bits(word, 24, 4) as u8;
        dpp.rows = bits(word, 28, 4) as u8;
        let control = bits(word, 8, 9);
        let count = (control & 15) as u8;
        for lane in 0..16u8 {
            let from = match control {
                0..=0xff => Some(lane & 12 | (control >> (2 * (lane & 3)) & 3) as u8),
                0x101..=0x10f => Some(lane + count).filter(|from| *from < 16),
                0x111..=0x11f => lane.checked_sub(count),
                0x121..=0x12f => Some(lane.wrapping_sub(count) & 15),
                0x140 => Some(15 - lane),
                0x141 => Some(lane & 8 | (7 - (lane & 7))),
                0x150..=0x15f => Some(count),
                0x160..=0x16f => Some(lane ^ count),
                _ => return None,
            };
            dpp.from[usize::from(lane)] = from.unwrap_or(Dpp::NONE);
        }
    } else {
        for lane in 0..16u8 {
            dpp.from[usize::from(lane)] = lane & 8 | bits(word, 8 + 3 * u32::from(lane & 7), 3) as u8;
        }
    }
    // One register is moved.
    if instruction.signature.starts_with(['q', 'd']) {
        return None;
    }
    let mut moved = instruction.clone();
    moved.source[0] = Operand::Vector(256);
    instruction.second = Some(Box::new(moved));
    instruction.dpp = Some(Box::new(dpp));
    Some(())
}
