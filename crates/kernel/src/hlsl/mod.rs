//! The kernel as HLSL, for Direct3D 12: a second way out of the language beside
//! [`spirv`](crate::spirv).
//!
//! Microsoft's compiler makes DXIL of it (`cs_6_2 -enable-16bit-types -Gis`; where
//! [`Shader::atomics_i64`], `cs_6_6`).
//!
//! Direct3D has no addresses in shaders. A pointer's 64 bits are there the number of a buffer,
//! above, and a byte in it, below: all buffers are in one unbounded table, `u0` of `space1`.
//! Parameters are root constants, `b0`, laid out as push constants are; behind them come the
//! numbers of workgroups, three words, if the kernel asks for them ([`Shader::groups`]), because
//! Direct3D does not tell them.
//!
//! Arithmetic of floats is `precise`, and constants are written as their bits. What HLSL lacks of
//! float64 (rounding, bits) is in `prelude.hlsl`.
//!
//! The compiler also makes SPIR-V of the same text. With its table of buffers taken for addresses
//! again (`compiled`), that runs in place of the emitter's own, so that the text's meaning is tried
//! on any Vulkan adapter.

mod compiled;
mod emitter;
mod memory;
mod values;

pub(crate) use compiled::compiled;
pub use emitter::{Shader, Unsupported};
