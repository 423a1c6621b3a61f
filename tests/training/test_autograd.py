"""Automatic differentiation: second derivatives, hooks, checkpoints, torch.func, threads."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.func import (
    functional_call,
    grad,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    linearize,
    stack_module_state,
    vjp,
    vmap,
)
from torch.utils.checkpoint import checkpoint, checkpoint_sequential

from tests.support.compare import assert_matches_cpu, assert_same
from tests.support.processes import run_python

# Functions of a matrix (3, 4) of positive numbers, whose derivatives are compared with finite
# differences.
FUNCTIONS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "add": lambda x: x + 2 * x[0],
    "sub": lambda x: 1 - x,
    "mul": lambda x: x * x[:, :1],
    "div": lambda x: x[:1] / x,
    "pow": lambda x: x**3 + x**0.5,
    "pow_tensor": lambda x: x**x,
    "exp": torch.exp,
    "expm1": torch.expm1,
    "log": torch.log,
    "log1p": torch.log1p,
    "log2": torch.log2,
    "sqrt": torch.sqrt,
    "rsqrt": torch.rsqrt,
    "reciprocal": torch.reciprocal,
    "sin": torch.sin,
    "cos": torch.cos,
    "tan": torch.tan,
    "atan": torch.atan,
    "atan2": lambda x: torch.atan2(x, x[:, :1]),
    "sinh": torch.sinh,
    "cosh": torch.cosh,
    "tanh": torch.tanh,
    "erf": torch.erf,
    "sigmoid": torch.sigmoid,
    "logsigmoid": F.logsigmoid,
    "relu": lambda x: F.relu(x - 1),
    "leaky_relu": lambda x: F.leaky_relu(x - 1, 0.1),
    "elu": lambda x: F.elu(x - 1),
    "celu": lambda x: F.celu(x - 1),
    "selu": lambda x: F.selu(x - 1),
    "gelu": F.gelu,
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "silu": F.silu,
    "mish": F.mish,
    "softplus": F.softplus,
    "hardtanh": lambda x: F.hardtanh(x, 0.7, 1.2),
    "prelu": lambda x: F.prelu(x - 1, x[0, :1]),
    "abs": lambda x: (x - 1).abs(),
    "clamp": lambda x: x.clamp(0.7, 1.3),
    "maximum": lambda x: torch.maximum(x, x.roll(1)),
    "lerp": lambda x: torch.lerp(x, x[0], x[1]),
    "addcmul": lambda x: torch.addcmul(x, x[0], x[1], value=0.5),
    "addcdiv": lambda x: torch.addcdiv(x, x[0], x[1], value=0.5),
    "where": lambda x: torch.where(x > 1, x, x * x),
    "masked_fill": lambda x: x.masked_fill(x > 1, 0.5) * x,
    "sum": lambda x: x.sum(0) * x.sum(),
    "mean": lambda x: x.mean(1) * x.mean(),
    "prod": lambda x: x.prod(1),
    "var": lambda x: x.var(1),
    "std": lambda x: x.std(),
    "norm": lambda x: x.norm(dim=1),
    "norm_3": lambda x: torch.linalg.vector_norm(x, 3),
    "logsumexp": lambda x: x.logsumexp(0),
    "amax": lambda x: x.amax(1) * x.amax(),
    "max_dim": lambda x: x.max(1).values,
    "cumsum": lambda x: x.cumsum(1),
    "cumprod": lambda x: x.cumprod(1),
    "softmax": lambda x: x.softmax(1),
    "log_softmax": lambda x: x.log_softmax(0),
    "mm": lambda x: x @ x.t(),
    "mv": lambda x: x @ x[0],
    "bmm": lambda x: torch.bmm(x[None], x.t()[None]),
    "addmm": lambda x: torch.addmm(x[:, :3], x, x.t(), beta=0.5, alpha=2.0),
    "einsum": lambda x: torch.einsum("ij,kj->ik", x, x),
    "linear": lambda x: F.linear(x, x, x[:, 0]),
    "outer": lambda x: torch.outer(x[0], x[1]),
    "transpose": lambda x: x.t() * x.t(),
    "index": lambda x: x[[0, 2, 0]] ** 2,
    "index_select": lambda x: x.index_select(1, torch.tensor([1, 1], device=x.device)) ** 2,
    "gather": lambda x: x.gather(1, torch.tensor([[0], [3], [1]], device=x.device)) ** 2,
    "scatter_add": lambda x: x.scatter_add(1, torch.zeros(3, 4, dtype=torch.long, device=x.device), x * x),
    "index_add": lambda x: x.index_add(0, torch.tensor([2, 2], device=x.device), x[:2] * x[1:]),
    "index_put": lambda x: x.index_put((torch.tensor([1], device=x.device),), x[:1] ** 2),
    "masked_select": lambda x: x[x > 1] ** 2,
    "cat": lambda x: torch.cat([x, x * x], 1),
    "stack": lambda x: torch.stack([x, x * x]),
    "pad": lambda x: F.pad(x, (1, 2, 0, 1)) ** 2,
    "roll_flip": lambda x: x.roll(1, 0) * x.flip(1),
    "tril": lambda x: x.tril() ** 2,
    "diagonal": lambda x: x.diagonal() ** 2,
    "unfold": lambda x: x.unfold(1, 2, 1) ** 2,
    "expand": lambda x: x[:1].expand(3, 4) * x,
    "repeat": lambda x: x.repeat(2, 2) ** 2,
    "sort": lambda x: x.sort(1).values ** 2,
    "topk": lambda x: x.topk(2, 1).values ** 2,
    "median": lambda x: x.median(1).values ** 2,
    "batch_norm": lambda x: F.batch_norm(x, None, None, x[0], x[1], training=True),
    "layer_norm": lambda x: F.layer_norm(x, (4,), x[0], x[1]),
    "group_norm": lambda x: F.group_norm(x[None], 3, x[:, 0], x[:, 1]),
    "rms_norm": lambda x: F.rms_norm(x, (4,), x[0]),
    "interpolate": lambda x: F.interpolate(x[None, None], scale_factor=2, mode="bilinear") ** 2,
    "conv1d": lambda x: F.conv1d(x[None], x[None, :, :2]),
    "conv2d": lambda x: F.conv2d(x[None, None], x[None, None, :2, :2]),
    "conv_transpose": lambda x: F.conv_transpose1d(x[None], x[:, None, :2], stride=2),
    "max_pool": lambda x: F.max_pool2d(x[None], 2) ** 2,
    "avg_pool": lambda x: F.avg_pool2d(x[None], 2) ** 2,
    "adaptive_pool": lambda x: F.adaptive_avg_pool2d(x[None], 2) ** 2,
    "mse_loss": lambda x: F.mse_loss(x, x[0].expand(3, 4)),
    "smooth_l1": lambda x: F.smooth_l1_loss(x * 2, x[0].expand(3, 4)),
    "huber": lambda x: F.huber_loss(x * 2, x[0].expand(3, 4)),
    "bce": lambda x: F.binary_cross_entropy(x.sigmoid(), torch.full_like(x, 0.3)),
    "bce_logits": lambda x: F.binary_cross_entropy_with_logits(x, torch.full_like(x, 0.3)),
    "cross_entropy": lambda x: F.cross_entropy(x, torch.tensor([1, 0, 3], device=x.device)),
    "kl_div": lambda x: F.kl_div(x.log_softmax(1), torch.full_like(x, 0.25), reduction="batchmean"),
    "embedding": lambda x: F.embedding(torch.tensor([0, 2, 2], device=x.device), x) ** 2,
    "dist": lambda x: torch.dist(x[0], x[1]),
    "attention": lambda x: F.scaled_dot_product_attention(*[x[None, None]] * 3, torch.zeros(3, 3, device=x.device)),
}

# Functions whose fused gradient has no derivative, as on the CPU.
ONCE = {"attention"}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives(name: str) -> None:
    function = FUNCTIONS[name]
    x = (torch.rand(3, 4, dtype=torch.float64) + 0.5).to("dml").requires_grad_()
    assert torch.autograd.gradcheck(function, x, fast_mode=True)
    if name not in ONCE:
        assert torch.autograd.gradgradcheck(function, x, fast_mode=True)


@pytest.mark.smoke
def test_second_derivatives_by_hand() -> None:
    x = torch.tensor([1.0, 2.0], device="dml", requires_grad=True)
    (first,) = torch.autograd.grad((x**4).sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x, create_graph=True)
    (third,) = torch.autograd.grad(second.sum(), x)
    for got, expected in ((first, [4.0, 32]), (second, [12.0, 48]), (third, [24.0, 48])):
        assert_same(got, torch.tensor(expected))


def test_gradients_accumulate() -> None:
    x = torch.ones(3, device="dml", requires_grad=True)
    for _ in range(2):
        (x * 2).sum().backward()
    assert (x.grad == 4).all()
    kept = x.grad
    (x * 3).sum().backward()
    assert x.grad is kept and (kept == 7).all()
    x.grad = None
    (x * 5).sum().backward()
    assert (x.grad == 5).all()


def test_a_graph_is_kept_only_if_asked() -> None:
    x = torch.ones(3, device="dml", requires_grad=True)
    y = (x * x).sum()
    y.backward(retain_graph=True)
    y.backward()
    assert (x.grad == 4).all()
    with pytest.raises(RuntimeError, match="second time"):
        y.backward()


def test_hooks() -> None:
    seen: list[str] = []
    x = torch.ones(3, device="dml", requires_grad=True)
    y = x * 2
    y.retain_grad()
    y.register_hook(lambda g: seen.append("tensor") or g * 2)
    x.register_post_accumulate_grad_hook(lambda p: seen.append("accumulated"))
    z = (y * y).sum()
    z.grad_fn.register_hook(lambda *_: seen.append("node"))
    z.backward()
    assert seen == ["node", "tensor", "accumulated"]
    assert (y.grad == 8).all() and (x.grad == 16).all()


def test_hooks_of_modules() -> None:
    module = nn.Linear(2, 2).to("dml")
    seen: list[tuple[str, str]] = []
    module.register_forward_pre_hook(lambda m, args: seen.append(("before", args[0].device.type)))
    module.register_forward_hook(lambda m, args, out: out * 2)
    module.register_full_backward_hook(lambda m, gi, go: seen.append(("backward", go[0].device.type)))
    x = torch.ones(1, 2, device="dml", requires_grad=True)
    module(x).sum().backward()
    assert seen == [("before", "dml"), ("backward", "dml")]
    assert_same(x.grad, 2 * module.weight.detach().cpu().sum(0, keepdim=True))


def test_saved_tensors_may_live_elsewhere() -> None:
    x = torch.randn(4, 4, device="dml", requires_grad=True)
    (expected,) = torch.autograd.grad((x @ x).tanh().sum(), x)
    with torch.autograd.graph.save_on_cpu():
        y = (x @ x).tanh().sum()
    y.backward()
    assert x.grad.equal(expected)


@pytest.mark.parametrize("reentrant", [True, False])
def test_checkpoints_draw_the_same_random_numbers(reentrant: bool) -> None:
    module = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.Tanh(), nn.Linear(8, 4), nn.Dropout(0.5)).to("dml")
    x = torch.randn(3, 4, device="dml", requires_grad=True)
    results = []
    for run in (
        module,
        lambda x: checkpoint(module, x, use_reentrant=reentrant),
        lambda x: checkpoint_sequential(module, 2, x, use_reentrant=reentrant),
    ):
        torch.manual_seed(1)
        y = run(x)
        module.zero_grad()
        x.grad = None
        y.sum().backward()
        results.append([y.detach(), x.grad.clone(), *(p.grad.clone() for p in module.parameters())])
    for other in results[1:]:
        assert all(a.equal(b) for a, b in zip(results[0], other, strict=True))


def test_anomaly_mode_names_the_culprit() -> None:
    x = torch.tensor([-1.0], device="dml", requires_grad=True)
    with torch.autograd.detect_anomaly(check_nan=True), pytest.raises(RuntimeError, match="SqrtBackward0"):
        torch.sqrt(x).sum().backward()


def test_custom_functions() -> None:
    class Cube(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor, factor: float) -> torch.Tensor:
            ctx.save_for_backward(x)
            ctx.factor = factor
            return factor * x**3

        @staticmethod
        def backward(ctx: Any, g: torch.Tensor) -> tuple[torch.Tensor, None]:
            (x,) = ctx.saved_tensors
            return g * ctx.factor * 3 * x**2, None

        @staticmethod
        def jvp(ctx: Any, x_t: torch.Tensor, _: None) -> torch.Tensor:
            return x_t

    x = torch.rand(3, device="dml", dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: Cube.apply(x, 2.0), x)
    assert torch.autograd.gradgradcheck(lambda x: Cube.apply(x, 2.0), x)


def test_views_and_in_place_changes() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        y = x.clone()
        y[1:] *= 2
        y.t()[0].add_(x[:, 1].sum())
        return y.square_().view(-1)[::2]

    assert_matches_cpu(function, torch.randn(3, 4, requires_grad=True))
    x = torch.ones(3, device="dml", requires_grad=True)
    y = x.exp()
    y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_threads() -> None:
    weight = torch.randn(8, 8, device="dml", requires_grad=True)
    inputs = [torch.randn(4, 8, device="dml") for _ in range(4)]
    expected = [torch.autograd.grad((x @ weight).tanh().sum(), weight)[0] for x in inputs]
    found: list[Any] = [None] * 4

    def work(i: int) -> None:
        for _ in range(5):
            found[i] = torch.autograd.grad((inputs[i] @ weight).tanh().sum(), weight)[0]

    workers = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert all(a.equal(b) for a, b in zip(found, expected, strict=True))


def test_modes() -> None:
    x = torch.ones(2, device="dml", requires_grad=True)
    with torch.no_grad():
        assert not (x * 2).requires_grad
    with torch.inference_mode():
        y = x * 2
    assert y.is_inference() and (y + 1).cpu().equal(torch.full((2,), 3.0))
    with torch.set_grad_enabled(False), torch.enable_grad():
        assert (x * 2).requires_grad


def test_functional_derivatives() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        return (x.sin() * x.sum()).square()

    from torch.autograd import functional

    x = torch.randn(3)
    for derivative in (functional.jacobian, lambda f, x: functional.hessian(lambda x: f(x).sum(), x)):
        assert_matches_cpu(lambda x, d=derivative: d(function, x), x)


# ---- torch.func


class Net(nn.Module):
    """A model with most of what function transforms have to handle."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.qkv, self.out = nn.Conv1d(2, 4, 3, padding=1), nn.Linear(4, 12), nn.Linear(4, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = F.gelu(self.conv(x)).mT
        q, k, v = self.qkv(x).unflatten(-1, (3, 2, 2)).permute(2, 0, 3, 1, 4)
        x = x + F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2)
        return self.out(x.mean(1)).log_softmax(-1)


