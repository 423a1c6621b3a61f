//! Fuses pointwise launches that stand one after another into one kernel.
//!
//! A launch is fused with the launches before it when it reads exactly what one of them writes,
//! over the same number of elements. The fused kernel computes each element through all of them in
//! the order of the calls, with every intermediate rounded to its dtype, so its results have the
//! bits of the single ones. An intermediate that was freed before the flush is never written. A
//! fused kernel is compiled on the pool once its structure was met [`WORTH`] times; until it is
//! compiled, the launches run one by one.
//!
//! The fused kernel means the same as its launches because an invocation reads all of its elements
//! before it writes one, and accesses no elements of other invocations. So a result may lie exactly
//! where an input or an earlier result lies, or apart from all of them; any other overlap ends the
//! chain, and so does a read of part of a result.

use crate::fusion::parameters::{Packed, PackedNumber, PointwiseParameters};
use crate::fusion::plan::{Plan, Wire};
use crate::kernels::argument_block::ArgumentBlock;
use crate::kernels::compiler;
use crate::kernels::kernel::KernelRef;
use crate::kernels::launch::{Launch, work_of};
use crate::kernels::pointwise::{Pointwise, PointwiseInput};
use crate::kernels::store::KernelStore;
use crate::memory::range::AddressRange;
use dml_environment::{FUSION, FusionMode};
use dml_kernel::{DType, ScalarType, dense};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::sync::Arc;

/// How often a structure must come to be worth a kernel.
const WORTH: u32 = 3;
/// The most launches of a chain.
const MAX_MEMBERS: usize = 64;
/// The most instructions for one element, of which the chain's kernel has five copies.
const MAX_INSTRUCTIONS: usize = 2000;
/// The most bytes of parameters: any adapter takes as many as push constants.
const MAX_PARAMS: usize = 128;
/// The most structures that are counted.
const MAX_STRUCTURES: usize = 4096;

/// A launch of the open chain.
struct Member {
    /// The index of its command in the list.
    command: usize,
    kernel: KernelRef,
    wires: SmallVec<[Wire; 4]>,
    numbers: SmallVec<[PackedNumber; 2]>,
    /// Where its parameters begin in the arena.
    push: usize,
}

/// Memory that the chain reads and does not write.
struct External {
    address: u64,
    dtype: DType,
    /// It is one element for all.
    constant: bool,
}

/// A result of a launch of the chain.
struct Output {
    address: u64,
    dtype: DType,
    /// Neither freed nor written over.
    live: bool,
}

/// The structure of a chain as words: everything that its kernel depends on, and what the kernel is
/// found by. The words are the elements of an invocation, each launch's kernel with where its
/// inputs come from, and the results that are written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Structure(Vec<u32>);

/// The open chain.
pub(crate) struct Fusion {
    mode: FusionMode,
    /// The kernels of single launches, and the fused ones.
    kernels: Arc<KernelStore>,
    /// Elements of every launch of the chain.
    n: u32,
    members: Vec<Member>,
    externals: Vec<External>,
    values: Vec<Output>,
    number_bytes: usize,
    instructions: usize,
    /// The structure of the chain while its kernel is looked up.
    structure: Structure,
    /// The parameters of a fused kernel while they are packed.
    block: ArgumentBlock,
    /// How often each structure came before it had a kernel.
    seen: FxHashMap<Structure, u32>,
}

/// One launch that stands for several.
pub(crate) struct FusedLaunch {
    pub(crate) kernel: KernelRef,
    pub(crate) params: SmallVec<[u8; MAX_PARAMS]>,
    pub(crate) groups: [u32; 3],
    pub(crate) reads: SmallVec<[AddressRange; 8]>,
    pub(crate) writes: SmallVec<[AddressRange; 8]>,
    /// How many launches it stands for.
    pub(crate) launches: u32,
}

impl FusedLaunch {
    /// As a launch by an operator.
    pub(crate) fn as_launch(&self, operator: &'static str) -> Launch<'_> {
        let Self { kernel, params, groups, reads, writes, .. } = self;
        let work = reads.iter().chain(writes).map(|&range| work_of(range)).sum();
        Launch { kernel, params, table: &[], groups: *groups, reads, writes, work, operator }
    }
}

fn range(address: u64, dtype: DType, elements: u32) -> AddressRange {
    AddressRange::new(address, dtype.bytes() * u64::from(elements))
}

impl Fusion {
    /// Fuses launches whose kernels, and the fused ones, are in this store.
    pub(crate) fn new(kernels: Arc<KernelStore>) -> Self {
        Self {
            mode: FUSION.get().unwrap_or(FusionMode::On),
            kernels,
            n: 0,
            members: Vec::new(),
            externals: Vec::new(),
            values: Vec::new(),
            number_bytes: 0,
            instructions: 0,
            structure: Structure::default(),
            block: ArgumentBlock::default(),
            seen: FxHashMap::default(),
        }
    }

