//! The kernels of every tile, run by the interpreter and compared with float64: matrices as the
//! adapters' units hold them, which no machine needs to have.

use crate::attention::units::parts::Parts;
use crate::attention::units::spec::{Ragged, Role, Spec};
use crate::attention::units::tile::{Tile, tiles};
use crate::matmul::matrix_tile::Units;
use crate::primitives::kernel::KernelSpec;
use dml_kernel::interpret::{Argument, run};
use dml_kernel::{ComponentMap, DType, ScalarType};
use half::{bf16, f16};

#[derive(Copy, Clone, Debug)]
struct Case {
    role: Role,
    dtype: DType,
    tile: Tile,
    parts: Parts,
    queries: usize,
    keys: usize,
    depth: usize,
    width: usize,
    causal: bool,
    bias: bool,
}

/// Heads of queries, which share one of keys.
const HEADS: usize = 2;

const SCALE: f64 = 0.25;

struct Random(u64);

impl Random {
    fn number(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((self.0 >> 33) as f64 / 2f64.powi(30)) - 1.0
    }
}

fn bits(dtype: DType, x: f64) -> u16 {
    if dtype == DType::F16 { f16::from_f64(x).to_bits() } else { bf16::from_f64(x).to_bits() }
}

fn number(dtype: DType, bits: u16) -> f64 {
    if dtype == DType::F16 { f16::from_bits(bits).to_f64() } else { bf16::from_bits(bits).to_f64() }
}

/// A tensor `[heads, length, elements]` as doubles and as bytes.
struct Given {
    numbers: Vec<f64>,
    bytes: Vec<u8>,
    sizes: [usize; 3],
}

impl Given {
    fn new(random: &mut Random, dtype: DType, sizes: [usize; 3]) -> Given {
        let words: Vec<u16> = (0..sizes.iter().product()).map(|_| bits(dtype, 2.0 * random.number())).collect();
        Given {
            numbers: words.iter().map(|&word| number(dtype, word)).collect(),
            bytes: words.iter().flat_map(|word| word.to_le_bytes()).collect(),
            sizes,
        }
    }

    fn row(&self, head: usize, i: usize) -> &[f64] {
        let [_, length, elements] = self.sizes;
        &self.numbers[(head * length + i) * elements..][..elements]
    }
}

fn dot(x: &[f64], y: &[f64]) -> f64 {
    x.iter().zip(y).map(|(x, y)| x * y).sum()
}

/// The results, logarithms of sums and inner products with the gradient of the result, in float64.
struct Expected {
    out: Vec<f64>,
    logs: Vec<f64>,
    deltas: Vec<f64>,
    gradients: [Vec<f64>; 3],
}

fn expected(case: Case, [query, key, value, gradient]: &[Given; 4], bias: &Given) -> Expected {
    let Case { queries, keys, depth, width, .. } = case;
    let mut e = Expected {
        out: vec![0.0; HEADS * queries * width],
        logs: Vec::new(),
        deltas: Vec::new(),
        gradients: [vec![0.0; HEADS * queries * depth], vec![0.0; keys * depth], vec![0.0; keys * width]],
    };
    for head in 0..HEADS {
        for i in 0..queries {
            let seen = if case.causal { keys.min(i + 1) } else { keys };
            let added = |j: usize| if case.bias { bias.row(head, i)[j] } else { 0.0 };
            let scores: Vec<f64> =
                (0..seen).map(|j| SCALE * dot(query.row(head, i), key.row(0, j)) + added(j)).collect();
            let log = scores.iter().map(|s| s.exp()).sum::<f64>().ln();
            let out = &mut e.out[(head * queries + i) * width..][..width];
            for (j, score) in scores.iter().enumerate() {
                out.iter_mut().zip(value.row(0, j)).for_each(|(out, v)| *out += (score - log).exp() * v);
            }
            let delta = dot(out, gradient.row(head, i));
            for (j, score) in scores.iter().enumerate() {
                let weight = (score - log).exp();
                let slope = SCALE * weight * (dot(gradient.row(head, i), value.row(0, j)) - delta);
                for d in 0..depth {
                    e.gradients[0][(head * queries + i) * depth + d] += slope * key.row(0, j)[d];
                    e.gradients[1][j * depth + d] += slope * query.row(head, i)[d];
                }
                for d in 0..width {
                    e.gradients[2][j * width + d] += weight * gradient.row(head, i)[d];
                }
            }
            e.logs.push(log);
            e.deltas.push(delta);
        }
    }
    e
}

