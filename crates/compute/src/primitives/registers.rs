//! What an invocation may keep in registers, on adapters whose compilers spill early.
//!
//! The estimates are checked with the compilers themselves: `make gpus`, docs/reference/gpus.md.

use dml_engine::RegisterFile;

/// 32-bit registers that compilers use beside the values that a kernel keeps, for each word of an
/// element but the first. Seen in kernels for Intel's GPUs.
const OTHERS_OF_A_WORD: u32 = 20;
/// 32-bit registers for the end that vectors are compared with, and what comes of it. Seen in the
/// same kernels.
const END: u32 = 12;
/// Elements of a vector load.
const VECTOR: u32 = 4;

/// The loads of an invocation: what it keeps for their positions.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Loads {
    /// Vectors of four elements: half a position for each vector.
    Vectors,
    /// Vectors that may lie past the end, which is compared with.
    VectorsToEnd,
    /// Single elements.
    Elements,
    /// Single elements of a convolution's windows, with coordinates: two positions.
    Windows,
}

/// The values that an invocation keeps at the same time.
#[derive(Copy, Clone, Debug)]
pub struct Kept {
    /// Bytes of an element, as it is computed with.
    pub bytes: u32,
    /// Elements, with those that are loaded.
    pub elements: u32,
    /// Elements that are loaded at a time, and how.
    pub loaded: (u32, Loads),
}

impl Kept {
    /// Whether they fit, in workgroups of this many invocations. Everything fits where registers do
    /// not limit kernels.
    pub fn fits(self, registers: Option<RegisterFile>, workgroup: u32) -> bool {
        let Some(file) = registers else { return true };
        let words = self.bytes.div_ceil(4);
        let positions = match self.loaded {
            (elements, Loads::Vectors) => elements.div_ceil(VECTOR) * file.position / 2,
            (elements, Loads::VectorsToEnd) => elements.div_ceil(VECTOR) * file.position / 2 + END,
            (elements, Loads::Elements) => elements * file.position,
            (elements, Loads::Windows) => elements * file.position * 2,
        };
        let others = file.others + (words - 1) * OTHERS_OF_A_WORD;
        words * self.elements + positions + others <= file.per_invocation(workgroup)
    }
}

/// The most loads that an invocation has in flight: a power of two up to `most`. `kept` tells what
/// it keeps for a number of loads.
pub fn loads_in_flight(registers: Option<RegisterFile>, workgroup: u32, most: u32, kept: impl Fn(u32) -> Kept) -> u32 {
    let mut loads = most;
    while loads > 1 && !kept(loads).fits(registers, workgroup) {
        loads /= 2;
    }
    loads
}

#[cfg(test)]
mod tests {
    use super::*;

    const XE: RegisterFile = RegisterFile {
        subgroup_words: 1024,
        workgroup_words: u32::MAX,
        smallest_subgroup: 8,
        max_subgroups: 64,
        others: 58,
        position: 4,
        whole_rows: false,
        shared_values_apart: false,
        sums_take_wide_constants: true,
    };

    #[test]
    fn fewer_loads_are_in_flight_where_registers_are_few() {
        let kept =
            |bytes: u32| move |loads: u32| Kept { bytes, elements: 8 * loads, loaded: (8 * loads, Loads::Vectors) };
        assert_eq!(loads_in_flight(None, 256, 8, kept(8)), 8);
        assert_eq!(loads_in_flight(Some(XE), 256, 8, kept(4)), 4);
        assert_eq!(loads_in_flight(Some(XE), 256, 8, kept(8)), 2);
        assert_eq!(loads_in_flight(Some(XE), 1024, 8, kept(8)), 1);
    }
}
