//! The machine that runs a kernel.
//!
//! The bits computed here are the bits that every driver must give for normal numbers. Where Vulkan
//! leaves a choice, one is taken: [`Inst::Fma`] is fused, conversions of floats to integers
//! saturate, and an integer division by zero gives 0. Subnormals are kept, or flushed where an
//! adapter may ([`Subnormals`]).
//!
//! All invocations of a workgroup run in lockstep: every instruction is evaluated for all of them
//! before the next one, and inactive invocations of a branch are masked. Barriers therefore need no
//! work, and the walk over the kernel is paid once for a whole workgroup.

use super::matrix::decode;
use crate::builder::{Builder, Value};
use crate::dtype::DType;
use crate::ir::*;
use crate::types::{ScalarType, Type, Word};
use half::f16;

/// What a parameter of the kernel is bound to.
#[derive(Debug)]
pub enum Argument<'a> {
    /// Memory of a pointer parameter. Two pointer parameters never alias.
    Memory(&'a mut [u8]),
    /// Bits of a number parameter.
    Number(u64),
}

/// What instructions on floats do with subnormal numbers. Those that only move bits (loads, stores,
/// selects, bitcasts) keep them either way.
#[derive(Debug, Copy, Clone, PartialEq, Eq)]
pub enum Subnormals {
    /// They are numbers like others.
    Keep,
    /// As operands and as results of arithmetic, comparisons, conversions and roundings they count
    /// as zero, their sign kept: what Vulkan allows where an adapter promises nothing else.
    Flush,
}

impl Subnormals {
    fn f32(self, word: u64) -> f32 {
        let x = f32::from_bits(word as u32);
        if self == Subnormals::Flush && x.is_subnormal() { 0f32.copysign(x) } else { x }
    }

    fn f64(self, word: u64) -> f64 {
        let x = f64::from_bits(word);
        if self == Subnormals::Flush && x.is_subnormal() { 0f64.copysign(x) } else { x }
    }

    fn bits32(self, x: f32) -> u64 {
        bits32(self.f32(bits32(x)))
    }

    fn bits64(self, x: f64) -> u64 {
        self.f64(x.to_bits()).to_bits()
    }
}