def of_net(function: Callable[..., Any], *inputs: torch.Tensor, rtol: float = 1e-4) -> None:
    net = Net()
    found = []
    for device in ("cpu", "dml"):
        twin = Net().to(device)
        twin.load_state_dict(net.state_dict())
        parameters = {name: p.detach() for name, p in twin.named_parameters()}
        result = function(twin, parameters, *(x.to(device) for x in inputs))
        found.append([t.detach().cpu() for t in torch.utils._pytree.tree_leaves(result)])
    assert_same(found[1], found[0], rtol, 1e-5)


def loss(net: nn.Module, parameters: dict[str, torch.Tensor], x: torch.Tensor) -> torch.Tensor:
    return -functional_call(net, parameters, (x[None],))[0, 1]


def test_gradients_of_every_sample() -> None:
    of_net(lambda net, p, x: vmap(grad(lambda p, x: loss(net, p, x)), (None, 0))(p, x), torch.randn(5, 2, 6))


def test_products_with_jacobians() -> None:
    x, t = torch.randn(2, 6), torch.randn(2, 6)
    # The CPU's fused attention has no forward derivative; the composed one has.
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        of_net(lambda net, p, x, t: jvp(lambda x: loss(net, p, x), (x,), (t,)), x, t)
        of_net(lambda net, p, x, t: linearize(lambda x: loss(net, p, x), x)[1](t), x, t)
    of_net(lambda net, p, x, t: vjp(lambda x: loss(net, p, x), x)[1](torch.ones_like(x[0, 0])), x, t)


