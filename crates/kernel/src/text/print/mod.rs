//! Prints a kernel: one statement per line, in the builder's order.

mod statements;

use super::literal::{float32, float64};
use super::names::*;
use crate::ir::*;
use crate::types::{ScalarType, Type};
use std::fmt::{self, Display, Formatter};

impl Display for Kernel {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&Printer::new(self).print())
    }
}

struct Printer<'k> {
    k: &'k Kernel,
    out: String,
    depth: usize,
    /// The name of each parameter, if it needs no quotes.
    names: Vec<Option<&'k str>>,
    /// The value of each parameter that is a number.
    numbers: Vec<Option<ValueId>>,
    /// The numbers of declarations in the text so far, by kind.
    params: usize,
    pointers: PointerId,
    vars: VarId,
    /// The text so far creates the values below this one.
    next: ValueId,
    /// The entry values that the text so far creates, including values from `next` on.
    made: Vec<bool>,
    /// The uses in the current line: literals and other entry values, in order; parameters;
    /// variables.
    literals: Vec<ValueId>,
    used_params: usize,
    used_vars: VarId,
}

impl<'k> Printer<'k> {
    fn new(k: &'k Kernel) -> Self {
        let mut numbers = vec![None; k.params.len()];
        for (value, id) in k.values.iter().zip(0..) {
            if let Inst::Param(p) = value.inst
                && let Some(number) = numbers.get_mut(p as usize)
            {
                *number = Some(id);
            }
        }
        let plain = |name: &str| {
            let digits = |rest: &str| rest.bytes().all(|c| c.is_ascii_digit());
            let made_up = ["var", "shared", "matrix"].iter().any(|kind| name.strip_prefix(kind).is_some_and(digits));
            let once = k.params.iter().filter(|other| other.name == name).count() == 1;
            is_plain(name) && once && !made_up
        };
        Printer {
            k,
            out: String::new(),
            depth: 0,
            names: k.params.iter().map(|p| plain(&p.name).then_some(p.name.as_str())).collect(),
            numbers,
            params: 0,
            pointers: 0,
            vars: 0,
            next: 0,
            made: vec![false; k.values.len()],
            literals: Vec::new(),
            used_params: 0,
            used_vars: 0,
        }
    }

    fn print(mut self) -> String {
        let k = self.k;
        let [x, y, z] = k.workgroup_size;
        self.line(&format!("kernel {} [{x}, {y}, {z}] {{", quoted(&k.name)));
        self.depth += 1;
        while self.k.params.get(self.params).is_some_and(|param| match param.kind {
            ParamKind::Pointer { pointer, .. } => pointer == self.pointers,
            ParamKind::Scalar(_) | ParamKind::Words => self.numbers[self.params] == Some(self.next),
        }) {
            self.params_below(self.params + 1);
        }
        for (shared, i) in k.shared.iter().zip(0..) {
            self.line(&format!("shared {}: {}[{}]", shared_name(i), shared.ty, shared.len));
        }
        for (matrix, i) in k.matrices.iter().zip(0..) {
            self.line(&format!("matrix {}: {matrix}", matrix_name(i)));
        }
        self.block(&k.body);
        self.params_below(k.params.len());
        self.vars_below(k.vars.len() as VarId);
        self.values_below(k.values.len() as ValueId, &[]);
        self.depth -= 1;
        self.line("}");
        self.out
    }

    fn line(&mut self, text: &str) {
        (0..self.depth).for_each(|_| self.out.push_str("  "));
        self.out.push_str(text);
        self.out.push('\n');
    }

    // ---- declarations, in the builder's order

    /// Declares the parameters below this one.
    fn params_below(&mut self, end: usize) {
        let k = self.k;
        while self.params < end {
            let (p, param) = (self.params, &k.params[self.params]);
            if let Some(number) = self.numbers[p] {
                self.values_below(number, &[]);
            }
            self.params = p + 1;
            let (keyword, name, kind) = match param.kind {
                ParamKind::Pointer { pointer, dtype, writable } => {
                    self.pointers = pointer + 1;
                    let keyword = if writable { "output" } else { "input" };
                    (keyword, self.pointer_name(pointer), dtype.short_name())
                }
                ParamKind::Scalar(scalar) => ("param", self.number_name(p), scalar.name()),
                ParamKind::Words => ("param", self.number_name(p), "words"),
            };
            if let Some(number) = self.numbers[p] {
                self.made[number as usize] = true;
                self.next = number + 1;
            }
            let own = if self.names[p].is_some() { String::new() } else { format!(" {:?}", param.name) };
            self.line(&format!("{keyword} {name}{own}: {kind}"));
        }
    }

    fn vars_below(&mut self, end: VarId) {
        while self.vars < end {
            let VarInfo { ty, len } = self.k.vars[self.vars as usize];
            let len = if len == 1 { String::new() } else { format!("[{len}]") };
            self.line(&format!("var {}: {ty}{len}", var_name(self.vars)));
            self.vars += 1;
        }
    }