    /// As [`new`](Self::new), but every structure is worth a kernel, and is waited for.
    pub(crate) fn waiting(kernels: Arc<KernelStore>) -> Self {
        let fusion = Self::new(kernels);
        let mode = if fusion.mode == FusionMode::Off { FusionMode::Off } else { FusionMode::Wait };
        Self { mode, ..fusion }
    }

    /// Adds the launch of a command to the open chain, or begins one with it. False if neither can
    /// be. `push` are its parameters, and where they begin in the arena.
    pub(super) fn append(&mut self, command: usize, kernel: &KernelRef, push: (&[u8], usize)) -> bool {
        let Some(pointwise) =
            kernel.pointwise().filter(|_| self.mode != FusionMode::Off && !kernel.has_indirect_parameters())
        else {
            return false;
        };
        self.append_pointwise(command, kernel, pointwise, push).is_some()
    }

    fn append_pointwise(
        &mut self,
        command: usize,
        kernel: &KernelRef,
        pointwise: &Pointwise,
        (params, push): (&[u8], usize),
    ) -> Option<()> {
        let outs = pointwise.outs.len();
        let packed = Packed::read(params, outs, &pointwise.inputs)?;
        let n = packed.numel;
        let open = !self.members.is_empty();
        if open && n != self.n || self.members.len() >= MAX_MEMBERS {
            return None;
        }

        // Inputs: values of the chain, or memory that the chain does not write.
        let mut wires: SmallVec<[Wire; 4]> = SmallVec::new();
        let mut fresh: SmallVec<[External; 4]> = SmallVec::new();
        let (mut tensor, mut linked) = (0, false);
        for input in &pointwise.inputs {
            let PointwiseInput::Tensor { dtype, constant } = *input else {
                wires.push(Wire::Number);
                continue;
            };
            let constant = constant && n > 1;
            let address = packed.tensor(tensor);
            tensor += 1;
            let read = range(address, dtype, if constant { 1 } else { n });
            let last = self.values.iter().rposition(|v| range(v.address, v.dtype, n).overlaps(read));
            if let Some(i) = last {
                let value = &self.values[i];
                if constant || value.address != address || value.dtype != dtype {
                    return None;
                }
                wires.push(Wire::Value(i as u16));
                linked = true;
                continue;
            }
            let same = |e: &External| e.address == address && e.dtype == dtype && e.constant == constant;
            let known = self.externals.iter().position(same);
            let index = known.or_else(|| fresh.iter().position(same).map(|i| self.externals.len() + i));
            wires.push(Wire::External(index.unwrap_or_else(|| {
                fresh.push(External { address, dtype, constant });
                self.externals.len() + fresh.len() - 1
            }) as u16));
        }
        if open && !linked {
            return None;
        }

        // Results: exactly where something of the chain lies, or apart from all of it.
        let results: SmallVec<[(u64, DType); 2]> =
            pointwise.outs.iter().enumerate().map(|(i, &dtype)| (packed.out(i), dtype)).collect();
        for &(address, dtype) in &results {
            let written = range(address, dtype, n);
            let fits = |other: AddressRange, size: u64, constant: bool| {
                !other.overlaps(written) || (other == written && size == dtype.bytes() && !constant)
            };
            let values = self.values.iter().all(|v| fits(range(v.address, v.dtype, n), v.dtype.bytes(), false));
            let externals =
                self.externals.iter().chain(&fresh).all(|e| {
                    fits(range(e.address, e.dtype, if e.constant { 1 } else { n }), e.dtype.bytes(), e.constant)
                });
            if !values || !externals {
                return None;
            }
        }
        let number_bytes = self.number_bytes + packed.numbers.iter().map(PackedNumber::bytes).sum::<usize>();
        let live = self.values.iter().filter(|v| v.live).count() + results.len();
        let pointers = live + self.externals.len() + fresh.len();
        let instructions = self.instructions + pointwise.element.len();
        // 8 for padding.
        if 8 * pointers + number_bytes + 4 + 8 > MAX_PARAMS || instructions > MAX_INSTRUCTIONS {
            return None;
        }

        for &(address, dtype) in &results {
            for value in &mut self.values {
                value.live &= value.address != address;
            }
            self.values.push(Output { address, dtype, live: true });
        }
        self.n = n;
        self.externals.append(&mut fresh.into_vec());
        (self.number_bytes, self.instructions) = (number_bytes, instructions);
        self.members.push(Member { command, kernel: kernel.clone(), wires, numbers: packed.numbers, push });
        Some(())
    }

    /// Memory was freed: what the chain wrote there need not be written.
    pub(super) fn freed(&mut self, address: u64) {
        for value in &mut self.values {
            value.live &= value.address != address;
        }
    }

    /// The commands of the open chain, in order; none if no chain is open.
    pub(super) fn launches(&self) -> impl DoubleEndedIterator<Item = usize> {
        self.members.iter().map(|m| m.command)
    }

    /// Forgets the open chain.
    pub(super) fn clear(&mut self) {
        self.members.clear();
        self.externals.clear();
        self.values.clear();
        (self.number_bytes, self.instructions) = (0, 0);
    }

