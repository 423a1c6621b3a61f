//! Writes a kernel as Rust expressions.
//!
//! A [`Value`] is a copyable handle on its [`Builder`]; operators and methods on it append
//! instructions where they are called, so a value is usable only where its definition has run.

use crate::dtype::DType;
use crate::ir::*;
use crate::matrix_type::MatrixType;
use crate::types::{ScalarType, Type};
use rustc_hash::FxHashMap;
use std::cell::RefCell;

/// Collects one kernel.
pub struct Builder {
    state: RefCell<State>,
}

struct State {
    kernel: Kernel,
    /// Open blocks, innermost last.
    blocks: Vec<Block>,
    constants: FxHashMap<(ScalarType, u64), ValueId>,
    entry: FxHashMap<EntryValue, ValueId>,
    /// By length.
    exchanges: FxHashMap<u32, SharedId>,
    /// A function of the library is being written.
    in_function: bool,
}

/// A value that is the same wherever it is asked for; the emitter makes it once at the top.
#[derive(PartialEq, Eq, Hash)]
enum EntryValue {
    Builtin(Builtin),
    Param(u32),
}

/// A number, a bool or a short vector inside the kernel.
#[derive(Copy, Clone)]
pub struct Value<'b> {
    pub(crate) b: &'b Builder,
    pub(crate) id: ValueId,
    ty: Type,
}

/// A mutable variable.
#[derive(Copy, Clone)]
pub struct Var<'b> {
    b: &'b Builder,
    id: VarId,
    ty: Type,
}

/// A private array of one invocation.
#[derive(Copy, Clone)]
pub struct LocalArray<'b> {
    b: &'b Builder,
    id: VarId,
    ty: Type,
}

/// A pointer to tensor elements; loads and stores convert between memory and compute types.
#[derive(Copy, Clone)]
pub struct Pointer<'b> {
    b: &'b Builder,
    id: PointerId,
    dtype: DType,
    read_only: bool,
}

/// An array in workgroup memory. Elements are compute scalars, or vectors of them.
#[derive(Copy, Clone)]
pub struct Shared<'b> {
    b: &'b Builder,
    id: SharedId,
    ty: Type,
}

/// What may stand beside a value in an expression: another value, or a Rust number that takes the
/// value's type.
pub trait Operand<'b> {
    /// The operand as a value of type `like`.
    fn value(self, b: &'b Builder, like: ScalarType) -> Value<'b>;
}

impl<'b> Operand<'b> for Value<'b> {
    fn value(self, _: &'b Builder, _: ScalarType) -> Value<'b> {
        self
    }
}

impl Builder {
    /// A kernel with this many invocations in a workgroup.
    pub fn new(name: impl Into<String>, workgroup_size: [u32; 3]) -> Builder {
        let kernel = Kernel {
            name: name.into(),
            workgroup_size,
            params: Vec::new(),
            values: Vec::new(),
            vars: Vec::new(),
            pointers: Vec::new(),
            shared: Vec::new(),
            matrices: Vec::new(),
            body: Block::default(),
        };
        let state = State {
            kernel,
            blocks: vec![Block::default()],
            constants: FxHashMap::default(),
            entry: FxHashMap::default(),
            exchanges: FxHashMap::default(),
            in_function: false,
        };
        Builder { state: RefCell::new(state) }
    }

    /// The finished kernel.
    pub fn finish(self) -> Kernel {
        let mut state = self.state.into_inner();
        assert_eq!(state.blocks.len(), 1, "a block was left open in kernel {}", state.kernel.name);
        state.kernel.body = state.blocks.pop().unwrap_or_default();
        state.kernel
    }

