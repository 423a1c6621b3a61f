//! The packets of a submission: what a command processor does between shaders.
//!
//! Only what compute needs is read. Names of packets and fields are those of AMD's documentation of
//! PM4.

use crate::memory::Memory;

/// What one packet asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Registers of shaders, from [`SHADER_REGISTERS`] on.
    SetRegisters {
        /// The first one, as an index.
        first: u32,
        /// Values of it and of those after it.
        values: Vec<u32>,
    },
    /// Workgroups, or threads, along each axis, and `COMPUTE_DISPATCH_INITIATOR`.
    Dispatch([u32; 3], u32),
    /// The same with the counts in memory.
    DispatchIndirect {
        /// Where the counts are.
        address: u64,
        /// `COMPUTE_DISPATCH_INITIATOR`.
        initiator: u32,
    },
    /// The same with the counts so many bytes after the address of [`Command::SetBase`].
    DispatchFromBase {
        /// Bytes from there.
        offset: u32,
        /// `COMPUTE_DISPATCH_INITIATOR`.
        initiator: u32,
    },
    /// Where counts of workgroups are counted from.
    SetBase(u64),
    /// Commands that are left out where a word of memory is zero.
    Conditional {
        /// The word.
        address: u64,
        /// The commands.
        commands: Vec<Command>,
    },
    /// Bytes from one address to another.
    Copy {
        /// From here.
        from: u64,
        /// To here.
        to: u64,
        /// So many.
        bytes: u32,
    },
    /// A word over and over.
    Fill {
        /// From here on.
        to: u64,
        /// The word.
        value: u32,
        /// So many bytes.
        bytes: u32,
    },
    /// Words of the packet itself.
    Write {
        /// The first address.
        to: u64,
        /// The words.
        values: Vec<u32>,
        /// Whether each word goes after the one before; otherwise all to the same place.
        advance: bool,
    },
    /// One value from somewhere to somewhere.
    CopyValue {
        /// From here.
        from: Source,
        /// To here.
        to: Target,
        /// Eight bytes; otherwise four.
        wide: bool,
    },
    /// What follows sees what came before.
    Barrier,
    /// A packet that the player does not carry out.
    Unknown {
        /// Its number.
        operation: u32,
        /// Its name, or whose it is.
        name: Option<&'static str>,
    },
}

/// Where a value comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// Memory.
    Memory(u64),
    /// The packet.
    Value(u64),
    /// The clock that timestamps are read from.
    Clock,
    /// A register, which reads as zero.
    Register,
}

/// Where a value goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// Memory.
    Memory(u64),
    /// A register of shaders, as an index.
    Register(u32),
    /// Nowhere that the player has.
    Nowhere,
}

/// The address of the first register of shaders, in bytes; an index counts words from it.
pub const SHADER_REGISTERS: u32 = 0xb000;
/// How many there are.
pub const SHADER_REGISTER_COUNT: u32 = 0x400;

/// What keeps a submission from being read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// Commands outside all buffers.
    #[error("commands at {0:#x}, outside all buffers")]
    Outside(u64),
    /// A packet of another type than 2 or 3.
    #[error("packet {word:#010x} at {address:#x}")]
    Packet {
        /// Where it is.
        address: u64,
        /// Its first word.
        word: u32,
    },
    /// Command buffers that call one another without end.
    #[error("command buffers within command buffers at {0:#x}")]
    Depth(u64),
}