    /// The open chain as one launch, if there is a kernel for it. `arena` holds the parameters of
    /// its members.
    pub(super) fn fused(&mut self, arena: &[u8]) -> Option<FusedLaunch> {
        if self.members.len() < 2 {
            return None;
        }
        // The results of the last launch are always written.
        let last = self.members.last().and_then(|m| m.kernel.pointwise()).map_or(0, |p| p.outs.len());
        let first_of_last = self.values.len() - last;
        let stores: SmallVec<[usize; 8]> =
            (0..self.values.len()).filter(|&i| self.values[i].live || i >= first_of_last).collect();
        let lanes = self.lanes(&stores);
        self.write_structure(&stores, lanes);
        let kernel = self.kernel(&stores, lanes)?;

        let mut fused = FusedLaunch {
            kernel,
            params: SmallVec::new(),
            groups: dense::groups(u64::from(self.n.div_ceil(lanes))),
            reads: SmallVec::new(),
            writes: SmallVec::new(),
            launches: self.members.len() as u32,
        };
        let written = stores.iter().map(|&i| &self.values[i]);
        fused.writes.extend(written.clone().map(|value| range(value.address, value.dtype, self.n)));
        let read = |e: &External| range(e.address, e.dtype, if e.constant { 1 } else { self.n });
        fused.reads.extend(self.externals.iter().map(read));
        let numbers = self
            .members
            .iter()
            .flat_map(|member| member.numbers.iter().map(|number| (number.scalar, number.bits(&arena[member.push..]))));
        self.block.clear();
        let externals = self.externals.iter().map(|e| e.address);
        PointwiseParameters::pass(
            &mut self.block,
            written.map(|v| v.address),
            externals,
            numbers,
            ScalarType::U32,
            u64::from(self.n),
        );
        fused.params.extend_from_slice(self.block.params());
        Some(fused)
    }

    /// Neighbours an invocation: 16 bytes of the widest operand, if all of them begin at such a
    /// boundary.
    fn lanes(&self, stores: &[usize]) -> u32 {
        let operands = || {
            let externals = self.externals.iter().filter(|e| !e.constant).map(|e| (e.address, e.dtype));
            stores.iter().map(|&i| (self.values[i].address, self.values[i].dtype)).chain(externals)
        };
        let widest = operands().map(|(_, dtype)| dtype.bytes()).max().unwrap_or(4);
        let lanes = 16 / widest;
        let aligned = operands().all(|(address, dtype)| address % (dtype.bytes() * lanes) == 0);
        if aligned { lanes as u32 } else { 1 }
    }

    fn write_structure(&mut self, stores: &[usize], lanes: u32) {
        let words = &mut self.structure.0;
        words.clear();
        words.push(lanes);
        for member in &self.members {
            words.extend(member.kernel.id().words());
            words.extend(member.wires.iter().map(|wire| match *wire {
                Wire::External(i) => 1 << 16 | u32::from(i),
                Wire::Value(i) => 2 << 16 | u32::from(i),
                Wire::Number => 3 << 16,
            }));
        }
        words.extend(stores.iter().map(|&i| 4 << 16 | i as u32));
    }

    /// The chain's kernel, if it can run now.
    fn kernel(&mut self, stores: &[usize], lanes: u32) -> Option<KernelRef> {
        let wait = self.mode == FusionMode::Wait;
        if let Some(kernel) = self.kernels.find(&self.structure) {
            if wait {
                kernel.compile(self.kernels.gpu()); // The pool may still be compiling it.
            }
            return (kernel.is_compiled() && is_good(kernel)).then(|| kernel.clone());
        }
        if !self.is_now_worth_a_kernel() {
            return None;
        }
        let (kernels, structure) = (Arc::clone(&self.kernels), self.structure.clone());
        let plan = self.plan(stores, lanes);
        // Of valid elements comes a valid kernel; if not, the single kernels run on.
        let make = move || kernels.get_compiled(&structure, || (plan.build(), None)).ok().cloned();
        if wait {
            return make().filter(is_good);
        }
        compiler::enqueue(self.kernels.gpu(), Box::new(move |_| drop(make())));
        None
    }

    /// Counts the structure. True once, when it has come often enough.
    fn is_now_worth_a_kernel(&mut self) -> bool {
        let worth = if self.mode == FusionMode::Wait { 1 } else { WORTH };
        let is_full = self.seen.len() >= MAX_STRUCTURES;
        let times = match self.seen.get_mut(&self.structure) {
            Some(times) => times,
            None if is_full => return false,
            None => self.seen.entry(self.structure.clone()).or_default(),
        };
        *times = times.saturating_add(1);
        *times == worth
    }

    fn plan(&self, stores: &[usize], lanes: u32) -> Plan {
        Plan {
            members: self.members.iter().map(|m| (m.kernel.clone(), m.wires.clone())).collect(),
            externals: self.externals.iter().map(|e| (e.dtype, e.constant)).collect(),
            stores: stores.iter().map(|&i| (i, self.values[i].dtype)).collect(),
            lanes,
        }
    }
}

/// Whether a compiled kernel is worth to run in place of the single ones.
fn is_good(kernel: &KernelRef) -> bool {
    !kernel.refused() && !kernel.plain()
}
