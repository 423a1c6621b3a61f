//! Enqueues one kernel: its parameters in declaration order, and the memory it reads and writes.

use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::tensor::Tensor;
use dml_engine::{AddressRange, Family, KernelRef, Launch};
pub use dml_kernel::dense::{GROUP, linear_id};
use dml_kernel::{DType, Kernel, Scalar, dense};
use std::cell::Cell;

/// Collects the arguments of one kernel, in the order in which the kernel declared its parameters.
pub struct Launcher<'c, 'a> {
    call: &'c Call<'a>,
    kernel: &'c KernelRef,
    collected: Box<Collected>,
}

/// What a launcher has collected. It stays in one place while the launcher is passed on.
#[derive(Default)]
struct Collected {
    params: Vec<u8>,
    table: Vec<u8>,
    reads: Vec<AddressRange>,
    writes: Vec<AddressRange>,
}

thread_local! {
    /// That of the thread's last launch, emptied, for the next one.
    static SPARE: Cell<Option<Box<Collected>>> = const { Cell::new(None) };
}

impl<'a> Call<'a> {
    /// The kernel of this key, made by `build` the first time it is asked for.
    pub fn kernel(
        &self,
        family: &'static str,
        params: [u32; 6],
        build: impl FnOnce() -> Kernel,
    ) -> Result<&'a KernelRef> {
        Ok(self.device.kernel(&(Family(family), params), build)?)
    }

    /// Starts a launch of `kernel`.
    #[inline]
    pub fn launch<'c>(&'c self, kernel: &'c KernelRef) -> Launcher<'c, 'a> {
        Launcher { call: self, kernel, collected: SPARE.take().unwrap_or_default() }
    }
}

/// A number as the bits of `dtype.compute()`; bool is a u32.
pub fn number_word(dtype: DType, x: crate::operator::call::Scalar) -> u64 {
    match dtype.compute() {
        Scalar::Bool => u64::from(x.to_f64() != 0.0),
        // Narrow integers wrap to their width first: no store does it for a number that is compared.
        Scalar::I32 => u64::from(match dtype {
            DType::U8 => i32::from(x.to_i64() as u8),
            DType::I8 => i32::from(x.to_i64() as i8),
            DType::I16 => i32::from(x.to_i64() as i16),
            DType::U16 => i32::from(x.to_i64() as u16),
            _ => x.to_i64() as i32,
        } as u32),
        Scalar::U32 => u64::from(x.to_i64() as u32),
        Scalar::I64 | Scalar::U64 => x.to_i64() as u64,
        Scalar::F32 => u64::from((x.to_f64() as f32).to_bits()),
        Scalar::F64 => x.to_f64().to_bits(),
    }
}

impl Launcher<'_, '_> {
    /// A parameter, aligned to its own size.
    #[inline]
    fn bytes<const N: usize>(mut self, bytes: [u8; N]) -> Self {
        let params = &mut self.collected.params;
        if !params.len().is_multiple_of(N) {
            params.resize(params.len().next_multiple_of(N), 0);
        }
        params.extend_from_slice(&bytes);
        self
    }

    /// Words whose address is the kernel's first parameter (see [`Launch::table`]).
    pub fn table<'w>(mut self, words: impl IntoIterator<Item = &'w u64>) -> Self {
        for word in words {
            self.collected.table.extend_from_slice(&word.to_le_bytes());
        }
        self
    }

    /// Bytes that the kernel finds by itself: those it reads, and those it writes (and may read).
    pub fn ranges(mut self, reads: &[AddressRange], writes: &[AddressRange]) -> Self {
        self.collected.reads.extend_from_slice(reads);
        self.collected.writes.extend_from_slice(writes);
        self
    }

    /// A tensor the kernel reads.
    pub fn read(mut self, t: &Tensor) -> Self {
        self.collected.reads.push(t.range());
        self.bytes(t.data.to_le_bytes())
    }

    /// A tensor the kernel writes (and may read).
    pub fn write(mut self, t: &Tensor) -> Self {
        self.collected.writes.push(t.range());
        self.bytes(t.data.to_le_bytes())
    }

    /// Bytes the kernel reads that are no tensor.
    pub fn read_bytes(mut self, address: u64, bytes: u64) -> Self {
        self.collected.reads.push(AddressRange::new(address, bytes));
        self.bytes(address.to_le_bytes())
    }

    /// Bytes the kernel writes (and may read) that are no tensor.
    pub fn write_bytes(mut self, address: u64, bytes: u64) -> Self {
        self.collected.writes.push(AddressRange::new(address, bytes));
        self.bytes(address.to_le_bytes())
    }

    /// An address with no hazard of its own, such as the fault block.
    pub fn address(self, address: u64) -> Self {
        self.bytes(address.to_le_bytes())
    }

    /// The device's fault block (see [`crate::operator::fault`]).
    pub fn fault(self) -> Self {
        let address = self.call.device.fault_address();
        self.address(address)
    }

    /// A u32 parameter.
    pub fn u32(self, x: u32) -> Self {
        self.bytes(x.to_le_bytes())
    }

    /// An i32 parameter.
    pub fn i32(self, x: i32) -> Self {
        self.bytes(x.to_le_bytes())
    }

    /// A u64 parameter.
    pub fn u64(self, x: u64) -> Self {
        self.bytes(x.to_le_bytes())
    }

    /// An i64 parameter.
    pub fn i64(self, x: i64) -> Self {
        self.bytes(x.to_le_bytes())
    }

    /// An f32 parameter.
    pub fn f32(self, x: f32) -> Self {
        self.bytes(x.to_le_bytes())
    }

    /// An f64 parameter.
    pub fn f64(self, x: f64) -> Self {
        self.bytes(x.to_le_bytes())
    }

    /// An integer parameter declared as `scalar` (u32 or u64, or their signed twins).
    pub fn index(self, scalar: Scalar, x: i64) -> Self {
        if scalar.bytes() == 8 { self.i64(x) } else { self.i32(x as i32) }
    }

    /// A number parameter declared as `dtype.compute()`; bool travels as u32.
    pub fn number(self, dtype: DType, x: crate::operator::call::Scalar) -> Self {
        let word = number_word(dtype, x);
        if dtype.compute().bytes() == 8 { self.u64(word) } else { self.u32(word as u32) }
    }

    /// Runs it on this many workgroups.
    pub fn groups(self, groups: [u32; 3]) -> Result<()> {
        let Self { call, kernel, mut collected } = self;
        let Collected { params, table, reads, writes } = &mut *collected;
        let launch = Launch { kernel, params, table, groups, reads, writes, operator: call.name };
        let launched = call.device.launch(launch);
        params.clear();
        table.clear();
        reads.clear();
        writes.clear();
        SPARE.set(Some(collected));
        Ok(launched?)
    }

    /// Runs it on at least `threads` invocations in workgroups of [`GROUP`]; the kernel asks [`linear_id`] for its index.
    pub fn threads(self, threads: u64) -> Result<()> {
        self.groups(dense::groups(threads))
    }
}
