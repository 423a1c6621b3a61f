//! The register file as bytes: general registers, then those of the architecture.

/// Bytes of a general register.
pub const REGISTER: usize = 32;
/// Bytes of the general registers.
pub const GENERAL: usize = 128 * REGISTER;
/// Address registers: 16 of 16 bits.
pub const ADDRESS: usize = GENERAL;
/// Flags: two of 32 bits.
pub const FLAG: usize = ADDRESS + 32;
/// The channels that are on.
pub const MASK: usize = FLAG + 32;
/// State; its third word is the channels that the thread started with.
pub const STATE: usize = MASK + 32;
/// Control: rounding and subnormals in the first word.
pub const CONTROL: usize = STATE + 32;
/// Notifications.
pub const NOTIFICATION: usize = CONTROL + 32;
/// Dependencies.
pub const DEPENDENCY: usize = NOTIFICATION + 32;
/// The clock.
pub const TIMESTAMP: usize = DEPENDENCY + 32;
/// Bytes of all, with room for an access that starts in the last.
pub const BYTES: usize = TIMESTAMP + 32;

const NAMES: [(usize, &str); 8] = [
    (ADDRESS, "a"),
    (FLAG, "f"),
    (MASK, "mask"),
    (STATE, "sr"),
    (CONTROL, "cr"),
    (NOTIFICATION, "n"),
    (DEPENDENCY, "tdr"),
    (TIMESTAMP, "tm"),
];

/// The byte of a register of the architecture by its number, which has the kind in its upper half;
/// none for those that are not kept here.
#[must_use]
pub fn architecture(number: u8, byte: usize) -> Option<u16> {
    let (kind, index) = (number >> 4, usize::from(number & 15));
    let start = match kind {
        1 => ADDRESS,
        3 if index < 2 => FLAG + 4 * index,
        4 => MASK,
        7 if index == 0 => STATE,
        8 => CONTROL,
        9 => NOTIFICATION,
        11 => DEPENDENCY,
        12 => TIMESTAMP,
        _ => return None,
    };
    Some((start + byte) as u16)
}

/// The name of the register that a byte is in, and its byte of it.
#[must_use]
pub fn name(byte: u16) -> (String, usize) {
    let byte = usize::from(byte);
    if byte < GENERAL {
        return (format!("g{}", byte / REGISTER), byte % REGISTER);
    }
    let (start, letter) = NAMES.iter().rev().find(|(start, _)| *start <= byte).copied().unwrap_or(NAMES[0]);
    if start == FLAG {
        return (format!("f{}", (byte - start) / 4), (byte - start) % 4);
    }
    (format!("{letter}0"), byte - start)
}