def test_jacobians_and_hessians() -> None:
    x = torch.randn(1, 2, 4)
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        of_net(lambda net, p, x: jacrev(lambda x: net(x))(x), x)
        of_net(lambda net, p, x: jacfwd(lambda x: net(x))(x), x)
        of_net(lambda net, p, x: hessian(lambda x: loss(net, p, x[0]))(x), x)


def test_forward_derivatives_take_the_composed_attention() -> None:
    q = torch.randn(1, 1, 3, 4, device="dml")
    expected = jacrev(lambda q: F.scaled_dot_product_attention(q, q, q))(q)
    assert_same(jacfwd(lambda q: F.scaled_dot_product_attention(q, q, q))(q), expected.cpu())
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(q, q)
        assert (
            torch.autograd.forward_ad.unpack_dual(F.scaled_dot_product_attention(dual, dual, dual)).tangent is not None
        )


def test_ensembles() -> None:
    nets = [Net().to("dml") for _ in range(3)]
    parameters, buffers = stack_module_state(nets)
    x = torch.randn(5, 2, 6, device="dml")
    together = vmap(lambda p, b, x: functional_call(nets[0], (p, b), (x,)), (0, 0, None))(parameters, buffers, x)
    assert_same(together, torch.stack([net(x).detach().cpu() for net in nets]))


