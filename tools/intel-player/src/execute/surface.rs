//! Surface states: what binding tables and shaders name.

use super::{Group, Outcome, Trap};
use crate::fault::FaultKind;
use crate::memory::Memory;

/// A surface, as far as it is played: linear memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Surface {
    /// Its kind: 1 of two axes, 4 for a buffer, 6 for scratch.
    pub kind: u32,
    /// The number of its format.
    pub format: u32,
    /// Where it is.
    pub base: u64,
    /// Texels of each axis, bytes of a raw buffer first.
    pub size: [u32; 3],
    /// Bytes from one row to the next.
    pub pitch: u32,
    /// How texels are arranged: 0 for linear.
    pub tiling: u32,
}

impl Surface {
    /// The surface whose state is at an address.
    ///
    /// # Errors
    ///
    /// Outside all buffers.
    pub fn read(memory: &Memory, at: u64) -> Outcome<Self> {
        let mut bytes = [0; 64];
        if !memory.read(at, &mut bytes) {
            let kind = FaultKind::OutOfBounds { bytes: 64, write: false };
            return Err(Box::new(Trap { kind, channel: None, address: Some(at) }));
        }
        let word = |k: usize| u32::from_le_bytes([bytes[4 * k], bytes[4 * k + 1], bytes[4 * k + 2], bytes[4 * k + 3]]);
        let (width, height, depth) = (word(2) & 0x3fff, word(2) >> 16 & 0x3fff, word(3) >> 21);
        let kind = word(0) >> 29;
        let size = if kind == 4 {
            [((depth & 0x7ff) << 21 | height << 7 | width & 0x7f).wrapping_add(1), 1, 1]
        } else {
            [width + 1, height + 1, depth + 1]
        };
        Ok(Self {
            kind,
            format: word(0) >> 18 & 0x1ff,
            base: (u64::from(word(8)) | u64::from(word(9)) << 32) & 0xffff_ffff_ffff,
            size,
            pitch: (word(3) & 0x3_ffff) + 1,
            tiling: word(0) >> 12 & 3,
        })
    }

    /// The surface of an entry of the binding table.
    ///
    /// # Errors
    ///
    /// Outside all buffers.
    pub fn of_table(group: &Group, entry: u32) -> Outcome<Self> {
        let at = group.dispatch.table + 4 * u64::from(entry);
        let Some(offset) = group.memory.u32(at) else {
            let kind = FaultKind::OutOfBounds { bytes: 4, write: false };
            return Err(Box::new(Trap { kind, channel: None, address: Some(at) }));
        };
        let offset = offset.load(std::sync::atomic::Ordering::Relaxed);
        Self::read(group.memory, group.dispatch.state.surface + u64::from(offset & !63))
    }

    /// Bytes of a texel and its components, of formats whose components are unsigned integers of
    /// the same size: none of others.
    ///
    /// # Errors
    ///
    /// A format or an arrangement that is missing here.
    pub fn texel(&self) -> Outcome<(u32, u32)> {
        // Bytes of a component and how many there are.
        let format = match self.format {
            // R32G32B32A32, R32G32B32, R32G32, R32, of UINT
            0x002 => (4, 4),
            0x042 => (4, 3),
            0x087 => (4, 2),
            0x0d7 => (4, 1),
            // R16G16B16A16, R16G16, R16
            0x083 => (2, 4),
            0x0cf => (2, 2),
            0x10d => (2, 1),
            // R8G8B8A8, R8G8, R8
            0x0cb => (1, 4),
            0x109 => (1, 2),
            0x143 => (1, 1),
            other => return Err(Trap::missing(format!("surface format {other:#x}"))),
        };
        if self.kind != 1 || self.tiling != 0 {
            return Err(Trap::missing(format!("a surface of kind {} and tiling {}", self.kind, self.tiling)));
        }
        Ok(format)
    }

    /// Where a texel is; none outside the surface.
    #[must_use]
    pub fn address(&self, x: u32, y: u32, bytes: u32) -> Option<u64> {
        (x < self.size[0] && y < self.size[1])
            .then(|| self.base + u64::from(y) * u64::from(self.pitch) + u64::from(x) * u64::from(bytes))
    }
}
