//! The kernel that a builder has collected so far.

use crate::ir::*;
use rustc_hash::FxHashMap;
use std::ops::Range;

/// A kernel without its body, and the open blocks that become the body.
pub(super) struct State {
    pub(super) kernel: Kernel,
    pub(super) blocks: OpenBlocks,
    /// Values that are evaluated once, before the body.
    entry: FxHashMap<ValueInfo, ValueId>,
    /// The f32 arrays of emulated matrices, by length.
    pub(super) exchanges: FxHashMap<u32, SharedId>,
    /// Whether the body of a library function is being written.
    in_function: bool,
}

/// The number of values and of variables before a library function's body.
pub(super) struct FunctionStart {
    values: ValueId,
    vars: VarId,
}

impl State {
    pub(super) fn new(name: String, workgroup_size: [u32; 3]) -> State {
        let kernel = Kernel {
            name,
            workgroup_size,
            params: Vec::new(),
            values: Vec::new(),
            vars: Vec::new(),
            pointers: Vec::new(),
            shared: Vec::new(),
            matrices: Vec::new(),
            body: Block::default(),
        };
        State {
            kernel,
            blocks: OpenBlocks::default(),
            entry: FxHashMap::default(),
            exchanges: FxHashMap::default(),
            in_function: false,
        }
    }

    pub(super) fn finish(self) -> Kernel {
        assert!(self.blocks.enclosing.is_empty(), "a block was left open in kernel {}", self.kernel.name);
        Kernel { body: self.blocks.innermost, ..self.kernel }
    }

    /// Adds a value. A statement, or the kernel's entry, evaluates it.
    pub(super) fn value(&mut self, value: ValueInfo) -> ValueId {
        appended(&mut self.kernel.values, value)
    }

    /// The value with this type and definition that the kernel's entry evaluates: one value,
    /// however often it is requested.
    pub(super) fn entry_value(&mut self, value: ValueInfo) -> ValueId {
        if let Some(&id) = self.entry.get(&value) {
            return id;
        }
        let id = self.value(value.clone());
        self.entry.insert(value, id);
        id
    }

    /// Opens a library function's body; `None` inside another one's.
    pub(super) fn begin_function(&mut self) -> Option<FunctionStart> {
        if std::mem::replace(&mut self.in_function, true) {
            return None;
        }
        self.blocks.open();
        Some(FunctionStart { values: self.kernel.values.len() as ValueId, vars: self.kernel.vars.len() as VarId })
    }

    /// Closes a library function's body: the values and the variables that it added, and its
    /// statements.
    pub(super) fn end_function(&mut self, start: FunctionStart) -> (Range<ValueId>, Range<VarId>, Block) {
        self.in_function = false;
        let values = start.values..self.kernel.values.len() as ValueId;
        let vars = start.vars..self.kernel.vars.len() as VarId;
        (values, vars, self.blocks.close())
    }
}

/// Appends an item and returns its index.
pub(super) fn appended<T>(list: &mut Vec<T>, item: T) -> u32 {
    list.push(item);
    list.len() as u32 - 1
}

/// Blocks to which statements are still appended.
#[derive(Default)]
pub(super) struct OpenBlocks {
    /// Outermost first.
    enclosing: Vec<Block>,
    innermost: Block,
}

impl OpenBlocks {
    pub(super) fn push(&mut self, stmt: Stmt) {
        self.innermost.0.push(stmt);
    }

    pub(super) fn open(&mut self) {
        self.enclosing.push(std::mem::take(&mut self.innermost));
    }

    /// Closes the innermost block and returns it.
    pub(super) fn close(&mut self) -> Block {
        let outer = self.enclosing.pop().unwrap_or_default();
        std::mem::replace(&mut self.innermost, outer)
    }
}