@pytest.mark.parametrize("randomness", ["same", "different"])
def test_random_numbers_under_vmap(randomness: str) -> None:
    x = torch.ones(4, 100, device="dml")
    y = vmap(lambda x: F.dropout(x, 0.5), randomness=randomness)(x)
    assert ((y == 0) | (y == 2)).all()
    assert y[0].equal(y[1]) == (randomness == "same")
    with pytest.raises(RuntimeError, match="randomness"):
        vmap(lambda x: F.dropout(x, 0.5))(x)


def backward_thread() -> int:
    """Return the identity of the thread that runs a backward pass of the device."""
    seen = []
    x = torch.ones(3, device="dml", requires_grad=True)
    y = x.exp()
    y.register_hook(lambda _: seen.append(threading.get_ident()))
    y.sum().backward()
    assert_same(x.grad, torch.ones(3).exp())
    return seen[0]


def test_the_calling_thread_runs_backward_passes_unless_told_otherwise() -> None:
    here = threading.get_ident()
    with torch.autograd.set_multithreading_enabled(False):
        assert backward_thread() == here
    with torch.autograd.set_multithreading_enabled(True):
        assert backward_thread() != here


@pytest.mark.parametrize(("wish", "expected"), [("", "False"), ("1", "True")])
def test_what_a_program_starts_with(wish: str, expected: str) -> None:
    script = "import torch, torch_dml; print(torch.autograd.is_multithreading_enabled())"
    if torch.cuda.device_count() > 1:
        expected = "True"
    done = run_python("-c", script, TORCH_DML_AUTOGRAD_THREADS=wish)
    assert done.stdout.strip() == expected, done.stderr


@pytest.mark.parametrize("dtype", [torch.float32, torch.complex64], ids=str)
@pytest.mark.parametrize("product", [torch.dot, torch.vdot])
def test_tangents_that_are_known_to_vanish(product: Any, dtype: torch.dtype) -> None:
    """PyTorch represents them as tensors without memory, which these products have to handle."""
    x = torch.tensor([1, 2, 3], dtype=dtype, device="dml")
    nothing = torch._efficientzerotensor((3,), dtype=dtype, device="dml")
    for a, b in ((x, nothing), (nothing, x), (x.conj(), nothing), (nothing.conj(), x), (nothing, nothing)):
        assert product(a, b).cpu().equal(torch.zeros((), dtype=dtype))
    dual_level, make_dual = torch.autograd.forward_ad.dual_level, torch.autograd.forward_ad.make_dual
    with dual_level():
        tangent = torch.autograd.forward_ad.unpack_dual(product(make_dual(x, x), x)).tangent
        assert tangent is not None and tangent.cpu().equal(torch.tensor(14, dtype=dtype))
