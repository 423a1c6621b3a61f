//! The shapes of cooperative matrices that an adapter multiplies.

use ash::{khr, vk};
use dml_gpu::{MatrixElement, MatrixShape};

use super::features::{BFLOAT16_COMPONENT, Features};
use crate::instance::Instance;

fn element(component: vk::ComponentTypeKHR) -> Option<MatrixElement> {
    use MatrixElement as Element;
    Some(match component {
        vk::ComponentTypeKHR::FLOAT16 => Element::F16,
        vk::ComponentTypeKHR::FLOAT32 => Element::F32,
        vk::ComponentTypeKHR::FLOAT64 => Element::F64,
        vk::ComponentTypeKHR::SINT8 => Element::I8,
        vk::ComponentTypeKHR::SINT16 => Element::I16,
        vk::ComponentTypeKHR::SINT32 => Element::I32,
        vk::ComponentTypeKHR::SINT64 => Element::I64,
        vk::ComponentTypeKHR::UINT8 => Element::U8,
        vk::ComponentTypeKHR::UINT16 => Element::U16,
        vk::ComponentTypeKHR::UINT32 => Element::U32,
        vk::ComponentTypeKHR::UINT64 => Element::U64,
        BFLOAT16_COMPONENT => Element::Bf16,
        _ => return None,
    })
}

/// Passes on the driver's list of an adapter that has the extension; an empty one if it gives none.
pub(super) fn query<T>(
    instance: &Instance,
    device: vk::PhysicalDevice,
    take: impl FnOnce(&[vk::CooperativeMatrixPropertiesKHR<'_>]) -> T,
) -> T {
    let functions = khr::cooperative_matrix::Instance::new(&instance.entry, &instance.raw);
    // SAFETY: `device` comes from this instance and offers the extension, so the instance exports
    // the function.
    take(&unsafe { functions.get_physical_device_cooperative_matrix_properties(device) }.unwrap_or_default())
}

/// The subgroup-scope matrix shapes of a driver's list.
pub(super) fn shapes(listed: &[vk::CooperativeMatrixPropertiesKHR<'_>], features: &Features) -> Vec<MatrixShape> {
    let bf16 = features.bf16.shader_b_float16_cooperative_matrix != vk::FALSE;
    listed
        .iter()
        .filter(|p| p.scope == vk::ScopeKHR::SUBGROUP)
        .filter_map(|p| {
            Some(MatrixShape {
                m: p.m_size,
                n: p.n_size,
                k: p.k_size,
                a: element(p.a_type)?,
                b: element(p.b_type)?,
                c: element(p.c_type)?,
                result: element(p.result_type)?,
                saturating: p.saturating_accumulation != vk::FALSE,
            })
        })
        .filter(|s| bf16 || s.a != MatrixElement::Bf16)
        .collect()
}
