//! Which rows of a list go into one launch, and which have to be computed one after the other.

use crate::error::Result;
use crate::lists::multi_tensor::ranges;
use crate::lists::multi_tensor::signature::{Kind, Signature};
use crate::pointwise::kernel::{Input, Operand, Operands};
use crate::primitives::kernel::number_word;
use crate::primitives::list_table::{Grid, ListArgument, MAX_TENSORS};
use crate::view::View;
use crate::view::layout::Layout;
use dml_engine::AddressRange;
use dml_environment::FOREACH_SINGLE;
use dml_kernel::{DType, dense};
use smallvec::SmallVec;

/// One tensor of the list, and the tensors that are computed with it.
#[derive(Clone, Debug)]
pub struct Row<'t> {
    /// Results, all of one shape.
    pub outs: SmallVec<[&'t View; 4]>,
    /// Inputs. A result that is an input as well is in both lists.
    pub inputs: Operands<'t>,
    /// The dtype to which values are converted for the function.
    pub common: DType,
}

impl<'t> Row<'t> {
    /// A row whose only input is the result.
    pub fn in_place(t: &'t View) -> Self {
        Row { outs: SmallVec::from_slice(&[t]), inputs: SmallVec::from_slice(&[Operand::Tensor(t)]), common: t.dtype }
    }
}

/// Rows of one signature: one launch, or several if there are very many.
pub struct Batch {
    signature: Signature,
    /// The rows' entries in the launch's table.
    entries: Vec<u64>,
    /// Address ranges, as many for each row. A range that is also written is empty here.
    reads: Vec<AddressRange>,
    writes: Vec<AddressRange>,
}

/// Usually one batch; more if dtypes or alignments are mixed.
pub type Batches = SmallVec<[Batch; 2]>;

/// Whether lists are computed one tensor after the other, for comparison.
fn uses_single_launches() -> bool {
    FOREACH_SINGLE.get().is_some()
}

/// Splits rows into batches of one launch each, and rows that are computed one after the other:
/// strided ones, or all rows if their order matters.
pub fn split<'r, 't>(rows: &'r [Row<'t>], shared: &[Input]) -> (Batches, SmallVec<[&'r Row<'t>; 8]>) {
    let full = || rows.iter().filter(|row| row.outs[0].numel() > 0);
    let mut batches = Batches::new();
    if full().nth(1).is_none() || uses_single_launches() {
        return (batches, full().collect());
    }
    let singles: SmallVec<[&Row; 8]> = full().filter(|row| !add(&mut batches, row, rows.len(), shared)).collect();
    if overlap(&mut batches, &singles, shared) {
        return (Batches::new(), full().collect());
    }
    (batches, singles)
}

/// Whether one row writes memory that another row accesses.
fn overlap(batches: &mut Batches, singles: &[&Row], shared: &[Input]) -> bool {
    let shared = shared.iter().filter_map(|input| if let Input::Tensor(t) = input { Some(t.range()) } else { None });
    if let ([batch], true) = (batches.as_mut_slice(), singles.is_empty())
        && batch.rows() <= MAX_TENSORS
    {
        // The ranges belong to a single launch, so their order does not matter.
        batch.reads.extend(shared);
        return ranges::conflict(&mut batch.reads, &mut batch.writes);
    }
    let (mut reads, mut writes): (Vec<AddressRange>, Vec<AddressRange>) = (shared.collect(), Vec::new());
    for batch in batches {
        reads.extend_from_slice(&batch.reads);
        writes.extend_from_slice(&batch.writes);
    }
    for row in singles {
        writes.extend(row.outs.iter().map(|t| t.range()));
        let inputs = row.inputs.iter().filter_map(|&input| if let Operand::Tensor(t) = input { Some(t) } else { None });
        reads.extend(inputs.filter(|t| !row.outs.iter().any(|out| same(out, t))).map(View::range));
    }
    ranges::conflict(&mut reads, &mut writes)
}

/// Whether both views are the same elements in the same order.
fn same(a: &View, b: &View) -> bool {
    a.data == b.data && a.dtype == b.dtype && a.sizes == b.sizes && a.strides == b.strides
}

impl Batch {
    fn rows(&self) -> usize {
        self.entries.len() / self.signature.words() as usize
    }

    /// The signature that the batch's rows share.
    pub fn signature(&self) -> &Signature {
        &self.signature
    }

    /// The dtype of the first result.
    pub fn dtype(&self) -> DType {
        self.signature.outs[0]
    }

    /// Elements of one access of the kernel (vector width).
    pub fn lanes(&self) -> u32 {
        self.signature.lanes
    }

    /// Makes an access of the kernel at most so many elements.
    pub fn narrow(&mut self, lanes: u32) {
        self.signature.lanes = self.signature.lanes.min(lanes);
    }

    /// Words of a tensor's entry in the table.
    pub fn words(&self) -> u32 {
        self.signature.words()
    }

