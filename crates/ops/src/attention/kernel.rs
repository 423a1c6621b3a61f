//! Attention in tiles: scores exist in registers and shared memory only (Dao et al., "FlashAttention: fast and
//! memory-efficient exact attention with IO-awareness", 2022).
//!
//! A workgroup owns a tile of rows and walks the tiles of columns. Every step makes a tile of scores, turns it into
//! weights, and adds `weights @ x` to its sums. Forward, rows are queries, columns are keys, and the softmax is kept
//! up to date as columns come (Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018). Backward,
//! weights come back from the saved logarithms of sums, and each gradient is one launch with rows of its own: nothing
//! is added by two workgroups, so results are the same every time.

use super::matrix::{Matrix, Plane};
use super::worker::{Patch, Worker, scaled};
use dml_kernel::{Builder, DType, Kernel, Pointer, Scalar, Value, math};

/// Rows and columns of one invocation's patch of a tile.
pub const PATCH: u32 = 4;
/// Columns of a tile.
pub const COLUMNS: u32 = 32;
/// Invocations along a row of a tile.
pub const ACROSS: u32 = COLUMNS / PATCH;

/// What is computed.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Role {
    /// The result: rows are queries, columns keys, x the values.
    Forward,
    /// The gradient of the queries: x are the keys.
    Query,
    /// The gradient of the keys: rows are keys, columns queries, x the queries.
    Key,
    /// The gradient of the values: rows are keys, columns queries, x the result's gradient.
    Value,
}

impl Role {
    /// Whether columns are queries.
    pub fn transposed(self) -> bool {
        matches!(self, Role::Key | Role::Value)
    }

    /// Whether gradients of scores are needed, and for them the product of the values and the result's gradient.
    pub fn needs_gradients(self) -> bool {
        matches!(self, Role::Query | Role::Key)
    }
}

/// Everything that changes the code.
#[derive(Copy, Clone, Debug)]
pub struct Spec {
    /// What is computed.
    pub role: Role,
    /// Of all matrices.
    pub dtype: DType,
    /// Of what is added to scores.
    pub bias: Option<DType>,
    /// A query sees the keys up to its own position.
    pub causal: bool,
    /// Weights are dropped at random.
    pub dropout: bool,
    /// Type of offsets in one head's matrix.
    pub index: Scalar,
    /// Invocations of a workgroup: 32, 64 or 128.
    pub threads: u32,
    /// Columns of x that a workgroup takes: 32, 64 or 128.
    pub width: u32,
}

impl Spec {
    /// Rows of a tile.
    pub fn rows(&self) -> u32 {
        self.threads / ACROSS * PATCH
    }

    /// The parameters of its kernel's key.
    pub fn key(&self) -> [u32; 6] {
        let flags = [self.causal, self.dropout, self.index == Scalar::U64];
        let flags = flags.iter().fold(0, |code, &flag| code << 1 | u32::from(flag));
        let bias = self.bias.map_or(31, |dtype| dtype as u32);
        [self.role as u32, self.dtype as u32 | bias << 8, flags, self.threads, self.width, 0]
    }

    /// The dtype of sums, and of the logarithms that are saved.
    pub fn sums(&self) -> DType {
        sums(self.dtype)
    }
}

/// The dtype of sums of products of `dtype`.
pub fn sums(dtype: DType) -> DType {
    if dtype == DType::F64 { DType::F64 } else { DType::F32 }
}

/// Random numbers of a launch: the generator's state, the share that is kept, and its factor.
struct Dropout<'b> {
    seed: Pointer<'b>,
    offset: Pointer<'b>,
    keep: Value<'b>,
    boost: Value<'b>,
}

/// The operands of a launch, declared in the order in which [`super::launch`] passes them.
struct Operands<'b> {
    out: Matrix<'b>,
    left: Matrix<'b>,
    right: Matrix<'b>,
    x: Matrix<'b>,
    gradients: Option<(Matrix<'b>, Matrix<'b>)>,
    bias: Option<Matrix<'b>>,
    /// Logarithms of sums, one a query.
    saved: Pointer<'b>,
    /// Inner products of the result and its gradient, one a query.
    deltas: Option<Pointer<'b>>,
    dropout: Option<Dropout<'b>>,
    /// Elements of an inner product of queries and keys, and of values and the result's gradient.
    depth: Value<'b>,
    depth2: Value<'b>,
    scale: Value<'b>,
}

