//! What operators of several families share: sets of dtypes, axes, windows, elementwise functions,
//! copies of regions, access by index.

pub mod axes;
pub mod constants;
pub mod dtypes;
pub mod elementwise;
pub mod functions;
pub mod index_access;
pub mod regions;
pub mod window;
