//! `Einsum`: sums of products of one or two tensors, named by the labels of their dimensions.

use super::products::multiply;
use crate::c_api::Attributes;
use crate::error::{Error, Result};
use crate::kernel::{Call, Operator};
use crate::operators::common::dtypes::FIELDS;
use crate::require;
use dml_compute::complex::as_real;
use dml_compute::linear_algebra::matrices;
use dml_compute::reduction::axes::Axes;
use dml_compute::reduction::sum::sum_into;
use dml_compute::{Context, Dims, Scalar, View};

/// A dimension: a letter, or one of the dimensions that `...` stands for, counted from their end.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Label {
    Named(char),
    Other(usize),
}

/// The labels of an operand or of the result; `None` is `...`.
type Term = Vec<Option<char>>;

/// An equation.
struct Equation {
    operands: Vec<Term>,
    result: Term,
}

impl Equation {
    fn parse(text: &str) -> Result<Self> {
        let wrong = || Error::InvalidArgument(format!("Expecting an equation as in 'ab,bc->ac', got: {text}"));
        let term = |part: &str| -> Result<Term> {
            let mut labels = Term::new();
            let mut rest = part.trim();
            while let Some(first) = rest.chars().next() {
                if let Some(after) = rest.strip_prefix("...") {
                    require!(!labels.contains(&None), "Expected at most one ellipsis in a term of {text}");
                    labels.push(None);
                    rest = after;
                    continue;
                }
                if !first.is_alphabetic() {
                    return Err(wrong());
                }
                labels.push(Some(first));
                rest = &rest[first.len_utf8()..];
            }
            Ok(labels)
        };
        let (operands, result) = text.split_once("->").ok_or_else(wrong)?;
        Ok(Self { operands: operands.split(',').map(term).collect::<Result<_>>()?, result: term(result)? })
    }
}

/// The labels of a term for a tensor of `rank` dimensions.
fn labels(term: &Term, rank: usize) -> Result<Vec<Label>> {
    let named = term.iter().flatten().count();
    let has_others = term.len() > named;
    require!(
        rank == named || (has_others && rank >= named),
        "Expected rank {}{named} for a term of the equation, got {rank}",
        if has_others { "of at least " } else { "" }
    );
    let others = rank - named;
    let mut labels = Vec::new();
    for label in term {
        match label {
            Some(letter) => labels.push(Label::Named(*letter)),
            None => labels.extend((0..others).rev().map(Label::Other)),
        }
    }
    Ok(labels)
}

/// A tensor with distinct labels.
#[derive(Clone)]
struct Labelled {
    view: View,
    labels: Vec<Label>,
}

impl Labelled {
    /// The diagonals along dimensions of one label.
    fn of(view: &View, all: &[Label]) -> Result<Self> {
        let (mut labels, mut sizes, mut strides) = (Vec::new(), Dims::new(), Dims::new());
        for (d, &label) in all.iter().enumerate() {
            let Some(at) = labels.iter().position(|&known| known == label) else {
                labels.push(label);
                sizes.push(view.sizes[d]);
                strides.push(view.strides[d]);
                continue;
            };
            require!(
                sizes[at] == view.sizes[d],
                "Expected dimension {} to be equal to {} for {label:?}",
                view.sizes[d],
                sizes[at]
            );
            strides[at] += view.strides[d];
        }
        Ok(Self { view: view.as_strided(&sizes, &strides, 0), labels })
    }

    fn position(&self, label: Label) -> Option<usize> {
        self.labels.iter().position(|&own| own == label)
    }

    fn size(&self, label: Label) -> Option<i64> {
        self.position(label).map(|d| self.view.sizes[d])
    }

    /// The tensor with these dimensions, of these sizes: those that it lacks are of one element.
    fn arranged(&self, order: &[Label], size_of: &dyn Fn(Label) -> i64) -> View {
        let (mut sizes, mut strides) = (Dims::new(), Dims::new());
        for &label in order {
            let size = size_of(label);
            let at = self.position(label);
            strides.push(at.map_or(0, |d| if self.view.sizes[d] == size { self.view.strides[d] } else { 0 }));
            sizes.push(size);
        }
        self.view.as_strided(&sizes, &strides, 0)
    }