    fn make(&self, ty: Type, inst: Inst, define: bool) -> Value<'_> {
        let mut s = self.state.borrow_mut();
        let id = s.kernel.values.len() as ValueId;
        s.kernel.values.push(ValueInfo { ty, inst });
        if define && let Some(block) = s.blocks.last_mut() {
            block.0.push(Stmt::Def(id));
        }
        Value { b: self, id, ty }
    }

    pub(crate) fn def(&self, ty: Type, inst: Inst) -> Value<'_> {
        self.make(ty, inst, true)
    }

    pub(crate) fn stmt(&self, stmt: Stmt) {
        if let Some(block) = self.state.borrow_mut().blocks.last_mut() {
            block.0.push(stmt);
        }
    }

    /// Writes a function of the library, which `write` makes of its arguments. The kernel keeps its
    /// name in [`math::functions`](crate::math::functions), unless it is part of another function
    /// or a single statement.
    pub(crate) fn function<'b>(
        &'b self,
        name: &'static str,
        arguments: &[Value<'b>],
        write: impl FnOnce() -> Value<'b>,
    ) -> Value<'b> {
        let (values, vars) = {
            let mut s = self.state.borrow_mut();
            if s.in_function {
                drop(s);
                return write();
            }
            s.in_function = true;
            s.blocks.push(Block::default());
            (s.kernel.values.len() as ValueId, s.kernel.vars.len() as VarId)
        };
        let result = write();
        let mut s = self.state.borrow_mut();
        s.in_function = false;
        let (values, vars) = (values..s.kernel.values.len() as ValueId, vars..s.kernel.vars.len() as VarId);
        let body = s.blocks.pop().unwrap_or_default();
        if let Some(block) = s.blocks.last_mut() {
            if body.0.len() > 1 && values.contains(&result.id) {
                let arguments = arguments.iter().map(|argument| argument.id).collect();
                let call = Call { function: name, arguments, result: result.id, values, vars, body };
                block.0.push(Stmt::Call(Box::new(call)));
            } else {
                block.0.extend(body.0);
            }
        }
        result
    }

    /// What `check` says of the kernel so far, without its body.
    pub(crate) fn checked<R>(&self, check: impl FnOnce(&Kernel) -> R) -> R {
        check(&self.state.borrow().kernel)
    }

    pub(crate) fn block(&self, body: impl FnOnce()) -> Block {
        self.state.borrow_mut().blocks.push(Block::default());
        body();
        self.state.borrow_mut().blocks.pop().unwrap_or_default()
    }

    fn entry(&self, key: EntryValue, ty: Type, inst: Inst) -> Value<'_> {
        if let Some(&id) = self.state.borrow().entry.get(&key) {
            return Value { b: self, id, ty };
        }
        let value = self.make(ty, inst, false);
        self.state.borrow_mut().entry.insert(key, value.id);
        value
    }

    fn constant(&self, scalar: ScalarType, bits: u64, inst: Inst) -> Value<'_> {
        let ty = Type::scalar(scalar);
        if let Some(&id) = self.state.borrow().constants.get(&(scalar, bits)) {
            return Value { b: self, id, ty };
        }
        let value = self.make(ty, inst, false);
        self.state.borrow_mut().constants.insert((scalar, bits), value.id);
        value
    }

    // ---- constants

    /// A bool constant.
    pub fn bool(&self, x: bool) -> Value<'_> {
        self.constant(ScalarType::Bool, u64::from(x), Inst::ConstBool(x))
    }

    /// An integer constant of any integer type, given by its low bits.
    pub fn int(&self, scalar: ScalarType, bits: u64) -> Value<'_> {
        assert!(scalar.is_integer());
        let bits = if scalar.bytes() == 4 { bits & 0xffff_ffff } else { bits };
        self.constant(scalar, bits, Inst::ConstInt(bits))
    }

    /// A floating-point constant.
    pub fn float(&self, scalar: ScalarType, x: f64) -> Value<'_> {
        assert!(scalar.is_float());
        let bits = if scalar == ScalarType::F32 { u64::from((x as f32).to_bits()) } else { x.to_bits() };
        self.float_bits(scalar, bits)
    }

    /// A floating-point constant by its bits.
    pub(crate) fn float_bits(&self, scalar: ScalarType, bits: u64) -> Value<'_> {
        self.constant(scalar, bits, Inst::ConstFloat(bits))
    }

    /// A constant of any type from a double: integers truncate, bool is `x != 0`.
    pub fn constant_of(&self, scalar: ScalarType, x: f64) -> Value<'_> {
        match scalar {
            ScalarType::Bool => self.bool(x != 0.0),
            s if s.is_float() => self.float(s, x),
            ScalarType::U64 | ScalarType::U32 => self.int(scalar, x as u64),
            _ => self.int(scalar, x as i64 as u64),
        }
    }

    /// A u32 constant.
    pub fn u32(&self, x: u32) -> Value<'_> {
        self.int(ScalarType::U32, u64::from(x))
    }

    /// An i32 constant.
    pub fn i32(&self, x: i32) -> Value<'_> {
        self.int(ScalarType::I32, x as u32 as u64)
    }

    // ---- parameters and builtins

    fn param_of(&self, name: &str, kind: ParamKind) -> u32 {
        let mut s = self.state.borrow_mut();
        s.kernel.params.push(Param { name: name.to_string(), kind });
        s.kernel.params.len() as u32 - 1
    }

    /// A tensor argument that the kernel only reads: the next member of the parameter block is its
    /// address. Writing through it panics while the kernel is built, since the launch orders no
    /// write to it.
    pub fn input(&self, name: &str, dtype: DType) -> Pointer<'_> {
        Pointer { b: self, id: self.param_pointer(name, dtype, false), dtype, read_only: true }
    }

    /// A tensor argument that the kernel may write: the next member of the parameter block is its
    /// address.
    pub fn pointer(&self, name: &str, dtype: DType) -> Pointer<'_> {
        Pointer { b: self, id: self.param_pointer(name, dtype, true), dtype, read_only: false }
    }

    /// A number argument: the next member of the parameter block.
    pub fn param(&self, name: &str, scalar: ScalarType) -> Value<'_> {
        assert!(scalar != ScalarType::Bool, "a parameter is a number");
        let index = self.param_of(name, ParamKind::Scalar(scalar));
        self.entry(EntryValue::Param(index), Type::scalar(scalar), Inst::Param(index))
    }

    pub(crate) fn builtin(&self, builtin: Builtin) -> Value<'_> {
        self.entry(EntryValue::Builtin(builtin), Type::scalar(ScalarType::U32), Inst::Builtin(builtin))
    }

    /// Index of the workgroup along dimension `d`.
    pub fn group_id(&self, d: u8) -> Value<'_> {
        self.builtin(Builtin::Group(d))
    }

    /// Index of the invocation in its workgroup along dimension `d`.
    pub fn local_id(&self, d: u8) -> Value<'_> {
        self.builtin(Builtin::Local(d))
    }

    /// Number of workgroups along dimension `d`.
    pub fn group_count(&self, d: u8) -> Value<'_> {
        self.builtin(Builtin::Groups(d))
    }

    /// `group_id * workgroup_size + local_id` along dimension `d`.
    pub fn global_id(&self, d: u8) -> Value<'_> {
        let size = self.state.borrow().kernel.workgroup_size[d as usize];
        self.group_id(d) * size + self.local_id(d)
    }

    /// Lane in the subgroup.
    pub fn subgroup_lane(&self) -> Value<'_> {
        self.builtin(Builtin::SubgroupLane)
    }

    /// Index of the subgroup in its workgroup.
    pub fn subgroup_index(&self) -> Value<'_> {
        self.builtin(Builtin::SubgroupIndex)
    }

    /// Lanes in a subgroup.
    pub fn subgroup_size(&self) -> Value<'_> {
        self.builtin(Builtin::SubgroupSize)
    }

    /// A tensor argument.
    pub(crate) fn param_pointer(&self, name: &str, dtype: DType, writable: bool) -> PointerId {
        let pointer = self.state.borrow().kernel.pointers.len() as PointerId;
        let param = self.param_of(name, ParamKind::Pointer { pointer, dtype, writable });
        self.declare_pointer(PointerInfo { word: dtype.word(), base: PointerBase::Param(param) })
    }

    /// A 64-bit integer argument as its two words: the next member of the parameter block.
    pub(crate) fn param_words(&self, name: &str) -> Value<'_> {
        let index = self.param_of(name, ParamKind::Words);
        let ty = Type { scalar: ScalarType::U32, lanes: 2 };
        self.entry(EntryValue::Param(index), ty, Inst::Param(index))
    }

    /// Declares a pointer; unless it is a parameter, [`Stmt::DefPointer`] makes it.
    pub(crate) fn declare_pointer(&self, info: PointerInfo) -> PointerId {
        let mut s = self.state.borrow_mut();
        s.kernel.pointers.push(info);
        s.kernel.pointers.len() as PointerId - 1
    }

    /// Declares a workgroup array.
    pub(crate) fn declare_shared(&self, info: SharedInfo) -> SharedId {
        let mut s = self.state.borrow_mut();
        s.kernel.shared.push(info);
        s.kernel.shared.len() as SharedId - 1
    }

    /// Declares a matrix register.
    pub(crate) fn declare_matrix(&self, ty: MatrixType) -> MatrixId {
        let mut s = self.state.borrow_mut();
        s.kernel.matrices.push(ty);
        s.kernel.matrices.len() as MatrixId - 1
    }

    /// An array of so many f32, which emulated matrices exchange components through.
    pub(crate) fn exchange(&self, len: u32) -> Shared<'_> {
        if let Some(&id) = self.state.borrow().exchanges.get(&len) {
            return Shared { b: self, id, ty: Type::scalar(ScalarType::F32) };
        }
        let shared = self.shared(ScalarType::F32, 1, len);
        self.state.borrow_mut().exchanges.insert(len, shared.id);
        shared
    }

    /// Invocations of a workgroup.
    pub(crate) fn invocations(&self) -> u32 {
        self.state.borrow().kernel.workgroup_size.iter().product()
    }

    /// Stands for input `i` of an [`Element`](crate::Element).
    pub(crate) fn hole(&self, ty: Type, i: u32) -> Value<'_> {
        self.make(ty, Inst::Hole(i), false)
    }

    /// Declares variables; returns the first of them.
    pub(crate) fn declare_vars(&self, vars: &[VarInfo]) -> VarId {
        let mut s = self.state.borrow_mut();
        let first = s.kernel.vars.len() as VarId;
        s.kernel.vars.extend_from_slice(vars);
        first
    }

    // ---- memory of an invocation and of a workgroup

    fn var_info(&self, ty: Type, len: u32) -> VarId {
        let mut s = self.state.borrow_mut();
        s.kernel.vars.push(VarInfo { ty, len });
        s.kernel.vars.len() as VarId - 1
    }

    /// A variable that starts with `init`.
    pub fn var<'b>(&'b self, init: Value<'b>) -> Var<'b> {
        let var = Var { b: self, id: self.var_info(init.ty, 1), ty: init.ty };
        var.set(init);
        var
    }

    /// A private array, uninitialised.
    pub fn local_array(&self, scalar: ScalarType, len: u32) -> LocalArray<'_> {
        let ty = Type::scalar(scalar);
        LocalArray { b: self, id: self.var_info(ty, len), ty }
    }

    /// A workgroup array of `len` elements, each a vector of `lanes` scalars (1, 2 or 4).
    pub fn shared(&self, scalar: ScalarType, lanes: u8, len: u32) -> Shared<'_> {
        assert!(scalar != ScalarType::Bool, "shared memory holds numbers");
        let ty = Type { scalar, lanes };
        let mut s = self.state.borrow_mut();
        s.kernel.shared.push(SharedInfo { ty, len });
        Shared { b: self, id: s.kernel.shared.len() as SharedId - 1, ty }
    }

    /// A vector of 2 or 4 values of one type.
    pub fn vector<'b>(&'b self, lanes: &[Value<'b>]) -> Value<'b> {
        let ty = Type { scalar: lanes[0].ty.scalar, lanes: lanes.len() as u8 };
        self.def(ty, Inst::Vector(lanes.iter().map(|v| v.id).collect()))
    }

    // ---- control flow

    /// Runs `then` where `cond` is true.
    pub fn if_(&self, cond: Value<'_>, then: impl FnOnce()) {
        self.if_else(cond, then, || {});
    }

    /// Runs `then` where `cond` is true and `otherwise` elsewhere.
    pub fn if_else(&self, cond: Value<'_>, then: impl FnOnce(), otherwise: impl FnOnce()) {
        assert_eq!(cond.ty, Type::scalar(ScalarType::Bool));
        let then = self.block(then);
        let otherwise = self.block(otherwise);
        self.stmt(Stmt::If { cond: cond.id, then, otherwise });
    }

    /// Runs `body` while `test` yields true.
    pub fn while_<'b>(&'b self, test: impl FnOnce() -> Value<'b>, body: impl FnOnce()) {
        self.while_unrolled(false, test, body);
    }

    fn while_unrolled<'b>(&'b self, unroll: bool, test: impl FnOnce() -> Value<'b>, body: impl FnOnce()) {
        let mut cond = None;
        let test = self.block(|| cond = Some(test().id));
        let body = self.block(body);
        if let Some(cond) = cond {
            self.stmt(Stmt::While { test, cond, body, unroll });
        }
    }

    /// Runs `body` for `i = start, start + step, ..` while `i < end`. All three are integers of
    /// `end`'s type.
    pub fn for_<'b>(
        &'b self,
        start: impl Operand<'b>,
        end: Value<'b>,
        step: impl Operand<'b>,
        body: impl FnOnce(Value<'b>),
    ) {
        let scalar = end.ty.scalar;
        let step = step.value(self, scalar);
        let i = self.var(start.value(self, scalar));
        self.while_(
            || i.get().lt(end),
            || {
                let now = i.get();
                body(now);
                i.set(now + step);
            },
        );
    }

    /// Ends this invocation. Not where another invocation of the workgroup may still reach a
    /// barrier.
    pub fn return_(&self) {
        self.stmt(Stmt::Return);
    }

    /// Waits for the workgroup; what it wrote to shared memory is visible after.
    pub fn barrier(&self) {
        self.stmt(Stmt::Barrier);
    }

    /// Waits for the subgroup; what it wrote to shared memory is visible to it after.
    pub fn subgroup_barrier(&self) {
        self.stmt(Stmt::SubgroupBarrier);
    }
}