const NOP: u32 = 0x10;
const SET_BASE: u32 = 0x11;
const CLEAR_STATE: u32 = 0x12;
const DISPATCH_DIRECT: u32 = 0x15;
const DISPATCH_INDIRECT: u32 = 0x16;
const COND_EXEC: u32 = 0x22;
const CONTEXT_CONTROL: u32 = 0x28;
const NUM_INSTANCES: u32 = 0x2f;
const WRITE_DATA: u32 = 0x37;
const WAIT_REG_MEM: u32 = 0x3c;
const INDIRECT_BUFFER: u32 = 0x3f;
const COPY_DATA: u32 = 0x40;
const PFP_SYNC_ME: u32 = 0x42;
const EVENT_WRITE: u32 = 0x46;
const RELEASE_MEM: u32 = 0x49;
const PREAMBLE_CNTL: u32 = 0x4a;
const DMA_DATA: u32 = 0x50;
const ACQUIRE_MEM: u32 = 0x58;
const REWIND: u32 = 0x59;
const SET_CONFIG_REG: u32 = 0x68;
const SET_CONTEXT_REG: u32 = 0x69;
const SET_SH_REG: u32 = 0x76;
const SET_UCONFIG_REG: u32 = 0x79;
const SET_SH_REG_INDEX: u32 = 0x9b;
const SET_SH_REG_PAIRS: u32 = 0xba;
const SET_SH_REG_PAIRS_PACKED: u32 = 0xbb;
const SET_UCONFIG_REG_PAIRS: u32 = 0xbe;

/// The event of `EVENT_WRITE` that waits for shaders.
const CS_PARTIAL_FLUSH: u32 = 7;
/// Calls of command buffers within one another.
const DEPTH: u32 = 8;
/// Command buffers that follow one another.
const CHAINED: usize = 1 << 12;

/// The commands of `words` words at an address, and of the command buffers that they call.
///
/// # Errors
///
/// What is no packet, and what lies outside all buffers.
pub fn read(memory: &Memory, address: u64, words: u32) -> Result<Vec<Command>, Unreadable> {
    let mut commands = Vec::new();
    read_buffer(memory, address, words, 0, &mut commands)?;
    Ok(commands)
}