fn check(case: Case) {
    let Case { role, dtype, tile, parts, queries, keys, depth, width, .. } = case;
    let mut random = Random(11);
    let mut given: [Given; 4] = [[HEADS, queries, depth], [1, keys, depth], [1, keys, width], [HEADS, queries, width]]
        .map(|sizes| Given::new(&mut random, dtype, sizes));
    let mut bias = Given::new(&mut random, dtype, [HEADS, queries, keys]);
    let want = expected(case, &given, &bias);
    let (rows, columns) = if role.transposed() { (keys, queries) } else { (queries, keys) };
    let whole = |n: usize| (n as u32).next_multiple_of(parts.shape[1]);
    let spec = Spec {
        role,
        dtype,
        bias: case.bias.then_some(dtype),
        causal: case.causal,
        deferred: !case.bias,
        dropout: false,
        index: ScalarType::U32,
        tile,
        parts,
        depth: whole(depth),
        width: whole(width),
        ragged: Ragged {
            columns: columns % tile.columns as usize != 0,
            depth: depth as u32 != whole(depth),
            width: width as u32 != whole(width),
        },
        pairs: depth % 2 == 0 && width % 2 == 0,
        aligned: [depth, depth].map(|_| [depth % 8 == 0, width % 8 == 0]),
    };
    let results: Vec<(Vec<f64>, [usize; 3])> = match role {
        Role::Forward => vec![(want.out.clone(), given[3].sizes)],
        Role::Query => vec![(want.gradients[0].clone(), given[0].sizes)],
        Role::Key => vec![(want.gradients[1].clone(), given[1].sizes)],
        Role::Value => vec![(want.gradients[2].clone(), given[2].sizes)],
        Role::KeyValue => {
            vec![(want.gradients[1].clone(), given[1].sizes), (want.gradients[2].clone(), given[2].sizes)]
        }
    };
    let mut outs: Vec<Vec<u8>> = results.iter().map(|(x, _)| vec![0; 2 * x.len()]).collect();
    let floats = |x: &[f64]| x.iter().flat_map(|&x| (x as f32).to_le_bytes()).collect::<Vec<u8>>();
    let (mut logs, mut deltas) = (floats(&want.logs), floats(&want.deltas));
    if role == Role::Forward {
        logs.fill(0);
    }
    let strides = |[_, length, elements]: [usize; 3]| [0, length * elements, elements, 1];
    let out_strides: Vec<_> = results.iter().map(|(_, sizes)| strides(*sizes)).collect();
    let tiles = rows.div_ceil(spec.rows() as usize);
    let row_heads = if role.transposed() { 1 } else { HEADS };
    {
        let [query, key, value, gradient] = &mut given;
        let operands = match role {
            Role::Forward => vec![query, key, value],
            Role::Query => vec![query, gradient, key, value],
            Role::Key | Role::KeyValue => vec![key, value, query, gradient],
            Role::Value => vec![key, query, gradient],
        };
        let mut arguments: Vec<Argument> = Vec::new();
        let mut matrix = |memory, strides: [usize; 4]| {
            arguments.push(Argument::Memory(memory));
            arguments.extend(strides.map(|s| Argument::Number(s as u64)));
        };
        outs.iter_mut().zip(out_strides).for_each(|(out, strides)| matrix(out, strides));
        for given in operands {
            let strides = strides(given.sizes);
            matrix(&mut given.bytes, strides);
        }
        if case.bias {
            let [batch, head, row, column] = strides(bias.sizes);
            matrix(
                &mut bias.bytes,
                if role.transposed() { [batch, head, column, row] } else { [batch, head, row, column] },
            );
        }
        arguments.push(Argument::Memory(&mut logs));
        if role.needs_slopes() {
            arguments.push(Argument::Memory(&mut deltas));
        }
        let numbers =
            [depth, width, (SCALE as f32).to_bits() as usize, rows, columns, HEADS, HEADS, tiles, tiles * row_heads];
        arguments.extend(numbers.map(|n| Argument::Number(n as u64)));
        let kernel = spec.build();
        assert!(kernel.emit().is_ok_and(|module| module.needs.matrix != parts.emulated), "{case:?}");
        run(&kernel, [(tiles * row_heads) as u32, 1, 1], parts.lanes, &mut arguments);
    }
    let epsilon = if dtype == DType::F16 { 2f64.powi(-10) } else { 2f64.powi(-7) };
    for ((want, _), out) in results.iter().zip(&outs) {
        let largest = want.iter().fold(0f64, |x, y| x.max(y.abs()));
        for (i, (want, found)) in want.iter().zip(out.chunks_exact(2)).enumerate() {
            let found = number(dtype, u16::from_le_bytes([found[0], found[1]]));
            let error = (want - found).abs() / largest;
            assert!(error < 1.5 * epsilon, "{case:?}: element {i} is {want}, not {found}");
        }
    }
    if role == Role::Forward {
        for (want, found) in want.logs.iter().zip(logs.chunks_exact(4)) {
            let found = f32::from_le_bytes([found[0], found[1], found[2], found[3]]);
            assert!((want - f64::from(found)).abs() < 2e-6 * want.abs().max(1.0), "{case:?}: {want}, not {found}");
        }
    }
}

