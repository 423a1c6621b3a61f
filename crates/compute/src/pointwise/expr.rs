//! Expressions of elementwise functions, as data: the computation of a pointwise kernel, or of a
//! product's epilogue. Their [text](crate::text::expressions) is lossless.

use crate::pointwise::function::{Function, Guard, Variant};
use dml_kernel::Value;
use smallvec::SmallVec;
use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ptr;
use std::sync::{LazyLock, PoisonError, RwLock};

/// The computation for one element of each operand. Equal to expressions of the same functions with
/// the same arguments; a comparison compares addresses.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Expr {
    /// One function of all operands in their order.
    Call {
        /// The function.
        variant: Variant,
        /// Number of operands.
        operands: u8,
    },
    /// Functions of operands, and of other functions' results.
    Composed(&'static Composed),
}

/// Several functions; the last one gives the results. Compared by address: there is one for each
/// content.
pub struct Composed {
    /// Number of operands.
    pub operands: u8,
    /// The functions, in the order in which they are computed.
    pub nodes: SmallVec<[Node; 4]>,
}

/// A function in an expression.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Node {
    /// The function. The caller has to check its guards.
    pub variant: Variant,
    /// Its arguments.
    pub arguments: SmallVec<[Source; 4]>,
}

/// An argument of a function in an expression.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    /// The operand with this index.
    Operand(u8),
    /// The first result of an earlier function.
    Node(u8),
    /// This number, of the type of the function's first argument that is none.
    Number(Number),
}

/// A number in an expression. Equal to those of the same bits.
#[derive(Copy, Clone, PartialEq, Eq, Hash)]
pub struct Number(u64);

impl From<f64> for Number {
    fn from(number: f64) -> Number {
        Number(number.to_bits())
    }
}

impl Number {
    /// The number.
    pub fn value(self) -> f64 {
        f64::from_bits(self.0)
    }
}

impl fmt::Debug for Number {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        self.value().fmt(f)
    }
}

impl PartialEq for Composed {
    fn eq(&self, other: &Self) -> bool {
        ptr::eq(self, other)
    }
}

impl Eq for Composed {}

impl Hash for Composed {
    fn hash<H: Hasher>(&self, state: &mut H) {
        ptr::hash(self, state);
    }
}

impl fmt::Debug for Composed {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.debug_list().entries(&self.nodes).finish()
    }
}

/// Every [`Composed`] of the process by its content. A program has few, and they are never freed.
static COMPOSED: LazyLock<RwLock<HashMap<Key, &'static Composed>>> = LazyLock::new(RwLock::default);

type Key = (u8, SmallVec<[Node; 4]>);

fn interned(key: Key) -> &'static Composed {
    if let Some(found) = COMPOSED.read().unwrap_or_else(PoisonError::into_inner).get(&key) {
        return found;
    }
    let mut all = COMPOSED.write().unwrap_or_else(PoisonError::into_inner);
    all.entry(key).or_insert_with_key(|(operands, nodes)| {
        Box::leak(Box::new(Composed { operands: *operands, nodes: nodes.clone() }))
    })
}

impl From<&'static Function> for Expr {
    /// A function of its arguments, without options.
    fn from(function: &'static Function) -> Self {
        Expr::of(function.into(), function.arguments.map_or(1, <[_]>::len))
    }
}

impl Expr {
    /// A function of `operands` operands, at most 255.
    pub fn of(variant: Variant, operands: usize) -> Expr {
        Expr::Call { variant, operands: operands as u8 }
    }

    /// An expression of `operands` operands. `None` if there is no function, a function has no
    /// arguments but numbers, or an argument is neither a number, an operand nor an earlier
    /// function.
    pub fn new(operands: u8, nodes: SmallVec<[Node; 4]>) -> Option<Expr> {
        let known = |i: usize, source: &Source| match *source {
            Source::Operand(operand) => operand < operands,
            Source::Node(node) => usize::from(node) < i,
            Source::Number(_) => true,
        };
        let is_complete = |(i, node): (usize, &Node)| {
            let has_a_type = node.arguments.iter().any(|source| !matches!(source, Source::Number(_)));
            has_a_type && node.arguments.iter().all(|source| known(i, source))
        };
        if nodes.is_empty() || !nodes.iter().enumerate().all(is_complete) {
            return None;
        }
        if let [Node { variant, arguments }] = &nodes[..]
            && arguments.iter().copied().eq((0..operands).map(Source::Operand))
        {
            return Some(Expr::Call { variant: *variant, operands });
        }
        Some(Expr::Composed(interned((operands, nodes))))
    }

