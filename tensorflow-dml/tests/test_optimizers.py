"""Steps of optimizers, of resources and of references."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from compare import DEVICE, assert_equal

# The variables, the other arguments, and the attribute that changes the step.
OPTIMIZERS = {
    "GradientDescent": (["var"], ["alpha", "delta"], None),
    "ProximalGradientDescent": (["var"], ["alpha", "l1", "l2", "delta"], None),
    "Momentum": (["var", "accum"], ["lr", "grad", "momentum"], "use_nesterov"),
    "KerasMomentum": (["var", "accum"], ["lr", "grad", "momentum"], "use_nesterov"),
    "Adagrad": (["var", "accum"], ["lr", "grad"], "update_slots"),
    "AdagradV2": (["var", "accum"], ["lr", "epsilon", "grad"], "update_slots"),
    "AdagradDA": (
        ["var", "gradient_accumulator", "gradient_squared_accumulator"],
        ["grad", "lr", "l1", "l2", "global_step"],
        None,
    ),
    "ProximalAdagrad": (["var", "accum"], ["lr", "l1", "l2", "grad"], None),
    "Adadelta": (["var", "accum", "accum_update"], ["lr", "rho", "epsilon", "grad"], None),
    "Adam": (
        ["var", "m", "v"],
        ["beta1_power", "beta2_power", "lr", "beta1", "beta2", "epsilon", "grad"],
        "use_nesterov",
    ),
    "AdamWithAmsgrad": (
        ["var", "m", "v", "vhat"],
        ["beta1_power", "beta2_power", "lr", "beta1", "beta2", "epsilon", "grad"],
        None,
    ),
    "AdaMax": (["var", "m", "v"], ["beta1_power", "lr", "beta1", "beta2", "epsilon", "grad"], None),
    "RMSProp": (["var", "ms", "mom"], ["lr", "rho", "momentum", "epsilon", "grad"], None),
    "CenteredRMSProp": (["var", "mg", "ms", "mom"], ["lr", "rho", "momentum", "epsilon", "grad"], None),
    "Ftrl": (["var", "accum", "linear"], ["grad", "lr", "l1", "l2", "lr_power"], "multiply_linear_by_lr"),
    "FtrlV2": (
        ["var", "accum", "linear"],
        ["grad", "lr", "l1", "l2", "l2_shrinkage", "lr_power"],
        "multiply_linear_by_lr",
    ),
    "AddSign": (["var", "m"], ["lr", "alpha", "sign_decay", "beta", "grad"], None),
    "PowerSign": (["var", "m"], ["lr", "logbase", "sign_decay", "beta", "grad"], None),
}
WITHOUT_REFERENCES = ("KerasMomentum", "AdamWithAmsgrad")
NUMBERS = {
    "alpha": 0.1,
    "lr": 0.1,
    "momentum": 0.9,
    "rho": 0.9,
    "epsilon": 0.01,
    "beta1_power": 0.81,
    "beta2_power": 0.96,
    "beta1": 0.9,
    "beta2": 0.98,
    "beta": 0.9,
    "logbase": 1.5,
    "sign_decay": 0.7,
    "l1": 0.3,
    "l2": 0.2,
    "l2_shrinkage": 0.1,
    "lr_power": -0.5,
}
# Variables that are sums of squares.
POSITIVE = ("accum", "accum_update", "v", "vhat", "ms", "gradient_squared_accumulator")


def _start(rng, name: str, sizes: tuple[int, ...]) -> np.ndarray:
    x = rng.standard_normal(sizes)
    return np.abs(x) + 0.3 if name in POSITIVE else x


def _values(rng, name: str, sizes: tuple[int, ...], numbers: dict[str, float]) -> tuple[dict, dict]:
    variables, arguments, _ = OPTIMIZERS[name]
    # A centred RMSProp needs a mean whose square is below the mean square.
    start = {v: _start(rng, v, sizes) * (0.2 if v == "mg" else 1) for v in variables}
    given = {a: rng.standard_normal(sizes) if a in ("grad", "delta") else numbers.get(a) for a in arguments}
    return start, given


def _cast(x, dtype: str) -> tf.Tensor:
    with tf.device("CPU:0"):
        return tf.cast(x, dtype)


def _ones(sizes: int | tuple[int, ...]) -> tf.Tensor:
    return tf.constant(np.ones(sizes, "f4"))


def _given(given: dict, dtype: str) -> dict:
    cast = {a: _cast(x, dtype) for a, x in given.items() if a != "global_step"}
    return cast | {a: tf.constant(3, tf.int64) for a in given if a == "global_step"}


def _resources(device: str, name: str, start: dict, given: dict, dtype: str, options: dict, steps: int = 2):
    with tf.device(device):
        variables = {v: tf.Variable(_cast(x, dtype)) for v, x in start.items()}
        for _ in range(steps):
            handles = {v: variable.handle for v, variable in variables.items()}
            getattr(tf.raw_ops, f"ResourceApply{name}")(**handles, **_given(given, dtype), **options)
        return [v.read_value() for v in variables.values()]


def _references(device: str, name: str, start: dict, given: dict, dtype: str, options: dict):
    with tf.Graph().as_default(), tf.device(device):
        variables = {
            v: tf.compat.v1.get_variable(v, initializer=_cast(x, dtype), use_resource=False) for v, x in start.items()
        }
        step = getattr(tf.raw_ops, f"Apply{name}")(
            **{v: variable._ref() for v, variable in variables.items()}, **_given(given, dtype), **options
        )
        assert step.dtype._is_ref_dtype
        with tf.compat.v1.Session() as session:
            session.run(tf.compat.v1.global_variables_initializer())
            result = session.run(tf.identity(step))
            values = session.run(list(variables.values()))
    np.testing.assert_array_equal(result, values[0])
    return [tf.constant(value) for value in values]


def _options(name: str) -> list[dict]:
    attribute = OPTIMIZERS[name][2]
    return [{}] if attribute is None else [{attribute: False}, {attribute: True}]


ALL = [(name, options) for name in OPTIMIZERS for options in _options(name)]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("name", "options"), ALL)
def test_resources(rng, name: str, options: dict, dtype: str) -> None:
    for sizes in ((3, 5), (), (0, 4)):
        start, given = _values(rng, name, sizes, NUMBERS)
        actual = _resources(DEVICE, name, start, given, dtype, options)
        expected = _resources("CPU:0", name, start, given, dtype, options)
        for a, b in zip(actual, expected, strict=True):
            assert_equal(a, b, 4)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize(("name", "options"), ALL)
def test_resources_of_16_bits(rng, name: str, options: dict, dtype: str) -> None:
    """The device rounds the results, the CPU after each operation: they are compared with
    float64's.
    """
    start, given = _values(rng, name, (3, 5), NUMBERS)
    start, given = (
        {n: _cast(_cast(x, dtype), "float64").numpy() for n, x in d.items() if x is not None} for d in (start, given)
    )
    given |= {a: None for a in OPTIMIZERS[name][1] if a not in given}
    actual = _resources(DEVICE, name, start, given, dtype, options, steps=1)
    expected = _resources("CPU:0", name, start, given, "float64", options, steps=1)
    for a, b in zip(actual, expected, strict=True):
        assert_equal(a, _cast(b, dtype), 1)


@pytest.mark.parametrize(("name", "options"), [(n, o) for n, o in ALL if n not in WITHOUT_REFERENCES])
def test_references(rng, name: str, options: dict) -> None:
    start, given = _values(rng, name, (4, 3), NUMBERS)
    actual = _references(DEVICE, name, start, given, "float32", options)
    expected = _references("CPU:0", name, start, given, "float32", options)
    for a, b in zip(actual, expected, strict=True):
        assert_equal(a, b, 4)


@pytest.mark.parametrize("options", [{"multiply_linear_by_lr": False}, {"multiply_linear_by_lr": True}])
@pytest.mark.parametrize("name", ["Ftrl", "FtrlV2"])
def test_ftrl_with_another_power(rng, name: str, options: dict) -> None:
    start, given = _values(rng, name, (3, 5), NUMBERS | {"lr_power": -0.7, "l1": 0.0})
    for a, b in zip(
        _resources(DEVICE, name, start, given, "float32", options),
        _resources("CPU:0", name, start, given, "float32", options),
        strict=True,
    ):
        assert_equal(a, b, 8)


@pytest.mark.parametrize("name", ["ProximalGradientDescent", "ProximalAdagrad", "AdagradDA"])
def test_without_l1(rng, name: str) -> None:
    start, given = _values(rng, name, (3, 5), NUMBERS | {"l1": 0.0})
    for a, b in zip(
        _resources(DEVICE, name, start, given, "float32", {}),
        _resources("CPU:0", name, start, given, "float32", {}),
        strict=True,
    ):
        assert_equal(a, b, 4)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_special_numbers(name: str) -> None:
    special = np.array([0.0, -0.0, np.nan, np.inf, -np.inf, 1.0], "f4")
    variables, arguments, _ = OPTIMIZERS[name]
    start = {v: np.full(6, 0.5) for v in variables}
    given = {a: special if a in ("grad", "delta") else NUMBERS.get(a) for a in arguments}
    for a, b in zip(
        _resources(DEVICE, name, start, given, "float32", {}, steps=1),
        _resources("CPU:0", name, start, given, "float32", {}, steps=1),
        strict=True,
    ):
        assert_equal(a, b, 4)


@pytest.mark.parametrize(
    ("sizes", "rate"), [([(3,), (4,), (3,)], ()), ([(3,), (3,), (4,)], ()), ([(3,), (3,), (3,)], (1,))]
)
def test_shapes_that_do_not_match(sizes, rate) -> None:
    messages = []
    for device in ("CPU:0", DEVICE):
        with tf.device(device):
            v, m = tf.Variable(_ones(sizes[0])), tf.Variable(_ones(sizes[1]))
            with pytest.raises(tf.errors.InvalidArgumentError) as error:
                tf.raw_ops.ResourceApplyMomentum(
                    var=v.handle, accum=m.handle, lr=_ones(rate), grad=_ones(sizes[2]), momentum=0.9
                )
            messages.append(str(error.value).split(":")[1][:20])
    assert messages[0] == messages[1], messages


def test_a_value_that_is_read_stays_as_it_was() -> None:
    with tf.device(DEVICE):
        v = tf.Variable(_ones(4))
        before = v.read_value()
        tf.raw_ops.ResourceApplyGradientDescent(var=v.handle, alpha=1.0, delta=_ones(4))
        np.testing.assert_array_equal(before.numpy(), np.ones(4))
        np.testing.assert_array_equal(v.numpy(), np.zeros(4))


def test_a_variable_without_a_value() -> None:
    for device in ("CPU:0", DEVICE):
        with tf.device(device):
            handle = tf.raw_ops.VarHandleOp(dtype=tf.float32, shape=[4], shared_name=f"none_{device}")
            with pytest.raises(tf.errors.InternalError, match="Invalid variable reference"):
                tf.raw_ops.ResourceApplyGradientDescent(var=handle, alpha=1.0, delta=_ones(4))