/// The kernel of a launch.
pub fn build(spec: &Spec) -> Kernel {
    let b = Builder::new(format!("attention {:?}", spec.role), [spec.threads, 1, 1]);
    write(&b, *spec);
    b.finish()
}

fn write(b: &Builder, spec: Spec) {
    let (role, compute) = (spec.role, spec.dtype.compute());
    let matrix = |name: &str, dtype: DType| Matrix::declare(b, name, dtype, spec.index);
    let number = |name: &str| b.param(name, Scalar::U32);
    let operands = Operands {
        out: matrix("out", spec.dtype),
        left: matrix("left", spec.dtype),
        right: matrix("right", spec.dtype),
        x: matrix("x", spec.dtype),
        gradients: role.needs_gradients().then(|| (matrix("left2", spec.dtype), matrix("right2", spec.dtype))),
        bias: spec.bias.map(|dtype| matrix("bias", dtype)),
        saved: b.pointer("logsumexp", spec.sums()),
        deltas: role.needs_gradients().then(|| b.pointer("deltas", spec.sums())),
        dropout: spec.dropout.then(|| Dropout {
            seed: b.pointer("seed", DType::I64),
            offset: b.pointer("offset", DType::I64),
            keep: b.param("keep", Scalar::F32),
            boost: b.param("boost", compute),
        }),
        depth: number("depth"),
        depth2: number("depth2"),
        scale: b.param("scale", compute),
    };
    let [rows, columns, width] = ["rows", "columns", "width"].map(number);
    // Heads of queries, and how many of them share a head of keys; tiles of rows, slices of x, workgroups in all.
    let [heads, shared_by, tiles, slices, total] = ["heads", "shared_by", "tiles", "slices", "total"].map(number);

    let group = b.group_id(0) + b.group_id(1) * b.group_count(0);
    b.if_(group.ge(total), || b.return_());
    let unit = group / slices;
    let slice = group - unit * slices;
    let plane = unit / tiles;
    let row0 = (unit - plane * tiles) * spec.rows();
    let row_heads = if role.transposed() { heads / shared_by } else { heads };
    let batch = plane / row_heads;
    let row_head = plane - batch * row_heads;

    let worker = Worker::new(b, spec, [row0, rows, columns], [slice * spec.width, width]);
    let out = operands.out.plane(batch, row_head);
    if role.transposed() {
        b.for_(row_head * shared_by, (row_head + 1) * shared_by, 1, |head| {
            let weights = Gradient { worker: &worker, operands: &operands };
            weights.walk(batch, [head, row_head], batch * heads + head);
        });
        worker.store(&out, None);
        return;
    }
    let key_head = row_head / shared_by;
    let query = batch * heads + row_head;
    if role == Role::Query {
        Gradient { worker: &worker, operands: &operands }.walk(batch, [row_head, key_head], query);
        worker.store(&out, None);
    } else {
        forward(&worker, &operands, batch, [row_head, key_head], query, slice.eq(0), &out);
    }
}

/// One number for every query of a head.
fn of_head<'b>(p: Pointer<'b>, worker: &Worker<'b>, query: Value<'b>) -> Pointer<'b> {
    let queries = if worker.spec.role.transposed() { worker.columns } else { worker.rows };
    p.offset(query.cast(Scalar::U64) * queries.cast(Scalar::U64))
}

impl<'b> Operands<'b> {
    /// Scores of the tile of columns at `column0`: -inf where nothing is seen.
    fn scores(
        &self,
        worker: &Worker<'b>,
        planes: [&Plane<'b>; 2],
        bias: Option<&Plane<'b>>,
        column0: Value<'b>,
    ) -> Patch<'b> {
        let products = worker.product(planes[0], planes[1], column0, self.depth);
        worker.masked(&products, column0, self.scale, bias)
    }