fn read_buffer(
    memory: &Memory,
    mut address: u64,
    mut words: u32,
    depth: u32,
    commands: &mut Vec<Command>,
) -> Result<(), Unreadable> {
    if depth > DEPTH {
        return Err(Unreadable::Depth(address));
    }
    // A buffer that ends in the address of the next is followed here, but not in a circle.
    for _ in 0..CHAINED {
        let mut bytes = vec![0; words as usize * 4];
        if !memory.read(address, &mut bytes) {
            return Err(Unreadable::Outside(address));
        }
        let code: Vec<u32> = bytes.chunks_exact(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect();
        match read_words(memory, address, &code, depth, commands)? {
            Some(next) => (address, words) = next,
            None => return Ok(()),
        }
    }
    Err(Unreadable::Depth(address))
}

/// Reads packets; returns the buffer that the last of them continues in.
fn read_words(
    memory: &Memory,
    address: u64,
    code: &[u32],
    depth: u32,
    commands: &mut Vec<Command>,
) -> Result<Option<(u64, u32)>, Unreadable> {
    let mut at = 0;
    while let Some(&header) = code.get(at) {
        let count = (header >> 16 & 0x3fff) as usize + 1;
        // Type 2 is a filler, and so is a NOP of the greatest length.
        if header >> 30 == 2 || header >> 30 == 3 && count == 0x4000 {
            at += 1;
            continue;
        }
        let here = address + at as u64 * 4;
        let (true, Some(body)) = (header >> 30 == 3, code.get(at + 1..at + 1 + count)) else {
            return Err(Unreadable::Packet { address: here, word: header });
        };
        at += 1 + count;
        let operation = header >> 8 & 255;
        if operation == INDIRECT_BUFFER {
            let [low, high, control] = words_of(body);
            let (to, words) = (wide(low, high & 0xffff), control & 0xf_ffff);
            if control >> 20 & 1 != 0 {
                return Ok(Some((to, words)));
            }
            read_buffer(memory, to, words, depth + 1, commands)?;
        } else if operation == COND_EXEC {
            let [low, high, _, words] = words_of(body);
            let end = at + (words & 0x3fff) as usize;
            let part = code.get(at..end).ok_or(Unreadable::Packet { address: here, word: header })?;
            let mut inner = Vec::new();
            if read_words(memory, address + at as u64 * 4, part, depth + 1, &mut inner)?.is_some() {
                // The rest of the buffer would depend on the word too.
                return Err(Unreadable::Packet { address: here, word: header });
            }
            commands.push(Command::Conditional { address: wide(low & !3, high), commands: inner });
            at = end;
        } else {
            commands.extend(packet(operation, body));
        }
    }
    Ok(None)
}

fn wide(low: u32, high: u32) -> u64 {
    u64::from(high) << 32 | u64::from(low)
}

/// The first words of a packet; those that a short one lacks are zero.
fn words_of<const N: usize>(body: &[u32]) -> [u32; N] {
    std::array::from_fn(|k| body.get(k).copied().unwrap_or(0))
}

fn packet(operation: u32, body: &[u32]) -> Vec<Command> {
    let one = match operation {
        NOP
        | CLEAR_STATE
        | CONTEXT_CONTROL
        | NUM_INSTANCES
        | PFP_SYNC_ME
        | PREAMBLE_CNTL
        | ACQUIRE_MEM
        | REWIND
        | SET_CONFIG_REG
        | SET_CONTEXT_REG
        | SET_UCONFIG_REG
        | SET_UCONFIG_REG_PAIRS => return Vec::new(),
        WAIT_REG_MEM => Command::Barrier,
        EVENT_WRITE if body[0] & 63 == CS_PARTIAL_FLUSH => Command::Barrier,
        EVENT_WRITE => return Vec::new(),
        SET_SH_REG | SET_SH_REG_INDEX => Command::SetRegisters { first: body[0] & 0xffff, values: body[1..].to_vec() },
        SET_SH_REG_PAIRS => {
            let set = |pair: &[u32]| Command::SetRegisters { first: pair[0] & 0xffff, values: vec![pair[1]] };
            return body.chunks_exact(2).map(set).collect();
        }
        SET_SH_REG_PAIRS_PACKED => {
            let set = |three: &[u32]| {
                [(three[0] & 0xffff, three[1]), (three[0] >> 16, three[2])]
                    .map(|(first, value)| Command::SetRegisters { first, values: vec![value] })
            };
            return body[1..].chunks_exact(3).flat_map(set).collect();
        }
        DISPATCH_DIRECT => {
            let [x, y, z, initiator] = words_of(body);
            Command::Dispatch([x, y, z], initiator)
        }
        DISPATCH_INDIRECT if body.len() >= 3 => {
            Command::DispatchIndirect { address: wide(body[0], body[1]), initiator: body[2] }
        }
        DISPATCH_INDIRECT if body.len() == 2 => Command::DispatchFromBase { offset: body[0], initiator: body[1] },
        // Of several bases that of dispatches.
        SET_BASE if body.len() >= 3 && body[0] & 15 == 1 => Command::SetBase(wide(body[1] & !7, body[2])),
        SET_BASE => return Vec::new(),
        DMA_DATA => return dma(body).into_iter().collect(),
        WRITE_DATA => {
            let [control, low, high] = words_of(body);
            // Destination 0 is a register.
            if control >> 8 & 15 == 0 || body.len() < 3 {
                return Vec::new();
            }
            Command::Write { to: wide(low, high), values: body[3..].to_vec(), advance: control >> 16 & 1 == 0 }
        }
        COPY_DATA => copy_data(body),
        RELEASE_MEM => return release(body).into_iter().collect(),
        other => Command::Unknown { operation: other, name: name(other) },
    };
    vec![one]
}

/// The names of packets that are not carried out: what is of graphics, and conditions.
fn name(operation: u32) -> Option<&'static str> {
    Some(match operation {
        0x1e => "ATOMIC_MEM",
        0x1f => "OCCLUSION_QUERY",
        0x20 => "SET_PREDICATION",
        0x21 => "REG_RMW",
        0x23 => "PRED_EXEC",
        0x24 => "DRAW_INDIRECT",
        0x25 => "DRAW_INDEX_INDIRECT",
        0x26 => "INDEX_BASE",
        0x27 => "DRAW_INDEX_2",
        0x2a => "INDEX_TYPE",
        0x2d => "DRAW_INDEX_AUTO",
        0x33 => "INDIRECT_BUFFER_CNST",
        0x34 => "STRMOUT_BUFFER_UPDATE",
        0x36 => "WRITE_CONST_RAM",
        0x39 => "MEM_SEMAPHORE",
        0x41 => "CP_DMA",
        0x43 => "SURFACE_SYNC",
        0x45 => "COND_WRITE",
        0x47 => "EVENT_WRITE_EOP",
        0x4c => "DISPATCH_MESH_INDIRECT_MULTI",
        0x4d => "DISPATCH_TASKMESH_GFX",
        0x5a => "DISPATCH_TASKMESH_DIRECT_ACE",
        0x93 => "WAIT_REG_MEM64",
        0xa7 => "DISPATCH_DIRECT_INTERLEAVED",
        _ => return None,
    })
}