    /// Launches a kernel: `run` gets a [`ListTable`](crate::primitives::list_table::ListTable) and
    /// the workgroups; once, or several times if there are very many rows.
    pub fn launch(mut self, mut run: impl FnMut(ListArgument, [u32; 3]) -> Result<()>) -> Result<()> {
        let (rows, words) = (self.rows(), self.words() as usize);
        let mut launch = |entries: &[u64], reads: &[AddressRange], writes: &[AddressRange]| {
            let counts = entries.iter().step_by(words);
            let Grid { first_workgroups, groups, rounds } = Grid::new(counts.copied(), self.signature.lanes);
            let listed =
                ListArgument { first_workgroups: &first_workgroups, entries, rounds: rounds as u32, reads, writes };
            run(listed, dense::folded(groups))
        };
        if rows <= MAX_TENSORS {
            ranges::merge(&mut self.reads);
            ranges::merge(&mut self.writes);
            return launch(&self.entries, &self.reads, &self.writes);
        }
        let (reads, writes) = (self.reads.len() / rows, self.writes.len() / rows);
        for first in (0..rows).step_by(MAX_TENSORS) {
            let end = rows.min(first + MAX_TENSORS);
            let mut ranges = [&self.reads[first * reads..end * reads], &self.writes[first * writes..end * writes]]
                .map(<[AddressRange]>::to_vec);
            ranges.iter_mut().for_each(ranges::merge);
            let [reads, writes] = &ranges;
            launch(&self.entries[first * words..end * words], reads, writes)?;
        }
        Ok(())
    }
}

/// Adds a row to the batch of its signature. Returns false if no batch can have it: a tensor is
/// neither dense with the result's strides nor a single element.
fn add(batches: &mut Batches, row: &Row, expected: usize, shared: &[Input]) -> bool {
    let out = row.outs[0];
    let contiguous = out.is_contiguous();
    if !contiguous && !Layout::new(&[out]).is_dense(0) {
        return false;
    }
    let numel = out.numel() as u64;
    let like_out = |t: &View| t.sizes == out.sizes && (t.strides == out.strides || contiguous && t.is_contiguous());
    let mut signature = Signature { outs: SmallVec::new(), inputs: SmallVec::new(), common: row.common, lanes: 1 };
    let (mut widest, mut addresses) = (1, 0);
    let mut dense = |t: &View| {
        let dense = like_out(t);
        if dense {
            widest = t.element_size().max(widest);
            addresses |= t.data;
        }
        dense
    };
    for t in &row.outs {
        if !dense(t) {
            return false;
        }
        signature.outs.push(t.dtype);
    }
    // Bitmask: input i has the strides of the results.
    let mut alike = 0u32;
    for (i, operand) in row.inputs.iter().enumerate() {
        signature.inputs.push(match operand {
            Operand::Number(_) => Kind::Number,
            Operand::Tensor(t) if dense(t) => {
                alike |= 1 << i;
                Kind::Dense(t.dtype)
            }
            Operand::Tensor(t) if t.numel() == 1 && t.dim() <= out.dim().max(1) => Kind::One(t.dtype),
            Operand::Tensor(_) => return false,
        });
    }
    // Each address is then also aligned to `lanes` elements of its own dtype.
    let lanes = 16 / widest;
    if addresses.is_multiple_of(widest * lanes) {
        signature.lanes = lanes as u32;
    }
    for input in shared {
        signature.inputs.push(match input {
            Input::Tensor(t) => Kind::SharedTensor(t.dtype),
            Input::Number(..) => Kind::ListScalar,
        });
    }
    let takes = |batch: &Batch| batch.signature == signature || numel == 1 && batch.signature.takes_one(&signature);
    let at = batches.iter().position(takes).unwrap_or_else(|| {
        let words = signature.words() as usize;
        batches.push(Batch {
            signature,
            entries: Vec::with_capacity(words * expected),
            reads: Vec::with_capacity(row.inputs.len() * expected + shared.len()),
            writes: Vec::with_capacity(row.outs.len() * expected),
        });
        batches.len() - 1
    });
    let batch = &mut batches[at];
    let whole = |t: &View| AddressRange::new(t.data, numel * t.element_size());
    batch.entries.push(numel);
    for t in &row.outs {
        batch.entries.push(t.data / t.element_size());
        batch.writes.push(whole(t));
    }
    for (i, operand) in row.inputs.iter().enumerate() {
        batch.entries.push(match *operand {
            Operand::Number(n) => number_word(row.common, n),
            Operand::Tensor(t) => {
                let alike = alike >> i & 1 == 1;
                let again = alike && row.outs.iter().any(|out| out.data == t.data && out.dtype == t.dtype);
                batch.reads.push(match (again, alike) {
                    (true, _) => AddressRange { start: 0, end: 0 },
                    (false, true) => whole(t),
                    (false, false) => t.range(),
                });
                t.data / t.element_size()
            }
        });
    }
    true
}
