//! Timestamps, in queries that are reused. Each is copied into memory that the host reads, after
//! its commands.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use dml_gpu::Ticket;
use windows::Win32::Graphics::Direct3D12::*;

use crate::device::DeviceShared;
use crate::error::Error;
use crate::segment::{buffer, map};

/// The most timestamps of a recorder that may be alive at a time.
const QUERIES: u32 = 4096;

/// A recorded timestamp. Its query is reused when the last clone is dropped.
#[derive(Clone)]
pub struct TimestampId {
    query: Arc<Query>,
}

struct Query {
    index: u32,
    ticket: Ticket,
    /// The submission was discarded: the query was not written.
    discarded: AtomicBool,
    free: Arc<Mutex<Vec<u32>>>,
}

impl Drop for Query {
    fn drop(&mut self) {
        self.free.lock().unwrap_or_else(PoisonError::into_inner).push(self.index);
    }
}

impl TimestampId {
    /// The submission that writes the timestamp.
    pub(crate) fn ticket(&self) -> Ticket {
        self.query.ticket
    }

    /// The submission was discarded.
    pub(crate) fn is_discarded(&self) -> bool {
        self.query.discarded.load(Ordering::Relaxed)
    }
}

impl std::fmt::Debug for TimestampId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TimestampId").field("query", &self.query.index).field("ticket", &self.query.ticket).finish()
    }
}

/// The queries of a recorder.
pub(crate) struct Queries {
    heap: ID3D12QueryHeap,
    /// The destination of the queries, a word of 64 bits each.
    read: ID3D12Resource,
    free: Arc<Mutex<Vec<u32>>>,
    /// The timestamps of the next submission.
    next: Vec<Arc<Query>>,
}

impl Queries {
    pub(crate) fn new(device: &DeviceShared) -> Result<Self, Error> {
        const CALL: &str = "ID3D12Device::CreateQueryHeap";
        let description = D3D12_QUERY_HEAP_DESC { Type: D3D12_QUERY_HEAP_TYPE_TIMESTAMP, Count: QUERIES, NodeMask: 0 };
        let mut heap = None;
        // SAFETY: the device is valid; the structure and `heap` live through the call.
        unsafe { device.raw.CreateQueryHeap(&description, &mut heap) }.map_err(|e| device.error(CALL, &e))?;
        let heap = heap.ok_or(Error::Driver { call: CALL, code: 0, name: "no heap".to_owned() })?;
        let host = D3D12_HEAP_PROPERTIES { Type: D3D12_HEAP_TYPE_READBACK, ..Default::default() };
        Ok(Self {
            read: buffer(device, u64::from(QUERIES) * 8, host, D3D12_RESOURCE_FLAG_NONE)?,
            heap,
            free: Arc::new(Mutex::new((0..QUERIES).rev().collect())),
            next: Vec::new(),
        })
    }

    /// Records a timestamp that is written when all commands of the list so far are done.
    pub(crate) fn record(&mut self, list: &ID3D12GraphicsCommandList, ticket: Ticket) -> Result<TimestampId, Error> {
        let taken = self.free.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let index = taken.ok_or(Error::OutOfMemory { requested: 0 })?;
        let query = Query { index, ticket, discarded: AtomicBool::new(false), free: Arc::clone(&self.free) };
        // SAFETY: the list is being recorded. Heap and buffer live as long as the recorder, which
        // waits for its submissions; the query belongs to no live timestamp, and its word is inside
        // the buffer.
        unsafe {
            list.EndQuery(&self.heap, D3D12_QUERY_TYPE_TIMESTAMP, index);
            let at = u64::from(index) * 8;
            list.ResolveQueryData(&self.heap, D3D12_QUERY_TYPE_TIMESTAMP, index, 1, &self.read, at);
        }
        let id = TimestampId { query: Arc::new(query) };
        self.next.push(Arc::clone(&id.query));
        Ok(id)
    }

    /// The next submission was submitted.
    pub(crate) fn submitted(&mut self) {
        self.next.clear();
    }

    /// The next submission is discarded, and its timestamps are not written.
    pub(crate) fn discard(&mut self) {
        self.next.drain(..).for_each(|query| query.discarded.store(true, Ordering::Relaxed));
    }

    /// The ticks of a timestamp whose submission is complete and was not discarded.
    pub(crate) fn ticks(&self, device: &DeviceShared, id: &TimestampId) -> Result<u64, Error> {
        let bytes = u64::from(QUERIES) * 8;
        let words = map(device, &self.read, bytes)?.cast::<u64>();
        // SAFETY: the buffer is mapped and has this number of words; a complete submission wrote
        // the query's word, and it is not written again while `id` holds it. The buffer was mapped
        // above, once.
        unsafe {
            let ticks = words.add(id.query.index as usize).read_volatile();
            self.read.Unmap(0, Some(&D3D12_RANGE::default()));
            Ok(ticks)
        }
    }

    /// Whether the timestamp was recorded here.
    pub(crate) fn owns(&self, id: &TimestampId) -> bool {
        Arc::ptr_eq(&self.free, &id.query.free)
    }
}
