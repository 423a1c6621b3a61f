//! Views: strided memory, on a device or the host, borrowed from the caller for one call.

pub mod layout;
pub mod memory_format;
pub mod overlap;

use dml_engine::AddressRange;
use dml_kernel::DType;
use smallvec::SmallVec;

/// Sizes or strides, in elements.
pub type Dims = SmallVec<[i64; 6]>;

/// The location of a view's memory.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Location {
    /// Host memory.
    Host,
    /// Memory of the engine's device with this index. Addresses on two devices may be equal.
    Device(u8),
    /// Memory of a device that the engine does not manage.
    OtherDevice,
}

/// Whether elements with these sizes and strides are in row-major order without gaps.
pub fn is_contiguous(sizes: &[i64], strides: &[i64]) -> bool {
    let mut expected = 1;
    for (&n, &s) in sizes.iter().zip(strides).rev() {
        if n != 1 {
            if s != expected {
                // An empty tensor is in any order.
                return sizes.contains(&0);
            }
            expected *= n;
        }
    }
    true
}

/// Strided memory with a dtype and a shape. `sizes` and `strides` are in elements.
///
/// A view owns nothing: its memory belongs to the caller, and is valid for the time of the call.
#[derive(Debug)]
pub struct View {
    /// The caller's opaque handle of the object with exactly this view; 0 for views that were
    /// derived from one.
    pub handle: usize,
    /// Address of the first element: on the device, or on the host if `location` is
    /// [`Location::Host`].
    pub data: u64,
    /// Type of the elements.
    pub dtype: DType,
    /// Where the memory is.
    pub location: Location,
    /// Elements in each dimension.
    pub sizes: Dims,
    /// Stride of each dimension, in elements.
    pub strides: Dims,
    /// Address range of the whole allocation, in the address space of `location`.
    pub storage: AddressRange,
    /// Whether the dtype is a default, as for a bare number: in type promotion it counts less than
    /// the dtypes of other operands.
    pub weak: bool,
    /// Lazy negation: the value of each element is the negative of what is in memory. Only copies
    /// support it.
    pub negative: bool,
    /// Lazy conjugation: the value of each element is the complex conjugate of what is in memory.
    pub conjugate: bool,
}

impl Clone for View {
    /// Not derived, since the derived implementation copies sizes and strides element by element.
    #[inline]
    fn clone(&self) -> View {
        self.with_layout(Dims::from_slice(&self.sizes), Dims::from_slice(&self.strides), self.data, self.handle)
    }
}

impl View {
    /// A view that begins where its memory does, of plain elements; no object of the caller's has
    /// it.
    pub fn over(storage: AddressRange, location: Location, dtype: DType, sizes: Dims, strides: Dims) -> View {
        View {
            handle: 0,
            data: storage.start,
            dtype,
            location,
            sizes,
            strides,
            storage,
            weak: false,
            negative: false,
            conjugate: false,
        }
    }

    /// A view with other sizes and strides, at another address of the same memory.
    #[inline]
    fn with_layout(&self, sizes: Dims, strides: Dims, data: u64, handle: usize) -> View {
        let View { dtype, location, storage, weak, negative, conjugate, .. } = *self;
        View { handle, data, dtype, location, sizes, strides, storage, weak, negative, conjugate }
    }

    /// Number of dimensions.
    pub fn dim(&self) -> usize {
        self.sizes.len()
    }

    /// Number of elements; 1 for a 0-dim view.
    pub fn numel(&self) -> i64 {
        self.sizes.iter().product()
    }

    /// Bytes of one element.
    pub fn element_size(&self) -> u64 {
        self.dtype.bytes()
    }

    /// The range of bytes that this view can access, from its lowest to its highest element.
    /// Strides are not negative.
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

    /// Number of elements from the first to the highest that this view can access, both included.
    pub fn reach(&self) -> i64 {
        ((self.range().end - self.data) / self.element_size()) as i64
    }

    /// Whether elements are in row-major order without gaps.
    pub fn is_contiguous(&self) -> bool {
        is_contiguous(&self.sizes, &self.strides)
    }

    /// Size of dimension `d`, which has to be in range; negative numbers count from the end.
    pub fn size(&self, d: i64) -> i64 {
        let d = if d < 0 { d + self.dim() as i64 } else { d };
        self.sizes[d as usize]
    }

    /// The same memory with other sizes and strides, from `offset` elements further on.
    pub fn as_strided(&self, sizes: &[i64], strides: &[i64], offset: i64) -> View {
        let data = self.data.wrapping_add_signed(offset * self.element_size() as i64);
        self.with_layout(Dims::from_slice(sizes), Dims::from_slice(strides), data, 0)
    }

    /// The view broadcast to `sizes`: new and size-1 dimensions get stride 0. The caller has
    /// checked that the sizes are compatible.
    pub fn expand(&self, sizes: &[i64]) -> View {
        self.with_layout(Dims::from_slice(sizes), self.expanded_strides(sizes), self.data, 0)
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

    /// The view with reordered dimensions: dimension `d` of the result is `order[d]` of this one.
    pub fn permute(&self, order: &[usize]) -> View {
        let sizes: Dims = order.iter().map(|&d| self.sizes[d]).collect();
        let strides: Dims = order.iter().map(|&d| self.strides[d]).collect();
        self.as_strided(&sizes, &strides, 0)
    }

    /// The view with two dimensions exchanged.
    pub fn transpose(&self, a: usize, b: usize) -> View {
        let mut order: SmallVec<[usize; 6]> = (0..self.dim()).collect();
        order.swap(a, b);
        self.permute(&order)
    }

    /// A range of dimension `dim`: `length` elements from `start`.
    pub fn narrow(&self, dim: usize, start: i64, length: i64) -> View {
        let mut sizes = self.sizes.clone();
        sizes[dim] = length;
        self.as_strided(&sizes, &self.strides.clone(), start * self.strides[dim])
    }

    /// Row-major strides for `sizes`.
    pub fn contiguous_strides(sizes: &[i64]) -> Dims {
        let mut strides: Dims = SmallVec::from_elem(1, sizes.len());
        for d in (0..sizes.len().saturating_sub(1)).rev() {
            strides[d] = strides[d + 1] * sizes[d + 1].max(1);
        }
        strides
    }

    /// A description such as `[2, 3] float32`, for error messages.
    pub fn describe(&self) -> String {
        format!("{:?} {}", self.sizes.as_slice(), self.dtype)
    }
}
