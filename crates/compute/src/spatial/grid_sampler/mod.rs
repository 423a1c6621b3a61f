//! grid_sampler_2d and grid_sampler_3d: images sampled at the points of a grid, whose coordinates
//! are from -1 to 1.
//!
//! `input` is `[batch, channels, spatial ...]`, `grid` is `[batch, points ..., axes]` with the last
//! spatial dimension's coordinate first. Gradients of the input are summed in the order of the
//! points, independent of the adapter: the points that read a pixel are found by sorting
//! ([`input_gradient`]).

pub mod forward;
pub mod grid_gradient;
pub mod input_gradient;
pub mod location;
