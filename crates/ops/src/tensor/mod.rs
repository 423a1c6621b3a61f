//! The tensor an operator sees: a strided view of GPU memory, borrowed from the caller for one call.

pub mod casting;
pub mod layout;
pub mod memory_format;
pub mod overlap;
pub mod promote;

use dml_engine::AddressRange;
use dml_kernel::DType;
use smallvec::SmallVec;

/// Sizes or strides, in elements.
pub type Dims = SmallVec<[i64; 6]>;

/// Where a tensor's memory is.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum DeviceKind {
    /// Host memory; only 0-dim tensors may be mixed with device tensors.
    Cpu,
    /// Device `dml:index`.
    Dml(u8),
    /// A device of another backend.
    Other,
}

/// Whether elements of these sizes and strides lie in row-major order with no gaps.
pub(crate) fn is_contiguous(sizes: &[i64], strides: &[i64]) -> bool {
    let mut expected = 1;
    for (&n, &s) in sizes.iter().zip(strides).rev() {
        if n != 1 {
            if s != expected {
                // Elements that there are none of lie in any order.
                return sizes.contains(&0);
            }
            expected *= n;
        }
    }
    true
}

/// A strided tensor. `sizes` and `strides` are in elements, `data` is the address of the first element.
#[derive(Debug)]
pub struct Tensor {
    /// The caller's object, opaque here; 0 when the caller has none.
    pub handle: usize,
    /// GPU address of the first element (host pointer when `place` is `Cpu`).
    pub data: u64,
    /// Element type.
    pub dtype: DType,
    /// Device.
    pub place: DeviceKind,
    /// Elements in each dimension.
    pub sizes: Dims,
    /// Step of each dimension, in elements.
    pub strides: Dims,
    /// Bytes of the whole storage, as addresses.
    pub storage: AddressRange,
    /// A Python number promoted to a 0-dim tensor: takes part in type promotion weakly.
    pub wrapped_number: bool,
    /// The negative bit: the value is the negative of what memory holds (`_copy_from` alone sees it set).
    pub negative: bool,
    /// The conjugate bit.
    pub conjugate: bool,
}

impl Clone for Tensor {
    /// Written out, as the derived one copies sizes and strides number by number.
    #[inline]
    fn clone(&self) -> Tensor {
        self.with(Dims::from_slice(&self.sizes), Dims::from_slice(&self.strides), self.data, self.handle)
    }
}

impl Tensor {
    /// Other sizes and strides, elsewhere in the same memory.
    #[inline]
    fn with(&self, sizes: Dims, strides: Dims, data: u64, handle: usize) -> Tensor {
        let Tensor { dtype, place, storage, wrapped_number, negative, conjugate, .. } = *self;
        Tensor { handle, data, dtype, place, sizes, strides, storage, wrapped_number, negative, conjugate }
    }

    /// Number of dimensions.
    pub fn dim(&self) -> usize {
        self.sizes.len()
    }

    /// Number of elements; 1 for a 0-dim tensor.
    pub fn numel(&self) -> i64 {
        self.sizes.iter().product()
    }

    /// Bytes of one element.
    pub fn element_size(&self) -> u64 {
        self.dtype.bytes()
    }

    /// The bytes this view can touch: from its lowest to its highest element. Strides are not negative in PyTorch.
    pub fn range(&self) -> AddressRange {
        let mut last = 0;
        for (&n, &s) in self.sizes.iter().zip(&self.strides) {
            if n == 0 {
                return AddressRange { start: self.data, end: self.data };
            }
            last += (n - 1) * s;
        }
        AddressRange { start: self.data, end: self.data + (last as u64 + 1) * self.element_size() }
    }

    /// Elements from the first to one past the highest that this view can touch.
    pub fn reach(&self) -> i64 {
        ((self.range().end - self.data) / self.element_size()) as i64
    }

    /// Whether elements lie in row-major order with no gaps.
    pub fn is_contiguous(&self) -> bool {
        is_contiguous(&self.sizes, &self.strides)
    }

    /// Size of dimension `d`, which may be negative and must be in range.
    pub fn size(&self, d: i64) -> i64 {
        let d = if d < 0 { d + self.dim() as i64 } else { d };
        self.sizes[d as usize]
    }

    /// The same memory with other sizes and strides, `offset` elements further.
    pub fn as_strided(&self, sizes: &[i64], strides: &[i64], offset: i64) -> Tensor {
        let data = self.data.wrapping_add_signed(offset * self.element_size() as i64);
        self.with(Dims::from_slice(sizes), Dims::from_slice(strides), data, 0)
    }

    /// Broadcast to `sizes`: new and size-1 dimensions get stride 0. The caller has checked that it fits.
    pub fn expand(&self, sizes: &[i64]) -> Tensor {
        self.with(Dims::from_slice(sizes), self.expanded_strides(sizes), self.data, 0)
    }

    /// The strides of [`expand`](Self::expand).
    pub fn expanded_strides(&self, sizes: &[i64]) -> Dims {
        let mut strides = Dims::from_elem(0, sizes.len());
        let lead = sizes.len() - self.dim();
        for (d, stride) in strides[lead..].iter_mut().enumerate() {
            if self.sizes[d] != 1 || sizes[lead + d] == 1 {
                *stride = self.strides[d];
            }
        }
        strides
    }

    /// Dimensions reordered: dimension `d` of the result is `order[d]` of this one.
    pub fn permute(&self, order: &[usize]) -> Tensor {
        let sizes: Dims = order.iter().map(|&d| self.sizes[d]).collect();
        let strides: Dims = order.iter().map(|&d| self.strides[d]).collect();
        self.as_strided(&sizes, &strides, 0)
    }

    /// Two dimensions exchanged.
    pub fn transpose(&self, a: usize, b: usize) -> Tensor {
        let mut order: SmallVec<[usize; 6]> = (0..self.dim()).collect();
        order.swap(a, b);
        self.permute(&order)
    }

    /// A part of dimension `dim`: `length` elements from `start`.
    pub fn narrow(&self, dim: usize, start: i64, length: i64) -> Tensor {
        let mut sizes = self.sizes.clone();
        sizes[dim] = length;
        self.as_strided(&sizes, &self.strides.clone(), start * self.strides[dim])
    }

    /// Row-major strides of `sizes`.
    pub fn contiguous_strides(sizes: &[i64]) -> Dims {
        let mut strides: Dims = SmallVec::from_elem(1, sizes.len());
        for d in (0..sizes.len().saturating_sub(1)).rev() {
            strides[d] = strides[d + 1] * sizes[d + 1].max(1);
        }
        strides
    }

    /// `[2, 3] float32`, for error messages.
    pub fn describe(&self) -> String {
        format!("{:?} {}", self.sizes.as_slice(), self.dtype)
    }
}
