//! Emits a kernel as HLSL, for Direct3D 12. [`spirv`](crate::spirv) is the emitter for Vulkan.
//!
//! Microsoft's compiler compiles it to DXIL (`cs_6_2 -enable-16bit-types -Gis`; `cs_6_6` if
//! [`Shader::atomics_i64`]).
//!
//! Direct3D has no addresses in shaders. A pointer is 64 bits: the high half is the index of a
//! buffer in one unbounded table, `u0` of `space1`, and the low half is a byte offset in the
//! buffer. Parameters are root constants, `b0`, with the layout of push constants. They are
//! followed by the numbers of workgroups, three words, if the kernel uses them
//! ([`Shader::groups`]), because Direct3D does not provide them.
//!
//! Float arithmetic is `precise`, and float constants are emitted as their bits. `prelude.hlsl` has
//! the operations on float64 that HLSL lacks (rounding, bits).
//!
//! The compiler can also compile the source to SPIR-V. With the table of buffers replaced by buffer
//! addresses (`compiled`), that module runs in place of the SPIR-V emitter's, so that the HLSL is
//! tested on any Vulkan adapter.

mod compiled;
mod emitter;
mod memory;
mod values;

pub(crate) use compiled::compiled;
pub use emitter::{Shader, Unsupported};
