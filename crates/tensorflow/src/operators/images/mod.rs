//! Images: sizes, crops, colours, patches, boxes.

mod color;
mod crop_and_resize;
mod dilation;
mod non_max_suppression;
mod patches;
mod projective_transform;
mod resize;

use crate::kernel::Operator;

/// The operators of this folder.
pub fn operators() -> Vec<Operator> {
    [
        color::operators(),
        crop_and_resize::operators(),
        dilation::operators(),
        non_max_suppression::operators(),
        patches::operators(),
        projective_transform::operators(),
        resize::operators(),
    ]
    .into_iter()
    .flatten()
    .collect()
}
