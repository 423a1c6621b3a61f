//! The kernels with every tile shape, run by the interpreter and compared with float64. The layouts
//! of matrix elements are those of real adapters, none of which is needed.

use crate::attention::matrix_units::matrix_layouts::MatrixLayouts;
use crate::attention::matrix_units::spec::{BoundsChecks, Role, Spec};
use crate::attention::matrix_units::tile::{Tile, tiles};
use crate::matmul::matrix_unit_tile::Units;
use crate::primitives::kernel::KernelSpec;
use dml_kernel::interpret::{Argument, run};
use dml_kernel::{ComponentMap, DType, ScalarType};
use half::{bf16, f16};

#[derive(Copy, Clone, Debug)]
struct Case {
    role: Role,
    dtype: DType,
    tile: Tile,
    layouts: MatrixLayouts,
    queries: usize,
    keys: usize,
    depth: usize,
    width: usize,
    causal: bool,
    bias: bool,
}

/// Query heads; they share one key head.
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
struct TestTensor {
    numbers: Vec<f64>,
    bytes: Vec<u8>,
    sizes: [usize; 3],
}

impl TestTensor {
    fn new(random: &mut Random, dtype: DType, sizes: [usize; 3]) -> TestTensor {
        let words: Vec<u16> = (0..sizes.iter().product()).map(|_| bits(dtype, 2.0 * random.number())).collect();
        TestTensor {
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

/// The results, log-sum-exps, and inner products of the output and its gradient, in float64.
struct Expected {
    out: Vec<f64>,
    logs: Vec<f64>,
    deltas: Vec<f64>,
    gradients: [Vec<f64>; 3],
}

fn expected(case: Case, [query, key, value, gradient]: &[TestTensor; 4], bias: &TestTensor) -> Expected {
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
    let Case { role, dtype, tile, layouts, queries, keys, depth, width, .. } = case;
    let mut random = Random(11);
    let mut given: [TestTensor; 4] =
        [[HEADS, queries, depth], [1, keys, depth], [1, keys, width], [HEADS, queries, width]]
            .map(|sizes| TestTensor::new(&mut random, dtype, sizes));
    let mut bias = TestTensor::new(&mut random, dtype, [HEADS, queries, keys]);
    let want = expected(case, &given, &bias);
    let (rows, columns) = if role.transposed() { (keys, queries) } else { (queries, keys) };
    let whole = |n: usize| (n as u32).next_multiple_of(layouts.shape[1]);
    let spec = Spec {
        role,
        dtype,
        bias: case.bias.then_some(dtype),
        causal: case.causal,
        scale_in_exponential: !case.bias,
        dropout: false,
        index: ScalarType::U32,
        tile,
        layouts,
        depth: whole(depth),
        width: whole(width),
        bounds_checks: BoundsChecks {
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
        if role.needs_score_gradients() {
            arguments.push(Argument::Memory(&mut deltas));
        }
        let numbers =
            [depth, width, (SCALE as f32).to_bits() as usize, rows, columns, HEADS, HEADS, tiles, tiles * row_heads];
        arguments.extend(numbers.map(|n| Argument::Number(n as u64)));
        let kernel = spec.build();
        assert!(kernel.emit().is_ok_and(|module| module.needs.matrix != layouts.emulated), "{case:?}");
        run(&kernel, [(tiles * row_heads) as u32, 1, 1], layouts.lanes, &mut arguments);
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

/// The layout of NVIDIA adapters.
fn nvidia_layouts() -> MatrixLayouts {
    layouts([16; 3], 32)
}

fn layouts(shape: [u32; 3], lanes: u32) -> MatrixLayouts {
    MatrixLayouts {
        emulated: false,
        ..MatrixLayouts::emulated(Units { shape, lanes, emulated: true, small: false, bytes: 2, transposes: false })
    }
}

fn case(role: Role, tile: Tile, layouts: MatrixLayouts) -> Case {
    let tile_rows = (tile.rows * tile.subgroups) as usize;
    Case {
        role,
        dtype: DType::BF16,
        tile,
        layouts,
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
                    // Tiles of 8 rows are for the shape of Intel's units from Xe2 on.
                    let of_shape = [nvidia_layouts(), layouts([8, 16, 16], 16)];
                    let layouts = of_shape.into_iter().find(|of| tile.fits(of.shape)).expect("a shape for the tile");
                    let case = Case { causal, dtype, ..case(role, tile, layouts) };
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
    let tile = Tile { subgroups: 2, rows: 16, columns: 32, rows_in_registers: true, lazy: false };
    for role in ROLES {
        let case = case(role, tile, nvidia_layouts());
        check(Case { queries: 64, keys: 64, depth: 64, width: 64, causal: false, ..case });
        check(Case { queries: 64, keys: 64, causal: true, ..case });
        check(Case { queries: 33, keys: 65, depth: 5, width: 19, causal: false, ..case });
        check(Case { queries: 40, keys: 7, depth: 40, width: 16, bias: true, ..case });
        check(Case { queries: 7, keys: 40, depth: 24, width: 48, dtype: DType::F16, bias: true, ..case });
        check(Case { queries: 20, keys: 20, depth: 128, width: 80, ..case });
        let shared = Tile { rows_in_registers: false, ..tile };
        check(Case { tile: shared, queries: 70, keys: 90, depth: 48, width: 32, ..case });
        check(Case { tile: Tile { rows: 32, ..tile }, queries: 70, keys: 90, ..case });
        let layouts = MatrixLayouts { transposes: true, ..case.layouts };
        check(Case { queries: 33, keys: 65, depth: 5, width: 19, layouts, ..case });
        check(Case { tile: Tile { columns: 64, ..tile }, queries: 64, keys: 64, width: 64, layouts, ..case });
        check(Case { tile: shared, queries: 70, keys: 90, depth: 48, width: 32, layouts, ..case });
    }
}

/// Layouts in which an accumulator is not a left operand: weights go through shared memory.
#[test]
fn other_maps() {
    let tile = Tile { subgroups: 2, rows: 16, columns: 32, rows_in_registers: true, lazy: false };
    let nvidia_layouts = nvidia_layouts();
    let order = |component: u32| component >> 1 | (component & 1) << 2;
    let position = |lane, component| nvidia_layouts.sums.position(lane, order(component));
    let others = [
        // The same invocations hold the elements, in another order.
        MatrixLayouts { left: ComponentMap::found([16, 16], 32, position), ..nvidia_layouts },
        MatrixLayouts { left: None, ..nvidia_layouts },
    ];
    for role in ROLES {
        for layouts in others {
            assert_eq!(layouts.accumulator_is_operand(), layouts.left.is_some());
        }
        check(case(role, tile, others[1]));
    }
}