const ROLES: [Role; 5] = [Role::Forward, Role::Query, Role::Key, Role::Value, Role::KeyValue];

/// As an NVIDIA adapter's.
fn quads() -> Parts {
    Parts {
        emulated: false,
        ..Parts::emulated(Units { shape: [16; 3], lanes: 32, emulated: true, small: false, bytes: 2 })
    }
}

fn case(role: Role, tile: Tile, parts: Parts) -> Case {
    let tile_rows = (tile.rows * tile.subgroups) as usize;
    Case {
        role,
        dtype: DType::BF16,
        tile,
        parts,
        queries: tile_rows + 5,
        keys: tile_rows + tile.columns as usize + 3,
        depth: 32,
        width: 32,
        causal: true,
        bias: false,
    }
}

#[test]
fn every_tile_computes() {
    let longest = [64, 128, 256];
    for role in ROLES {
        for (i, &elements) in longest.iter().enumerate() {
            let dtype = if i == 1 { DType::F16 } else { DType::BF16 };
            for causal in [true, false] {
                for &tile in tiles(role, elements, causal, false) {
                    let case = Case { causal, dtype, ..case(role, tile, quads()) };
                    check(case);
                    if role == Role::Forward {
                        check(Case { tile: Tile { lazy: true, ..tile }, ..case });
                    }
                }
            }
        }
    }
}

#[test]
fn sizes_and_edges() {
    let tile = Tile { subgroups: 2, rows: 16, columns: 32, resident: true, lazy: false };
    for role in ROLES {
        let case = case(role, tile, quads());
        check(Case { queries: 64, keys: 64, depth: 64, width: 64, causal: false, ..case });
        check(Case { queries: 64, keys: 64, causal: true, ..case });
        check(Case { queries: 33, keys: 65, depth: 5, width: 19, causal: false, ..case });
        check(Case { queries: 40, keys: 7, depth: 40, width: 16, bias: true, ..case });
        check(Case { queries: 7, keys: 40, depth: 24, width: 48, dtype: DType::F16, bias: true, ..case });
        check(Case { queries: 20, keys: 20, depth: 128, width: 80, ..case });
        let shared = Tile { resident: false, ..tile };
        check(Case { tile: shared, queries: 70, keys: 90, depth: 48, width: 32, ..case });
        check(Case { tile: Tile { rows: 32, ..tile }, queries: 70, keys: 90, ..case });
    }
}

/// Maps of other units: weights go through shared memory.
#[test]
fn other_maps() {
    let tile = Tile { subgroups: 2, rows: 16, columns: 32, resident: true, lazy: false };
    let quads = quads();
    let order = |component: u32| component >> 1 | (component & 1) << 2;
    let place = |lane, component| quads.sums.place(lane, order(component));
    let others = [
        // The same lanes, in another order.
        Parts { left: ComponentMap::found([16, 16], 32, place), ..quads },
        Parts { left: None, ..quads },
    ];
    for role in ROLES {
        for parts in others {
            assert_eq!(parts.goes_directly(), parts.left.is_some());
        }
        check(case(role, tile, others[1]));
    }
}