    /// Creates the entry values below `end`. The literals of the next line create the last of them,
    /// if they are the same in the same order; the others need lines of their own.
    fn values_below(&mut self, end: ValueId, literals: &[ValueId]) {
        let entry = |id: &ValueId| self.k.values[*id as usize].inst.is_entry() && !self.made[*id as usize];
        let pending: Vec<ValueId> = (self.next..end).filter(entry).collect();
        let mut new: Vec<ValueId> = Vec::new();
        for &id in literals {
            if !self.made[id as usize] && !new.contains(&id) {
                new.push(id);
            }
        }
        let own = (0..=new.len()).find(|&from| pending.ends_with(&new[from..])).unwrap_or(new.len());
        for &id in &pending[..pending.len() - (new.len() - own)] {
            if std::mem::replace(&mut self.made[id as usize], true) {
                continue; // An earlier parameter created it.
            }
            match self.k.values[id as usize].inst {
                Inst::Param(p) => self.params_below(p as usize + 1),
                _ => {
                    let literal = self.literal(id, None);
                    self.line(&format!("const {literal}"));
                }
            }
        }
        new.iter().for_each(|&id| self.made[id as usize] = true);
        self.next = self.next.max(end);
    }

    /// The declarations before a line that creates the value below `end`, or no value: parameters,
    /// variables and entry values that the line uses.
    fn prepare(&mut self, end: Option<ValueId>) {
        let literals = std::mem::take(&mut self.literals);
        let (params, vars) = (std::mem::take(&mut self.used_params), std::mem::take(&mut self.used_vars));
        // Parameters are declared in order; each number parameter creates an entry value.
        let new = literals.iter().copied().filter(|&id| !self.made[id as usize]);
        let numbers = (self.params..params).filter_map(|p| self.numbers[p]);
        let last = new.chain(numbers).max().map_or(0, |id| id + 1);
        self.values_below(end.unwrap_or(last).max(self.next), &literals);
        self.params_below(params);
        self.vars_below(vars);
    }

    // ---- names

    fn number_name(&self, p: usize) -> String {
        match (self.names[p], self.numbers[p]) {
            (Some(name), _) => format!("%{name}"),
            (None, Some(id)) => format!("%{id}"),
            (None, None) => format!("%param{p}"),
        }
    }

    fn pointer_name(&self, id: PointerId) -> String {
        let param = self.k.pointers.get(id as usize).and_then(|pointer| match pointer.base {
            PointerBase::Param(p) => *self.names.get(p as usize)?,
            _ => None,
        });
        param.map_or_else(|| format!("@{id}"), |name| format!("@{name}"))
    }

    /// The use of a pointer.
    fn pointer(&mut self, id: PointerId) -> String {
        if let Some(PointerInfo { base: PointerBase::Param(p), .. }) = self.k.pointers.get(id as usize)
            && (*p as usize) < self.k.params.len()
        {
            self.used_params = self.used_params.max(*p as usize + 1);
        }
        self.pointer_name(id)
    }

    /// The use of a variable, or of an element of an array.
    fn var(&mut self, id: VarId, index: Option<ValueId>) -> String {
        if (id as usize) < self.k.vars.len() {
            self.used_vars = self.used_vars.max(id + 1);
        }
        let index = index.map(|index| self.index(index)).unwrap_or_default();
        format!("{}{index}", var_name(id))
    }

    fn index(&mut self, id: ValueId) -> String {
        format!("[{}]", self.value(id, Some(ScalarType::U32)))
    }

    /// The use of a value: a literal, or its name. A literal of another type than `like` has its
    /// type.
    fn value(&mut self, id: ValueId, like: Option<ScalarType>) -> String {
        match self.k.values.get(id as usize).map(|value| &value.inst) {
            Some(&Inst::Param(p)) if (p as usize) < self.k.params.len() => {
                self.used_params = self.used_params.max(p as usize + 1);
                self.number_name(p as usize)
            }
            Some(inst) if inst.is_entry() => {
                self.literals.push(id);
                self.literal(id, like)
            }
            Some(Inst::Placeholder(i)) => format!("placeholder.{i}"),
            _ => format!("%{id}"),
        }
    }

    fn literal(&self, id: ValueId, like: Option<ScalarType>) -> String {
        let ValueInfo { ty: Type { scalar, .. }, ref inst } = self.k.values[id as usize];
        let number = match *inst {
            Inst::ConstBool(x) => return x.to_string(),
            Inst::Builtin(builtin) => return word(BUILTIN, builtin).to_owned(),
            Inst::ConstInt(bits) => match scalar {
                ScalarType::I32 => (bits as u32).cast_signed().to_string(),
                ScalarType::I64 => bits.cast_signed().to_string(),
                _ => bits.to_string(),
            },
            Inst::ConstFloat(bits) if scalar == ScalarType::F32 => float32(bits as u32),
            Inst::ConstFloat(bits) => float64(bits),
            _ => return mnemonic(inst).to_owned(),
        };
        if like == Some(scalar) { number } else { format!("{number}:{scalar}") }
    }

    fn scalar_of(&self, id: ValueId) -> Option<ScalarType> {
        self.k.values.get(id as usize).map(|value| value.ty.scalar)
    }
}

fn var_name(id: VarId) -> String {
    format!("@var{id}")
}

fn shared_name(id: SharedId) -> String {
    format!("@shared{id}")
}

fn matrix_name(id: MatrixId) -> String {
    format!("@matrix{id}")
}

fn quoted(name: &str) -> String {
    if is_plain(name) { name.to_owned() } else { format!("{name:?}") }
}