    /// Summed over all labels that are not kept.
    fn summed(self, cx: &Context, is_kept: impl Fn(Label) -> bool) -> Result<Self> {
        let dims: Vec<i64> = (0..self.labels.len()).filter(|&d| !is_kept(self.labels[d])).map(|d| d as i64).collect();
        if dims.is_empty() {
            return Ok(self);
        }
        let axes = Axes::of_dims(&dims, self.view.dim(), false);
        let out = cx.empty(self.view.dtype, &axes.sizes(&self.view.sizes))?;
        sum(cx, &self.view, &out, axes)?;
        Ok(Self { view: out, labels: self.labels.into_iter().filter(|&label| is_kept(label)).collect() })
    }
}

/// Sums of real or complex numbers.
fn sum(cx: &Context, t: &View, out: &View, axes: Axes) -> Result<()> {
    if !t.dtype.is_complex() {
        return Ok(sum_into(cx, t, out, axes)?);
    }
    // The parts are a last dimension, which is not summed.
    let mask = axes.mask & ((1 << t.dim()) - 1);
    Ok(sum_into(cx, &as_real(t), &as_real(out), Axes { mask, keep: axes.keep })?)
}

/// Several dimensions as one: a copy if the strides do not allow a view. `groups` are numbers of
/// adjacent dimensions.
fn merged(cx: &Context, t: &View, groups: &[usize]) -> Result<View> {
    let (mut sizes, mut strides, mut first) = (Dims::new(), Dims::new(), 0);
    for &count in groups {
        let own = first..first + count;
        let size: i64 = t.sizes[own.clone()].iter().product();
        let mut step = None;
        for d in own.rev().filter(|&d| t.sizes[d] != 1) {
            let (start, expected) = *step.get_or_insert((t.strides[d], t.strides[d]));
            if t.strides[d] != expected {
                let copy = cx.empty(t.dtype, &t.sizes)?;
                matrices::device_copy(cx, t, &copy)?;
                return merged(cx, &copy, groups);
            }
            step = Some((start, expected * t.sizes[d]));
        }
        sizes.push(size);
        strides.push(step.map_or(1, |(start, _)| start));
        first += count;
    }
    Ok(t.as_strided(&sizes, &strides, 0))
}

/// The size of a label in one or two tensors; those of `...` broadcast.
fn size_of(tensors: &[Labelled], label: Label) -> Result<i64> {
    let mut found = None;
    for size in tensors.iter().filter_map(|t| t.size(label)) {
        match (found, label) {
            (None, _) | (Some(1), Label::Other(_)) => found = Some(size),
            (Some(known), _) if known == size => {}
            (Some(_), Label::Other(_)) if size == 1 => {}
            (Some(known), _) => {
                return Err(Error::InvalidArgument(format!(
                    "Expected dimension {known} to be equal to {size} for {label:?}"
                )));
            }
        }
    }
    found.ok_or_else(|| Error::InvalidArgument(format!("the result's label {label:?} is in no operand")))
}

