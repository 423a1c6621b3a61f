//! Replaces 64-bit integers by pairs of words, and 8 and 16-bit accesses by accesses of words.
//!
//! Every pointer becomes an address in two words. On adapters with 64-bit integers, only addresses
//! become pairs.

use super::address::Address;
use super::control;
use super::pair::Pair;
use crate::builder::{Builder, Value};
use crate::dtype::DType;
use crate::ir::*;
use crate::types::{ScalarType, Type, Word};

const U32: Type = Type::scalar(ScalarType::U32);

/// The kernel without narrow accesses, and without 64-bit integers unless `int64`.
pub(super) fn lower(kernel: &Kernel, int64: bool) -> Kernel {
    let b = Builder::new(kernel.name.clone(), kernel.workgroup_size);
    {
        let mut lowering = Lowering {
            b: &b,
            k: kernel,
            int64,
            values: vec![None; kernel.values.len()],
            params: Vec::new(),
            vars: Vec::new(),
            shared: Vec::new(),
            pointers: vec![None; kernel.pointers.len()],
        };
        lowering.declare();
        lowering.block(&kernel.body);
    }
    b.finish()
}

/// The translation of a value.
#[derive(Clone)]
enum Lowered<'b> {
    Same(Value<'b>),
    /// A 64-bit integer, or the lanes of a vector of 64-bit integers.
    Pairs(Vec<Pair<'b>>),
}

struct Lowering<'b, 'k> {
    b: &'b Builder,
    k: &'k Kernel,
    int64: bool,
    values: Vec<Option<Lowered<'b>>>,
    /// The values of the number parameters.
    params: Vec<Option<Lowered<'b>>>,
    /// The translation of each variable. The words of a pair are two variables with consecutive
    /// ids.
    vars: Vec<VarId>,
    shared: Vec<SharedId>,
    pointers: Vec<Option<Address<'b>>>,
}

impl<'b, 'k> Lowering<'b, 'k> {
    /// Whether values of a type become pairs.
    fn splits(&self, ty: Type) -> bool {
        !self.int64 && ty.scalar.is_integer() && ty.scalar.bytes() == 8
    }

    // ---- declarations

    fn declare(&mut self) {
        let (b, k) = (self.b, self.k);
        for param in &k.params {
            let value = match param.kind {
                ParamKind::Pointer { pointer: id, writable, dtype: _ } => {
                    // Declared with 32-bit words, as all addresses in a parameter block; only its
                    // address is used.
                    let address = Address::of_param(b, b.param_pointer(&param.name, DType::U32, writable));
                    self.pointers[id as usize] = Some(self.address(address, k.pointers[id as usize].word));
                    None
                }
                ParamKind::Scalar(scalar) if self.splits(Type::scalar(scalar)) => {
                    let words = b.param_words(&param.name);
                    Some(Lowered::Pairs(vec![Pair::new(words.lane(0), words.lane(1))]))
                }
                ParamKind::Scalar(scalar) => Some(Lowered::Same(b.param(&param.name, scalar))),
                ParamKind::Words => Some(Lowered::Same(b.param_words(&param.name))),
            };
            self.params.push(value);
        }
        for var in &k.vars {
            let words = if self.splits(var.ty) { 2 * usize::from(var.ty.lanes) } else { 1 };
            let ty = if self.splits(var.ty) { U32 } else { var.ty };
            self.vars.push(b.declare_vars(&vec![VarInfo { ty, len: var.len }; words]));
        }
        for shared in &k.shared {
            let words = 2 * u32::from(shared.ty.lanes);
            let split = SharedInfo { ty: U32, len: shared.len * words };
            self.shared.push(b.declare_shared(if self.splits(shared.ty) { split } else { *shared }));
        }
    }

    /// A pointer to elements of `word`.
    fn address(&self, address: Pair<'b>, word: Word) -> Address<'b> {
        let narrow = matches!(word, Word::W8 | Word::W16);
        let accessed =
            if narrow || self.splits(Type::scalar(word.value())) { Word::Full(ScalarType::U32) } else { word };
        Address::new(address, word, accessed)
    }

    // ---- values

    fn lowered(&mut self, id: ValueId) -> Lowered<'b> {
        if let Some(value) = &self.values[id as usize] {
            return value.clone();
        }
        // Entry values have no definition among the statements.
        let ValueInfo { ty, ref inst } = self.k.values[id as usize];
        let value = match *inst {
            Inst::ConstInt(bits) if self.splits(ty) => Lowered::Pairs(vec![Pair::constant(self.b, bits)]),
            Inst::ConstBool(x) => Lowered::Same(self.b.bool(x)),
            Inst::ConstInt(bits) => Lowered::Same(self.b.int(ty.scalar, bits)),
            Inst::ConstFloat(bits) => Lowered::Same(self.b.float_bits(ty.scalar, bits)),
            Inst::Builtin(builtin) => Lowered::Same(self.b.builtin(builtin)),
            Inst::Param(p) => self.params[p as usize].clone().expect("a parameter that is used as a number is one"),
            _ => unreachable!("%{id} of kernel {} is used before its definition", self.k.name),
        };
        self.values[id as usize] = Some(value.clone());
        value
    }

    /// A value that is not a pair; the low word of a pair.
    fn value(&mut self, id: ValueId) -> Value<'b> {
        match self.lowered(id) {
            Lowered::Same(value) => value,
            Lowered::Pairs(pairs) => pairs[0].low,
        }
    }

    fn pairs(&mut self, id: ValueId) -> Vec<Pair<'b>> {
        match self.lowered(id) {
            Lowered::Same(value) => vec![to_pair(value)],
            Lowered::Pairs(pairs) => pairs,
        }
    }

    /// An integer as a pair, whatever its width.
    fn pair(&mut self, id: ValueId) -> Pair<'b> {
        self.pairs(id)[0]
    }

    fn define(&mut self, id: ValueId) {
        let ValueInfo { ty, ref inst } = self.k.values[id as usize];
        let value = match *inst {
            Inst::Load { pointer, index } => self.load(ty, pointer, index),
            Inst::Atomic { op, pointer, index, value } => {
                let (pointer, index) = self.place(pointer, index, ty);
                let value = self.value(value).id;
                Lowered::Same(self.b.def(ty, Inst::Atomic { op, pointer, index: index.id, value }))
            }
            Inst::CompareExchange { pointer, index, expected, value } => {
                let (pointer, index) = self.place(pointer, index, ty);
                let (expected, value) = (self.value(expected).id, self.value(value).id);
                let inst = Inst::CompareExchange { pointer, index: index.id, expected, value };
                Lowered::Same(self.b.def(ty, inst))
            }
            Inst::Compare(op, x, y) if self.splits(self.k.values[x as usize].ty) => {
                let signed = self.k.values[x as usize].ty.scalar.is_signed();
                let (x, y) = (self.pair(x), self.pair(y));
                Lowered::Same(x.compare(op, y, signed))
            }
            Inst::Cast(x) if self.splits(ty) => {
                let from = self.k.values[x as usize].ty.scalar;
                Lowered::Pairs(vec![match from {
                    ScalarType::F32 => Pair::of_f32(self.value(x), ty.scalar.is_signed()),
                    _ => self.pair(x),
                }])
            }
            Inst::Cast(x) if self.splits(self.k.values[x as usize].ty) => {
                let from = self.k.values[x as usize].ty.scalar;
                let pair = self.pair(x);
                Lowered::Same(match ty.scalar {
                    ScalarType::F32 => pair.to_f32(from.is_signed()),
                    scalar => pair.low.bitcast(scalar),
                })
            }
            Inst::Extract(x, lane) if self.splits(ty) => Lowered::Pairs(vec![self.pairs(x)[usize::from(lane)]]),
            Inst::GetVar { var, index } if self.splits(ty) => {
                let (first, index) = (self.vars[var as usize], index.map(|index| self.value(index).id));
                let word = |at: u32| self.b.def(U32, Inst::GetVar { var: first + at, index });
                let lanes = u32::from(ty.lanes);
                Lowered::Pairs((0..lanes).map(|lane| Pair::new(word(2 * lane), word(2 * lane + 1))).collect())
            }
            Inst::LoadShared { shared, index } if self.splits(ty) => {
                let (shared, first) = (self.shared[shared as usize], self.value(index) * (2 * u32::from(ty.lanes)));
                let word = |at: u32| self.b.def(U32, Inst::LoadShared { shared, index: (first + at).id });
                let lanes = u32::from(ty.lanes);
                Lowered::Pairs((0..lanes).map(|lane| Pair::new(word(2 * lane), word(2 * lane + 1))).collect())
            }
            _ if self.splits(ty) => Lowered::Pairs(self.computed(ty, inst)),
            _ => {
                let mut inst = inst.map(|id| self.value(id).id);
                match &mut inst {
                    Inst::GetVar { var, .. } => *var = self.vars[*var as usize],
                    Inst::LoadShared { shared, .. } | Inst::AtomicShared { shared, .. } => {
                        *shared = self.shared[*shared as usize]
                    }
                    _ => {}
                }
                Lowered::Same(self.b.def(ty, inst))
            }
        };
        self.values[id as usize] = Some(value);
    }

    /// Arithmetic of 64-bit integers, lane by lane.
    fn computed(&mut self, ty: Type, inst: &Inst) -> Vec<Pair<'b>> {
        let signed = ty.scalar.is_signed();
        match *inst {
            Inst::Unary(Unary::Neg, x) => self.pairs(x).into_iter().map(Pair::neg).collect(),
            Inst::Unary(_, x) => self.pairs(x).into_iter().map(|x| x.each(|word| !word)).collect(),
            Inst::Binary(op @ (Binary::Shl | Binary::Shr), x, by) => {
                let known = match self.k.values[by as usize].inst {
                    Inst::ConstInt(bits) => Some(bits as u32 & 63),
                    _ => None,
                };
                let shift = |x: Pair<'b>, by: Pair<'b>| match (op, known) {
                    (Binary::Shl, Some(bits)) => x.shl_by(bits),
                    (Binary::Shl, None) => x.shl(by.low),
                    (_, Some(bits)) => x.shr_by(bits, signed),
                    (_, None) => x.shr(by.low, signed),
                };
                self.both(x, by, shift)
            }
            Inst::Binary(op, x, y) => self.both(x, y, |x, y| match op {
                Binary::Add => x.add(y),
                Binary::Sub => x.sub(y),
                Binary::Mul | Binary::MulHigh => x.mul(y),
                Binary::Div => x.div(y, signed),
                Binary::Rem => x.rem(y, signed),
                Binary::And => x.zip(y, |x, y| x & y),
                Binary::Or => x.zip(y, |x, y| x | y),
                Binary::Xor | Binary::Shl | Binary::Shr => x.zip(y, |x, y| x ^ y),
                Binary::Min => x.min(y, signed),
                Binary::Max => x.max(y, signed),
            }),
            Inst::Select(condition, x, y) => {
                let condition = self.value(condition);
                self.both(x, y, |x, y| Pair::select(condition, x, y))
            }
            Inst::Bitcast(x) => self.pairs(x),
            Inst::Vector(ref lanes) => lanes.iter().map(|&lane| self.pair(lane)).collect(),
            ref other => unreachable!("{other:?} of 64-bit integers in kernel {}", self.k.name),
        }
    }

    fn both(&mut self, x: ValueId, y: ValueId, f: impl Fn(Pair<'b>, Pair<'b>) -> Pair<'b>) -> Vec<Pair<'b>> {
        let (x, y) = (self.pairs(x), self.pairs(y));
        x.into_iter().zip(y).map(|(x, y)| f(x, y)).collect()
    }

    // ---- memory

    fn pointer(&self, id: PointerId) -> Address<'b> {
        self.pointers[id as usize].expect("a pointer is made before it is used")
    }

    /// Whether an access of this type is to narrow elements.
    fn is_narrow(&self, pointer: PointerId, ty: Type) -> bool {
        matches!(self.pointer(pointer).word, Word::W8 | Word::W16) && ty == U32
    }

    /// A pointer and a 32-bit index for an access of this type. A 64-bit index is added to the
    /// address.
    fn place(&mut self, pointer: PointerId, index: ValueId, ty: Type) -> (PointerId, Value<'b>) {
        let address = self.pointer(pointer);
        if self.k.values[index as usize].ty.scalar.bytes() == 4 {
            return (address.pointer, self.value(index));
        }
        let stride = ty.scalar.bytes() * u32::from(ty.lanes);
        let moved = address.moved(self.pair(index), stride);
        (self.address(moved, address.word).pointer, self.b.u32(0))
    }

    fn load(&mut self, ty: Type, pointer: PointerId, index: ValueId) -> Lowered<'b> {
        if self.is_narrow(pointer, ty) {
            let index = self.pair(index);
            return Lowered::Same(self.pointer(pointer).narrow(index).load(self.b));
        }
        let (pointer, index) = self.place(pointer, index, ty);
        let inst = Inst::Load { pointer, index: index.id };
        if !self.splits(ty) {
            return Lowered::Same(self.b.def(ty, inst));
        }
        let words = self.b.def(super::address::WORDS, inst);
        Lowered::Pairs(vec![Pair::new(words.lane(0), words.lane(1))])
    }

    fn store(&mut self, pointer: PointerId, index: ValueId, value: ValueId) {
        let ty = self.k.values[value as usize].ty;
        if self.is_narrow(pointer, ty) {
            let (index, value) = (self.pair(index), self.value(value));
            return self.pointer(pointer).narrow(index).store(self.b, value);
        }
        let (pointer, index) = self.place(pointer, index, ty);
        let value = match self.lowered(value) {
            Lowered::Same(value) => value,
            Lowered::Pairs(pairs) => self.b.vector(&[pairs[0].low, pairs[0].high]),
        };
        self.b.stmt(Stmt::Store { pointer, index: index.id, value: value.id });
    }

    // ---- statements

    fn block(&mut self, block: &Block) {
        for stmt in &block.0 {
            self.statement(stmt);
        }
    }

    fn statement(&mut self, stmt: &Stmt) {
        let b = self.b;
        match *stmt {
            Stmt::Def(id) => self.define(id),
            Stmt::DefPointer(id) => {
                let PointerInfo { word, base } = self.k.pointers[id as usize];
                if let PointerBase::Offset(base, elements) = base {
                    let moved = self.pointer(base).moved(self.pair(elements), word.bytes());
                    self.pointers[id as usize] = Some(self.address(moved, word));
                }
            }
            Stmt::SetVar { var, index, value } => {
                let (first, index) = (self.vars[var as usize], index.map(|index| self.value(index).id));
                for (at, value) in (0..).zip(self.parts(value)) {
                    b.stmt(Stmt::SetVar { var: first + at, index, value: value.id });
                }
            }
            Stmt::Store { pointer, index, value } => self.store(pointer, index, value),
            Stmt::StoreShared { shared, index, lane, value } => {
                let ty = self.k.shared[shared as usize].ty;
                let (to, index) = (self.shared[shared as usize], self.value(index));
                let lane = lane.map(|lane| self.value(lane));
                if !self.splits(ty) {
                    let value = self.value(value).id;
                    return b.stmt(Stmt::StoreShared { shared: to, index: index.id, lane: lane.map(|l| l.id), value });
                }
                let first = index * (2 * u32::from(ty.lanes));
                let first = lane.map_or(first, |lane| first + lane * 2);
                for (at, value) in (0u32..).zip(self.parts(value)) {
                    b.stmt(Stmt::StoreShared { shared: to, index: (first + at).id, lane: None, value: value.id });
                }
            }
            _ => control::rewrite(self, b, stmt, Self::value, Self::block),
        }
    }

    /// The values that replace a value.
    fn parts(&mut self, id: ValueId) -> Vec<Value<'b>> {
        match self.lowered(id) {
            Lowered::Same(value) => vec![value],
            Lowered::Pairs(pairs) => pairs.into_iter().flat_map(|pair| [pair.low, pair.high]).collect(),
        }
    }
}

/// An integer of any width as a pair.
fn to_pair(x: Value<'_>) -> Pair<'_> {
    match x.scalar().bytes() {
        8 => Pair::new(x.cast(ScalarType::U32), (x.bitcast(ScalarType::U64) >> 32).cast(ScalarType::U32)),
        _ => Pair::extended(x),
    }
}