fn dma(body: &[u32]) -> Option<Command> {
    let [control, source, source_high, to, to_high, size] = words_of(body);
    let (to, bytes) = (wide(to, to_high), size & 0x3ff_ffff);
    if to == 0 || bytes == 0 {
        return None; // it waits for those before
    }
    Some(match control >> 29 & 3 {
        2 => Command::Fill { to, value: source, bytes },
        _ => Command::Copy { from: wide(source, source_high), to, bytes },
    })
}

fn copy_data(body: &[u32]) -> Command {
    let [control, source, source_high, to, to_high] = words_of(body);
    let from = match control & 15 {
        1 | 2 => Source::Memory(wide(source, source_high)),
        5 => Source::Value(wide(source, source_high)),
        9 => Source::Clock,
        _ => Source::Register,
    };
    let base = SHADER_REGISTERS / 4;
    let target = match control >> 8 & 15 {
        1 | 2 | 5 => Target::Memory(wide(to, to_high)),
        0 if (base..base + SHADER_REGISTER_COUNT).contains(&to) => Target::Register(to - base),
        _ => Target::Nowhere,
    };
    Command::CopyValue { from, to: target, wide: control >> 16 & 1 != 0 }
}

fn release(body: &[u32]) -> Option<Command> {
    let [_, control, to, to_high, value, value_high] = words_of(body);
    let to = Target::Memory(wide(to, to_high));
    let (from, wide) = match control >> 29 & 7 {
        1 => (Source::Value(u64::from(value)), false),
        2 => (Source::Value(wide(value, value_high)), true),
        3 => (Source::Clock, true),
        _ => return None,
    };
    Some(Command::CopyValue { from, to, wide })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(operation: u32, count: u32) -> u32 {
        3 << 30 | (count - 1) << 16 | operation << 8
    }

    fn put(memory: &Memory, address: u64, words: &[u32]) {
        memory.map_anonymous(address & !4095, 8192);
        let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
        assert!(memory.write(address, &bytes));
    }

    #[test]
    fn a_submission_is_read() {
        let memory = Memory::new();
        let (first, second, called) = (0xffff_8001_0000_0000, 0x20_0000, 0x30_0000);
        put(&memory, called, &[header(DISPATCH_DIRECT, 4), 1, 2, 3, 0x8045]);
        let code = [
            2 << 30,
            header(NOP, 2),
            7,
            7,
            header(SET_SH_REG, 3),
            0x240,
            5,
            6,
            header(INDIRECT_BUFFER, 3),
            called as u32,
            0,
            5,
            header(EVENT_WRITE, 1),
            0x407,
            header(INDIRECT_BUFFER, 3),
            second as u32,
            0,
            1 << 20 | 7,
        ];
        put(&memory, first, &code);
        put(&memory, second, &[header(DMA_DATA, 6), 2 << 29, 9, 0, 0x1000, 0, 64]);
        let got = read(&memory, first, code.len() as u32).expect("packets");
        let expected = [
            Command::SetRegisters { first: 0x240, values: vec![5, 6] },
            Command::Dispatch([1, 2, 3], 0x8045),
            Command::Barrier,
            Command::Fill { to: 0x1000, value: 9, bytes: 64 },
        ];
        assert_eq!(got, expected);
    }

    #[test]
    fn circles_end() {
        let memory = Memory::new();
        put(&memory, 0x1000, &[header(INDIRECT_BUFFER, 3), 0x1000, 0, 1 << 20 | 4]);
        assert_eq!(read(&memory, 0x1000, 4), Err(Unreadable::Depth(0x1000)));
        put(&memory, 0x1000, &[header(INDIRECT_BUFFER, 3), 0x1000, 0, 4]);
        assert_eq!(read(&memory, 0x1000, 4), Err(Unreadable::Depth(0x1000)));
    }

    #[test]
    fn commands_may_depend_on_a_word() {
        let memory = Memory::new();
        let code = [
            header(SET_BASE, 3),
            1,
            0x4000,
            1,
            header(COND_EXEC, 4),
            0x5000,
            0,
            0,
            5 + 2,
            header(DISPATCH_DIRECT, 4),
            1,
            2,
            3,
            5,
            header(EVENT_WRITE, 1),
            0x407,
            header(DISPATCH_INDIRECT, 2),
            8,
            5,
        ];
        put(&memory, 0x1000, &code);
        let dispatch = Command::Dispatch([1, 2, 3], 5);
        let expected = [
            Command::SetBase(0x1_0000_4000),
            Command::Conditional { address: 0x5000, commands: vec![dispatch, Command::Barrier] },
            Command::DispatchFromBase { offset: 8, initiator: 5 },
        ];
        assert_eq!(read(&memory, 0x1000, code.len() as u32).expect("packets"), expected);
        // More words than the buffer has, and a part of a packet.
        assert!(read(&memory, 0x1000, 12).is_err());
        assert_eq!(packet(0x20, &[0]), [Command::Unknown { operation: 0x20, name: Some("SET_PREDICATION") }]);
    }

    #[test]
    fn what_is_no_packet_is_named() {
        let memory = Memory::new();
        assert_eq!(read(&memory, 0x1000, 4), Err(Unreadable::Outside(0x1000)));
        put(&memory, 0x1000, &[0x1234, 0]);
        assert_eq!(read(&memory, 0x1000, 2), Err(Unreadable::Packet { address: 0x1000, word: 0x1234 }));
        put(&memory, 0x1000, &[header(WRITE_DATA, 9), 0]); // longer than the buffer
        assert!(matches!(read(&memory, 0x1000, 2), Err(Unreadable::Packet { .. })));
    }

    #[test]
    fn values_are_written() {
        let packed = packet(SET_SH_REG_PAIRS_PACKED, &[2, 0x241_0240, 5, 6]);
        let set = |first, value| Command::SetRegisters { first, values: vec![value] };
        assert_eq!(packed, [set(0x240, 5), set(0x241, 6)]);
        assert_eq!(packet(SET_SH_REG_PAIRS, &[0x240, 5, 0x241, 6]), packed);
        let write = packet(WRITE_DATA, &[5 << 8, 0x1000, 1, 8, 9]);
        assert_eq!(write, [Command::Write { to: 0x1_0000_1000, values: vec![8, 9], advance: true }]);
        let value = packet(RELEASE_MEM, &[0, 2 << 29, 0x1000, 0, 1, 2]);
        let (from, to) = (Source::Value(0x2_0000_0001), Target::Memory(0x1000));
        assert_eq!(value, [Command::CopyValue { from, to, wide: true }]);
    }
}