impl<'b> Value<'b> {
    /// Its builder.
    pub fn builder(self) -> &'b Builder {
        self.b
    }

    /// Its scalar type.
    pub fn scalar(self) -> ScalarType {
        self.ty.scalar
    }

    pub(crate) fn ty(self) -> Type {
        self.ty
    }

    fn with(self, other: impl Operand<'b>) -> Value<'b> {
        let other = other.value(self.b, self.ty.scalar);
        assert_eq!(self.ty, other.ty, "operands of one type");
        other
    }

    fn unary(self, op: Unary) -> Value<'b> {
        self.b.def(self.ty, Inst::Unary(op, self.id))
    }

    fn binary(self, op: Binary, other: impl Operand<'b>) -> Value<'b> {
        let other = self.with(other);
        self.b.def(self.ty, Inst::Binary(op, self.id, other.id))
    }

    fn compare(self, op: Compare, other: impl Operand<'b>) -> Value<'b> {
        let other = self.with(other);
        if self.scalar() == ScalarType::Bool {
            match op {
                Compare::Eq | Compare::Ne => {}
                Compare::Lt => return !self & other,
                Compare::Le => return !self | other,
                Compare::Gt => return self & !other,
                Compare::Ge => return self | !other,
            }
        }
        self.b.def(Type::scalar(ScalarType::Bool), Inst::Compare(op, self.id, other.id))
    }

    /// `self == other`
    pub fn eq(self, other: impl Operand<'b>) -> Value<'b> {
        self.compare(Compare::Eq, other)
    }

    /// `self != other`; true for NaN.
    pub fn ne(self, other: impl Operand<'b>) -> Value<'b> {
        self.compare(Compare::Ne, other)
    }

    /// `self < other`; as everywhere in the language, false is less than true.
    pub fn lt(self, other: impl Operand<'b>) -> Value<'b> {
        self.compare(Compare::Lt, other)
    }

    /// `self <= other`
    pub fn le(self, other: impl Operand<'b>) -> Value<'b> {
        self.compare(Compare::Le, other)
    }

    /// `self > other`
    pub fn gt(self, other: impl Operand<'b>) -> Value<'b> {
        self.compare(Compare::Gt, other)
    }

    /// `self >= other`
    pub fn ge(self, other: impl Operand<'b>) -> Value<'b> {
        self.compare(Compare::Ge, other)
    }

    /// For a bool: `a` where true, `b` elsewhere. Both are evaluated.
    pub fn select(self, a: Value<'b>, b: impl Operand<'b>) -> Value<'b> {
        let b = a.with(b);
        // Drivers make arithmetic of a choice between constants such as -1.0 and 0.0, and lose the
        // sign of zero.
        if let (Some(x), Some(y)) = (a.constant_bits(), b.constant_bits()) {
            let bits = self.b.def(Type::scalar(x.scalar()), Inst::Select(self.id, x.id, y.id));
            return bits.bitcast(a.ty.scalar);
        }
        self.b.def(a.ty, Inst::Select(self.id, a.id, b.id))
    }

    /// The bits of a float constant, as a constant.
    fn constant_bits(self) -> Option<Value<'b>> {
        let Inst::ConstFloat(bits) = self.b.state.borrow().kernel.values[self.id as usize].inst else {
            return None;
        };
        Some(self.b.int(self.scalar().unsigned(), bits))
    }

    /// The smaller one. A float NaN in `self` yields `other`.
    pub fn min(self, other: impl Operand<'b>) -> Value<'b> {
        let other = self.with(other);
        if !self.scalar().is_float() {
            return self.binary(Binary::Min, other);
        }
        self.b.function("min", &[self, other], || self.lt(other).select(self, other))
    }

    /// The larger one. A float NaN in `self` yields `other`.
    pub fn max(self, other: impl Operand<'b>) -> Value<'b> {
        let other = self.with(other);
        if !self.scalar().is_float() {
            return self.binary(Binary::Max, other);
        }
        self.b.function("max", &[self, other], || self.gt(other).select(self, other))
    }

    /// The larger one of two f32; of a NaN and a number, either. Cheaper than [`max`](Self::max).
    pub fn larger(self, other: Value<'b>) -> Value<'b> {
        self.b.def(self.ty, Inst::Larger(self.id, other.id))
    }

    /// This f32 and another as f16 in a word, this one in its low half; see [`Inst::Halves`].
    pub fn halves(self, high: Value<'b>) -> Value<'b> {
        self.b.def(Type::scalar(ScalarType::U32), Inst::Halves(self.id, high.id))
    }

    /// The f16 in the low (0) or the high (1) half of a word, as an f32.
    pub fn half(self, half: u8) -> Value<'b> {
        self.b.def(Type::scalar(ScalarType::F32), Inst::Half(self.id, half))
    }

    /// Absolute value; the smallest integer stays itself.
    pub fn abs(self) -> Value<'b> {
        if self.scalar().is_float() {
            return self.unary(Unary::Abs);
        }
        self.b.function("abs", &[self], || self.lt(0).select(-self, self))
    }

    /// Largest integer not above.
    pub fn floor(self) -> Value<'b> {
        self.unary(Unary::Floor)
    }

    /// Smallest integer not below.
    pub fn ceil(self) -> Value<'b> {
        self.unary(Unary::Ceil)
    }

    /// Toward zero.
    pub fn trunc(self) -> Value<'b> {
        self.unary(Unary::Trunc)
    }

    /// To the nearest integer, halves to even.
    pub fn round(self) -> Value<'b> {
        self.unary(Unary::Round)
    }

    /// Set bits of an integer.
    pub fn count_ones(self) -> Value<'b> {
        self.unary(Unary::CountOneBits)
    }

    /// Index of the highest set bit of a u32; all ones for 0.
    pub fn highest_bit(self) -> Value<'b> {
        self.unary(Unary::HighestBit)
    }

    /// `2^x` of an f32 by the adapter's own instruction, whose bits are its own: see
    /// [`Unary::FastExp2`].
    pub fn fast_exp2(self) -> Value<'b> {
        self.unary(Unary::FastExp2)
    }

    /// High half of the 64-bit product of two u32.
    pub fn mul_high(self, other: impl Operand<'b>) -> Value<'b> {
        self.binary(Binary::MulHigh, other)
    }

    /// `self * m + a`, fused or not as the driver likes: for inner products only.
    pub fn fma(self, m: Value<'b>, a: Value<'b>) -> Value<'b> {
        self.b.def(self.ty, Inst::Fma(self.id, m.id, a.id))
    }

    /// Converted to another type. Bool counts as 0 or 1; a number becomes true when it is not 0.
    pub fn cast(self, to: ScalarType) -> Value<'b> {
        if to == self.ty.scalar {
            return self;
        }
        let number = self.ty.scalar != ScalarType::Bool && to != ScalarType::Bool;
        if number && !(self.ty.scalar.is_float() && to.is_float()) {
            return self.b.def(Type { scalar: to, ..self.ty }, Inst::Cast(self.id));
        }
        self.b.function("convert", &[self], || self.converted(to))
    }

    /// To or from a bool, or from one float type to another.
    fn converted(self, to: ScalarType) -> Value<'b> {
        if to == ScalarType::Bool {
            // By the bits: a comparison of floats may take a subnormal number for 0.
            return match self.ty.scalar {
                ScalarType::F32 => (self.bitcast(ScalarType::U32) << 1).ne(0),
                ScalarType::F64 => (self.bitcast(ScalarType::U64) << 1).ne(0),
                _ => self.ne(0),
            };
        }
        if self.ty.scalar == ScalarType::Bool {
            return self.select(self.b.constant_of(to, 1.0), self.b.constant_of(to, 0.0));
        }
        let cast = self.b.def(Type { scalar: to, ..self.ty }, Inst::Cast(self.id));
        crate::math::conversion::with_subnormals(self, cast)
    }

    /// The same bits as another type of the same width.
    pub fn bitcast(self, to: ScalarType) -> Value<'b> {
        if to == self.ty.scalar {
            return self;
        }
        assert_eq!(to.bytes(), self.ty.scalar.bytes());
        self.b.def(Type { scalar: to, ..self.ty }, Inst::Bitcast(self.id))
    }

    /// Whether a float is NaN, by its bits; false for other types.
    pub fn is_nan(self) -> Value<'b> {
        self.b.function("is_nan", &[self], || match self.scalar() {
            ScalarType::F32 => (self.bitcast(ScalarType::U32) & 0x7fff_ffffu32).gt(0x7f80_0000u32),
            ScalarType::F64 => (self.bitcast(ScalarType::U64) & (u64::MAX >> 1)).gt(0x7ff0_0000_0000_0000u64),
            _ => self.b.bool(false),
        })
    }

    /// Whether a float is infinite, by its bits; false for other types.
    pub fn is_inf(self) -> Value<'b> {
        self.b.function("is_inf", &[self], || match self.scalar() {
            ScalarType::F32 => (self.bitcast(ScalarType::U32) & 0x7fff_ffffu32).eq(0x7f80_0000u32),
            ScalarType::F64 => (self.bitcast(ScalarType::U64) & (u64::MAX >> 1)).eq(0x7ff0_0000_0000_0000u64),
            _ => self.b.bool(false),
        })
    }

    /// Whether a float is neither NaN nor infinite, by its bits; true for other types.
    pub fn is_finite(self) -> Value<'b> {
        self.b.function("is_finite", &[self], || match self.scalar() {
            ScalarType::F32 => (self.bitcast(ScalarType::U32) & 0x7fff_ffffu32).lt(0x7f80_0000u32),
            ScalarType::F64 => (self.bitcast(ScalarType::U64) & (u64::MAX >> 1)).lt(0x7ff0_0000_0000_0000u64),
            _ => self.b.bool(true),
        })
    }

    /// Whether a float is zero, by its bits: a comparison may take a subnormal number for 0.
    pub fn is_zero(self) -> Value<'b> {
        self.b.function("is_zero", &[self], || (self.bitcast(self.scalar().unsigned()) << 1).eq(0))
    }

    /// Whether a float is above zero, by its bits.
    pub fn is_above_zero(self) -> Value<'b> {
        self.b.function("is_above_zero", &[self], || {
            let unsigned = self.scalar().unsigned();
            let infinity = self.like(f64::INFINITY).bitcast(unsigned);
            (self.bitcast(unsigned) - 1).lt(infinity)
        })
    }

    /// Whether a float is below zero, by its bits.
    pub fn is_below_zero(self) -> Value<'b> {
        self.b.function("is_below_zero", &[self], || {
            let unsigned = self.scalar().unsigned();
            let (zero, infinity) = (self.like(-0.0), self.like(f64::INFINITY));
            (self.bitcast(unsigned) - (zero.bitcast(unsigned) + 1)).lt(infinity.bitcast(unsigned))
        })
    }

    /// Lane `i` of a vector.
    pub fn lane(self, i: u8) -> Value<'b> {
        self.b.def(Type::scalar(self.ty.scalar), Inst::Extract(self.id, i))
    }

    /// Reduction over the subgroup. The order of float additions is the driver's: not for
    /// reproducible results.
    pub fn subgroup(self, op: Subgroup) -> Value<'b> {
        self.b.def(self.ty, Inst::Subgroup(op, self.id))
    }

    /// The value of the lane whose index is this lane's exclusive-or `mask`.
    pub fn shuffle_xor(self, mask: u32) -> Value<'b> {
        self.b.def(self.ty, Inst::ShuffleXor(self.id, mask))
    }

    /// A constant of this value's type.
    pub fn like(self, x: f64) -> Value<'b> {
        self.b.constant_of(self.scalar(), x)
    }
}

