//! The one descriptor table of all kernels: a segment's index in the table is the upper half of its
//! addresses.

use std::sync::{Mutex, MutexGuard, PoisonError};

use windows::Win32::Graphics::Direct3D12::*;
use windows::Win32::Graphics::Dxgi::Common::DXGI_FORMAT_R32_TYPELESS;

use crate::capabilities::MAX_SEGMENTS;
use crate::error::{Error, from_hresult};

pub(crate) struct DescriptorTable {
    heap: ID3D12DescriptorHeap,
    /// Bytes from one descriptor to the next.
    step: usize,
    places: Mutex<Places>,
}

/// Free indices, in no order. Index 0 is unused, so that no address is null.
#[derive(Debug)]
struct Places {
    free: Vec<u32>,
    /// The first index that was never used.
    next: u32,
}

impl DescriptorTable {
    pub(crate) fn new(device: &ID3D12Device) -> Result<Self, Error> {
        let description = D3D12_DESCRIPTOR_HEAP_DESC {
            Type: D3D12_DESCRIPTOR_HEAP_TYPE_CBV_SRV_UAV,
            NumDescriptors: MAX_SEGMENTS + 1,
            Flags: D3D12_DESCRIPTOR_HEAP_FLAG_SHADER_VISIBLE,
            NodeMask: 0,
        };
        // SAFETY: the device is valid, and the structure lives through the call.
        let heap = unsafe { device.CreateDescriptorHeap(&description) }
            .map_err(|e| from_hresult("ID3D12Device::CreateDescriptorHeap", &e))?;
        // SAFETY: the device is valid.
        let step = unsafe { device.GetDescriptorHandleIncrementSize(D3D12_DESCRIPTOR_HEAP_TYPE_CBV_SRV_UAV) };
        Ok(Self { heap, step: step as usize, places: Mutex::new(Places { free: Vec::new(), next: 1 }) })
    }

    /// Gives a buffer an index.
    ///
    /// # Errors
    /// [`Error::TooManyAllocations`] if there is none.
    pub(crate) fn enter(&self, device: &ID3D12Device, buffer: &ID3D12Resource, bytes: u64) -> Result<u32, Error> {
        let place = {
            let mut places = self.places();
            match places.free.pop() {
                Some(place) => place,
                None if places.next > MAX_SEGMENTS => {
                    return Err(Error::TooManyAllocations { limit: MAX_SEGMENTS });
                }
                None => {
                    places.next += 1;
                    places.next - 1
                }
            }
        };
        let view = D3D12_UNORDERED_ACCESS_VIEW_DESC {
            Format: DXGI_FORMAT_R32_TYPELESS,
            ViewDimension: D3D12_UAV_DIMENSION_BUFFER,
            Anonymous: D3D12_UNORDERED_ACCESS_VIEW_DESC_0 {
                Buffer: D3D12_BUFFER_UAV {
                    FirstElement: 0,
                    NumElements: (bytes / 4) as u32,
                    StructureByteStride: 0,
                    CounterOffsetInBytes: 0,
                    Flags: D3D12_BUFFER_UAV_FLAG_RAW,
                },
            },
        };
        // SAFETY: the heap is valid and has this index. No work uses the earlier descriptor, as its
        // segment was dropped, and nobody else writes to the index, which is not free. The buffer
        // has this number of words, and kernels may write it; the structure lives through the call.
        unsafe {
            let first = self.heap.GetCPUDescriptorHandleForHeapStart();
            let at = D3D12_CPU_DESCRIPTOR_HANDLE { ptr: first.ptr + place as usize * self.step };
            device.CreateUnorderedAccessView(buffer, None, Some(&view), at);
        }
        Ok(place)
    }

    /// Frees the index of a segment that no work uses any more.
    pub(crate) fn leave(&self, place: u32) {
        self.places().free.push(place);
    }

    /// Makes the table visible to the kernels that are recorded next. The list's root signature has
    /// it as parameter `parameter`.
    pub(crate) fn bind(&self, list: &ID3D12GraphicsCommandList, parameter: u32) {
        // SAFETY: the caller is recording the list, which has a root signature with such a
        // parameter; the heap is visible to kernels, and lives as long as the device, which
        // outlives its work.
        unsafe { list.SetComputeRootDescriptorTable(parameter, self.heap.GetGPUDescriptorHandleForHeapStart()) };
    }

    /// Makes a list use the table's heap.
    pub(crate) fn set_heap(&self, list: &ID3D12GraphicsCommandList) {
        // SAFETY: as above.
        unsafe { list.SetDescriptorHeaps(&[Some(self.heap.clone())]) };
    }

    fn places(&self) -> MutexGuard<'_, Places> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