/// The sum of products, written to `out`, whose dimensions have distinct labels.
fn contract(cx: &Context, mut tensors: Vec<Labelled>, out: &View, result: &[Label]) -> Result<()> {
    let kept = |label: Label| result.contains(&label);
    if tensors.len() == 1 {
        let only = tensors.remove(0);
        let dims: Vec<i64> = (0..only.labels.len()).filter(|&d| !kept(only.labels[d])).map(|d| d as i64).collect();
        let left: Vec<Label> = only.labels.iter().copied().filter(|&label| kept(label)).collect();
        // The result in the order of the operand.
        let target = Labelled { view: out.clone(), labels: result.to_vec() };
        let target = target.arranged(&left, &|label| only.size(label).unwrap_or(1));
        if dims.is_empty() {
            return Ok(matrices::device_copy(cx, &only.view, &target)?);
        }
        return sum(cx, &only.view, &target, Axes::of_dims(&dims, only.view.dim(), false));
    }
    let sizes: Vec<(Label, i64)> = tensors
        .iter()
        .flat_map(|t| t.labels.clone())
        .map(|label| Ok((label, size_of(&tensors, label)?)))
        .collect::<Result<_>>()?;
    let size = |label: Label| sizes.iter().find(|(known, _)| *known == label).map_or(1, |&(_, size)| size);
    let (right, left) = (tensors.remove(1), tensors.remove(0));
    let in_other = |other: &Labelled| other.labels.clone();
    let (of_left, of_right) = (in_other(&left), in_other(&right));
    let left = left.summed(cx, |label| kept(label) || of_right.contains(&label))?;
    let right = right.summed(cx, |label| kept(label) || of_left.contains(&label))?;
    let both = |label: &Label| left.labels.contains(label) && right.labels.contains(label);
    let batch: Vec<Label> = result.iter().copied().filter(both).collect();
    let rows: Vec<Label> = result.iter().copied().filter(|l| left.labels.contains(l) && !both(l)).collect();
    let columns: Vec<Label> = result.iter().copied().filter(|l| right.labels.contains(l) && !both(l)).collect();
    let summed: Vec<Label> = left.labels.iter().copied().filter(|&l| both(&l) && !kept(l)).collect();
    let joined = |parts: &[&Vec<Label>]| -> Vec<Label> { parts.iter().flat_map(|part| part.iter().copied()).collect() };
    let a = left.arranged(&joined(&[&batch, &rows, &summed]), &size);
    let b = right.arranged(&joined(&[&batch, &summed, &columns]), &size);
    let a = merged(cx, &a, &[batch.len(), rows.len(), summed.len()])?;
    let b = merged(cx, &b, &[batch.len(), summed.len(), columns.len()])?;
    let order = joined(&[&batch, &rows, &columns]);
    let product_sizes: Dims = order.iter().map(|&label| size(label)).collect();
    let matrix_sizes = [a.sizes[0], a.sizes[1], b.sizes[2]];
    let strides = View::contiguous_strides(&matrix_sizes);
    if order == result && out.is_contiguous() {
        return multiply(cx, &a, &b, &out.as_strided(&matrix_sizes, &strides, 0));
    }
    let product = cx.empty(out.dtype, &product_sizes)?;
    multiply(cx, &a, &b, &product.as_strided(&matrix_sizes, &strides, 0))?;
    let product = Labelled { view: product, labels: order };
    Ok(matrices::device_copy(cx, &product.arranged(result, &size), out)?)
}

/// `Einsum`.
fn einsum(attributes: &Attributes) -> Result<impl Fn(&Call) -> Result<()> + use<>> {
    let equation = Equation::parse(&attributes.string("equation")?)?;
    Ok(move |call: &Call| {
        let count = call.inputs();
        require!(
            count == equation.operands.len() && (1..=2).contains(&count),
            "Expected {} inputs for the equation, which has at most two, but got: {count}",
            equation.operands.len()
        );
        let mut tensors = Vec::new();
        let mut others = 0;
        for (i, term) in equation.operands.iter().enumerate() {
            let view = call.input(i)?;
            let labels = labels(term, view.dim())?;
            others = labels.iter().filter(|label| matches!(label, Label::Other(_))).count().max(others);
            tensors.push(Labelled::of(&view, &labels)?);
        }
        let named = equation.result.iter().flatten().count();
        let has_others = equation.result.len() > named;
        let result = labels(&equation.result, named + if has_others { others } else { 0 })?;
        let sizes: Dims = result.iter().map(|&label| size_of(&tensors, label)).collect::<Result<_>>()?;
        let out = call.output(0, &sizes)?;
        let cx = call.cx();
        let distinct = Labelled::of(&out, &result)?;
        if distinct.labels.len() < result.len() && out.numel() > 0 {
            matrices::fill_with(&cx, &out, Scalar::Int(0))?;
        }
        if out.numel() == 0 {
            return Ok(());
        }
        contract(&cx, tensors, &distinct.view, &distinct.labels)
    })
}

/// The operators of this file.
pub fn operators() -> Vec<Operator> {
    vec![Operator::new("Einsum", einsum).of("T", FIELDS)]
}
