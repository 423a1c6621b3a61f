"""Normalisation, compared with the CPU, forward and backward."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from tests.support.compare import assert_matches_cpu, assert_same, cosines
from tests.support.dtypes import FLOATS, HALVES, dtypes, leaf

aten = torch.ops.aten


def batch_norm(x, w, b, mean, var, training=True, momentum=0.1):
    y = F.batch_norm(x, mean, var, w, b, training=training, momentum=momentum)
    return y, mean, var


@pytest.mark.parametrize("training", [True, False])
@dtypes(FLOATS)
@pytest.mark.parametrize("shape", [(8, 3), (4, 5, 7), (3, 4, 6, 5), (2, 3, 2, 4, 3)])
def test_batch_norm(shape, dtype, training):
    x, c = leaf(*shape, dtype=dtype), shape[1]
    w, b, mean, var = leaf(c, dtype=dtype), leaf(c, dtype=dtype), torch.randn(c).to(dtype), torch.rand(c).to(dtype) + 1
    run = lambda *a: batch_norm(*a, training=training)  # noqa: E731
    assert_matches_cpu(run, x, w, b, mean, var, terms=4)


@pytest.mark.parametrize("training", [True, False])
@dtypes(HALVES)
def test_batch_norm_with_float_parameters(dtype, training):
    x, mean, var = leaf(4, 3, 5, 5, dtype=dtype), torch.randn(3), torch.rand(3) + 1
    run = lambda *a: batch_norm(*a, training=training)  # noqa: E731
    assert_matches_cpu(run, x, leaf(3), leaf(3), mean, var)
    assert_matches_cpu(run, x, None, None, mean, var)


@pytest.mark.parametrize("training", [True, False])
def test_batch_norm_without(training):
    x, w, b, mean, var = leaf(4, 3, 5), leaf(3), leaf(3), torch.randn(3), torch.rand(3) + 1
    run = lambda *a: batch_norm(*a, training=training)  # noqa: E731
    assert_matches_cpu(run, x, None, None, mean, var)
    assert_matches_cpu(run, x, w, None, mean, var)
    assert_matches_cpu(run, x, None, b, mean, var)
    assert_matches_cpu(run, x.detach(), w, b, mean, var)
    if training:
        assert_matches_cpu(run, x, w, b, None, None)


def strides_of(run, *args):
    """Results of the device and the CPU agree, including strides."""
    theirs, ours = run(*args), run(*[a.to("dml") for a in args])
    for one, other in zip(ours, theirs, strict=True):
        assert_same(one, other, 1e-4, 1e-5)
        assert one.stride() == other.stride()


@pytest.mark.parametrize(
    ("shape", "memory_format"),
    [
        ((2, 3, 4, 5), torch.channels_last),
        ((2, 3, 2, 4, 3), torch.channels_last_3d),
        ((2, 1, 4, 4), torch.channels_last),
        ((2, 3, 1, 1), torch.channels_last),
    ],
)
def test_channels_last(shape, memory_format):
    x, g = (torch.randn(shape).contiguous(memory_format=memory_format) for _ in range(2))
    w = torch.randn(shape[1])

    def batch(x, g, w):
        y, mean, scale = torch.native_batch_norm(x, w, w, None, None, True, 0.1, 1e-5)
        return y, *aten.native_batch_norm_backward(g, x, w, None, None, mean, scale, True, 1e-5, [True] * 3)

    def group(x, g, w):
        n, c, hw, groups = shape[0], shape[1], x[0, 0].numel(), shape[1]
        y, mean, scale = torch.native_group_norm(x, w, w, n, c, hw, groups, 1e-5)
        return y, *aten.native_group_norm_backward(g, x, mean, scale, w, n, c, hw, groups, [True] * 3)

    if shape != (2, 3, 1, 1):  # a group of one element has no variance: gradients are rounding errors
        strides_of(group, x, g, w)
    strides_of(batch, x, g, w)


def test_batch_norm_of_any_strides():
    w = leaf(3)
    norm = lambda x, w: F.batch_norm(x, None, None, w, training=True)  # noqa: E731
    for x in (
        torch.randn(4, 6, 5, 3).transpose(1, 3),
        torch.randn(8, 3, 10)[::2, :, 1::3],
        torch.randn(3, 7).t(),
        torch.randn(2, 3, 1, 4).expand(2, 3, 5, 4),
    ):
        strides_of(lambda x: torch.native_batch_norm(x, None, None, None, None, True, 0.1, 1e-5), x)
        assert_matches_cpu(lambda x, w: norm(x, w).transpose(0, 1), x.requires_grad_(), w)
    assert_matches_cpu(lambda x, w: norm(x, w[::2]), leaf(4, 3, 2), leaf(6))


def test_running_statistics_of_infinite_elements():
    """An infinite element makes the mean infinite; only infinities of both signs make it NaN."""
    x = torch.randn(4, 5, 30)
    for i, values in enumerate([[math.inf], [-math.inf], [math.inf] * 3, [math.inf, -math.inf], [math.nan]]):
        x[: len(values), i, 7] = torch.tensor(values)
    for view in (x, x[..., 0].clone().index_fill_(0, torch.tensor(2), math.inf), x[..., :8]):
        run = lambda x, m, v: (F.batch_norm(x, m, v, training=True), m)  # noqa: E731
        assert_matches_cpu(run, view, torch.zeros(5), torch.ones(5))


def test_batch_norm_of_one_element_and_of_none():
    run = lambda x, m, v: (torch.native_batch_norm(x, None, None, m, v, True, 0.3, 1e-5), m, v)  # noqa: E731
    # The CPU's x * a - mean * a is not exactly 0.
    assert_matches_cpu(run, torch.randn(1, 3), torch.randn(3), torch.rand(3))
    nothing = torch.zeros(0, 3, 4, device="dml")
    with pytest.raises(RuntimeError, match="input tensor must have at least one element"):
        run(nothing, None, None)
    assert_matches_cpu(
        lambda x, m, v: batch_norm(x, m, m, m, v, training=False)[0],
        torch.zeros(0, 3, 4),
        torch.randn(3),
        torch.ones(3),
    )
    assert_matches_cpu(lambda x, w: F.batch_norm(x, None, None, w, training=True), torch.zeros(0, 3, 4), torch.ones(3))
    # The CPU divides by zero here.
    x, m = torch.zeros(0, 3, 4, device="dml"), torch.ones(3, device="dml")
    gradients = aten.native_batch_norm_backward(x, x, m, m, m, m, m, True, 1e-5, [True] * 3)
    assert_same(gradients, (torch.zeros(0, 3, 4), torch.zeros(3), torch.zeros(3)))


def test_batch_norm_overloads():
    x, w, mean, var = torch.randn(4, 3, 5), torch.randn(3), torch.randn(3), torch.rand(3)
    assert_matches_cpu(lambda x, w: aten._native_batch_norm_legit.no_stats(x, w, w, True, 0.1, 1e-5), x, w)
    legit = lambda x, w, m, v: (aten._native_batch_norm_legit(x, w, w, m, v, True, 0.1, 1e-5), m, v)  # noqa: E731
    assert_matches_cpu(legit, x, w, mean, var)
    update = lambda x, w, m, v: (aten._batch_norm_with_update(x, w, w, m, v, 0.1, 1e-5), m, v)  # noqa: E731
    assert_matches_cpu(update, x, w, mean, var)
    assert_matches_cpu(lambda x, m, v: (aten.batch_norm_update_stats(x, m, v, 0.2), m, v), x, mean, var)
    assert_matches_cpu(lambda x: aten.batch_norm_update_stats(x, None, None, 0.2), x)
    for mask in ([True, False, False], [False, True, False], [False, False, True]):
        for train in (True, False):
            assert_matches_cpu(
                lambda x, w, m, v, mask=mask, train=train: [
                    t
                    for t in aten.native_batch_norm_backward(cosines(x), x, w, m, v, m, v, train, 1e-5, mask)
                    if t is not None
                ],
                x,
                w,
                mean,
                var,
            )
    assert_matches_cpu(
        lambda x, w, m, v: aten.batch_norm_backward(
            cosines(x), x, w, m, v, m, v, True, 1e-5, [True] * 3, torch.empty(0, device=x.device)
        ),
        x,
        w,
        mean,
        var,
    )

    def out(x, w, m, v):
        outs = [torch.empty(0, device=x.device) for _ in range(3)]
        got = torch.native_batch_norm(x, w, w, m, v, True, 0.1, 1e-5, out=tuple(outs))
        assert all(a is b for a, b in zip(got, outs, strict=True))
        more = [torch.empty(0, device=x.device) for _ in range(3)]
        aten._native_batch_norm_legit.out(
            x, w, w, m, v, False, 0.1, 1e-5, out=more[0], save_mean=more[1], save_invstd=more[2]
        )
        last = [torch.empty(0, device=x.device) for _ in range(3)]
        aten._native_batch_norm_legit.no_stats_out(
            x, w, w, True, 0.1, 1e-5, out=last[0], save_mean=last[1], save_invstd=last[2]
        )
        return outs, more, last

    assert_matches_cpu(out, x, w, mean, var)


def test_batch_norm_errors():
    x, w = torch.randn(4, 3, 5, device="dml"), torch.ones(3, device="dml")
    norm = torch.native_batch_norm
    with pytest.raises(NotImplementedError, match="\"batch_norm\" not implemented for 'Long'"):
        norm(x.long(), None, None, None, None, True, 0.1, 1e-5)
    with pytest.raises(IndexError, match="Dimension out of range"):
        norm(w, None, None, None, None, True, 0.1, 1e-5)
    with pytest.raises(RuntimeError, match="weight should contain 3 elements not 4"):
        F.batch_norm(x, None, None, torch.ones(4, device="dml"), training=True)
    with pytest.raises(RuntimeError, match="weight should contain 3 elements not 4"):
        norm(x, torch.ones(4, device="dml"), None, None, None, True, 0.1, 1e-5)
    with pytest.raises(RuntimeError, match="expect parameter to have scalar type of Float"):
        norm(x, w.half(), None, None, None, True, 0.1, 1e-5)
    with pytest.raises(RuntimeError, match="all inputs must share same datatype"):
        norm(x.double(), w, None, None, None, True, 0.1, 1e-5)
    with pytest.raises(RuntimeError, match="expected scalar type Half but found Float"):
        norm(x.half(), w.half(), None, w, w, True, 0.1, 1e-5)
    with pytest.raises(RuntimeError, match="running_mean and running_var"):
        norm(x, None, None, None, None, False, 0.1, 1e-5)


def test_batch_norm_modules():
    torch.manual_seed(1)
    for module, shape in ((nn.BatchNorm1d(4), (6, 4)), (nn.BatchNorm2d(4, momentum=None), (2, 4, 3, 3))):
        theirs, ours = module, type(module)(4, momentum=module.momentum).to("dml")
        for _ in range(3):
            x = torch.randn(shape)
            assert_same(ours(x.to("dml")), theirs(x), 1e-4, 1e-5)
        assert_same(list(ours.state_dict().values()), list(theirs.state_dict().values()), 1e-5, 1e-6)
        assert_same(ours.eval()(x.to("dml")), theirs.eval()(x), 1e-4, 1e-5)


@pytest.mark.parametrize("shape", [(2, 3, 5), (2, 3, 4, 6), (1, 2, 300, 20)])
def test_instance_norm(shape):
    x, w, b = leaf(*shape), leaf(shape[1]), leaf(shape[1])
    mean, var = torch.randn(shape[1]), torch.rand(shape[1]) + 1
    assert_matches_cpu(lambda x, w, b: F.instance_norm(x, None, None, w, b), x, w, b, terms=20)
    run = lambda x, w, b, m, v: (F.instance_norm(x, m, v, w, b), m, v)  # noqa: E731
    assert_matches_cpu(run, x, w, b, mean, var, terms=20)
    eval_ = lambda x, w, b, m, v: F.instance_norm(x, m, v, w, b, use_input_stats=False)  # noqa: E731
    assert_matches_cpu(eval_, x, w, b, mean, var, terms=20)


@dtypes(FLOATS)
@pytest.mark.parametrize(
    ("shape", "axes"), [((3, 5), 1), ((2, 3, 7), 1), ((4, 3, 5), 2), ((2, 768), 1), ((2, 4101), 1)]
)
def test_layer_norm(shape, axes, dtype):
    normalized = shape[-axes:]
    x, w, b = leaf(*shape, dtype=dtype), leaf(*normalized, dtype=dtype), leaf(*normalized, dtype=dtype)
    assert_matches_cpu(lambda x, w, b: F.layer_norm(x, normalized, w, b), x, w, b, terms=8)
    assert_matches_cpu(lambda x: F.layer_norm(x, normalized), x, terms=8)
    assert_matches_cpu(lambda x, w: F.layer_norm(x, normalized, w), x, w, terms=8)
    assert_matches_cpu(lambda x: torch.native_layer_norm(x, normalized, None, None, 1e-3), x.detach())


@dtypes(HALVES)
@pytest.mark.parametrize("n", [9, 5000])
def test_layer_norm_with_float_parameters(dtype, n):
    x, w, b = leaf(3, n, dtype=dtype), leaf(n), leaf(n)
    assert_matches_cpu(lambda x, w, b: torch.native_layer_norm(x, [n], w, b, 1e-5)[0], x, w, b)


def test_layer_norm_shapes():
    norm = lambda x: torch.native_layer_norm(x, x.shape[-1:], None, None, 1e-5)  # noqa: E731
    for x in (torch.randn(0, 4), torch.randn(3, 0), torch.randn(4, 5).t(), torch.randn(6, 8)[::2, ::2], torch.randn(4)):
        strides_of(norm, x)
        assert_matches_cpu(lambda x: norm(x)[0] * 2, x.requires_grad_())
    assert_matches_cpu(lambda x: F.layer_norm(x, (1,)), torch.randn(4, 1))
    backward = lambda x, s, w: aten.native_layer_norm_backward(x, x, w.shape, s, s, w, w, [True] * 3)  # noqa: E731
    assert_matches_cpu(backward, torch.zeros(0, 4), torch.zeros(0, 1), torch.ones(4))
    assert_matches_cpu(backward, torch.zeros(3, 0), torch.zeros(3, 1), torch.ones(0))
    cl = torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last)
    strides_of(lambda x: torch.native_layer_norm(x, [4, 5], None, None, 1e-5), cl)


def test_layer_norm_errors():
    x = torch.randn(4, 3, device="dml")
    with pytest.raises(RuntimeError, match="Expected normalized_shape to be at least 1-dimensional"):
        torch.native_layer_norm(x, [], None, None, 1e-5)
    with pytest.raises(RuntimeError, match=r"Given normalized_shape=\[4\], expected input with shape \[\*, 4\]"):
        F.layer_norm(x, [4])
    with pytest.raises(RuntimeError, match="Expected weight to be of same shape as normalized_shape"):
        F.layer_norm(x, [3], torch.ones(2, device="dml"))
    with pytest.raises(NotImplementedError, match="\"LayerNormKernelImpl\" not implemented for 'Long'"):
        torch.native_layer_norm(x.long(), [3], None, None, 1e-5)
    with pytest.raises(RuntimeError, match="expect parameter to have scalar type of Float"):
        torch.native_layer_norm(x, [3], torch.ones(3, device="dml").double(), None, 1e-5)


@dtypes(FLOATS)
@pytest.mark.parametrize(("shape", "groups"), [((2, 6, 5), 3), ((3, 4, 3, 5), 1), ((2, 4, 4, 3), 4), ((4, 6), 2)])
def test_group_norm(shape, groups, dtype):
    x, w, b = leaf(*shape, dtype=dtype), leaf(shape[1], dtype=dtype), leaf(shape[1], dtype=dtype)
    assert_matches_cpu(lambda x, w, b: F.group_norm(x, groups, w, b), x, w, b, terms=8)
    assert_matches_cpu(lambda x: F.group_norm(x, groups), x, terms=8)
    assert_matches_cpu(lambda x, w: F.group_norm(x, groups, w), x, w, terms=8)
    if dtype in (torch.float16, torch.bfloat16):
        mixed = lambda x, w: torch.native_group_norm(x, w, w, *shape[:2], x[0, 0].numel(), groups, 1e-5)  # noqa: E731
        assert_matches_cpu(lambda x, w: mixed(x, w)[0], x, leaf(shape[1]))


def test_group_norm_of_halves_far_from_zero():
    x = torch.tensor([[-9.234375, -8.8671875]], dtype=torch.float16)
    assert_same(F.group_norm(x.to("dml"), 1), F.group_norm(x, 1))
    for ours, expected in zip(
        *(torch.native_group_norm(t, None, None, 1, 2, 1, 1, 1e-5) for t in (x.to("dml"), x)), strict=True
    ):
        assert_same(ours, expected)


def test_group_norm_shapes_and_errors():
    norm = lambda x, groups=2: F.group_norm(x, groups)  # noqa: E731
    assert_matches_cpu(norm, torch.randn(5, 4, 2).transpose(0, 2))
    assert_matches_cpu(norm, leaf(2, 4, 3, 3).detach().to(memory_format=torch.channels_last).requires_grad_())
    empty = lambda x, c: torch.native_group_norm(x, None, None, x.shape[0], 4, c, 2, 1e-5)  # noqa: E731
    assert_matches_cpu(empty, torch.zeros(0, 4, 3), 3)
    # Some versions of the CPU refuse this.
    y, mean, scale = empty(torch.zeros(2, 4, 0, device="dml"), 0)
    assert y.shape == (2, 4, 0) and mean.eq(0).all() and scale.isnan().all()
    x = torch.randn(2, 4, 3, device="dml")
    with pytest.raises(RuntimeError, match="to be divisible by num_groups"):
        torch.native_group_norm(x, None, None, 2, 4, 3, 3, 1e-5)
    with pytest.raises(RuntimeError, match="Expected num groups to be greater than 0"):
        torch.native_group_norm(x, None, None, 2, 4, 3, 0, 1e-5)
    with pytest.raises(RuntimeError, match="Expected bias to be a vector of size equal to the number of channels"):
        torch.native_group_norm(x, None, x[0, 0], 2, 4, 3, 2, 1e-5)
    with pytest.raises(NotImplementedError, match="\"GroupNormKernelImpl\" not implemented for 'Int'"):
        torch.native_group_norm(x.int(), None, None, 2, 4, 3, 2, 1e-5)


@dtypes(FLOATS)
@pytest.mark.parametrize(("shape", "axes"), [((3, 5), 1), ((4, 3, 5), 2), ((2, 768), 1), ((2, 4101), 1)])
def test_rms_norm(shape, axes, dtype):
    normalized = shape[-axes:]
    x, w = leaf(*shape, dtype=dtype), leaf(*normalized, dtype=dtype)
    assert_matches_cpu(lambda x, w: F.rms_norm(x, normalized, w), x, w)
    assert_matches_cpu(lambda x: F.rms_norm(x, normalized, eps=0.1), x)
    # The default eps is float32's, or float64's for float64.
    eps = torch.finfo(torch.float64 if dtype == torch.float64 else torch.float32).eps
    norm = lambda x: aten._fused_rms_norm(x, normalized, None, None if x.dtype == dtype else eps)  # noqa: E731
    assert_matches_cpu(norm, x.detach() * 1e-4)


def test_rms_norm_shapes_and_errors():
    for x in (torch.randn(0, 4), torch.randn(4, 5).t(), torch.randn(6, 8)[::2, ::2], torch.randn(4)):
        assert_matches_cpu(lambda x: F.rms_norm(x, x.shape[-1:]), x.requires_grad_())
    assert_matches_cpu(lambda x, w: F.rms_norm(x, (4,), w), leaf(3, 4, dtype=torch.float16), leaf(4))
    x = torch.randn(4, 3, device="dml")
    with pytest.raises(RuntimeError, match="Given normalized_shape"):
        F.rms_norm(x, [4])
    with pytest.raises(NotImplementedError, match="not implemented for 'Long'"):
        aten._fused_rms_norm(x.long(), [3], None, None)


NORMS = {
    "batch": lambda x: F.batch_norm(x, None, None, training=True),
    "group": lambda x: F.group_norm(x, 2),
    "instance": F.instance_norm,
    "layer": lambda x: F.layer_norm(x, x.shape[2:]),
}


@pytest.mark.parametrize("norm", NORMS.values(), ids=NORMS)
@pytest.mark.parametrize("size", [30, 150])
def test_a_mean_far_from_zero(norm, size):
    x = torch.randn(3, 4, size, size) + 1000
    exact = norm(x.double())
    ours, theirs = (norm(x.to(device)).cpu().double() for device in ("dml", "cpu"))
    error = lambda y: (y - exact).abs().max().item()  # noqa: E731
    assert error(ours) < max(error(theirs), 2e-4)


@pytest.mark.parametrize("norm", [*NORMS.values(), lambda x: F.rms_norm(x, x.shape[2:])], ids=[*NORMS, "rms"])
def test_double_backward(norm):
    def twice(x, v):
        (first,) = torch.autograd.grad(norm(x), x, v, create_graph=True)
        return torch.autograd.grad(first, (x, v), cosines(first))

    x, v = torch.randn(3, 4, 5).double().requires_grad_(), torch.randn(3, 4, 5).double().requires_grad_()
    assert_matches_cpu(lambda x, v: [t.detach() for t in twice(x, v)], x, v)


@pytest.mark.parametrize("norm", [*NORMS.values(), lambda x: F.rms_norm(x, x.shape[2:])], ids=[*NORMS, "rms"])
def test_expanded_gradient(norm):
    assert_matches_cpu(lambda x: (norm(x) ** 3).sum(), leaf(3, 4, 5), terms=10)
    assert_matches_cpu(lambda x: (norm(x) ** 2 * 0 + x).sum(), leaf(3, 4, 5))


def test_larger_batches():
    x = torch.randn(8, 8, 24, 24).requires_grad_()
    for memory_format in (torch.contiguous_format, torch.channels_last):
        y = x.detach().contiguous(memory_format=memory_format).requires_grad_()
        for norm in NORMS.values():
            assert_matches_cpu(norm, y)


def test_autocast():
    net = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.LayerNorm(8)).to("dml")
    with torch.autocast("dml", dtype=torch.float16):
        y = net(torch.randn(5, 6, device="dml"))
    y.float().square().sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in net.parameters())


@dtypes(torch.float32, torch.float64)
def test_synchronized(dtype):
    """The parts of SyncBatchNorm, over the halves on two devices, give the result of one batch norm
    of the whole.
    """
    x, g = (torch.randn(6, 3, 4, 5).to(dtype) for _ in range(2))
    w, b, mean, var = (torch.rand(3).to(dtype) + 0.5 for _ in range(4))
    their_mean, their_var = mean.clone(), var.clone()
    y, saved_mean, saved_scale = torch.native_batch_norm(x, w, b, their_mean, their_var, True, 0.3, 1e-5)
    gradients = aten.native_batch_norm_backward(g, x, w, None, None, saved_mean, saved_scale, True, 1e-5, [True] * 3)

    parts, grads = [t.to("dml").split([2, 4]) for t in (x, g)]
    w, b, mean, var = (t.to("dml") for t in (w, b, mean, var))
    stats = [torch.batch_norm_stats(part, 1e-5) for part in parts]
    counts = torch.tensor([40.0, 80.0], device="dml", dtype=dtype)
    m, s = torch.batch_norm_gather_stats_with_counts(
        x.to("dml"), *(torch.stack([p[i] for p in stats]) for i in (0, 1)), mean, var, 0.3, 1e-5, counts
    )
    for ours, theirs in ((m, saved_mean), (s, saved_scale), (mean, their_mean), (var, their_var)):
        assert_same(ours, theirs)
    outs = [torch.batch_norm_elemt(part, w, b, m, s, 1e-5) for part in parts]
    assert_same(torch.cat(outs), y)
    out = torch.empty(0, device="dml", dtype=dtype)
    assert torch.batch_norm_elemt(parts[0], w, b, m, s, 1e-5, out=out) is out
    assert_same(out, y[:2])
    sums = [
        torch.batch_norm_backward_reduce(grad, part, m, s, w, True, True, True)
        for grad, part in zip(grads, parts, strict=True)
    ]
    dy, dy_xmu, of_weight, of_bias = (p + q for p, q in zip(*sums, strict=True))
    of_input = [
        torch.batch_norm_backward_elemt(grad, part, m, s, w, dy, dy_xmu, counts.int())
        for grad, part in zip(grads, parts, strict=True)
    ]
    for ours, theirs in zip((torch.cat(of_input), of_weight, of_bias), gradients, strict=True):
        assert_same(ours, theirs)
    even = [torch.batch_norm_stats(part, 1e-5) for part in x.to("dml").split(3)]
    m, s = torch.batch_norm_gather_stats(
        x.to("dml"), *(torch.stack([p[i] for p in even]) for i in (0, 1)), None, None, 0.3, 1e-5, 60
    )
    assert_same((m, s), (saved_mean, saved_scale))


@dtypes(torch.float32, torch.float64)
@pytest.mark.parametrize("dim", [0, 1, 2, None])
def test_weight_norm(dim, dtype):
    v = leaf(4, 3, 5, dtype=dtype)
    g = leaf([n if d == dim else 1 for d, n in enumerate(v.shape)] if dim is not None else [], dtype=dtype)
    norm = lambda v, g: torch._weight_norm(v, g, -1 if dim is None else dim)  # noqa: E731
    assert_matches_cpu(norm, v, g)


def test_weight_norm_interface():
    v, cl = torch.randn(4, 3, 5, 2), torch.randn(4, 3, 5, 2).to(memory_format=torch.channels_last)
    for dim, g in ((0, torch.randn(4, 1, 1, 1)), (3, torch.randn(1, 1, 1, 2))):
        assert_matches_cpu(lambda v, g, dim=dim: aten._weight_norm_interface(v, g, dim), v, g)
        # The CPU's kernel treats any memory as row-major.
        same = [aten._weight_norm_interface(x.to("dml"), g.to("dml"), dim) for x in (cl, cl.contiguous())]
        assert_same(same[0], [t.cpu() for t in same[1]])
        norms = torch.rand_like(g) + 1
        backward = lambda w, v, g, n, dim=dim: aten._weight_norm_interface_backward(w, v, g, n, dim)  # noqa: E731
        assert_matches_cpu(backward, torch.randn_like(v), v, g, norms)
    half = lambda v, g: aten._weight_norm_interface(v, g, 0)  # noqa: E731
    assert_matches_cpu(half, v.half(), torch.randn(4, 1, 1, 1).half())
    with pytest.raises(RuntimeError, match="expected scalar type Half but found Float"):
        half(v.half().to("dml"), torch.randn(4, 1, 1, 1, device="dml"))

    def module(x):
        torch.manual_seed(3)
        layer = nn.utils.parametrizations.weight_norm(nn.Linear(4, 3)).to(x.device)
        y = layer(x)
        y.square().sum().backward()
        return y, *(p.grad for p in layer.parameters())

    # In float64 the layer would draw other weights.
    assert_matches_cpu(lambda x: [t.detach() for t in module(x)], torch.randn(5, 4), widen=False)


@pytest.mark.parametrize("p", [0.5, 1, 2, 3.5, float("inf")])
@dtypes(FLOATS)
def test_renorm(p, dtype):
    x = leaf(4, 3, 5, dtype=dtype)
    for dim in (0, 1, -1):
        assert_matches_cpu(lambda x, dim=dim: torch.renorm(x.detach(), p, dim, 1.5), x)
        assert_matches_cpu(lambda x, dim=dim: x.detach().transpose(0, 1).renorm_(p, dim, 0.7), x)
    if dtype == torch.float64 and p > 1:
        assert_matches_cpu(lambda x: torch.renorm(x, p, 0, 1.5), x)


def test_renorm_errors():
    x = torch.randn(4, 3, device="dml")
    assert_matches_cpu(lambda x: torch.renorm(x, 2, 0, 1.0), torch.zeros(0, 3))
    with pytest.raises(RuntimeError, match="non-positive-norm not supported"):
        torch.renorm(x, 0, 0, 1)
    with pytest.raises(RuntimeError, match="expected maxnorm to be >= 0"):
        torch.renorm(x, 2, 0, -1)
    with pytest.raises(RuntimeError, match="needs at least 2 dimensions"):
        torch.renorm(x[0], 2, 0, 1)
    with pytest.raises(IndexError, match="Dimension out of range"):
        torch.renorm(x, 2, 5, 1)
    with pytest.raises(RuntimeError, match="Expected a floating point"):
        torch.renorm(x.long(), 2, 0, 1)