impl<'b> Var<'b> {
    /// Its value now.
    pub fn get(self) -> Value<'b> {
        self.b.def(self.ty, Inst::GetVar { var: self.id, index: None })
    }

    /// Gives it a value.
    pub fn set(self, value: impl Operand<'b>) {
        let value = value.value(self.b, self.ty.scalar);
        assert_eq!(self.ty, value.ty, "a variable keeps its type");
        self.b.stmt(Stmt::SetVar { var: self.id, index: None, value: value.id });
    }
}

impl<'b> LocalArray<'b> {
    /// Element `index` (u32).
    pub fn get(self, index: impl Operand<'b>) -> Value<'b> {
        let index = index.value(self.b, ScalarType::U32);
        self.b.def(self.ty, Inst::GetVar { var: self.id, index: Some(index.id) })
    }

    /// Writes element `index` (u32).
    pub fn set(self, index: impl Operand<'b>, value: impl Operand<'b>) {
        let index = index.value(self.b, ScalarType::U32);
        let value = value.value(self.b, self.ty.scalar);
        self.b.stmt(Stmt::SetVar { var: self.id, index: Some(index.id), value: value.id });
    }
}

impl<'b> Shared<'b> {
    pub(crate) fn id(self) -> SharedId {
        self.id
    }

    /// Lanes of an element.
    pub fn lanes(self) -> u8 {
        self.ty.lanes
    }

