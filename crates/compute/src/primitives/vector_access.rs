//! Copying several elements in one access.

use crate::view::layout::Layout;
use dml_kernel::{Builder, DType, Pointer, Value};

/// The unit in which a kernel copies: `elements` adjacent elements, as `lanes` words of `dtype`.
/// Elements are copied as bits.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct VectorWidth {
    /// Type of the words in memory.
    pub dtype: DType,
    /// Words of a unit.
    pub lanes: u32,
    /// Tensor elements of a unit.
    pub elements: i64,
}

impl VectorWidth {
    /// A unit of one element.
    pub fn one(dtype: DType) -> VectorWidth {
        VectorWidth { dtype: dtype.bits(), lanes: 1, elements: 1 }
    }

    fn of(dtype: DType, elements: i64) -> VectorWidth {
        if elements == 1 {
            return VectorWidth::one(dtype);
        }
        VectorWidth { dtype: DType::U32, lanes: (dtype.bytes() * elements as u64 / 4) as u32, elements }
    }

    /// The widest unit, up to 16 bytes, in which the operands `moved` of a layout can be copied:
    /// they are dense and their rows are whole units, the other operands have stride 0 along a row,
    /// and `steps` (in elements) are multiples of the unit too.
    pub fn widest(dtype: DType, layout: &Layout, moved: &[usize], addresses: &[u64], steps: &[i64]) -> VectorWidth {
        let one = VectorWidth::one(dtype);
        if layout.rank() == 0 {
            return one;
        }
        let operands = 0..layout.strides.len();
        if !operands.clone().all(|i| layout.strides[i][0] == i64::from(moved.contains(&i))) {
            return one;
        }
        let fits = |elements: i64| {
            let whole = |x: &i64| x % elements == 0;
            whole(&layout.sizes[0])
                && moved.iter().all(|&i| layout.strides[i][1..].iter().all(whole))
                && steps.iter().all(whole)
                && addresses.iter().all(|a| a % (elements as u64 * dtype.bytes()) == 0)
        };
        let widest = [16, 8, 4].into_iter().map(|bytes| bytes / dtype.bytes() as i64);
        widest.filter(|&n| n > 1).find(|&n| fits(n)).map_or(one, |n| VectorWidth::of(dtype, n))
    }

    /// The narrower of two units of one dtype.
    pub fn min(self, other: VectorWidth) -> VectorWidth {
        if other.elements < self.elements { other } else { self }
    }

    /// Converts a layout to units: the sizes, and the strides of the operands `moved`.
    pub fn scale(self, layout: &mut Layout, moved: &[usize]) {
        if self.elements == 1 {
            return;
        }
        layout.sizes[0] /= self.elements;
        for &i in moved {
            for s in &mut layout.strides[i][1..] {
                *s /= self.elements;
            }
        }
    }

    /// A unit of zeros.
    pub fn zero(self, b: &Builder) -> Vec<Value<'_>> {
        vec![b.int(self.dtype.compute(), 0); self.lanes as usize]
    }

    /// Loads unit `at`.
    pub fn load<'b>(self, p: Pointer<'b>, at: Value<'b>) -> Vec<Value<'b>> {
        if self.lanes == 1 { vec![p.load(at)] } else { p.load_chunk(at, self.lanes) }
    }

    /// Stores unit `at`.
    pub fn store<'b>(self, p: Pointer<'b>, at: Value<'b>, values: &[Value<'b>]) {
        if self.lanes == 1 { p.store(at, values[0]) } else { p.store_chunk(at, values) }
    }
}
