"""Operators that read and write through indices, segments, sorting, scans, counting."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf
from test_movement import numbers

from compare import DEVICE, compare, refuses

raw = tf.raw_ops
SOME = ["float32", "bfloat16", "int32", "complex128", "bool"]
NUMBERS = ["float32", "bfloat16", "int64", "complex64"]
REALS = ["float32", "float16", "int64", "uint8"]


@pytest.mark.parametrize("index", ["int32", "int64"])
@pytest.mark.parametrize("dtype", SOME)
def test_gathers(rng, dtype: str, index: str) -> None:
    for shape, axis, batch, places in [
        ((5,), 0, 0, (3,)),
        ((4, 6), 1, 0, (2, 3)),
        ((4, 6), -1, 0, ()),
        ((3, 4, 5), 1, 0, (2,)),
        ((2, 4, 3), 1, 1, (2, 5)),
        ((2, 3, 4, 2), 2, 1, (2, 3)),
        ((4, 0), 0, 0, (2,)),
        ((3, 4), 0, 0, (0,)),
        ((2, 3, 5), 2, 2, (2, 3, 2)),
    ]:
        indices = tf.constant(rng.integers(0, shape[axis], places), index)
        compare(
            lambda x, i, a=axis, b=batch: raw.GatherV2(params=x, indices=i, axis=a, batch_dims=b),
            numbers(rng, shape, dtype),
            indices,
        )
    compare(
        lambda x, i: raw.Gather(params=x, indices=i), numbers(rng, (4, 2), dtype), tf.constant([[3, 0], [0, 1]], index)
    )


@pytest.mark.parametrize("index", ["int32", "int64"])
@pytest.mark.parametrize("dtype", [d for d in SOME if d != "bool"])
def test_nd_gathers(rng, dtype: str, index: str) -> None:
    for shape, places in [
        ((4, 5), (3, 1)),
        ((4, 5), (3, 2)),
        ((4, 5, 2), (2, 3, 2)),
        ((4, 5), (2,)),
        ((3,), (0, 1)),
        ((2, 3), (4, 0)),
    ]:
        indices = tf.constant(rng.integers(0, min(shape), places), index)
        # The CPU's ScatterNd, which computes the gradient, refuses one number and no numbers.
        compare(
            lambda x, i: raw.GatherNd(params=x, indices=i),
            numbers(rng, shape, dtype),
            indices,
            gradient=dtype == "float32" and len(places) > 1 and 0 not in places,
        )


def test_gathers_that_are_refused() -> None:
    x, i = np.ones((3, 4), "f4"), np.array([0, 1], "i4")
    refuses(lambda x, i: raw.GatherV2(params=x, indices=i, axis=2), x, i)
    refuses(lambda x, i: raw.GatherV2(params=x, indices=i, axis=0, batch_dims=1), x, i)
    refuses(lambda x, i: raw.GatherNd(params=x, indices=i), x, np.zeros((2, 3), "i4"))


def test_what_bad_indices_mean_on_gpus(rng) -> None:
    x = numbers(rng, (3, 2), "float32").numpy()
    with tf.device(DEVICE):
        i = tf.constant([1, -1, 3])
        np.testing.assert_array_equal(raw.GatherV2(params=x, indices=i, axis=0), [x[1], [0, 0], [0, 0]])
        np.testing.assert_array_equal(raw.GatherNd(params=x, indices=i[:, None]), [x[1], [0, 0], [0, 0]])
        np.testing.assert_array_equal(
            raw.ScatterNd(indices=i[:, None], updates=x, shape=[3, 2]), [[0, 0], x[0], [0, 0]]
        )
        expected = x.copy()
        expected[1] = x[0]
        np.testing.assert_array_equal(raw.TensorScatterUpdate(tensor=x, indices=i[:, None], updates=x), expected)
        np.testing.assert_array_equal(raw.UnsortedSegmentSum(data=x, segment_ids=i, num_segments=2), [[0, 0], x[0]])


@pytest.mark.parametrize("dtype", NUMBERS)
def test_scatters(rng, dtype: str) -> None:
    for shape, places in [((6,), (4, 1)), ((4, 3), (5, 1)), ((4, 3), (5, 2)), ((4, 3, 2), (2, 3, 2)), ((3,), (0, 1))]:
        indices = tf.constant(rng.integers(0, min(shape), places), "int32")
        updates = numbers(rng, (*places[:-1], *shape[places[-1] :]), dtype)
        compare(
            lambda i, u, s=shape: raw.ScatterNd(indices=i, updates=u, shape=s),
            indices,
            updates,
            gradient=dtype == "float32",
        )
        x = numbers(rng, shape, dtype)
        for name in ("Add", "Sub"):
            compare(
                lambda x, i, u, n=name: getattr(raw, f"TensorScatter{n}")(tensor=x, indices=i, updates=u),
                x,
                indices,
                updates,
            )


@pytest.mark.parametrize("dtype", REALS)
def test_scatters_of_extrema(rng, dtype: str) -> None:
    x, updates = numbers(rng, (4, 3), dtype), numbers(rng, (6, 3), dtype)
    indices = tf.constant(rng.integers(0, 4, (6, 1)), "int64")
    for name in ("Max", "Min"):
        compare(
            lambda x, i, u, n=name: getattr(raw, f"TensorScatter{n}")(tensor=x, indices=i, updates=u),
            x,
            indices,
            updates,
        )


@pytest.mark.parametrize("dtype", [*NUMBERS, "bool", "complex128"])
def test_scatters_that_assign(rng, dtype: str) -> None:
    x, updates = numbers(rng, (5, 3), dtype), numbers(rng, (3, 3), dtype)
    indices = tf.constant([[4], [0], [2]])
    compare(
        lambda x, i, u: raw.TensorScatterUpdate(tensor=x, indices=i, updates=u),
        x,
        indices,
        updates,
        gradient=dtype == "float32",
    )


def test_scatters_that_are_refused() -> None:
    i = np.zeros((2, 1), "i4")
    refuses(lambda i, u: raw.ScatterNd(indices=i, updates=u, shape=[3, 4]), i, np.ones((2, 3), "f4"))
    refuses(lambda i, u: raw.ScatterNd(indices=i, updates=u, shape=[3, 4]), i, np.ones((3, 4), "f4"))
    refuses(lambda i, u: raw.ScatterNd(indices=i, updates=u, shape=[0, 4]), i, np.ones((2, 4), "f4"))
    refuses(
        lambda x, i, u: raw.TensorScatterAdd(tensor=x, indices=i, updates=u),
        np.ones((3,), "f4"),
        np.zeros((2, 2), "i4"),
        np.ones((2,), "f4"),
    )


def on_variable(x, function):
    """What a variable and another tensor that had its value are afterwards, on the device and on
    the CPU.
    """
    results = []
    for device in (DEVICE, "CPU:0"):
        with tf.device(device):
            v = tf.Variable(x)
            before = v.read_value()
            result = function(v)
            results.append([v.numpy(), before.numpy()] + ([] if result is None else [result.numpy()]))
    for a, b in zip(*results, strict=True):
        np.testing.assert_allclose(a.astype("c16"), b.astype("c16"), rtol=1e-2 if x.dtype.size == 2 else 1e-6)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int64"])
@pytest.mark.parametrize("name", ["Add", "Sub", "Mul", "Div", "Max", "Min", "Update"])
def test_scatters_on_variables(rng, name: str, dtype: str) -> None:
    x = numbers(rng, (5, 3), dtype)
    indices = np.array([3, 0, 4] if name == "Update" else [3, 0, 3], "i4")
    updates, number = tf.cast(rng.integers(1, 5, (3, 3)), dtype), tf.constant(3, dtype)
    operator = getattr(raw, f"ResourceScatter{name}")
    on_variable(x, lambda v: operator(resource=v.handle, indices=tf.constant(indices), updates=tf.identity(updates)))
    on_variable(
        x, lambda v: operator(resource=v.handle, indices=tf.constant(indices.astype("i8")), updates=tf.identity(number))
    )


@pytest.mark.parametrize("dtype", ["float32", "int64"])
@pytest.mark.parametrize("name", ["Add", "Sub", "Max", "Min", "Update"])
def test_nd_scatters_on_variables(rng, name: str, dtype: str) -> None:
    x, updates = numbers(rng, (5, 3), dtype), numbers(rng, (3,), dtype)
    indices = np.array([[3, 1], [0, 2], [4, 0]] if name == "Update" else [[3, 1], [0, 2], [3, 1]], "i4")
    operator = getattr(raw, f"ResourceScatterNd{name}")
    on_variable(x, lambda v: operator(ref=v.handle, indices=tf.constant(indices), updates=tf.identity(updates)))


@pytest.mark.parametrize("dtype", ["float32", "bool", "complex128"])
def test_gathers_of_variables(rng, dtype: str) -> None:
    x, indices = numbers(rng, (5, 3), dtype), tf.constant([[4, 0], [0, 1]])
    on_variable(x, lambda v: raw.ResourceGather(resource=v.handle, indices=tf.identity(indices), dtype=v.dtype))
    if dtype == "float32":
        on_variable(
            x, lambda v: raw.ResourceGatherNd(resource=v.handle, indices=tf.identity(indices)[:, :1], dtype=v.dtype)
        )


def on_reference(x: np.ndarray, dtype: str, step):
    """What a reference variable is after an operator, whose result that is too; on the device and
    on the CPU.
    """
    results = []
    for device in (DEVICE, "CPU:0"):
        with tf.Graph().as_default(), tf.device(device):
            v = tf.compat.v1.get_variable("v", initializer=tf.cast(x, dtype), use_resource=False)
            changed = step(v)
            assert v.op.type == "VariableV2" and changed.op.type.startswith("Scatter")
            config = tf.compat.v1.ConfigProto(allow_soft_placement=False)
            with tf.compat.v1.Session(config=config) as session:
                session.run(v.initializer)
                found = session.run(changed)
                np.testing.assert_array_equal(session.run(v), found)
                results.append(found)
    kept, expected = (result.astype("c16") for result in results)
    np.testing.assert_allclose(kept, expected, rtol=1e-2 if tf.as_dtype(dtype).size == 2 else 1e-6)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16", "int64"])
@pytest.mark.parametrize("name", ["add", "sub", "mul", "div", "max", "min", "update"])
def test_scatters_on_references(rng, name: str, dtype: str) -> None:
    scatter = getattr(tf.compat.v1, f"scatter_{name}")
    x = rng.integers(8, 99, (5, 3))
    updates = rng.integers(1, 4, (2, 2, 3))
    places = [[3, 0], [4, 1]] if name == "update" else [[3, 0], [3, 1]]
    for index in ("int32", "int64"):
        indices = np.array(places, index)
        on_reference(x, dtype, lambda v, i=indices: scatter(v, i, tf.cast(updates, dtype)))
    on_reference(x, dtype, lambda v: scatter(v, np.array([4, 2], "i4"), tf.cast(3, dtype), use_locking=True))
    on_reference(x, dtype, lambda v: scatter(v, np.zeros((0,), "i4"), tf.zeros((0, 3), dtype)))


@pytest.mark.parametrize("dtype", ["float32", "int64"])
@pytest.mark.parametrize("name", ["Add", "Sub", "Max", "Min", "Update"])
def test_nd_scatters_on_references(rng, name: str, dtype: str) -> None:
    scatter = getattr(raw, f"ScatterNd{name}")
    x, updates = rng.integers(0, 99, (5, 3)), rng.integers(0, 99, (3,))
    places = [[3, 1], [0, 2], [4, 0]] if name == "Update" else [[3, 1], [0, 2], [3, 1]]

    def on_places(indices: np.ndarray, updates: np.ndarray) -> None:
        on_reference(x, dtype, lambda v: scatter(ref=v._ref(), indices=indices, updates=tf.cast(updates, dtype)))

    for index in ("int32", "int64"):
        on_places(np.array(places, index), updates)
    on_places(np.array([[4], [1]], "i4"), x[1:3] + 1)


def test_scatters_on_references_that_are_refused() -> None:
    x = np.ones((4, 3), "f4")
    with tf.Graph().as_default(), tf.device(DEVICE):
        v = tf.compat.v1.get_variable("v", initializer=x, use_resource=False)
        updates = tf.compat.v1.placeholder("float32")
        step = tf.compat.v1.scatter_add(v, [1, 2], updates)
        with tf.compat.v1.Session() as session:
            session.run(v.initializer)
            with pytest.raises(tf.errors.InvalidArgumentError):
                session.run(step, {updates: np.ones((3, 3), "f4")})
            np.testing.assert_array_equal(session.run(v), x)


def test_scatters_in_a_row(rng) -> None:
    x = rng.integers(-9, 9, (4, 3)).astype("f4")
    with tf.Graph().as_default(), tf.device(DEVICE):
        v = tf.compat.v1.get_variable("v", initializer=x, use_resource=False)
        step = tf.compat.v1.scatter_nd_sub(tf.compat.v1.scatter_add(v, [1, 1], x[:2]), [[0, 1]], [7.0])
        with tf.compat.v1.Session() as session:
            session.run(v.initializer)
            expected = x.copy()
            expected[1] += x[0] + x[1]
            expected[0, 1] -= 7
            np.testing.assert_array_equal(session.run(step), expected)
            np.testing.assert_array_equal(session.run(v), expected)


def test_one_hot(rng) -> None:
    for dtype, index in [
        ("float32", "int32"),
        ("bool", "int64"),
        ("complex128", "uint8"),
        ("int32", "int8"),
        ("float16", "int32"),
    ]:
        on, off = numbers(rng, (), dtype), numbers(rng, (), dtype)
        for shape, axis in [((4,), -1), ((2, 3), 0), ((2, 3), 1), ((), -1), ((0, 2), -1)]:
            indices = tf.cast(rng.integers(0, 7, shape), index)
            compare(
                lambda i, on, off, a=axis: raw.OneHot(indices=i, depth=5, on_value=on, off_value=off, axis=a),
                indices,
                on,
                off,
            )
    compare(
        lambda i, on, off: raw.OneHot(indices=i, depth=3, on_value=on, off_value=off), np.array([-1, 3, 2]), 1.0, 0.0
    )
    refuses(
        lambda i, on, off: raw.OneHot(indices=i, depth=-1, on_value=on, off_value=off),
        np.array([0]),
        np.float32(1),
        np.float32(0),
    )
    refuses(
        lambda i, on, off: raw.OneHot(indices=i, depth=3, on_value=on, off_value=off, axis=2),
        np.array([0]),
        np.float32(1),
        np.float32(0),
    )


@pytest.mark.parametrize("dtype", ["bool", "float32", "float64", "int64", "int8", "uint8", "complex64", "complex128"])
def test_where(rng, dtype: str) -> None:
    for shape in [(6,), (3, 4), (2, 0), (2, 3, 2)]:
        x = tf.cast(tf.constant(rng.random(shape) < 0.5), dtype)
        compare(lambda x: raw.Where(condition=x), x)
    refuses(lambda x: raw.Where(condition=x), tf.zeros((), dtype))


@pytest.mark.parametrize("dtype", ["float32", "float16", "int32"])
@pytest.mark.parametrize("name", ["Sum", "Prod", "Max", "Min"])
def test_unsorted_segments(rng, name: str, dtype: str) -> None:
    operator = getattr(raw, f"UnsortedSegment{name}")
    for shape, places in [((6, 2), (6,)), ((2, 3), (2, 3)), ((0, 2), (0,)), ((4,), (4,))]:
        x = tf.cast(rng.integers(-3, 4, shape), dtype)
        ids = tf.constant(rng.integers(-1, 3, places), "int32")
        compare(lambda x, i: operator(data=x, segment_ids=i, num_segments=4), x, ids)
    refuses(lambda x, i: operator(data=x, segment_ids=i, num_segments=4), x, np.zeros((3,), "i4"))
    refuses(lambda x, i: operator(data=x, segment_ids=i, num_segments=-1), x, np.zeros((4,), "i4"))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ["Sum", "Mean", "Prod", "Max", "Min"])
def test_sorted_segments(rng, name: str, dtype: str) -> None:
    operator = getattr(raw, f"Segment{name}")
    for shape, ids in [((5, 2), [0, 0, 1, 3, 3]), ((3,), [2, 2, 2]), ((0, 2), [])]:
        x = tf.cast(rng.standard_normal(shape), dtype)
        compare(lambda x, i: operator(data=x, segment_ids=i), x, np.array(ids, "i4"))
    refuses(lambda x, i: operator(data=x, segment_ids=i), np.ones((3, 2), "f4"), np.zeros((2,), "i4"))


@pytest.mark.parametrize("name", ["Sum", "Mean", "SqrtN"])
def test_sparse_segments(rng, name: str) -> None:
    operator, counted = getattr(raw, f"SparseSegment{name}"), getattr(raw, f"SparseSegment{name}WithNumSegments")
    gradient = getattr(raw, f"SparseSegment{name}Grad")
    for dtype in ("float32", "float64"):
        x = tf.cast(rng.standard_normal((5, 3)), dtype)
        indices, ids = np.array([4, 0, 0, 2], "i4"), np.array([0, 0, 1, 3], "i4")
        compare(lambda x, i, s: operator(data=x, indices=i, segment_ids=s), x, indices, ids)
        compare(lambda x, i, s: counted(data=x, indices=i, segment_ids=s, num_segments=6), x, indices, ids)
        compare(lambda x, i, s: gradient(grad=x, indices=i, segment_ids=s, output_dim0=7), x, indices, ids)
    compare(
        lambda x, i, s: operator(data=x, indices=i, segment_ids=s),
        np.ones((3, 2), "f4"),
        np.zeros((0,), "i4"),
        np.zeros((0,), "i4"),
    )


@pytest.mark.parametrize("dtype", ["float32", "float16", "int32", "uint8"])
def test_the_largest_elements(rng, dtype: str) -> None:
    for shape, k in [((3, 8), 3), ((5,), 5), ((2, 3, 4), 1), ((2, 3), 0), ((2, 300), 7)]:
        compare(lambda x, k=k: raw.TopKV2(input=x, k=k), numbers(rng, shape, dtype))
    refuses(lambda x: raw.TopKV2(input=x, k=4), numbers(rng, (2, 3), dtype))
    refuses(lambda x: raw.TopKV2(input=x, k=-1), numbers(rng, (2, 3), dtype))


def test_targets_among_the_largest(rng) -> None:
    x = rng.integers(0, 5, (8, 6)).astype("f4")
    x[2, 3], x[3, 0] = np.nan, np.inf
    for index in ("int32", "int64"):
        targets = np.array([0, 1, 2, 3, 4, 5, 6, -1], index)
        for k in (1, 3, 6):
            compare(lambda x, t, k: raw.InTopKV2(predictions=x, targets=t, k=k), x, targets, np.array(k, index))
    refuses(lambda x, t, k: raw.InTopKV2(predictions=x, targets=t, k=k), x, targets[:3], np.array(1, "i8"))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64"])
@pytest.mark.parametrize("name", ["Cumsum", "Cumprod", "CumulativeLogsumexp"])
def test_scans(rng, name: str, dtype: str) -> None:
    if name == "CumulativeLogsumexp" and dtype[0] == "i":
        pytest.skip("floats only")
    operator = getattr(raw, name)
    for shape, axis in [((5,), 0), ((3, 4), 1), ((3, 4), -2), ((2, 3, 2), 1), ((0, 3), 0), ((2, 0), 1), ((300,), 0)]:
        x = tf.cast(rng.integers(-2, 3, shape), dtype)
        for exclusive in (False, True):
            for reverse in (False, True):
                compare(
                    lambda x, a=axis, e=exclusive, r=reverse: operator(x=x, axis=a, exclusive=e, reverse=r),
                    x,
                    gradient=name == "Cumsum" and dtype == "float32",
                    ulps=16,
                )
    refuses(lambda x: operator(x=x, axis=2), tf.cast(np.ones((2, 2)), dtype))


def test_complex_scans(rng) -> None:
    compare(lambda x: raw.Cumsum(x=x, axis=1, exclusive=True, reverse=True), numbers(rng, (3, 4), "complex64"))


def test_counts(rng) -> None:
    x = np.array([1, 5, 1, 0, 7, 2], "i4")
    for weights in (np.zeros((0,), "f4"), rng.random(6).astype("f4"), np.zeros((0,), "i4"), np.arange(6, dtype="i4")):
        compare(lambda x, w: raw.Bincount(arr=x, size=6, weights=w), x, weights)
        for binary in (False, True):
            if binary and weights.size:
                continue
            compare(lambda x, w, b=binary: raw.DenseBincount(input=x, size=6, weights=w, binary_output=b), x, weights)
    rows = np.array([[1, 1, 3], [0, 9, 2]], "i8")
    for binary in (False, True):
        compare(
            lambda x, w, b=binary: raw.DenseBincount(
                input=x, size=tf.constant(5, tf.int64), weights=w, binary_output=b
            ),
            rows,
            np.zeros((0,), "f4"),
        )
    compare(
        lambda x, w: raw.DenseBincount(input=x, size=tf.constant(5, tf.int64), weights=w),
        rows,
        rng.random((2, 3)).astype("f4"),
    )
    refuses(lambda x, w: raw.DenseBincount(input=x, size=-1, weights=w), x, np.zeros((0,), "f4"))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_histograms(rng, dtype: str) -> None:
    x = tf.cast(rng.integers(-30, 60, (5, 40)) / 8, dtype)
    for low, high, bins, index in [(-1, 5, 6, "int32"), (0, 4, 1, "int32"), (-4, 8, 96, "int64")]:
        compare(
            lambda x, r=(low, high), b=bins, i=index: raw.HistogramFixedWidth(
                values=x, value_range=tf.cast(r, x.dtype), nbins=b, dtype=i
            ),
            x,
        )
    empty = tf.zeros((0,), dtype)
    compare(lambda x: raw.HistogramFixedWidth(values=x, value_range=tf.cast([0, 1], x.dtype), nbins=3), empty)
    for given, bins in [([1, 1], 3), ([2, 1], 3), ([0, 1], 0)]:
        refuses(
            lambda x, g=given, b=bins: raw.HistogramFixedWidth(values=x, value_range=tf.cast(g, x.dtype), nbins=b), x
        )


@pytest.mark.parametrize("index", ["int32", "int64"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "complex64", "complex128"])
def test_products_of_sparse_and_dense_matrices(rng, dtype: str, index: str) -> None:
    places = np.array([[0, 3], [4, 1], [0, 0], [2, 3], [0, 3]], index)
    values = numbers(rng, (5,), dtype)
    for adjoint_a in (False, True):
        for adjoint_b in (False, True):
            inner = 5 if adjoint_a else 4
            compare(
                lambda i, v, b, a_=adjoint_a, b_=adjoint_b: raw.SparseTensorDenseMatMul(
                    a_indices=i, a_values=v, a_shape=[5, 4], b=b, adjoint_a=a_, adjoint_b=b_
                ),
                places,
                values,
                numbers(rng, (3, inner) if adjoint_b else (inner, 3), dtype),
                ulps=8,
            )
    compare(
        lambda i, v, b: raw.SparseTensorDenseMatMul(a_indices=i, a_values=v, a_shape=[5, 4], b=b),
        places[:0],
        values[:0],
        numbers(rng, (4, 2), dtype),
    )
    refuses(
        lambda i, v, b: raw.SparseTensorDenseMatMul(a_indices=i, a_values=v, a_shape=[5, 4], b=b),
        places,
        values,
        numbers(rng, (3, 2), dtype),
    )


@pytest.mark.parametrize("name", ["Sum", "Mean", "SqrtN"])
def test_compact_gradients_of_sparse_segments(rng, name: str) -> None:
    gradient = getattr(raw, f"SparseSegment{name}GradV2")
    for index in ("int32", "int64"):
        indices, ids = np.array([4, 0, 0, 2], index), np.array([0, 0, 1, 3], "i4")
        compare(
            lambda x, i, s: gradient(grad=x, indices=i, segment_ids=s, dense_output_dim0=7),
            numbers(rng, (4, 3), "float32"),
            indices,
            ids,
        )
    refuses(
        lambda x, i, s: gradient(grad=x, indices=i, segment_ids=s, dense_output_dim0=3),
        np.ones((4, 3), "f4"),
        indices,
        ids,
    )


@pytest.mark.parametrize("dtype", ["float32", "int32", "uint8", "bfloat16"])
def test_bounds(rng, dtype: str) -> None:
    for rows, n, m in [(2, 7, 5), (1, 1, 3), (2, 0, 3), (2, 3, 0)]:

        def rows_of(k):
            return np.sort(rng.integers(0, 9, (rows, k)), axis=1)

        for name in ("LowerBound", "UpperBound"):
            for out in (tf.int32, tf.int64):
                compare(
                    lambda s, v, n=name, o=out: getattr(raw, n)(sorted_inputs=s, values=v, out_type=o),
                    tf.cast(rows_of(n), dtype),
                    tf.cast(rows_of(m), dtype),
                )
    refuses(lambda s, v: raw.LowerBound(sorted_inputs=s, values=v), np.ones((2, 3), "f4"), np.ones((3, 3), "f4"))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64"])
def test_buckets(rng, dtype: str) -> None:
    x = tf.cast(np.array([[-7, 0, 1, 3], [2, 10, 11, 100]]), dtype)
    compare(lambda x: raw.Bucketize(input=x, boundaries=[0.0, 2.5, 10.0]), x)
    compare(lambda x: raw.Bucketize(input=x, boundaries=[]), x)


@pytest.mark.parametrize("index", ["int32", "int64"])
def test_reversed_sequences(rng, index: str) -> None:
    for dtype, shape, along, batch in [
        ("float32", (3, 5), 1, 0),
        ("complex128", (5, 2, 3), 0, 2),
        ("bool", (2, 0), 1, 0),
    ]:
        lengths = rng.integers(0, shape[along] + 1, (shape[batch],)).astype(index)
        compare(
            lambda x, n, a=along, b=batch: raw.ReverseSequence(input=x, seq_lengths=n, seq_dim=a, batch_dim=b),
            numbers(rng, shape, dtype),
            lengths,
            gradient=dtype == "float32",
        )
    refuses(
        lambda x, n: raw.ReverseSequence(input=x, seq_lengths=n, seq_dim=0, batch_dim=0), np.ones((3, 5), "f4"), lengths
    )


def test_changes_in_place(rng) -> None:
    for dtype in ("float32", "int64", "uint8"):
        x, v, i = numbers(rng, (5, 3), dtype).numpy(), numbers(rng, (2, 3), dtype).numpy(), [3, 1]
        for name, change in [("Update", lambda a, b: b), ("Add", np.add), ("Sub", np.subtract)]:
            expected = x.copy()
            expected[i] = change(x[i], v)
            with tf.device(DEVICE):
                operator = getattr(raw, f"Inplace{name}")
                result = operator(x=raw.DeepCopy(x=tf.constant(x)), i=tf.constant(i), v=tf.constant(v))
            np.testing.assert_array_equal(result, expected)
    with tf.device(DEVICE):
        np.testing.assert_array_equal(raw.Empty(shape=[2, 3], dtype=tf.float32, init=True), np.zeros((2, 3)))