    /// Scalar type of an element.
    pub fn scalar(self) -> ScalarType {
        self.ty.scalar
    }

    /// Element `index` (u32): a scalar, or a vector as declared.
    pub fn load(self, index: impl Operand<'b>) -> Value<'b> {
        let index = index.value(self.b, ScalarType::U32);
        self.b.def(self.ty, Inst::LoadShared { shared: self.id, index: index.id })
    }

    /// Writes element `index` (u32).
    pub fn store(self, index: impl Operand<'b>, value: impl Operand<'b>) {
        let index = index.value(self.b, ScalarType::U32);
        let value = value.value(self.b, self.ty.scalar);
        assert_eq!(self.ty, value.ty, "shared memory keeps its type");
        self.b.stmt(Stmt::StoreShared { shared: self.id, index: index.id, lane: None, value: value.id });
    }

    /// Atomic operation on element `index` (u32) of an array of 32-bit integers; yields the old
    /// value. Orders nothing else: a barrier does.
    pub fn atomic(self, op: Atomic, index: impl Operand<'b>, value: impl Operand<'b>) -> Value<'b> {
        let index = index.value(self.b, ScalarType::U32);
        let value = value.value(self.b, self.ty.scalar);
        assert!(self.ty.lanes == 1 && self.ty.scalar.is_integer() && self.ty.scalar.bytes() == 4);
        self.b.def(value.ty, Inst::AtomicShared { op, shared: self.id, index: index.id, value: value.id })
    }