/// Runs `groups` workgroups one after another, with subgroups of `subgroup_size` invocations;
/// subnormals are kept.
///
/// # Panics
///
/// When an argument does not match its parameter, or the kernel leaves the memory that it was
/// given.
pub fn run(kernel: &Kernel, groups: [u32; 3], subgroup_size: u32, arguments: &mut [Argument<'_>]) {
    run_with(kernel, groups, subgroup_size, Subnormals::Keep, arguments);
}

/// [`run`] with a choice about subnormals.
///
/// # Panics
///
/// As [`run`].
pub fn run_with(
    kernel: &Kernel,
    groups: [u32; 3],
    subgroup_size: u32,
    subnormals: Subnormals,
    arguments: &mut [Argument<'_>],
) {
    assert_eq!(arguments.len(), kernel.params.len(), "arguments of kernel {}", kernel.name);
    let mut machine = Machine::new(kernel, groups, subgroup_size, subnormals, arguments);
    for z in 0..groups[2] {
        for y in 0..groups[1] {
            for x in 0..groups[0] {
                machine.workgroup([x, y, z]);
            }
        }
    }
}

/// A function of one or two floats, ready to be evaluated many times.
#[derive(Debug)]
pub struct Function {
    kernel: Kernel,
    inputs: usize,
    scalar: ScalarType,
    subnormals: Subnormals,
}

impl Function {
    /// Invocations in a workgroup of [`Function::kernel`].
    pub const WORKGROUP: u32 = 64;

    /// `f(x)`
    pub fn unary(scalar: ScalarType, f: impl for<'b> FnOnce(Value<'b>) -> Value<'b>) -> Function {
        Function::of(scalar, 1, |v| f(v[0]))
    }

    /// `f(x, y)`
    pub fn binary(scalar: ScalarType, f: impl for<'b> FnOnce(Value<'b>, Value<'b>) -> Value<'b>) -> Function {
        Function::of(scalar, 2, |v| f(v[0], v[1]))
    }

    fn of(scalar: ScalarType, inputs: usize, f: impl for<'b> FnOnce(&[Value<'b>]) -> Value<'b>) -> Function {
        let dtype = if scalar == ScalarType::F64 { DType::F64 } else { DType::F32 };
        assert!(scalar.is_float());
        let b = Builder::new("function", [Function::WORKGROUP, 1, 1]);
        {
            let pointers: Vec<_> = (0..inputs).map(|i| b.pointer(["x", "y"][i], dtype)).collect();
            let result = b.pointer("result", dtype);
            let i = b.global_id(0);
            let values: Vec<_> = pointers.iter().map(|p| p.load(i)).collect();
            result.store(i, f(&values));
        }
        Function { kernel: b.finish(), inputs, scalar, subnormals: Subnormals::Keep }
    }

    /// The same function where instructions treat subnormals so.
    pub fn with(self, subnormals: Subnormals) -> Function {
        Function { subnormals, ..self }
    }

    /// The kernel: pointer parameters x, (y,) result; one element an invocation, with no bounds
    /// check.
    pub fn kernel(&self) -> &Kernel {
        &self.kernel
    }

    /// Number of float inputs: 1 or 2.
    pub fn inputs(&self) -> usize {
        self.inputs
    }

    /// Number of instructions, without constants, loads and stores; every branch counts.
    pub fn instructions(&self) -> usize {
        let counted = |v: &&ValueInfo| {
            matches!(
                v.inst,
                Inst::Unary(..)
                    | Inst::Binary(..)
                    | Inst::Compare(..)
                    | Inst::Select(..)
                    | Inst::Cast(..)
                    | Inst::Fma(..)
            )
        };
        // Two of them compute the element's index.
        self.kernel.values.iter().filter(counted).count() - 2
    }

    /// The function of every element of an f32 slice, or of two.
    pub fn f32(&self, inputs: &[&[f32]]) -> Vec<f32> {
        assert_eq!(self.scalar, ScalarType::F32);
        let bytes: Vec<Vec<u8>> = inputs.iter().map(|x| x.iter().flat_map(|v| v.to_le_bytes()).collect()).collect();
        let out = self.bytes(bytes, inputs[0].len(), 4);
        out.chunks_exact(4).map(|c| f32::from_le_bytes([c[0], c[1], c[2], c[3]])).collect()
    }

    /// The function of every element of an f64 slice, or of two.
    pub fn f64(&self, inputs: &[&[f64]]) -> Vec<f64> {
        assert_eq!(self.scalar, ScalarType::F64);
        let bytes: Vec<Vec<u8>> = inputs.iter().map(|x| x.iter().flat_map(|v| v.to_le_bytes()).collect()).collect();
        let out = self.bytes(bytes, inputs[0].len(), 8);
        out.chunks_exact(8).map(|c| f64::from_le_bytes([c[0], c[1], c[2], c[3], c[4], c[5], c[6], c[7]])).collect()
    }

    fn bytes(&self, mut inputs: Vec<Vec<u8>>, len: usize, size: usize) -> Vec<u8> {
        assert_eq!(inputs.len(), self.inputs);
        let groups = len.div_ceil(Function::WORKGROUP as usize);
        let padded = groups * Function::WORKGROUP as usize * size;
        inputs.iter_mut().for_each(|x| x.resize(padded, 0));
        let mut result = vec![0; padded];
        let mut arguments: Vec<_> = inputs.iter_mut().map(|x| Argument::Memory(x)).collect();
        arguments.push(Argument::Memory(&mut result));
        run_with(&self.kernel, [groups as u32, 1, 1], 32, self.subnormals, &mut arguments);
        result.truncate(len * size);
        result
    }
}

/// Where an argument's number begins in an address that a kernel has as a number; below are bytes,
/// from [`MIDDLE`] on.
const ARGUMENT_BITS: u32 = 40;
const MIDDLE: i64 = 1 << 39;

/// A pointer as every invocation sees it.
#[derive(Clone)]
struct Address {
    argument: usize,
    /// Bytes from the start of the memory, per invocation.
    offset: Vec<i64>,
}

pub(super) struct Machine<'k, 'a, 'm> {
    pub(super) k: &'k Kernel,
    arguments: &'m mut [Argument<'a>],
    groups: [u32; 3],
    group: [u32; 3],
    pub(super) subgroup_size: usize,
    subnormals: Subnormals,
    /// Invocations in a workgroup.
    width: usize,
    /// First slot of each value; a slot holds `width` words. Operands lie before the values made
    /// from them.
    slots: Vec<usize>,
    words: Vec<u64>,
    /// Per variable `len * width` words.
    vars: Vec<Vec<u64>>,
    /// Per shared array `len * lanes` words.
    pub(super) shared: Vec<Vec<u64>>,
    /// Per matrix register the elements of each subgroup's, row after row.
    pub(super) matrices: Vec<Vec<u64>>,
    pointers: Vec<Option<Address>>,
    /// Invocations that have not returned.
    live: Vec<bool>,
}

