"""Modules that query whether autocast is on, under torch.autocast("dml"), and the queries."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import nn

from tests.support.compare import assert_same
from tests.support.dtypes import HALVES
from tests.support.torch_versions import number

LAYER: dict[str, Any] = {"d_model": 8, "nhead": 2, "dim_feedforward": 16, "batch_first": True}
PADDED = torch.tensor([[False, False, False], [False, False, True]])


def call(module: nn.Module, x: torch.Tensor) -> Any:
    return module(x)


def attend(module: nn.Module, x: torch.Tensor) -> Any:
    return module(x, x, x, need_weights=False)[0]


def attend_and_tell(module: nn.Module, x: torch.Tensor) -> Any:
    return module(x, x, x, key_padding_mask=PADDED.to(x.device))


def encode_padded(module: nn.Module, x: torch.Tensor) -> Any:
    return module(x, src_key_padding_mask=PADDED.to(x.device))


def translate(module: nn.Module, x: torch.Tensor) -> Any:
    return module(x, x)


def encoder(**options: Any) -> nn.Module:
    return nn.TransformerEncoder(nn.TransformerEncoderLayer(**LAYER, **options), 2, enable_nested_tensor=not options)


# By name: a module, its call, and whether its result has autocast's dtype (else float32), as on
# CUDA.
MODULES: dict[str, tuple[Callable[[], nn.Module], Callable[[nn.Module, torch.Tensor], Any], bool]] = {
    "attention": (lambda: nn.MultiheadAttention(8, 2, batch_first=True), attend, True),
    "attention with weights": (lambda: nn.MultiheadAttention(8, 2, batch_first=True), attend_and_tell, True),
    "layer": (lambda: nn.TransformerEncoderLayer(**LAYER), call, False),
    "layer, norm first": (lambda: nn.TransformerEncoderLayer(**LAYER, norm_first=True), call, False),
    "layer, gelu": (lambda: nn.TransformerEncoderLayer(**LAYER, activation="gelu"), encode_padded, False),
    "encoder": (encoder, call, False),
    "encoder, padded": (encoder, encode_padded, False),
    "encoder, norm first": (lambda: encoder(norm_first=True), call, False),
    "transformer": (lambda: nn.Transformer(8, 2, 1, 1, 16, batch_first=True), translate, False),
}


def in_float64(module: nn.Module, run: Callable[..., Any], x: torch.Tensor) -> Any:
    # The fast path removes padding, so the compared path has none.
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        return run(module.double(), x.double())
    finally:
        torch.backends.mha.set_fastpath_enabled(True)


@pytest.mark.parametrize("lower", HALVES, ids=str)
@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
@pytest.mark.parametrize("name", MODULES)
def test_attention_is_evaluated_under_autocast(name: str, mode: Callable[[], Any], lower: torch.dtype) -> None:
    make, run, lowered = MODULES[name]
    module, x = make().eval(), torch.randn(2, 3, 8)
    with torch.no_grad():
        expected = in_float64(module, run, x)
    module, x = module.float().to("dml"), x.to("dml")
    with torch.autocast("dml", lower):
        with mode():
            actual = run(module, x)
        followed = run(module, x)
    first = actual[0] if isinstance(actual, tuple) else actual
    assert first.dtype == (lower if lowered else torch.float32)
    # If gradients are recorded, every module uses its plain operators.
    assert_same(actual, torch.utils._pytree.tree_map(lambda t: t.detach().cpu(), followed), 0, 0)
    tolerance = 16 * torch.finfo(lower).eps
    assert_same(torch.utils._pytree.tree_map(torch.Tensor.double, actual), expected, tolerance, tolerance)


@pytest.mark.parametrize("lower", HALVES, ids=str)
def test_a_vision_transformer_is_evaluated_under_autocast(lower: torch.dtype) -> None:
    torchvision = pytest.importorskip("torchvision")
    sizes = {"num_layers": 2, "num_heads": 2, "hidden_dim": 16, "mlp_dim": 32, "num_classes": 5}
    model = torchvision.models.VisionTransformer(image_size=8, patch_size=4, **sizes).eval()
    nn.init.normal_(model.heads.head.weight)
    images = torch.randn(3, 3, 8, 8)
    with torch.no_grad():
        expected = model.double()(images.double())
        model.float().to("dml")
        with torch.autocast("dml", lower):
            actual = model(images.to("dml"))
    assert actual.dtype == lower
    tolerance = 16 * torch.finfo(lower).eps
    assert_same(actual.double(), expected, tolerance, tolerance)


def test_nested_tensors_are_refused_under_autocast_as_on_cuda() -> None:
    module = nn.MultiheadAttention(8, 2, batch_first=True).to("dml").eval()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        x = torch.nested.nested_tensor([torch.randn(2, 8), torch.randn(3, 8)]).to("dml")
    with torch.no_grad():
        assert module(x, x, x, need_weights=False)[0].is_nested
        with torch.autocast("dml"), pytest.raises(AssertionError, match="autocast is enabled"):
            module(x, x, x, need_weights=False)


@pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:.*torch.jit.*:FutureWarning")
def test_scripted_attention_is_evaluated_under_autocast() -> None:
    layer, x = nn.TransformerEncoderLayer(**LAYER).to("dml").eval(), torch.randn(2, 3, 8, device="dml")
    with torch.no_grad():
        scripted = torch.jit.script(layer)
        plain = layer(x)
        with torch.autocast("dml", torch.bfloat16):
            expected = layer(x)
            for _ in range(3):
                assert scripted(x).equal(expected)
        assert not expected.equal(plain) and scripted(x).equal(plain)


def test_compiled_attention_is_evaluated_under_autocast() -> None:
    module, x = nn.MultiheadAttention(8, 2, batch_first=True).to("dml").eval(), torch.randn(2, 3, 8, device="dml")
    compiled = torch.compile(module, backend="eager", fullgraph=True)
    with torch.no_grad():
        for _ in range(2):
            assert compiled(x, x, x)[0].dtype == torch.float32
            for lower in HALVES:
                with torch.autocast("dml", lower):
                    assert compiled(x, x, x)[0].equal(module(x, x, x)[0])


def test_replicas_of_data_parallel_run_under_autocast() -> None:
    module, x = nn.Linear(3, 3).to("dml:0"), torch.randn(4, 3, device="dml:0")
    parallel = nn.DataParallel(module, [0, 1])
    assert parallel(x).dtype == torch.float32
    with torch.autocast("dml", torch.float16):
        result = parallel(x)
        assert result.dtype == torch.float16
        assert_same(result, module(x).cpu())
        with torch.autocast("dml", enabled=False):
            assert parallel(x).dtype == torch.float32


# ---- queries that name no device


@pytest.fixture
def unchanged() -> Iterator[None]:
    """The state of autocast is the same afterwards."""
    devices = ("dml", "cuda")
    before = [(torch.is_autocast_enabled(device), torch.get_autocast_dtype(device)) for device in devices]
    yield
    for device, (enabled, dtype) in zip(devices, before, strict=True):
        torch.set_autocast_enabled(device, enabled)
        torch.set_autocast_dtype(device, dtype)


@pytest.mark.filterwarnings("ignore:.*is deprecated:DeprecationWarning")
def test_what_names_no_device_is_about_the_device_too(unchanged: None) -> None:
    assert not torch.is_autocast_enabled()
    with torch.autocast("dml", torch.bfloat16):
        assert torch.is_autocast_enabled() and torch.get_autocast_gpu_dtype() == torch.bfloat16
        assert torch.is_autocast_enabled(device_type="dml") and not torch.is_autocast_enabled("cuda")
        with torch.autocast("dml", enabled=False):
            assert not torch.is_autocast_enabled()
    with torch.autocast("cpu", torch.bfloat16):
        assert not torch.is_autocast_enabled()
    x = torch.ones(2, 2, device="dml")
    torch.set_autocast_enabled(True)
    torch.set_autocast_gpu_dtype(torch.bfloat16)
    assert torch.is_autocast_enabled() and torch.is_autocast_enabled("dml") and (x @ x).dtype == torch.bfloat16
    torch.set_autocast_enabled(enabled=False)
    assert not torch.is_autocast_enabled() and not torch.is_autocast_enabled("dml")
    torch.set_autocast_enabled("cuda", True)
    torch.set_autocast_dtype("cuda", torch.float16)
    # From torch 2.15 on the question without a device is about the accelerator.
    assert torch.is_autocast_enabled() == (number(torch.__version__) < (2, 15))
    assert torch.get_autocast_gpu_dtype() == torch.float16 and not torch.is_autocast_enabled("dml")


def test_questions_refuse_what_they_refused() -> None:
    for wrong in (lambda: torch.is_autocast_enabled(1), lambda: torch.set_autocast_enabled(), torch.set_autocast_dtype):
        with pytest.raises(TypeError):
            wrong()
    with pytest.raises(RuntimeError):
        torch.is_autocast_enabled("nothing")


# ---- a program's own operators


@pytest.mark.parametrize("by", ["name", "method", "overload", "library"])
def test_operators_of_a_program_are_registered_with_autocast(by: str) -> None:
    name = f"dml_autocast::scale_{by}"

    def scale(x: torch.Tensor, other: list[torch.Tensor], factor: float) -> torch.Tensor:
        return (x + sum(other)) * factor

    if by in ("name", "method"):
        op = torch.library.custom_op(name, scale, mutates_args=())
        if by == "name":
            torch.library.register_autocast(name, "dml", torch.bfloat16)
        else:
            op.register_autocast("dml", torch.bfloat16)
    else:
        torch.library.define(name, "(Tensor x, Tensor[] other, float factor) -> Tensor")
        torch.library.impl(name, "CompositeExplicitAutograd", scale)
        op = getattr(torch.ops.dml_autocast, f"scale_{by}").default
        library = torch.library.Library("dml_autocast", "FRAGMENT") if by == "library" else None
        torch.library.register_autocast(name if library is not None else op, "dml", torch.bfloat16, lib=library)
    x, count = torch.randn(3, device="dml"), torch.arange(3, device="dml")
    assert op(x, [x], 2.0).dtype == torch.float32
    with torch.autocast("dml", torch.float16):
        result = op(x, [x, count], 2.0)
        assert op(x.double(), [x.double()], 2.0).dtype == torch.float64
    assert result.dtype == torch.bfloat16
    half = x.cpu().bfloat16()
    assert_same(result, (half + half + count.cpu()) * 2)
    with pytest.raises(ValueError, match=r"(?i)device type"):
        torch.library.register_autocast(name, "meta", torch.bfloat16)


def test_a_higher_order_operator() -> None:
    x = torch.ones(2, 2, device="dml")
    with torch.autocast("dml", torch.bfloat16):
        result = torch.cond(x.sum() > 0, lambda x: x @ x, lambda x: x @ x + 1, (x,))
    assert result.dtype == torch.bfloat16 and result.tolist() == [[2, 2], [2, 2]]