    /// Number of operands.
    pub fn operands(&self) -> usize {
        match *self {
            Expr::Call { operands, .. } | Expr::Composed(&Composed { operands, .. }) => operands.into(),
        }
    }

    /// The functions, in the order in which they are computed.
    pub fn nodes(&self) -> Cow<'static, [Node]> {
        match self {
            Expr::Call { variant, operands } => {
                let arguments = (0..*operands).map(Source::Operand).collect();
                Cow::Owned(vec![Node { variant: *variant, arguments }])
            }
            Expr::Composed(composed) => Cow::Borrowed(&composed.nodes),
        }
    }

    /// Composes `next` with this expression: its arguments are this expression's result, and
    /// further operands, which follow this expression's.
    pub fn then(&self, next: Expr) -> Expr {
        let (operands, first) = (self.operands() as u8, self.nodes());
        let last = first.len() as u8 - 1;
        let moved = |source: &Source| match *source {
            Source::Operand(0) => Source::Node(last),
            Source::Operand(operand) => Source::Operand(operands + operand - 1),
            Source::Node(node) => Source::Node(last + 1 + node),
            Source::Number(_) => *source,
        };
        let mut nodes: SmallVec<[Node; 4]> = first.iter().cloned().collect();
        nodes.extend(
            next.nodes()
                .iter()
                .map(|node| Node { variant: node.variant, arguments: node.arguments.iter().map(moved).collect() }),
        );
        Expr::Composed(interned((operands + next.operands() as u8 - 1, nodes)))
    }

    /// The name of the expression's kernels.
    pub fn name(&self) -> Cow<'static, str> {
        match self {
            Expr::Call { variant, .. } => Cow::Borrowed(variant.function.name),
            Expr::Composed(composed) => {
                let names: Vec<&str> = composed.nodes.iter().map(|node| node.variant.function.name).collect();
                Cow::Owned(names.join(" "))
            }
        }
    }

    /// Whether a function is this one.
    pub fn calls(&self, function: &Function) -> bool {
        self.has(|called| called == function)
    }

    /// Whether a function is [heavy](Function::heavy).
    pub fn is_heavy(&self) -> bool {
        self.has(|function| function.heavy)
    }

    /// Whether a function [divides integers](Function::divides).
    pub fn divides(&self) -> bool {
        self.has(|function| function.divides)
    }

    /// Whether operands may be floats: no function is one of integers or of complex numbers.
    pub fn is_of_floats(&self) -> bool {
        !self.has(|function| function.integers || function.is_complex())
    }

    fn has(&self, property: impl Fn(&Function) -> bool) -> bool {
        match self {
            Expr::Call { variant, .. } => property(variant.function),
            Expr::Composed(composed) => composed.nodes.iter().any(|node| property(node.variant.function)),
        }
    }

    /// The guards of operands whose values are reported.
    pub fn guards(&self) -> &'static [Guard] {
        match self {
            Expr::Call { variant, .. } => variant.guards(),
            Expr::Composed(_) => &[],
        }
    }

    /// `count` results for one element of each operand, as in [`Variant::results`].
    pub fn results<'b>(&self, operands: &[Value<'b>], count: usize) -> Vec<Value<'b>> {
        match self {
            Expr::Call { variant, .. } => variant.results(operands, count),
            Expr::Composed(composed) => {
                let mut found: Vec<Value<'b>> = Vec::new();
                let mut last = Vec::new();
                for node in &composed.nodes {
                    let value = |source: &Source| match *source {
                        Source::Operand(i) => Some(operands[usize::from(i)]),
                        Source::Node(i) => Some(found[usize::from(i)]),
                        Source::Number(_) => None,
                    };
                    let arguments = node.arguments_with(value);
                    last = node.variant.results(&arguments, count);
                    found.push(last[0]);
                }
                last
            }
        }
    }

    /// The first result for each of several adjacent elements. A function is computed for all of
    /// them before the next one, and an operand, given as all adjacent elements, is loaded when the
    /// first function needs it.
    pub fn of_neighbours<'b>(&self, operand: impl Fn(usize) -> Vec<Value<'b>>) -> Vec<Value<'b>> {
        let mut loaded: Vec<Option<Vec<Value<'b>>>> = vec![None; self.operands()];
        let mut found: Vec<Vec<Value<'b>>> = Vec::new();
        for node in self.nodes().iter() {
            for source in &node.arguments {
                if let Source::Operand(i) = *source {
                    loaded[usize::from(i)].get_or_insert_with(|| operand(i.into()));
                }
            }
            let of = |source: &Source| match *source {
                Source::Operand(i) => loaded[usize::from(i)].as_deref(),
                Source::Node(i) => Some(&found[usize::from(i)][..]),
                Source::Number(_) => None,
            };
            let lanes = node.arguments.iter().find_map(of).map_or(0, <[_]>::len);
            let result = |lane: usize| {
                let arguments = node.arguments_with(|source| of(source).map(|values| values[lane]));
                node.variant.results(&arguments, 1)[0]
            };
            let results = (0..lanes).map(result).collect();
            found.push(results);
        }
        found.pop().unwrap_or_default()
    }
}