impl<'k, 'a, 'm> Machine<'k, 'a, 'm> {
    fn new(
        k: &'k Kernel,
        groups: [u32; 3],
        subgroup_size: u32,
        subnormals: Subnormals,
        arguments: &'m mut [Argument<'a>],
    ) -> Machine<'k, 'a, 'm> {
        let width = k.workgroup_size.iter().product::<u32>() as usize;
        let mut next = 0;
        let slots = k
            .values
            .iter()
            .map(|v| {
                next += v.ty.lanes as usize;
                next - v.ty.lanes as usize
            })
            .collect();
        let pointers = k.pointers.iter().map(|p| match p.base {
            PointerBase::Param(argument) => Some(Address { argument: argument as usize, offset: vec![0; width] }),
            PointerBase::Offset(..) | PointerBase::Address(_) => None,
        });
        let mut machine = Machine {
            k,
            arguments,
            groups,
            group: [0; 3],
            subgroup_size: subgroup_size as usize,
            subnormals,
            width,
            slots,
            words: vec![0; next * width],
            vars: k.vars.iter().map(|v| vec![0; v.len as usize * width]).collect(),
            shared: k.shared.iter().map(|s| vec![0; s.len as usize * s.ty.lanes as usize]).collect(),
            matrices: k
                .matrices
                .iter()
                .map(|m| vec![0; m.len() as usize * width.div_ceil(subgroup_size as usize)])
                .collect(),
            pointers: pointers.collect(),
            live: vec![true; width],
        };
        for id in 0..k.values.len() as ValueId {
            let info = &k.values[id as usize];
            match info.inst {
                Inst::ConstBool(x) => machine.fill(id, u64::from(x)),
                Inst::ConstInt(x) => machine.fill(id, narrow(info.ty.scalar, x)),
                Inst::ConstFloat(bits) => machine.fill(id, bits),
                Inst::Param(p) => match machine.arguments[p as usize] {
                    Argument::Number(x) if info.ty.lanes == 2 => {
                        machine.fill(id, x & 0xffff_ffff);
                        machine.lane_mut(id, 1).fill(x >> 32);
                    }
                    Argument::Number(x) => machine.fill(id, narrow(info.ty.scalar, x)),
                    Argument::Memory(_) => panic!("parameter {p} of kernel {} is a number", k.name),
                },
                _ => {}
            }
        }
        machine
    }

    fn workgroup(&mut self, group: [u32; 3]) {
        self.group = group;
        self.live.fill(true);
        let k = self.k;
        for (id, value) in k.values.iter().enumerate() {
            if let Inst::Builtin(builtin) = value.inst {
                self.builtin(id as ValueId, builtin);
            }
        }
        let mask = vec![true; self.width];
        self.block(&k.body, &mask);
    }

    fn builtin(&mut self, id: ValueId, builtin: Builtin) {
        let [sx, sy, _] = self.k.workgroup_size.map(|s| s as usize);
        let (group, groups, subgroup) = (self.group, self.groups, self.subgroup_size);
        for (l, word) in self.lane_mut(id, 0).iter_mut().enumerate() {
            let local = [l % sx, l / sx % sy, l / (sx * sy)];
            *word = match builtin {
                Builtin::Group(d) => u64::from(group[d as usize]),
                Builtin::Local(d) => local[d as usize] as u64,
                Builtin::Groups(d) => u64::from(groups[d as usize]),
                Builtin::SubgroupLane => (l % subgroup) as u64,
                Builtin::SubgroupSize => subgroup as u64,
                Builtin::SubgroupIndex => (l / subgroup) as u64,
            };
        }
    }

    // ---- values

    fn at(&self, id: ValueId, lane: usize) -> usize {
        (self.slots[id as usize] + lane) * self.width
    }

    pub(super) fn lane(&self, id: ValueId, lane: usize) -> &[u64] {
        let at = self.at(id, lane);
        &self.words[at..at + self.width]
    }

    fn lane_mut(&mut self, id: ValueId, lane: usize) -> &mut [u64] {
        let at = self.at(id, lane);
        let width = self.width;
        &mut self.words[at..at + width]
    }

    fn fill(&mut self, id: ValueId, word: u64) {
        self.lane_mut(id, 0).fill(word);
    }

    fn lanes(&self, id: ValueId) -> usize {
        self.k.values[id as usize].ty.lanes as usize
    }

    fn map1(&mut self, id: ValueId, a: ValueId, f: impl Fn(u64) -> u64) {
        for lane in 0..self.lanes(id) {
            let (a, d, w) = (self.at(a, lane), self.at(id, lane), self.width);
            let (source, target) = self.words.split_at_mut(d);
            for (d, a) in target[..w].iter_mut().zip(&source[a..a + w]) {
                *d = f(*a);
            }
        }
    }

    fn map2(&mut self, id: ValueId, a: ValueId, b: ValueId, f: impl Fn(u64, u64) -> u64) {
        for lane in 0..self.lanes(id) {
            let (a, b, d, w) = (self.at(a, lane), self.at(b, lane), self.at(id, lane), self.width);
            let (source, target) = self.words.split_at_mut(d);
            for ((d, a), b) in target[..w].iter_mut().zip(&source[a..a + w]).zip(&source[b..b + w]) {
                *d = f(*a, *b);
            }
        }
    }

    fn map3(&mut self, id: ValueId, [a, b, c]: [ValueId; 3], f: impl Fn(u64, u64, u64) -> u64) {
        for lane in 0..self.lanes(id) {
            // A bool selects whole vectors.
            let a_lane = if self.lanes(a) == 1 { 0 } else { lane };
            let (a, b, c, d) = (self.at(a, a_lane), self.at(b, lane), self.at(c, lane), self.at(id, lane));
            let w = self.width;
            let (source, target) = self.words.split_at_mut(d);
            for (i, d) in target[..w].iter_mut().enumerate() {
                *d = f(source[a + i], source[b + i], source[c + i]);
            }
        }
    }

    // ---- statements

    fn active(&self, mask: &[bool]) -> bool {
        mask.iter().zip(&self.live).any(|(m, l)| *m && *l)
    }

    /// Indices of the invocations that run.
    pub(super) fn running(&self, mask: &[bool]) -> Vec<usize> {
        (0..self.width).filter(|&l| mask[l] && self.live[l]).collect()
    }

    fn block(&mut self, block: &Block, mask: &[bool]) {
        for stmt in &block.0 {
            self.statement(stmt, mask);
        }
    }

    fn masked(&self, mask: &[bool], cond: ValueId, wanted: bool) -> Vec<bool> {
        mask.iter().zip(self.lane(cond, 0)).map(|(m, c)| *m && (*c != 0) == wanted).collect()
    }

    fn statement(&mut self, stmt: &Stmt, mask: &[bool]) {
        match *stmt {
            Stmt::Def(id) => self.define(id, mask),
            Stmt::DefPointer(id) => self.make_pointer(id, mask),
            Stmt::SetVar { var, index, value } => {
                for l in self.running(mask) {
                    let element = index.map_or(0, |i| self.lane(i, 0)[l] as usize);
                    let at = element * self.width + l;
                    self.vars[var as usize][at] = self.lane(value, 0)[l];
                }
            }
            Stmt::Store { pointer, index, value } => {
                let ty = self.k.values[value as usize].ty;
                for l in self.running(mask) {
                    let (argument, at, word) = self.element(pointer, index, ty, l);
                    for lane in 0..ty.lanes as usize {
                        let bits = self.lane(value, lane)[l];
                        self.write(argument, at + lane * word.bytes() as usize, word, bits);
                    }
                }
            }
            Stmt::StoreShared { shared, index, lane: Some(lane), value } => {
                let lanes = self.k.shared[shared as usize].ty.lanes as usize;
                for l in self.running(mask) {
                    let at = self.lane(index, 0)[l] as usize * lanes + self.lane(lane, 0)[l] as usize;
                    self.shared[shared as usize][at] = self.lane(value, 0)[l];
                }
            }
            Stmt::StoreShared { shared, index, lane: None, value } => {
                let lanes = self.lanes(value);
                for l in self.running(mask) {
                    let at = self.lane(index, 0)[l] as usize * lanes;
                    for lane in 0..lanes {
                        self.shared[shared as usize][at + lane] = self.lane(value, lane)[l];
                    }
                }
            }
            Stmt::If { cond, ref then, ref otherwise } => {
                for (block, wanted) in [(then, true), (otherwise, false)] {
                    let inner = self.masked(mask, cond, wanted);
                    if !block.0.is_empty() && self.active(&inner) {
                        self.block(block, &inner);
                    }
                }
            }
            Stmt::While { ref test, cond, ref body, .. } => {
                let mut inner = mask.to_vec();
                loop {
                    self.block(test, &inner);
                    inner = self.masked(&inner, cond, true);
                    if !self.active(&inner) {
                        break;
                    }
                    self.block(body, &inner);
                }
            }
            Stmt::Call(ref call) => self.block(&call.body, mask),
            Stmt::Barrier | Stmt::SubgroupBarrier => {}
            Stmt::Matrix(ref stmt) => self.matrix(stmt, mask),
            Stmt::Return => {
                for (live, m) in self.live.iter_mut().zip(mask) {
                    *live &= !m;
                }
            }
        }
    }

    // ---- memory

    fn make_pointer(&mut self, id: PointerId, mask: &[bool]) {
        let PointerInfo { word, base } = self.k.pointers[id as usize];
        let address = match base {
            PointerBase::Param(_) => return,
            PointerBase::Offset(base, elements) => {
                let mut address = self.pointers[base as usize].clone().expect("a pointer is made before it is used");
                for (offset, n) in address.offset.iter_mut().zip(self.lane(elements, 0)) {
                    *offset = offset.wrapping_add((*n as i64).wrapping_mul(i64::from(word.bytes())));
                }
                address
            }
            PointerBase::Address(value) => {
                let address = |l: usize| self.lane(value, 0)[l] | self.lane(value, 1)[l] << 32;
                let mut offset = vec![0; self.width];
                let mut argument = None;
                for l in self.running(mask) {
                    let of = (address(l) >> ARGUMENT_BITS) as usize;
                    assert_eq!(*argument.get_or_insert(of), of, "a pointer is into one argument");
                    offset[l] = (address(l) & ((1 << ARGUMENT_BITS) - 1)) as i64 - MIDDLE;
                }
                Address { argument: argument.map_or(0, |argument| argument - 1), offset }
            }
        };
        self.pointers[id as usize] = Some(address);
    }

    /// Writes the address of a pointer, as two words.
    fn address(&mut self, id: ValueId, pointer: PointerId) {
        let Address { argument, offset } =
            self.pointers[pointer as usize].clone().expect("a pointer is made before it is used");
        for (l, offset) in offset.into_iter().enumerate() {
            let address = ((argument as u64 + 1) << ARGUMENT_BITS).wrapping_add_signed(offset + MIDDLE);
            self.lane_mut(id, 0)[l] = address & 0xffff_ffff;
            self.lane_mut(id, 1)[l] = address >> 32;
        }
    }

    /// Argument and byte offset of an access of type `ty` by invocation `l`, and the word it moves.
    pub(super) fn element(&self, pointer: PointerId, index: ValueId, ty: Type, l: usize) -> (usize, usize, Word) {
        let declared = self.k.pointers[pointer as usize].word;
        let plain = ty.lanes == 1 && declared.value() == ty.scalar;
        let word = if plain { declared } else { Word::Full(ty.scalar) };
        let address = self.pointers[pointer as usize].as_ref().expect("a pointer is made before it is used");
        let stride = i64::from(word.bytes()) * i64::from(ty.lanes);
        let at = address.offset[l] + self.lane(index, 0)[l] as i64 * stride;
        assert!(at >= 0, "kernel {} reads or writes before its argument {}", self.k.name, address.argument);
        (address.argument, at as usize, word)
    }

    fn memory(&mut self, argument: usize, at: usize, bytes: usize) -> &mut [u8] {
        let name = &self.k.name;
        let Argument::Memory(memory) = &mut self.arguments[argument] else {
            panic!("parameter {argument} of kernel {name} is a pointer")
        };
        let len = memory.len();
        memory
            .get_mut(at..at + bytes)
            .unwrap_or_else(|| panic!("kernel {name} reaches byte {at} of argument {argument}, which has {len}"))
    }

    pub(super) fn read(&mut self, argument: usize, at: usize, word: Word) -> u64 {
        let n = word.bytes() as usize;
        let mut bytes = [0; 8];
        bytes[..n].copy_from_slice(self.memory(argument, at, n));
        u64::from_le_bytes(bytes)
    }

    pub(super) fn write(&mut self, argument: usize, at: usize, word: Word, bits: u64) {
        let n = word.bytes() as usize;
        self.memory(argument, at, n).copy_from_slice(&bits.to_le_bytes()[..n]);
    }

    // ---- instructions

    fn define(&mut self, id: ValueId, mask: &[bool]) {
        let k = self.k;
        let ValueInfo { ty, ref inst } = k.values[id as usize];
        let s = ty.scalar;
        match *inst {
            Inst::ConstBool(_)
            | Inst::ConstInt(_)
            | Inst::ConstFloat(_)
            | Inst::Builtin(_)
            | Inst::Param(_)
            | Inst::Hole(_) => {}
            Inst::Address(pointer) => self.address(id, pointer),
            Inst::Unary(op, a) => self.unary(id, op, s, a),
            Inst::Binary(op, a, b) => self.binary(id, op, s, a, b),
            Inst::Compare(op, a, b) => self.compare(id, op, k.values[a as usize].ty.scalar, a, b),
            Inst::Select(c, a, b) => self.map3(id, [c, a, b], |c, a, b| if c != 0 { a } else { b }),
            Inst::Cast(a) => self.cast(id, k.values[a as usize].ty.scalar, s, a),
            Inst::Bitcast(a) => self.map1(id, a, |a| a),
            Inst::Fma(a, b, c) => {
                let n = self.subnormals;
                match s {
                    ScalarType::F32 => {
                        self.map3(id, [a, b, c], |a, b, c| n.bits32(n.f32(a).mul_add(n.f32(b), n.f32(c))))
                    }
                    _ => self.map3(id, [a, b, c], |a, b, c| n.bits64(n.f64(a).mul_add(n.f64(b), n.f64(c)))),
                }
            }
            Inst::GetVar { var, index } => {
                for l in 0..self.width {
                    let element = index.map_or(0, |i| self.lane(i, 0)[l] as usize);
                    let word = self.vars[var as usize].get(element * self.width + l).copied();
                    self.lane_mut(id, 0)[l] = word.unwrap_or(0);
                }
            }
            Inst::Load { pointer, index } => {
                for l in self.running(mask) {
                    let (argument, at, word) = self.element(pointer, index, ty, l);
                    for lane in 0..ty.lanes as usize {
                        let bits = self.read(argument, at + lane * word.bytes() as usize, word);
                        self.lane_mut(id, lane)[l] = bits;
                    }
                }
            }
            Inst::LoadShared { shared, index } => {
                for l in self.running(mask) {
                    let at = self.lane(index, 0)[l] as usize * ty.lanes as usize;
                    for lane in 0..ty.lanes as usize {
                        let bits = self.shared[shared as usize][at + lane];
                        self.lane_mut(id, lane)[l] = bits;
                    }
                }
            }
            Inst::Extract(a, lane) => {
                let from = self.at(a, lane as usize);
                let to = self.at(id, 0);
                self.words.copy_within(from..from + self.width, to);
            }
            Inst::Vector(ref lanes) => {
                for (i, &a) in lanes.iter().enumerate() {
                    let (from, to) = (self.at(a, 0), self.at(id, i));
                    self.words.copy_within(from..from + self.width, to);
                }
            }
            Inst::Atomic { op, pointer, index, value } => {
                for l in self.running(mask) {
                    let (argument, at, word) = self.element(pointer, index, ty, l);
                    let old = self.read(argument, at, word);
                    let new = atomic(op, s, old, self.lane(value, 0)[l]);
                    self.write(argument, at, word, new);
                    self.lane_mut(id, 0)[l] = old;
                }
            }
            Inst::AtomicShared { op, shared, index, value } => {
                for l in self.running(mask) {
                    let at = self.lane(index, 0)[l] as usize;
                    let old = self.shared[shared as usize][at];
                    self.shared[shared as usize][at] = atomic(op, s, old, self.lane(value, 0)[l]);
                    self.lane_mut(id, 0)[l] = old;
                }
            }
            Inst::CompareExchange { pointer, index, expected, value } => {
                for l in self.running(mask) {
                    let (argument, at, word) = self.element(pointer, index, ty, l);
                    let old = self.read(argument, at, word);
                    if old == self.lane(expected, 0)[l] {
                        self.write(argument, at, word, self.lane(value, 0)[l]);
                    }
                    self.lane_mut(id, 0)[l] = old;
                }
            }
            Inst::Subgroup(op, a) => self.subgroup(id, op, s, a, mask),
            Inst::ShuffleXor(a, m) => {
                for l in 0..self.width {
                    let size = self.subgroup_size;
                    let other = l / size * size + ((l % size) ^ m as usize);
                    let word = self.lane(a, 0).get(other).copied().unwrap_or(0);
                    self.lane_mut(id, 0)[l] = word;
                }
            }
            Inst::Component { matrix, component } => {
                for l in self.running(mask) {
                    let word = *self.component(matrix, component, l);
                    self.lane_mut(id, 0)[l] = word;
                }
            }
            Inst::Halves(low, high) => {
                for l in 0..self.width {
                    let [low, high] = [low, high].map(|x| half(f32_(self.lane(x, 0)[l])));
                    self.lane_mut(id, 0)[l] = low | high << 16;
                }
            }
            Inst::Half(word, part) => self.map1(id, word, |word| decode(DType::F16, word >> (16 * part))),
            Inst::Larger(a, b) => {
                for l in 0..self.width {
                    let (x, y) = (self.lane(a, 0)[l], self.lane(b, 0)[l]);
                    self.lane_mut(id, 0)[l] = bits32(f32_(x).max(f32_(y)));
                }
            }
        }
    }

    /// Additions run in the order of the lanes.
    fn subgroup(&mut self, id: ValueId, op: Subgroup, s: ScalarType, a: ValueId, mask: &[bool]) {
        let (running, size, n) = (self.running(mask), self.subgroup_size, self.subnormals);
        for subgroup in running.chunk_by(|x, y| x / size == y / size) {
            let words = subgroup.iter().map(|&l| self.lane(a, 0)[l]);
            let all = words.reduce(|x, y| match op {
                Subgroup::First => x,
                Subgroup::Add => add(n, s, x, y),
                Subgroup::Min => {
                    if less(s, y, x) {
                        y
                    } else {
                        x
                    }
                }
                Subgroup::Max => {
                    if less(s, x, y) {
                        y
                    } else {
                        x
                    }
                }
            });
            for &l in subgroup {
                self.lane_mut(id, 0)[l] = all.unwrap_or(0);
            }
        }
    }

    fn unary(&mut self, id: ValueId, op: Unary, s: ScalarType, a: ValueId) {
        let n = self.subnormals;
        macro_rules! float {
            ($f:ident) => {
                match s {
                    ScalarType::F32 => self.map1(id, a, |a| bits32(n.f32(a).$f())),
                    _ => self.map1(id, a, |a| n.f64(a).$f().to_bits()),
                }
            };
        }
        match op {
            Unary::Neg if s == ScalarType::F32 => self.map1(id, a, |a| bits32(n.f32(a)) ^ 1 << 31),
            Unary::Neg if s == ScalarType::F64 => self.map1(id, a, |a| n.f64(a).to_bits() ^ 1 << 63),
            Unary::Neg => self.map1(id, a, |a| narrow(s, a.wrapping_neg())),
            Unary::Not if s == ScalarType::Bool => self.map1(id, a, |a| a ^ 1),
            Unary::Not => self.map1(id, a, |a| narrow(s, !a)),
            Unary::Abs => float!(abs),
            Unary::Floor => float!(floor),
            Unary::Ceil => float!(ceil),
            Unary::Trunc => float!(trunc),
            Unary::Round => float!(round_ties_even),
            Unary::CountOneBits => self.map1(id, a, |a| u64::from(a.count_ones())),
            Unary::HighestBit => self.map1(id, a, |a| u64::from((a as u32).checked_ilog2().unwrap_or(u32::MAX))),
            Unary::FastExp2 => float!(exp2),
        }
    }

    fn binary(&mut self, id: ValueId, op: Binary, s: ScalarType, a: ValueId, b: ValueId) {
        let n = self.subnormals;
        macro_rules! arithmetic {
            ($operator:tt, $wrapping:ident) => {
                match s {
                    ScalarType::F32 => self.map2(id, a, b, |a, b| n.bits32(n.f32(a) $operator n.f32(b))),
                    ScalarType::F64 => self.map2(id, a, b, |a, b| n.bits64(n.f64(a) $operator n.f64(b))),
                    s if s.bytes() == 4 => self.map2(id, a, b, |a, b| a.$wrapping(b) & 0xffff_ffff),
                    _ => self.map2(id, a, b, |a, b| a.$wrapping(b)),
                }
            };
        }
        let width = u64::from(s.bytes()) * 8;
        match op {
            Binary::Add => arithmetic!(+, wrapping_add),
            Binary::Sub => arithmetic!(-, wrapping_sub),
            Binary::Mul => arithmetic!(*, wrapping_mul),
            Binary::Div if s.is_signed() => self.map2(id, a, b, |a, b| {
                let (a, b) = (signed(s, a), signed(s, b));
                narrow(s, if b == 0 { 0 } else { a.wrapping_div(b) as u64 })
            }),
            Binary::Div => self.map2(id, a, b, |a, b| a.checked_div(b).unwrap_or(0)),
            Binary::Rem if s.is_signed() => self.map2(id, a, b, |a, b| {
                let (a, b) = (signed(s, a), signed(s, b));
                narrow(s, if b == 0 { 0 } else { a.wrapping_rem(b) as u64 })
            }),
            Binary::Rem => self.map2(id, a, b, |a, b| a.checked_rem(b).unwrap_or(0)),
            Binary::And => self.map2(id, a, b, |a, b| a & b),
            Binary::Or => self.map2(id, a, b, |a, b| a | b),
            Binary::Xor => self.map2(id, a, b, |a, b| a ^ b),
            // The language leaves shifts by the width or more undefined; here they take the low
            // bits.
            Binary::Shl => self.map2(id, a, b, |a, b| narrow(s, a << (b & (width - 1)))),
            Binary::Shr if s.is_signed() => {
                self.map2(id, a, b, |a, b| narrow(s, (signed(s, a) >> (b & (width - 1))) as u64))
            }
            Binary::Shr => self.map2(id, a, b, |a, b| a >> (b & (width - 1))),
            Binary::Min => self.map2(id, a, b, |a, b| if less(s, b, a) { b } else { a }),
            Binary::Max => self.map2(id, a, b, |a, b| if less(s, a, b) { b } else { a }),
            Binary::MulHigh => self.map2(id, a, b, |a, b| (a * b) >> 32),
        }
    }

    fn compare(&mut self, id: ValueId, op: Compare, s: ScalarType, a: ValueId, b: ValueId) {
        let n = self.subnormals;
        macro_rules! with {
            ($view:expr) => {{
                let view = $view;
                match op {
                    Compare::Eq => self.map2(id, a, b, |a, b| u64::from(view(a) == view(b))),
                    Compare::Ne => self.map2(id, a, b, |a, b| u64::from(view(a) != view(b))),
                    Compare::Lt => self.map2(id, a, b, |a, b| u64::from(view(a) < view(b))),
                    Compare::Le => self.map2(id, a, b, |a, b| u64::from(view(a) <= view(b))),
                    Compare::Gt => self.map2(id, a, b, |a, b| u64::from(view(a) > view(b))),
                    Compare::Ge => self.map2(id, a, b, |a, b| u64::from(view(a) >= view(b))),
                }
            }};
        }
        match s {
            ScalarType::F32 => with!(|w| n.f32(w)),
            ScalarType::F64 => with!(|w| n.f64(w)),
            s if s.is_signed() => with!(|w| signed(s, w)),
            _ => with!(|w: u64| w),
        }
    }

    fn cast(&mut self, id: ValueId, from: ScalarType, to: ScalarType, a: ValueId) {
        let n = self.subnormals;
        match (from, to) {
            (ScalarType::F32, ScalarType::F64) => self.map1(id, a, |a| f64::from(n.f32(a)).to_bits()),
            (ScalarType::F64, ScalarType::F32) => self.map1(id, a, |a| n.bits32(n.f64(a) as f32)),
            (from, to) if from.is_float() => self.map1(id, a, |a| {
                let x = if from == ScalarType::F32 { f64::from(n.f32(a)) } else { n.f64(a) };
                match to {
                    ScalarType::I32 => u64::from(x as i32 as u32),
                    ScalarType::U32 => u64::from(x as u32),
                    ScalarType::I64 => x as i64 as u64,
                    _ => x as u64,
                }
            }),
            (from, ScalarType::F32) if from.is_signed() => self.map1(id, a, |a| bits32(signed(from, a) as f32)),
            (_, ScalarType::F32) => self.map1(id, a, |a| bits32(a as f32)),
            (from, ScalarType::F64) if from.is_signed() => self.map1(id, a, |a| (signed(from, a) as f64).to_bits()),
            (_, ScalarType::F64) => self.map1(id, a, |a| (a as f64).to_bits()),
            (from, to) if from.is_signed() => self.map1(id, a, |a| narrow(to, signed(from, a) as u64)),
            (_, to) => self.map1(id, a, |a| narrow(to, a)),
        }
    }
}

