//! deform_conv2d and its gradient: checks, and the products with the matrix of columns.

use crate::detection::deform_conv2d::geometry::Geometry;
use crate::view::View;
use std::ops::Range;

/// Bytes of the columns of a chunk of images, if it is more than one.
pub const MAX_COLUMNS: i64 = 1 << 25;

/// A part of the images: consecutive ones.
pub struct Chunk {
    pub geometry: Geometry,
    pub images: Range<i64>,
}

impl Chunk {
    /// Its images of a contiguous tensor.
    pub fn of(&self, t: &View) -> View {
        let mut sizes = t.sizes.clone();
        sizes[0] = self.images.end - self.images.start;
        t.as_strided(&sizes, &t.strides, self.images.start * t.sizes[1..].iter().product::<i64>())
    }
}