impl Node {
    /// The arguments, of which numbers have the type of the others.
    fn arguments_with<'b>(&self, value: impl Fn(&Source) -> Option<Value<'b>>) -> SmallVec<[Value<'b>; 4]> {
        let typed = self.arguments.iter().find_map(&value);
        let argument = |source: &Source| match *source {
            Source::Number(number) => typed.map(|typed| typed.like(number.value())),
            _ => value(source),
        };
        self.arguments.iter().filter_map(argument).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pointwise::{activation, arithmetic, unary};
    use dml_kernel::interpret::{Argument, run};
    use dml_kernel::{Builder, DType};
    use smallvec::smallvec;

    fn sum_then_relu() -> Expr {
        Expr::from(&arithmetic::ADD).then((&activation::RELU).into())
    }

    #[test]
    fn equal_expressions_are_one() {
        let product = sum_then_relu().then((&arithmetic::MUL).into());
        assert_eq!(product, sum_then_relu().then((&arithmetic::MUL).into()));
        assert_ne!(product, sum_then_relu());
        assert_eq!(product.operands(), 3);
        assert_eq!(product.name(), "add relu mul");
        let alone = Node { variant: (&unary::EXP).into(), arguments: smallvec![Source::Operand(0)] };
        assert_eq!(Expr::new(1, smallvec![alone.clone()]), Some((&unary::EXP).into()));
        assert_eq!(Expr::new(0, smallvec![alone]), None);
        assert_eq!(Expr::new(1, smallvec![]), None);
    }

    #[test]
    fn numbers_are_of_the_other_arguments_type() {
        let arguments = smallvec![Source::Number(0.5.into()), Source::Operand(0)];
        let node = Node { variant: (&arithmetic::SUB).into(), arguments };
        let expr = Expr::new(1, smallvec![node.clone()]);
        assert_eq!(expr, Expr::new(1, smallvec![node]));
        let only_numbers = Node { variant: (&unary::EXP).into(), arguments: smallvec![Source::Number(0.5.into())] };
        assert_eq!(Expr::new(1, smallvec![only_numbers]), None);
        let b = Builder::new("test", [1, 1, 1]);
        let out = b.pointer("out", DType::F32);
        let expr = expr.unwrap_or_else(|| panic!("it is an expression"));
        out.store(b.u32(0), expr.results(&[out.load(b.u32(0))], 1)[0]);
        let mut memory = 2f32.to_le_bytes();
        run(&b.finish(), [1, 1, 1], 1, &mut [Argument::Memory(&mut memory)]);
        assert_eq!(f32::from_le_bytes(memory), -1.5);
    }

    #[test]
    fn a_composed_expression_computes_what_its_functions_do() {
        let expr = sum_then_relu().then((&arithmetic::MUL).into());
        let kernel = |neighbours: bool| {
            let b = Builder::new("test", [1, 1, 1]);
            let (out, x) = (b.pointer("out", DType::F32), b.pointer("x", DType::F32));
            for i in 0..2u32 {
                let operand = |o: usize| x.load(b.u32(3 * i + o as u32));
                let results = if neighbours {
                    expr.of_neighbours(|o| vec![operand(o), operand(o)])
                } else {
                    expr.results(&[operand(0), operand(1), operand(2)], 1)
                };
                out.store(b.u32(i), results[results.len() - 1]);
            }
            b.finish()
        };
        for neighbours in [false, true] {
            let bytes = |x: &[f32]| x.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>();
            let (mut out, mut x) = (vec![0u8; 8], bytes(&[1.0, 2.5, 2.0, -3.0, 1.0, 5.0]));
            run(&kernel(neighbours), [1, 1, 1], 1, &mut [Argument::Memory(&mut out), Argument::Memory(&mut x)]);
            assert_eq!(out, bytes(&[7.0, 0.0]));
        }
    }
}