pub(super) fn f32_(word: u64) -> f32 {
    f32::from_bits(word as u32)
}

fn f64_(word: u64) -> f64 {
    f64::from_bits(word)
}

pub(super) fn bits32(x: f32) -> u64 {
    u64::from(x.to_bits())
}

/// A word as the register of a type holds it: high bits of 32-bit types are zero.
fn narrow(s: ScalarType, word: u64) -> u64 {
    if s.bytes() == 4 { word & 0xffff_ffff } else { word }
}

fn signed(s: ScalarType, word: u64) -> i64 {
    if s.bytes() == 4 { i64::from(word as u32 as i32) } else { word as i64 }
}

fn add(n: Subnormals, s: ScalarType, a: u64, b: u64) -> u64 {
    match s {
        ScalarType::F32 => n.bits32(n.f32(a) + n.f32(b)),
        ScalarType::F64 => n.bits64(n.f64(a) + n.f64(b)),
        s => narrow(s, a.wrapping_add(b)),
    }
}

fn less(s: ScalarType, a: u64, b: u64) -> bool {
    match s {
        ScalarType::F32 => f32_(a) < f32_(b),
        ScalarType::F64 => f64_(a) < f64_(b),
        s if s.is_signed() => signed(s, a) < signed(s, b),
        _ => a < b,
    }
}

fn atomic(op: Atomic, s: ScalarType, old: u64, value: u64) -> u64 {
    match op {
        Atomic::Add => narrow(s, old.wrapping_add(value)),
        Atomic::Min => {
            if less(s, value, old) {
                value
            } else {
                old
            }
        }
        Atomic::Max => {
            if less(s, old, value) {
                value
            } else {
                old
            }
        }
        Atomic::And => old & value,
        Atomic::Or => old | value,
        Atomic::Xor => old ^ value,
        Atomic::Exchange => value,
    }
}

/// The bits of a float as an f16; a NaN has no payload.
fn half(x: f32) -> u64 {
    let bits = f16::from_f32(x).to_bits();
    u64::from(if x.is_nan() { bits & 0x8000 | 0x7e00 } else { bits })
}