    /// Writes lane `lane` (u32) of the vector element `index` (u32), and leaves its other lanes
    /// alone: how a tile is transposed on its way to shared memory.
    pub fn store_lane(self, index: impl Operand<'b>, lane: impl Operand<'b>, value: impl Operand<'b>) {
        if self.ty.lanes == 1 {
            return self.store(index, value);
        }
        let index = index.value(self.b, ScalarType::U32);
        let lane = lane.value(self.b, ScalarType::U32);
        let value = value.value(self.b, self.ty.scalar);
        assert_eq!(Type::scalar(self.ty.scalar), value.ty, "shared memory keeps its type");
        let lane = Some(lane.id);
        self.b.stmt(Stmt::StoreShared { shared: self.id, index: index.id, lane, value: value.id });
    }
}

impl<'b> Pointer<'b> {
    /// Its builder.
    pub fn builder(self) -> &'b Builder {
        self.b
    }

    pub(crate) fn id(self) -> PointerId {
        self.id
    }

    /// Element type in memory.
    pub fn dtype(self) -> DType {
        self.dtype
    }

    /// The pointer moved by `elements` (any integer).
    pub fn offset(self, elements: Value<'b>) -> Pointer<'b> {
        self.offset_from(self.id, elements.cast(ScalarType::U64))
    }

    /// A pointer of this dtype at `base` moved by `elements` of `base`'s type.
    fn offset_from(self, base: PointerId, elements: Value<'b>) -> Pointer<'b> {
        let info = PointerInfo { word: self.dtype.word(), base: PointerBase::Offset(base, elements.id) };
        let id = {
            let mut s = self.b.state.borrow_mut();
            s.kernel.pointers.push(info);
            s.kernel.pointers.len() as PointerId - 1
        };
        self.b.stmt(Stmt::DefPointer(id));
        Pointer { id, ..self }
    }

    fn assert_writable(self) {
        assert!(!self.read_only, "a kernel writes through a pointer that it declared as an input");
    }

    /// The same address as a pointer to elements of another dtype.
    pub fn retyped(self, dtype: DType) -> Pointer<'b> {
        Pointer { dtype, ..self }.offset_from(self.id, self.b.int(ScalarType::U64, 0))
    }

    /// Element `index` as it lies in memory: a word of the dtype, or `lanes` words of 32 bits.
    pub(crate) fn load_raw(self, index: Value<'b>, ty: Type) -> Value<'b> {
        self.b.def(ty, Inst::Load { pointer: self.id, index: index.id })
    }

    /// Writes what [`Pointer::load_raw`] would read.
    pub(crate) fn store_raw(self, index: Value<'b>, raw: Value<'b>) {
        self.assert_writable();
        self.b.stmt(Stmt::Store { pointer: self.id, index: index.id, value: raw.id });
    }

    /// Atomic operation on a 32 or 64-bit integer element; yields the old value.
    pub fn atomic(self, op: Atomic, index: impl Operand<'b>, value: impl Operand<'b>) -> Value<'b> {
        let index = index.value(self.b, ScalarType::U32);
        let value = value.value(self.b, self.dtype.compute());
        self.assert_writable();
        assert!(value.scalar().is_integer() && self.dtype.bytes() >= 4, "atomics work on 32 and 64-bit integers");
        self.b.def(value.ty, Inst::Atomic { op, pointer: self.id, index: index.id, value: value.id })
    }

    /// Stores `value` where the element equals `expected`; yields the old value.
    pub fn compare_exchange(
        self,
        index: impl Operand<'b>,
        expected: impl Operand<'b>,
        value: impl Operand<'b>,
    ) -> Value<'b> {
        self.assert_writable();
        let index = index.value(self.b, ScalarType::U32);
        let expected = expected.value(self.b, self.dtype.compute());
        let value = value.value(self.b, self.dtype.compute());
        let inst = Inst::CompareExchange { pointer: self.id, index: index.id, expected: expected.id, value: value.id };
        self.b.def(value.ty, inst)
    }
}

