//! The shapes of cooperative matrices that an adapter multiplies.

use ash::{khr, vk};

use super::features::{BFLOAT16_COMPONENT, Features};
use crate::instance::Instance;

/// The element type of a cooperative matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "each variant is named as its type")]
pub enum MatrixElement {
    F16,
    Bf16,
    F32,
    F64,
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
}

/// One supported `result[m,n] = a[m,k] * b[k,n] + c[m,n]` of a subgroup.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct MatrixShape {
    /// Rows of `a`, `c` and the result.
    pub m: u32,
    /// Columns of `b`, `c` and the result.
    pub n: u32,
    /// Columns of `a`, rows of `b`.
    pub k: u32,
    /// Element of `a`.
    pub a: MatrixElement,
    /// Element of `b`.
    pub b: MatrixElement,
    /// Element of `c`.
    pub c: MatrixElement,
    /// Element of the result.
    pub result: MatrixElement,
    /// The integer accumulation saturates.
    pub saturating: bool,
}

impl MatrixElement {
    fn from_vk(component: vk::ComponentTypeKHR) -> Option<Self> {
        Some(match component {
            vk::ComponentTypeKHR::FLOAT16 => Self::F16,
            vk::ComponentTypeKHR::FLOAT32 => Self::F32,
            vk::ComponentTypeKHR::FLOAT64 => Self::F64,
            vk::ComponentTypeKHR::SINT8 => Self::I8,
            vk::ComponentTypeKHR::SINT16 => Self::I16,
            vk::ComponentTypeKHR::SINT32 => Self::I32,
            vk::ComponentTypeKHR::SINT64 => Self::I64,
            vk::ComponentTypeKHR::UINT8 => Self::U8,
            vk::ComponentTypeKHR::UINT16 => Self::U16,
            vk::ComponentTypeKHR::UINT32 => Self::U32,
            vk::ComponentTypeKHR::UINT64 => Self::U64,
            BFLOAT16_COMPONENT => Self::Bf16,
            _ => return None,
        })
    }
}

/// The subgroup-scope matrix shapes of an adapter; empty when it has none or they cannot be used.
pub(super) fn shapes(instance: &Instance, device: vk::PhysicalDevice, features: &Features) -> Vec<MatrixShape> {
    if !features.cooperative_matrix() {
        return Vec::new();
    }
    let functions = khr::cooperative_matrix::Instance::new(&instance.entry, &instance.raw);
    // SAFETY: `device` comes from this instance and offers the extension, so the instance exports the function.
    let found = unsafe { functions.get_physical_device_cooperative_matrix_properties(device) };
    let bf16 = features.bf16.shader_b_float16_cooperative_matrix != vk::FALSE;
    found
        .unwrap_or_default()
        .iter()
        .filter(|p| p.scope == vk::ScopeKHR::SUBGROUP)
        .filter_map(|p| {
            Some(MatrixShape {
                m: p.m_size,
                n: p.n_size,
                k: p.k_size,
                a: MatrixElement::from_vk(p.a_type)?,
                b: MatrixElement::from_vk(p.b_type)?,
                c: MatrixElement::from_vk(p.c_type)?,
                result: MatrixElement::from_vk(p.result_type)?,
                saturating: p.saturating_accumulation != vk::FALSE,
            })
        })
        .filter(|s| bf16 || s.a != MatrixElement::Bf16)
        .collect()
}