    /// Factors of weights: 0 where dropped.
    fn kept(&self, worker: &Worker<'b>, column0: Value<'b>, query: Value<'b>) -> Option<Patch<'b>> {
        let d = self.dropout.as_ref()?;
        Some(worker.kept(column0, [d.seed.load(0), d.offset.load(0)], query, d.keep, d.boost))
    }
}

/// `softmax(scores) @ x`, and the logarithms of the sums.
fn forward<'b>(
    worker: &Worker<'b>,
    operands: &Operands<'b>,
    batch: Value<'b>,
    [head, key_head]: [Value<'b>; 2],
    query: Value<'b>,
    first_slice: Value<'b>,
    out: &Plane<'b>,
) {
    let b = worker.b;
    let (left, right) = (operands.left.plane(batch, head), operands.right.plane(batch, key_head));
    let x = operands.x.plane(batch, key_head);
    let bias = operands.bias.as_ref().map(|m| m.plane(batch, head));
    let compute = worker.spec.dtype.compute();
    let start = |x: f64| (0..PATCH).map(|_| b.var(b.float(compute, x))).collect::<Vec<_>>();
    // Of each row: the largest score so far, and this invocation's share of the sum of exp(score - largest).
    let (largest, shares) = (start(f64::NEG_INFINITY), start(0.0));
    let (first, end) = worker.visible();
    b.for_(first, end, COLUMNS, |column0| {
        let scores = operands.scores(worker, [&left, &right], bias.as_ref(), column0);
        let own = scores.iter().map(|row| row.iter().copied().reduce(|x, y| x.max(y)).unwrap_or(row[0])).collect();
        let now = worker.join_rows(own, |x, y| x.max(y));
        let mut weights = Patch::new();
        for (i, row) in scores.iter().enumerate() {
            let before = largest[i].get();
            let now = before.max(now[i]);
            // A row that has seen nothing yet has no finite base.
            let base = now.eq(f64::NEG_INFINITY).select(now.like(0.0), now);
            let shrink = math::exp(before - base);
            let row: Vec<Value> = row.iter().map(|&s| math::exp(s - base)).collect();
            let sum = row.iter().copied().reduce(|x, y| x + y).unwrap_or(base);
            shares[i].set(shares[i].get() * shrink + sum);
            largest[i].set(now);
            worker.shrink(i, shrink);
            weights.push(row);
        }
        let weights = scaled(&weights, operands.kept(worker, column0, query).as_ref());
        worker.accumulate(&weights, &x, column0);
    });
    let totals = worker.join_rows(shares.iter().map(|s| s.get()).collect(), |x, y| x + y);
    let saved = of_head(operands.saved, worker, query);
    for (i, &total) in totals.iter().enumerate() {
        let row = worker.row(i as u32);
        let log = total.eq(0.0).select(total.like(f64::INFINITY), largest[i].get() + math::log(total));
        b.if_(first_slice & worker.across.eq(0) & row.lt(worker.rows), || saved.store(row.cast(Scalar::U64), log));
    }
    worker.store(out, Some(&totals));
}

/// Gradients: weights come from the saved logarithms.
struct Gradient<'w, 'b> {
    worker: &'w Worker<'b>,
    operands: &'w Operands<'b>,
}

impl<'b> Gradient<'_, 'b> {
    /// Adds what one head of queries gives.
    fn walk(&self, batch: Value<'b>, [head, key_head]: [Value<'b>; 2], query: Value<'b>) {
        let (worker, o) = (self.worker, self.operands);
        let [row_head, column_head] = if worker.spec.role.transposed() { [key_head, head] } else { [head, key_head] };
        let (left, right) = (o.left.plane(batch, row_head), o.right.plane(batch, column_head));
        let x = o.x.plane(batch, column_head);
        let bias = o.bias.as_ref().map(|m| m.plane(batch, head));
        let gradients = o.gradients.as_ref().map(|(l, r)| (l.plane(batch, row_head), r.plane(batch, column_head)));
        let saved = of_head(o.saved, worker, query);
        let deltas = o.deltas.map(|p| of_head(p, worker, query));
        let (first, end) = worker.visible();
        worker.b.for_(first, end, COLUMNS, |column0| {
            let scores = o.scores(worker, [&left, &right], bias.as_ref(), column0);
            let weights = worker.with_queries(&scores, column0, saved, |s, log| math::exp(s - log));
            let kept = o.kept(worker, column0, query);
            let weights = match (&gradients, deltas) {
                (Some((left, right)), Some(deltas)) => {
                    let slopes = worker.product(left, right, column0, o.depth2);
                    let slopes = scaled(&slopes, kept.as_ref());
                    let slopes = worker.with_queries(&slopes, column0, deltas, |g, delta| (g - delta) * o.scale);
                    scaled(&weights, Some(&slopes))
                }
                _ => scaled(&weights, kept.as_ref()),
            };
            worker.accumulate(&weights, &x, column0);
        });
    }
}