impl<'b> std::ops::Neg for Value<'b> {
    type Output = Value<'b>;
    fn neg(self) -> Value<'b> {
        self.unary(Unary::Neg)
    }
}

impl<'b> std::ops::Not for Value<'b> {
    type Output = Value<'b>;
    fn not(self) -> Value<'b> {
        self.unary(Unary::Not)
    }
}

macro_rules! operator {
    ($trait:ident, $method:ident, $body:expr) => {
        impl<'b, R: Operand<'b>> std::ops::$trait<R> for Value<'b> {
            type Output = Value<'b>;
            fn $method(self, other: R) -> Value<'b> {
                let other = self.with(other);
                $body(self, other)
            }
        }
        operator!(@reverse $trait, $method, f64, f32, i32, u32, i64, u64);
    };
    (@reverse $trait:ident, $method:ident, $($number:ty),*) => {
        $(impl<'b> std::ops::$trait<Value<'b>> for $number {
            type Output = Value<'b>;
            fn $method(self, other: Value<'b>) -> Value<'b> {
                std::ops::$trait::$method(self.value(other.b, other.scalar()), other)
            }
        })*
    };
}

operator!(Add, add, |a: Value<'b>, b| a.binary(Binary::Add, b));
operator!(Sub, sub, |a: Value<'b>, b| a.binary(Binary::Sub, b));
operator!(Mul, mul, |a: Value<'b>, b| a.binary(Binary::Mul, b));
operator!(Div, div, |a: Value<'b>, b| {
    if a.scalar().is_float() { crate::math::div(a, b) } else { a.binary(Binary::Div, b) }
});
operator!(Rem, rem, |a: Value<'b>, b| a.binary(Binary::Rem, b));
operator!(BitAnd, bitand, |a: Value<'b>, b| a.binary(Binary::And, b));
operator!(BitOr, bitor, |a: Value<'b>, b| a.binary(Binary::Or, b));
operator!(BitXor, bitxor, |a: Value<'b>, b| a.binary(Binary::Xor, b));
operator!(Shl, shl, |a: Value<'b>, b| a.binary(Binary::Shl, b));
operator!(Shr, shr, |a: Value<'b>, b| a.binary(Binary::Shr, b));

macro_rules! number_operand {
    ($($number:ty: $int:expr),*) => {
        $(impl<'b> Operand<'b> for $number {
            fn value(self, b: &'b Builder, like: ScalarType) -> Value<'b> {
                match like {
                    ScalarType::Bool => b.bool(self != (0 as $number)),
                    s if s.is_float() => b.float(s, self as f64),
                    s => b.int(s, $int(self)),
                }
            }
        })*
    };
}

number_operand!(
    f64: |x| x as i64 as u64,
    f32: |x| x as i64 as u64,
    i32: |x| x as i64 as u64,
    u32: |x| x as u64,
    i64: |x| x as u64,
    u64: |x| x
);

impl<'b> Operand<'b> for bool {
    fn value(self, b: &'b Builder, _: ScalarType) -> Value<'b> {
        b.bool(self)
    }
}
