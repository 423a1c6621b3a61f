//! Which numbers of each encoding are which instructions, and what types their results and sources
//! have.
//!
//! The tables are text, a line for each instruction: family of the encoding, number, name, types of
//! results, types of sources. A type is `w` for 32 bits, `h` for 16, `q` for 64, `d` for a float of
//! 64, `m` for a mask of lanes in scalar registers, and of memory and matrices the number of
//! registers (`g` for 16, `k` for 32).

use super::Generation;
use super::instruction::Encoding;
use rustc_hash::FxHashMap;
use std::sync::OnceLock;

/// A line of a table.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// The assembler's mnemonic.
    pub name: &'static str,
    /// Types of the results.
    pub results: &'static str,
    /// Types of the sources.
    pub sources: &'static str,
}

/// How many vector registers a type has.
#[must_use]
pub fn registers(kind: u8) -> u16 {
    match kind {
        b'q' | b'd' => 2,
        b'g' => 16,
        b'k' => 32,
        b'1'..=b'9' => u16::from(kind - b'0'),
        _ => 1,
    }
}

/// Instructions of a generation by family and number.
pub type Table = FxHashMap<(Encoding, u16), Row>;

/// The instructions of a generation.
#[must_use]
pub fn of(generation: Generation) -> &'static Table {
    static TABLES: [OnceLock<Table>; 4] = [const { OnceLock::new() }; 4];
    let text = match generation {
        Generation::Rdna1 => include_str!("rdna1.txt"),
        Generation::Rdna2 => include_str!("rdna2.txt"),
        Generation::Rdna3 => include_str!("rdna3.txt"),
        Generation::Rdna4 => include_str!("rdna4.txt"),
    };
    TABLES[generation as usize].get_or_init(|| text.lines().filter(|line| !line.starts_with('#')).map(row).collect())
}

/// # Panics
///
/// If a line of the table is not one, which a test finds.
fn row(line: &'static str) -> ((Encoding, u16), Row) {
    let mut words = line.split(' ');
    let mut word = || words.next().unwrap_or("");
    let encoding = encoding(word()).unwrap_or_else(|| panic!("no encoding in {line:?}"));
    let number = word().parse().unwrap_or_else(|_| panic!("no number in {line:?}"));
    let name = word();
    let results = word();
    let results = if results == "-" { "" } else { results };
    ((encoding, number), Row { name, results, sources: word() })
}

fn encoding(name: &str) -> Option<Encoding> {
    Some(match name {
        "sop1" => Encoding::Sop1,
        "sop2" => Encoding::Sop2,
        "sopk" => Encoding::Sopk,
        "sopc" => Encoding::Sopc,
        "sopp" => Encoding::Sopp,
        "smem" => Encoding::Smem,
        "vop1" => Encoding::Vop1,
        "vop2" => Encoding::Vop2,
        "vopc" => Encoding::Vopc,
        "vop3" => Encoding::Vop3,
        "vop3p" => Encoding::Vop3p,
        "ds" => Encoding::Ds,
        "flat" => Encoding::Flat,
        "scratch" => Encoding::Scratch,
        "global" => Encoding::Global,
        "mubuf" => Encoding::Mubuf,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_an_instruction() {
        for generation in [Generation::Rdna1, Generation::Rdna2, Generation::Rdna3, Generation::Rdna4] {
            let table = of(generation);
            assert!(table.len() > 1000);
            for row in table.values() {
                assert!(row.results.len() <= 2 && row.sources.len() <= 4, "{row:?}");
            }
        }
        assert_eq!(of(Generation::Rdna3)[&(Encoding::Vop2, 3)].name, "v_add_f32");
    }
}
