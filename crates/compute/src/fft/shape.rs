//! The division of a workgroup's invocations among the lines that it transforms.

use crate::fft::lengths::{Limits, Stages, padded};
use dml_kernel::DType;

/// Invocations of a workgroup if several lines share it.
const INVOCATIONS: u32 = 256;

/// The division of a workgroup's invocations among lines.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct Shape {
    /// Number of invocations of a line.
    pub lanes: u32,
    /// Number of lines of a workgroup.
    pub lines: u32,
    /// Adjacent invocations have adjacent lines; otherwise adjacent invocations share a line.
    pub across: bool,
    /// Real and imaginary parts are exchanged at the same time.
    pub exchanges_both_parts: bool,
}

impl Shape {
    /// The division for a pass of these stages; `across`: adjacent lines are closer in memory than
    /// adjacent numbers of a line.
    pub fn of(limits: &Limits, stages: &Stages, real_dtype: DType, across: bool) -> Shape {
        let length = stages.length as u32;
        let most = stages.radices.iter().copied().max().unwrap_or(1);
        // For each invocation as many numbers as the largest radix allowed, or the largest multiple
        // of the largest radix below.
        let lanes = (length / most).div_ceil((limits.radix / most).max(1)).min(limits.invocations);
        let invocations = INVOCATIONS.min(limits.invocations);
        let mut lines = (invocations / lanes).max(if across { limits.neighbours } else { 1 }).max(1);
        let fits =
            |lines: u32| lines * lanes <= limits.invocations && i64::from(lines) * stages.length <= limits.points;
        while lines > 1 && !fits(lines) {
            lines -= 1;
        }
        if across {
            lines = 1 << lines.ilog2();
        }
        let bytes = 2 * padded(lines * length) * real_dtype.bytes() as u32;
        Shape { lanes, lines, across, exchanges_both_parts: bytes <= limits.shared / 4 * 3 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fft::lengths::{MAX_RADIX, Plan};

    #[test]
    fn shapes_fit() {
        for (shared, invocations) in [(16 << 10, 128), (32 << 10, 256), (48 << 10, 1024)] {
            for real_dtype in [DType::F32, DType::F64] {
                let mut points = 8192;
                while padded(points) * real_dtype.bytes() as u32 > shared || points / MAX_RADIX > invocations {
                    points /= 2;
                }
                let neighbours = 32 / real_dtype.bytes() as u32;
                let limits = Limits { radix: MAX_RADIX, points: points.into(), shared, invocations, neighbours };
                let all = std::iter::successors(Some(limits), |limits| limits.smaller());
                let lengths = |limits: Limits| (1..=limits.points).map(move |n| (limits, n));
                for (limits, n) in all.flat_map(lengths) {
                    let Some(plan) = limits.plan(n) else { panic!("{n} has no plan") };
                    let Plan::Passes(passes) = &*plan else { continue };
                    for across in [false, true] {
                        let shape = Shape::of(&limits, &passes[0], real_dtype, across);
                        let arrays = if shape.exchanges_both_parts { 2 } else { 1 };
                        let exchanged = if passes[0].radices.len() > 1 { shape.lines * n as u32 } else { 0 };
                        assert!(shape.lanes * shape.lines <= limits.invocations, "{n} {shape:?}");
                        assert!(arrays * padded(exchanged) * real_dtype.bytes() as u32 <= shared, "{n} {shape:?}");
                    }
                }
            }
        }
    }
}
