//! Compiled kernels, and the root signatures of their parameters.

use std::collections::HashMap;
use std::mem::ManuallyDrop;
use std::sync::{Arc, Mutex, PoisonError};

use dml_gpu::PipelineOptions;
use windows::Win32::Graphics::Direct3D12::*;

use crate::device::DeviceShared;
use crate::error::{Error, invalid};

/// The root parameter of the constants: a kernel's parameters, then [`GROUP_WORDS`].
pub(crate) const CONSTANTS: u32 = 0;
/// The root parameter of the table of segments.
pub(crate) const TABLE: u32 = 1;
/// The number of workgroups along each axis, which Direct3D does not provide.
const GROUP_WORDS: u32 = 3;

/// See [`dml_gpu::Api::Pipeline`].
#[derive(Clone)]
pub struct Pipeline {
    inner: Arc<Inner>,
}

struct Inner {
    device: Arc<DeviceShared>,
    raw: ID3D12PipelineState,
    root: ID3D12RootSignature,
    push_bytes: u32,
    name: String,
}

impl Pipeline {
    pub(crate) fn name(&self) -> &str {
        &self.inner.name
    }

    pub(crate) fn push_bytes(&self) -> u32 {
        self.inner.push_bytes
    }

    pub(crate) fn raw(&self) -> &ID3D12PipelineState {
        &self.inner.raw
    }

    pub(crate) fn root(&self) -> &ID3D12RootSignature {
        &self.inner.root
    }

    /// Whether it was compiled for this device.
    pub(crate) fn is_of(&self, device: &Arc<DeviceShared>) -> bool {
        Arc::ptr_eq(&self.inner.device, device)
    }
}

impl std::fmt::Debug for Pipeline {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pipeline")
            .field("name", &self.inner.name)
            .field("push_bytes", &self.inner.push_bytes)
            .finish_non_exhaustive()
    }
}

/// The state that a device's pipelines share: root signatures, by bytes of parameters. Any number
/// of threads may use it at a time.
#[derive(Default)]
pub(crate) struct Compiler {
    roots: Mutex<HashMap<u32, ID3D12RootSignature>>,
}

impl Compiler {
    /// See [`dml_gpu::Gpu::compile_with`].
    pub(crate) fn compile(
        &self,
        device: &Arc<DeviceShared>,
        name: &str,
        code: &[u8],
        push_bytes: u32,
        options: &PipelineOptions,
    ) -> Result<Pipeline, Error> {
        const CALL: &str = "Gpu::compile";
        const MAGIC: &[u8] = b"DXBC";
        device.check()?;
        let info = &device.adapter.info;
        let most = info.capabilities.max_push_constants;
        if push_bytes > most || !push_bytes.is_multiple_of(4) {
            let what =
                format!("kernel {name} has {push_bytes} bytes of parameters; a multiple of 4 up to {most} is possible");
            return Err(invalid(CALL, what));
        }
        if !code.starts_with(MAGIC) {
            return Err(invalid(CALL, format!("kernel {name} is neither DXIL nor DXBC")));
        }
        if options.subgroup_size.is_some_and(|size| size != info.capabilities.subgroup_size) {
            // Shader model 6.6 has it in the kernel's code.
            let what = format!("a choice of the size of subgroups (kernel {name})");
            return Err(Error::Unsupported { adapter: info.name.clone(), what });
        }
        let root = self.root(device, push_bytes)?;
        let mut description = D3D12_COMPUTE_PIPELINE_STATE_DESC {
            pRootSignature: ManuallyDrop::new(Some(root.clone())),
            CS: D3D12_SHADER_BYTECODE { pShaderBytecode: code.as_ptr().cast(), BytecodeLength: code.len() },
            ..Default::default()
        };
        // SAFETY: the device is valid; the structure and the code live through the call. The caller
        // ensures that the code is a valid kernel.
        let made = unsafe { device.raw.CreateComputePipelineState(&description) };
        // SAFETY: the call is over, so the reference of the field is not used any more; it is
        // dropped once.
        unsafe { ManuallyDrop::drop(&mut description.pRootSignature) };
        let raw = made.map_err(|e| device.error("ID3D12Device::CreateComputePipelineState", &e))?;
        let inner = Inner { device: Arc::clone(device), raw, root, push_bytes, name: name.to_owned() };
        Ok(Pipeline { inner: Arc::new(inner) })
    }

    fn root(&self, device: &DeviceShared, push_bytes: u32) -> Result<ID3D12RootSignature, Error> {
        let mut known = self.roots.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(root) = known.get(&push_bytes) {
            return Ok(root.clone());
        }
        let root = root_signature(device, push_bytes / 4 + GROUP_WORDS)?;
        known.insert(push_bytes, root.clone());
        Ok(root)
    }
}

/// This number of root constants as `b0`, and all segments as `u0` and so on of `space1`.
fn root_signature(device: &DeviceShared, words: u32) -> Result<ID3D12RootSignature, Error> {
    let range = D3D12_DESCRIPTOR_RANGE {
        RangeType: D3D12_DESCRIPTOR_RANGE_TYPE_UAV,
        NumDescriptors: u32::MAX,
        BaseShaderRegister: 0,
        RegisterSpace: 1,
        OffsetInDescriptorsFromTableStart: 0,
    };
    let mut parameters = [D3D12_ROOT_PARAMETER::default(); 2];
    parameters[CONSTANTS as usize] = D3D12_ROOT_PARAMETER {
        ParameterType: D3D12_ROOT_PARAMETER_TYPE_32BIT_CONSTANTS,
        Anonymous: D3D12_ROOT_PARAMETER_0 {
            Constants: D3D12_ROOT_CONSTANTS { ShaderRegister: 0, RegisterSpace: 0, Num32BitValues: words },
        },
        ShaderVisibility: D3D12_SHADER_VISIBILITY_ALL,
    };
    parameters[TABLE as usize] = D3D12_ROOT_PARAMETER {
        ParameterType: D3D12_ROOT_PARAMETER_TYPE_DESCRIPTOR_TABLE,
        Anonymous: D3D12_ROOT_PARAMETER_0 {
            DescriptorTable: D3D12_ROOT_DESCRIPTOR_TABLE { NumDescriptorRanges: 1, pDescriptorRanges: &range },
        },
        ShaderVisibility: D3D12_SHADER_VISIBILITY_ALL,
    };
    let description = D3D12_ROOT_SIGNATURE_DESC {
        NumParameters: parameters.len() as u32,
        pParameters: parameters.as_ptr(),
        ..Default::default()
    };
    // SAFETY: the parameters and the range live through the call.
    let blob = unsafe { device.adapter.library.root_signature(&description) }?;
    // SAFETY: the blob is valid, and its bytes live as long as it; the device is valid.
    unsafe {
        let bytes = std::slice::from_raw_parts(blob.GetBufferPointer().cast::<u8>(), blob.GetBufferSize());
        device.raw.CreateRootSignature(0, bytes)
    }
    .map_err(|e| device.error("ID3D12Device::CreateRootSignature", &e))
}
