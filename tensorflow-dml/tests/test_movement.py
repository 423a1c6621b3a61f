"""Operators that move elements: transposes, joins, splits, slices, padding, repetition, blocks,
diagonals.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import tensorflow as tf

from compare import DEVICE, compare, refuses

raw = tf.raw_ops
ALL = [
    "float32",
    "float16",
    "bfloat16",
    "float64",
    "int64",
    "int16",
    "int8",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "bool",
    "complex64",
    "complex128",
]
FLOATS = ["float32", "float16", "bfloat16", "float64"]
# Elements of each size.
SOME = ["float32", "bfloat16", "uint8", "complex64", "complex128", "bool"]
HOST = ["float32", "complex128", "int32"]


def numbers(rng, shape, dtype: str) -> tf.Tensor:
    dtype = tf.as_dtype(dtype)
    if dtype.is_complex:
        return tf.cast(tf.complex(rng.standard_normal(shape), rng.standard_normal(shape)), dtype)
    if dtype == tf.bool:
        return tf.constant(rng.random(shape) < 0.5)
    return tf.cast(rng.integers(0, 100, shape) if dtype.is_unsigned else rng.integers(-100, 100, shape), dtype)


@pytest.mark.parametrize("dtype", [*SOME, "int32"])
@pytest.mark.parametrize("name", ["Transpose", "ConjugateTranspose"])
def test_transposes(rng, name: str, dtype: str) -> None:
    operator = getattr(raw, name)
    for shape, order in [
        ((3, 4), [1, 0]),
        ((2, 3, 4, 5), [0, 2, 3, 1]),
        ((2, 3, 4), [-1, 0, 1]),
        ((5,), [0]),
        ((), []),
        ((2, 0, 3), [2, 1, 0]),
        ((1, 3, 1, 4), [2, 1, 0, 3]),
    ]:
        compare(lambda x, order=order: operator(x=x, perm=np.array(order, "i4")), numbers(rng, shape, dtype))


def test_transposes_that_are_refused() -> None:
    x = np.ones((2, 3), "f4")
    for order in ([0], [0, 0], [0, 2], [0, -3]):
        refuses(lambda x, order=order: raw.Transpose(x=x, perm=np.array(order, "i8")), x)


@pytest.mark.parametrize("dtype", SOME)
def test_concatenations(rng, dtype: str) -> None:
    for shapes, axis in [
        ([(2, 3), (4, 3)], 0),
        ([(2, 3), (2, 1), (2, 0)], -1),
        ([(1, 2, 3)] * 3, 1),
        ([(0, 3), (0, 3)], 0),
        ([(1, 2)] * 40, 0),
    ]:
        arrays = [numbers(rng, shape, dtype) for shape in shapes]
        compare(lambda *x, axis=axis: raw.ConcatV2(values=x, axis=axis), *arrays, gradient=dtype == "float32")
        compare(lambda *x, axis=axis: raw.Concat(concat_dim=axis % len(shapes[0]), values=x), *arrays)


def test_concatenations_that_are_refused() -> None:
    a, b = np.ones((2, 3), "f4"), np.ones((2, 4), "f4")
    refuses(lambda a, b: raw.ConcatV2(values=[a, b], axis=0), a, b)
    refuses(lambda a, b: raw.ConcatV2(values=[a, b], axis=2), a, b)
    refuses(lambda a, b: raw.ConcatV2(values=[a, b], axis=0), np.float32(1), np.float32(2))


@pytest.mark.parametrize("dtype", [*SOME, "int32"])
def test_packs(rng, dtype: str) -> None:
    for shape, axis, n in [((2, 3), 0, 2), ((2, 3), -1, 3), ((2, 3), 1, 1), ((), 0, 4), ((0, 2), 1, 2), ((2,), 0, 30)]:
        arrays = [numbers(rng, shape, dtype) for _ in range(n)]
        compare(lambda *x, axis=axis: raw.Pack(values=x, axis=axis), *arrays, gradient=dtype == "float32")
    refuses(lambda a, b: raw.Pack(values=[a, b], axis=0), numbers(rng, (2,), dtype), numbers(rng, (3,), dtype))
    refuses(lambda a, b: raw.Pack(values=[a, b], axis=3), numbers(rng, (2,), dtype), numbers(rng, (2,), dtype))


@pytest.mark.parametrize("dtype", SOME)
def test_splits(rng, dtype: str) -> None:
    for shape, axis, n in [((4, 3), 0, 2), ((4, 6), -1, 3), ((4, 3), 1, 1), ((0, 4), 1, 2), ((2, 3, 4), 1, 3)]:
        compare(
            lambda x, axis=axis, n=n: raw.Split(axis=axis, value=x, num_split=n),
            numbers(rng, shape, dtype),
            gradient=dtype == "float32",
        )
    for shape, axis in [((4, 3), 0), ((4, 6), -1), ((0, 4), 1), ((2, 3, 4), 1)]:
        compare(
            lambda x, axis=axis, n=shape[axis]: raw.Unpack(value=x, num=n, axis=axis),
            numbers(rng, shape, dtype),
            gradient=dtype == "float32",
        )


@pytest.mark.parametrize("dtype", HOST)
def test_splits_by_lengths(rng, dtype: str) -> None:
    for shape, axis, lengths in [((5, 3), 0, [2, 3]), ((5, 3), 0, [2, -1]), ((2, 6), -1, [1, 0, 5]), ((2, 3), 1, [3])]:
        compare(
            lambda x, axis=axis, lengths=lengths: raw.SplitV(
                value=x, size_splits=np.array(lengths, "i8"), axis=axis, num_split=len(lengths)
            ),
            numbers(rng, shape, dtype),
            gradient=dtype == "float32",
        )


def test_splits_that_are_refused() -> None:
    x = np.ones((4, 3), "f4")
    refuses(lambda x: raw.Split(axis=1, value=x, num_split=2), x)
    refuses(lambda x: raw.Split(axis=2, value=x, num_split=2), x)
    for lengths in ([2, 1], [-1, -1], [3, 2], [5, -1], [-2, 6]):
        refuses(lambda x, lengths=lengths: raw.SplitV(value=x, size_splits=lengths, axis=0, num_split=2), x)


@pytest.mark.parametrize("dtype", SOME)
def test_slices(rng, dtype: str) -> None:
    for shape, begin, size in [
        ((4, 5), [1, 2], [2, 3]),
        ((4, 5), [0, 0], [-1, -1]),
        ((4, 5), [4, 1], [0, -1]),
        ((3,), [1], [1]),
        ((), [], []),
        ((2, 3, 4), [0, 1, 2], [2, 1, -1]),
    ]:
        compare(
            lambda x, begin=begin, size=size: raw.Slice(
                input=x, begin=np.array(begin, "i4"), size=np.array(size, "i4")
            ),
            numbers(rng, shape, dtype),
            gradient=dtype == "float32",
        )


def test_slices_that_are_refused() -> None:
    x = np.ones((4, 5), "f4")
    for begin, size in [([5, 0], [0, 0]), ([0, 0], [5, 1]), ([-1, 0], [1, 1]), ([0], [1]), ([0, 0], [-2, 1])]:
        refuses(lambda x, begin=begin, size=size: raw.Slice(input=x, begin=begin, size=size), x)


SPECS = [
    np.s_[1:3],
    np.s_[::2, 1],
    np.s_[..., ::-1],
    np.s_[::-2, ::-1],
    np.s_[1, ..., tf.newaxis],
    np.s_[-1, -2],
    np.s_[:, tf.newaxis, 2:0:-1],
    np.s_[10:20],
    np.s_[-100:2, 5:1],
    np.s_[3:1:-1, :1],
    np.s_[tf.newaxis, ...],
    np.s_[...],
    np.s_[0:0],
    np.s_[2:3:7, 4:3:-9],
    np.s_[::3, ::-4],
]


@pytest.mark.parametrize("dtype", HOST)
@pytest.mark.parametrize("spec", range(len(SPECS)))
def test_strided_slices(rng, spec: int, dtype: str) -> None:
    compare(lambda x: x[SPECS[spec]], numbers(rng, (5, 6), dtype), gradient=dtype == "float32")
    compare(lambda x: x[SPECS[spec]], numbers(rng, (4, 3, 2), dtype), gradient=dtype == "float32")


@pytest.mark.parametrize("dtype", HOST)
@pytest.mark.parametrize("spec", range(len(SPECS)))
def test_updates_of_strided_slices(rng, spec: int, dtype: str) -> None:
    x = numbers(rng, (5, 6), dtype)
    with tf.device("CPU:0"):
        shape = x[SPECS[spec]].shape
    for value in (numbers(rng, shape, dtype), numbers(rng, (), dtype), numbers(rng, shape[-1:], dtype)):
        compare(lambda x, value: update(x, SPECS[spec], value), x, value)


def arguments(spec):
    """Begin, end, strides and masks of a slice."""
    spec = spec if isinstance(spec, tuple) else (spec,)
    begin, end, strides, masks = [], [], [], dict.fromkeys(["begin", "end", "ellipsis", "new_axis", "shrink_axis"], 0)
    for i, s in enumerate(spec):
        if s is Ellipsis or s is tf.newaxis:
            masks["ellipsis" if s is Ellipsis else "new_axis"] |= 1 << i
            s = slice(0, 0, 1)
        elif isinstance(s, int):
            masks["shrink_axis"] |= 1 << i
            s = slice(s, s + 1, 1)
        masks["begin"] |= (s.start is None) << i
        masks["end"] |= (s.stop is None) << i
        begin.append(s.start or 0)
        end.append(s.stop or 0)
        strides.append(1 if s.step is None else s.step)
    return (*(np.array(a, "i4") for a in (begin, end, strides)), {f"{k}_mask": v for k, v in masks.items()})


def update(x, spec, value):
    begin, end, strides, masks = arguments(spec)
    return raw.TensorStridedSliceUpdate(input=x, begin=begin, end=end, strides=strides, value=value, **masks)


def test_strided_slices_that_are_refused() -> None:
    x = np.ones((4, 5), "f4")
    for spec in (np.s_[4], np.s_[-5], np.s_[0, 0, 0], np.s_[::0], np.s_[:, 7]):
        refuses(lambda x, spec=spec: x[spec], x)
    refuses(lambda x: update(x, np.s_[1:3], tf.ones((3, 5))), x)


def test_assignments_to_slices_of_variables(rng) -> None:
    for dtype, (spec, shape) in itertools.product(
        ["float32", "complex64", "bool", "int64"],
        [(np.s_[1:3], (2, 6)), (np.s_[::2, ::-1], (3, 6)), (np.s_[-1, 2], ())],
    ):
        x, value = numbers(rng, (5, 6), dtype), numbers(rng, shape, dtype)
        results = []
        for device in (DEVICE, "CPU:0"):
            with tf.device(device):
                v = tf.Variable(x)
                before = v.read_value()
                v[spec].assign(value)
                results.append((v.numpy(), before.numpy()))
        for a, b in zip(*results, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("dtype", [*HOST, "bool"])
def test_padding(rng, dtype: str) -> None:
    for shape, paddings in [
        ((2, 3), [[1, 2], [0, 3]]),
        ((2, 3), [[0, 0], [0, 0]]),
        ((0, 2), [[1, 1], [0, 0]]),
        ((), []),
        ((2, 3, 2, 1), [[0, 0], [1, 1], [2, 0], [0, 0]]),
    ]:
        x = numbers(rng, shape, dtype)
        pads = np.array(paddings, "i4").reshape(-1, 2)
        compare(lambda x, pads=pads: raw.Pad(input=x, paddings=pads), x, gradient=dtype == "float32")
        compare(
            lambda x, value, pads=pads: raw.PadV2(input=x, paddings=pads, constant_values=tf.identity(value)),
            x,
            numbers(rng, (), dtype),
        )


def test_paddings_that_are_refused() -> None:
    x = np.ones((2, 3), "f4")
    refuses(lambda x: raw.Pad(input=x, paddings=[[1, 1]]), x)
    refuses(lambda x: raw.Pad(input=x, paddings=[[1, -1], [0, 0]]), x)
    refuses(lambda x: raw.MirrorPad(input=x, paddings=[[2, 0], [0, 0]], mode="REFLECT"), x)
    refuses(lambda x: raw.MirrorPad(input=x, paddings=[[3, 0], [0, 0]], mode="SYMMETRIC"), x)
    with tf.device(DEVICE):
        for paddings in ([1, 1], [[1], [1]], [[1, 1, 1], [1, 1, 1]]):
            with pytest.raises(tf.errors.InvalidArgumentError, match="paddings must be a matrix with 2 columns"):
                raw.Pad(input=np.ones((2, 3), "f4"), paddings=paddings)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("mode", ["REFLECT", "SYMMETRIC"])
def test_reflections(rng, mode: str, dtype: str) -> None:
    for shape, paddings in [
        ((4, 5), [[1, 2], [3, 0]]),
        ((3,), [[2, 2]]),
        ((2, 4, 3, 2), [[0, 0], [2, 1], [1, 2], [0, 0]]),
        ((3, 2), [[0, 0], [0, 0]]),
    ]:
        compare(
            lambda x, paddings=paddings: raw.MirrorPad(input=x, paddings=paddings, mode=mode),
            numbers(rng, shape, dtype),
            gradient=dtype == "float32",
        )


@pytest.mark.parametrize("dtype", [*SOME, "int32"])
def test_repetition(rng, dtype: str) -> None:
    for shape, multiples in [((2, 3), [2, 3]), ((2, 3), [1, 1]), ((3,), [0]), ((), []), ((2, 1, 3), [1, 4, 2])]:
        compare(
            lambda x, m=multiples: raw.Tile(input=x, multiples=np.array(m, "i4")),
            numbers(rng, shape, dtype),
            gradient=dtype == "float32",
        )
    for shape, sizes in [((3,), [2, 3]), ((2, 1), [4, 2, 5]), ((), [3]), ((1,), [0]), ((2, 3), [2, 3])]:
        compare(
            lambda x, s=sizes: raw.BroadcastTo(input=x, shape=np.array(s, "i4")),
            numbers(rng, shape, dtype),
            gradient=dtype == "float32",
        )
    refuses(lambda x: raw.BroadcastTo(input=x, shape=[2, 4]), numbers(rng, (3,), dtype))
    refuses(lambda x: raw.Tile(input=x, multiples=[1, 2]), numbers(rng, (3,), dtype))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "complex64", "int64", "int16"])
def test_gradients_of_repetitions_in_old_graphs(rng, dtype: str) -> None:
    """Only graphs of versions before 3 have this operator."""
    for shape, multiples in [((6, 4), (3, 2)), ((6, 4), (1, 4)), ((6, 4), (1, 1)), ((2, 3, 4), (2, 1, 2)), ((), ())]:
        x = numbers(rng, shape, dtype)
        old = tf.compat.v1.GraphDef()
        old.versions.producer = 2
        for name, value in [("x", x), ("m", tf.constant(multiples, tf.int32))]:
            node = old.node.add(name=name, op="Const")
            node.attr["dtype"].type = value.dtype.as_datatype_enum
            node.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(value.numpy(), value.dtype))
        node = old.node.add(name="y", op="TileGrad", input=["x", "m"], device="/device:GPU:0")
        node.attr["T"].type = x.dtype.as_datatype_enum
        node.attr["Tmultiples"].type = tf.int32.as_datatype_enum
        config = tf.compat.v1.ConfigProto(allow_soft_placement=False)
        with tf.Graph().as_default():
            (y,) = tf.import_graph_def(old, return_elements=["y:0"])
            with tf.compat.v1.Session(config=config) as session:
                found = session.run(y)
        pairs = [size for n, times in zip(shape, multiples, strict=True) for size in (times, n // times)]
        wide = "f4" if dtype == "bfloat16" else dtype
        expected = x.numpy().astype(wide).reshape(pairs).sum(tuple(range(0, len(pairs), 2)))
        np.testing.assert_allclose(
            found.astype(wide), expected.astype(wide), rtol=2e-2 if dtype == "bfloat16" else 1e-6
        )


@pytest.mark.parametrize("dtype", [*HOST, "bool"])
def test_reversal(rng, dtype: str) -> None:
    for shape, axes in [((3, 4), [0]), ((3, 4), [-1, 0]), ((2, 3, 4), [1]), ((), []), ((0, 3), [1])]:
        compare(
            lambda x, axes=axes: raw.ReverseV2(tensor=x, axis=np.array(axes, "i4")),
            numbers(rng, shape, dtype),
            gradient=dtype == "float32",
        )
        flags = [d in [a % max(len(shape), 1) for a in axes] for d in range(len(shape))]
        if 0 not in shape:  # The CPU's kernel refuses them.
            compare(
                lambda x, flags=flags: raw.Reverse(tensor=x, dims=np.array(flags, bool)), numbers(rng, shape, dtype)
            )
    refuses(lambda x: raw.ReverseV2(tensor=x, axis=[2]), numbers(rng, (3, 4), dtype))
    refuses(lambda x: raw.ReverseV2(tensor=x, axis=[1, -1]), numbers(rng, (3, 4), dtype))


@pytest.mark.parametrize("dtype", ["float32", "float16", "int32", "complex128"])
def test_rolls(rng, dtype: str) -> None:
    for shape, shift, axis in [
        ((5,), 2, 0),
        ((3, 4), [1, -2], [0, 1]),
        ((3, 4), [1, 2], [0, 0]),
        ((3, 4), -7, -1),
        ((0, 3), 1, 1),
    ]:
        compare(
            lambda x, s=shift, a=axis: raw.Roll(input=x, shift=s, axis=a),
            numbers(rng, shape, dtype),
            gradient=dtype == "float32",
        )
    refuses(lambda x: raw.Roll(input=x, shift=1, axis=2), numbers(rng, (3, 4), dtype))


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("name", ["SpaceToDepth", "DepthToSpace"])
def test_depth_and_space(rng, name: str, dtype: str) -> None:
    operator = getattr(raw, name)
    for b, shape in [(2, (2, 4, 6, 4)), (3, (1, 3, 6, 9)), (2, (0, 2, 2, 4))]:
        compare(
            lambda x, b=b: operator(input=x, block_size=b, data_format="NHWC"),
            numbers(rng, shape, dtype),
            gradient=dtype == "float32",
        )


@pytest.mark.parametrize("name", ["SpaceToDepth", "DepthToSpace"])
def test_depth_and_space_with_channels_first(rng, name: str) -> None:
    # TensorFlow's CPU knows channels last only.
    operator = getattr(raw, name)
    x = numbers(rng, (2, 4, 6, 8), "float32")
    with tf.device(DEVICE):
        first = operator(input=tf.identity(tf.transpose(x, [0, 3, 1, 2])), block_size=2, data_format="NCHW")
    with tf.device("CPU:0"):
        last = operator(input=x, block_size=2, data_format="NHWC")
    np.testing.assert_array_equal(first.numpy().transpose(0, 2, 3, 1), last.numpy())


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_space_and_batch(rng, dtype: str) -> None:
    for shape, blocks, margins in [
        ((2, 4, 6, 3), [2, 3], [[0, 0], [0, 0]]),
        ((1, 3, 4, 2), [2, 2], [[0, 1], [1, 1]]),
        ((2, 5, 3), [3], [[1, 0]]),
        ((2, 4, 4), [2, 2], [[0, 0], [0, 0]]),
    ]:
        x = numbers(rng, shape, dtype)
        compare(
            lambda x, b=blocks, m=margins: raw.SpaceToBatchND(input=x, block_shape=b, paddings=m),
            x,
            gradient=dtype == "float32",
        )
    for shape, blocks, margins in [
        ((8, 2, 3, 2), [2, 2], [[0, 0], [0, 0]]),
        ((4, 3, 3, 2), [2, 2], [[1, 0], [0, 2]]),
        ((6, 2, 1), [3], [[1, 1]]),
    ]:
        x = numbers(rng, shape, dtype)
        compare(
            lambda x, b=blocks, m=margins: raw.BatchToSpaceND(input=x, block_shape=b, crops=m),
            x,
            gradient=dtype == "float32",
        )
    compare(
        lambda x: raw.SpaceToBatch(input=x, paddings=[[0, 1], [1, 0]], block_size=2), numbers(rng, (1, 3, 3, 2), dtype)
    )
    compare(
        lambda x: raw.BatchToSpace(input=x, crops=[[0, 1], [1, 0]], block_size=2), numbers(rng, (4, 2, 2, 2), dtype)
    )


def test_blocks_that_are_refused() -> None:
    x = np.ones((1, 3, 4, 2), "f4")
    refuses(lambda x: raw.SpaceToDepth(input=x, block_size=2), x)
    refuses(lambda x: raw.DepthToSpace(input=x, block_size=2), x)
    refuses(lambda x: raw.SpaceToBatchND(input=x, block_shape=[2, 2], paddings=[[0, 0], [0, 0]]), x)
    refuses(lambda x: raw.BatchToSpaceND(input=x, block_shape=[2, 2], crops=[[0, 0], [0, 0]]), x)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bool", "complex128"])
def test_the_main_diagonal(rng, dtype: str) -> None:
    gradient = dtype == "float32"
    for shape in [(4,), (2, 3), (2, 0)]:
        compare(lambda x: raw.MatrixDiag(diagonal=x), numbers(rng, shape, dtype), gradient=gradient)
    for shape in [(3, 4), (2, 4, 3), (2, 0, 3)]:
        x = numbers(rng, shape, dtype)
        compare(lambda x: raw.MatrixDiagPart(input=x), x, gradient=gradient)
        compare(
            lambda x, d: raw.MatrixSetDiag(input=x, diagonal=d),
            x,
            numbers(rng, (*shape[:-2], min(shape[-2:])), dtype),
            gradient=gradient,
        )


@pytest.mark.parametrize("align", ["LEFT_RIGHT", "RIGHT_LEFT", "LEFT_LEFT", "RIGHT_RIGHT"])
@pytest.mark.parametrize("k", [(0, 0), (1, 1), (-2, -1), (-1, 2), (0, 1)])
def test_bands_of_diagonals(rng, k, align: str) -> None:
    k = np.array(k, "i4")
    for shape in [(3, 4), (2, 4, 4), (2, 5, 3)]:
        x = numbers(rng, shape, "float32")

        def part(x):
            return raw.MatrixDiagPartV3(input=x, k=k, padding_value=7.0, align=align)

        with tf.device("CPU:0"):
            diagonals = part(x)
        compare(part, x, gradient=True)
        compare(
            lambda d, x=x: raw.MatrixDiagV3(
                diagonal=d, k=k, num_rows=shape[-2], num_cols=shape[-1], padding_value=7.0, align=align
            ),
            diagonals,
            gradient=True,
        )
        compare(
            lambda x, d: raw.MatrixSetDiagV3(input=x, diagonal=d, k=k, align=align), x, diagonals + 1, gradient=True
        )
    compare(lambda x: raw.MatrixDiagPartV2(input=x, k=k, padding_value=7.0), numbers(rng, (4, 3), "float32"))
    compare(
        lambda x: raw.MatrixDiagV2(diagonal=x, k=1, num_rows=-1, num_cols=-1, padding_value=7.0),
        numbers(rng, (2, 3), "float32"),
    )


def test_diagonals_that_are_refused() -> None:
    x = np.ones((3, 4), "f4")
    for k in ([4], [-3], [2, 1], [0, 1, 2]):
        refuses(lambda x, k=k: raw.MatrixDiagPartV3(input=x, k=k, padding_value=0.0), x)
    refuses(lambda x: raw.MatrixDiagV3(diagonal=x, k=0, num_rows=3, num_cols=-1, padding_value=0.0), x)
    refuses(lambda x: raw.MatrixDiagV3(diagonal=x, k=0, num_rows=6, num_cols=6, padding_value=0.0), x)
    refuses(lambda x: raw.MatrixSetDiagV3(input=x, diagonal=[1.0, 2], k=0), x)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bool", "complex128"])
def test_bands(rng, dtype: str) -> None:
    for shape, below, above in [((4, 5), 1, 2), ((2, 4, 3), -1, 0), ((3, 3), 0, -1), ((3, 3), -1, -1), ((0, 3), 0, 0)]:
        compare(
            lambda x, a=below, b=above: raw.MatrixBandPart(input=x, num_lower=a, num_upper=b),
            numbers(rng, shape, dtype),
            gradient=dtype == "float32",
        )
    refuses(lambda x: raw.MatrixBandPart(input=x, num_lower=5, num_upper=0), numbers(rng, (4, 5), dtype))


@pytest.mark.parametrize("dtype", ["float32", "int32", "complex128"])
def test_tensor_diagonals(rng, dtype: str) -> None:
    compare(lambda x: raw.Diag(diagonal=x), numbers(rng, (2, 3), dtype), gradient=dtype == "float32")
    compare(lambda x: raw.DiagPart(input=x), numbers(rng, (2, 3, 2, 3), dtype), gradient=dtype == "float32")
    refuses(lambda x: raw.DiagPart(input=x), numbers(rng, (2, 3), dtype))


@pytest.mark.parametrize(
    ("source", "target", "shape"),
    [
        ("float32", "int32", (2, 3)),
        ("float32", "uint8", (2, 3)),
        ("uint8", "float32", (2, 4)),
        ("complex64", "float32", (3,)),
        ("int64", "float64", ()),
        ("int16", "int64", (2, 4)),
        ("float64", "int16", ()),
    ],
)
def test_bitcasts(rng, source: str, target: str, shape) -> None:
    compare(lambda x: raw.Bitcast(input=x, type=tf.as_dtype(target)), numbers(rng, shape, source))


def test_a_bitcast_that_is_refused() -> None:
    refuses(lambda x: raw.Bitcast(input=x, type=tf.float32), np.ones((2, 3), "u1"))


@pytest.mark.parametrize("dtype", ALL)
def test_fills(rng, dtype: str) -> None:
    for shape in [(2, 3), (), (0, 2)]:
        x = numbers(rng, shape, dtype)
        compare(lambda x: raw.ZerosLike(x=x), x)
        compare(lambda x: raw.OnesLike(x=x), x)
        compare(lambda v, s=shape: raw.Fill(dims=np.array(s, "i8"), value=v), numbers(rng, (), dtype))
    refuses(lambda v: raw.Fill(dims=[-1], value=v), numbers(rng, (), dtype))


@pytest.mark.parametrize("dtype", [*FLOATS, "int64"])
def test_ranges(dtype: str) -> None:
    for start, limit, delta in [(0, 5, 1), (3, -4, -2), (0, 0, 1), (1, 10, 4), (5, 3, -5)]:
        arguments = [tf.cast(x, dtype) for x in (start, limit, delta)]
        compare(lambda: raw.Range(start=arguments[0], limit=arguments[1], delta=arguments[2]))
    for start, limit, delta in [(0, 5, 0), (5, 0, 1), (0, 5, -1)]:
        arguments = [tf.cast(x, dtype) for x in (start, limit, delta)]
        refuses(lambda: raw.Range(start=arguments[0], limit=arguments[1], delta=arguments[2]))


@pytest.mark.parametrize("dtype", ["float32", "complex128", "int32", "uint8"])
def test_stitching_and_partitions(rng, dtype: str) -> None:
    indices = [np.array([0, 4, 1], "i4"), np.array([[2, 1], [3, 6]], "i4")]
    data = [numbers(rng, (3, 2), dtype), numbers(rng, (2, 2, 2), dtype)]
    with tf.device("CPU:0"):
        expected = raw.DynamicStitch(indices=indices, data=data).numpy()
    with tf.device(DEVICE):
        actual = raw.DynamicStitch(indices=indices, data=[tf.identity(d) for d in data]).numpy()
    np.testing.assert_array_equal(actual[[0, 1, 2, 3, 4, 6]], expected[[0, 1, 2, 3, 4, 6]])
    for shape, parts in [((5, 2), [0, 2, 0, 1, 2]), ((4,), [2, 2, 2, 2]), ((0, 3), [])]:
        parts = tf.constant(np.array(parts, "i4"))
        compare(
            lambda x, p: raw.DynamicPartition(data=x, partitions=p, num_partitions=3),
            numbers(rng, shape, dtype),
            parts,
            gradient=dtype == "float32",
        )
    refuses(
        lambda x, p: raw.DynamicPartition(data=x, partitions=p, num_partitions=2),
        numbers(rng, (2,), dtype),
        np.array([0, 2], "i4"),
    )
