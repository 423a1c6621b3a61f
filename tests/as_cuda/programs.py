"""Programs that are written for CUDA, without any knowledge of torch-dml: on a machine without a
GPU they run on the CPU.

`python programs.py` runs all of them and prints the result of each, as JSON.
"""

from __future__ import annotations

import copy
import io
import json
import sys
import traceback
from collections.abc import Callable
from typing import Any
from unittest import mock

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, TensorDataset

device = "cuda" if torch.cuda.is_available() else "cpu"
has_cuda = device == "cuda"
PROGRAMS: dict[str, Callable[[], Any]] = {}


def program(function: Callable[[], Any]) -> Callable[[], Any]:
    PROGRAMS[function.__name__] = function
    return function


def data(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(7))


def network() -> nn.Module:
    torch.manual_seed(1)
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(128, 4)
    )


def losses(model: nn.Module, optimizer: torch.optim.Optimizer, steps: int = 5) -> list[float]:
    x, y = data(16, 1, 8, 8).to(device), (torch.arange(16) % 4).to(device)
    found = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        found.append(loss.item())
    return found


@program
def training_loop() -> list[float]:
    model = network().to(device)
    return losses(model, torch.optim.Adam(model.parameters(), 0.01))


@program
def method_cuda() -> list[float]:
    model = network()
    if torch.cuda.is_available():
        model.cuda()
        assert next(model.parameters()).is_cuda
        assert data(2).cuda(0, non_blocking=True).get_device() == 0
        assert data(2).to(0).device == torch.device("cuda", 0)
        assert data(2).cuda().type() == "torch.cuda.FloatTensor"
        assert isinstance(data(2).cuda(), torch.cuda.FloatTensor)
        assert torch.cuda.FloatTensor([1.0, 2.0]).tolist() == [1.0, 2.0]
        assert data(3).cuda().device.type == "cuda" and str(data(3).cuda().device) == "cuda:0"
        assert "device='cuda:0'" in repr(data(3).cuda())
    return losses(model, torch.optim.SGD(model.parameters(), 0.1, momentum=0.9, nesterov=True))


@program
def fused_and_foreach_optimizers() -> list[float]:
    found = []
    for options in ({"foreach": True}, {"fused": True}):
        model = network().to(device)
        found += losses(model, torch.optim.AdamW(model.parameters(), 0.01, **options))
    return found


@program
def automatic_mixed_precision() -> list[float]:
    model = network().to(device)
    optimizer = torch.optim.SGD(model.parameters(), 0.05)
    scaler = torch.amp.GradScaler(device, init_scale=256.0)
    x, y = data(16, 1, 8, 8).to(device), (torch.arange(16) % 4).to(device)
    found = []
    for _ in range(4):
        optimizer.zero_grad()
        with torch.autocast(device, dtype=torch.bfloat16):
            out = model(x)
            assert out.dtype == torch.bfloat16
            loss = F.cross_entropy(out.float(), y)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        found.append(round(loss.item(), 2))
    return [*found, scaler.get_scale()]


@program
def older_mixed_precision() -> list[str]:
    if not has_cuda:
        return ["torch.float16"]
    with torch.cuda.amp.autocast():
        return [str((data(4, 4).cuda() @ data(4, 4).cuda()).dtype)]


@program
def pinned_data_loader() -> list[float]:
    dataset = TensorDataset(data(24, 3), torch.arange(24.0))
    total = torch.zeros(3, device=device)
    for x, y in DataLoader(dataset, 8, num_workers=2, pin_memory=has_cuda):
        assert x.is_pinned() == has_cuda
        total += (x.to(device, non_blocking=True) * y.to(device, non_blocking=True)[:, None]).sum(0)
    return total.tolist()


@program
def streams_and_events() -> list[float]:
    x = data(64).to(device)
    if not has_cuda:
        return (x * 2 + 1).tolist()
    stream = torch.cuda.Stream()
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    stream.wait_stream(torch.cuda.current_stream())
    start.record()
    with torch.cuda.stream(stream):
        y = x * 2
        end.record(stream)
    torch.cuda.current_stream().wait_event(end)
    y.record_stream(torch.cuda.current_stream())
    torch.cuda.synchronize()
    assert end.query() and start.elapsed_time(end) >= 0 and isinstance(stream, torch.cuda.Stream)
    return (y + 1).tolist()


@program
def memory_and_properties() -> None:
    if not has_cuda:
        return
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    x = torch.zeros(1 << 20, device="cuda")
    assert torch.cuda.memory_allocated() - before >= x.nbytes
    assert torch.cuda.max_memory_allocated() >= torch.cuda.memory_allocated() <= torch.cuda.memory_reserved()
    free, total = torch.cuda.mem_get_info()
    assert 0 < free <= total == torch.cuda.get_device_properties(0).total_memory
    assert torch.cuda.get_device_capability() >= (7, 0) and torch.cuda.get_device_name(0)
    assert torch.cuda.is_bf16_supported() and torch.cuda.device_count() >= 1 and torch.cuda.current_device() == 0
    assert torch.cuda.memory_stats()["allocated_bytes.all.current"] > 0 and torch.cuda.memory_summary()
    assert torch.accelerator.current_accelerator().type == "cuda"
    with torch.cuda.device(0):
        assert torch.cuda.is_initialized()


@program
def random_numbers() -> None:
    if not has_cuda:
        return
    torch.manual_seed(3)
    first = torch.rand(5, device="cuda")
    state = torch.cuda.get_rng_state()
    second = torch.rand(5, device="cuda")
    torch.cuda.manual_seed_all(3)
    assert torch.equal(torch.rand(5, device="cuda"), first)
    torch.cuda.set_rng_state(state)
    assert torch.equal(torch.rand(5, device="cuda"), second)
    own = torch.Generator("cuda").manual_seed(3)
    assert torch.equal(torch.rand(5, device="cuda", generator=own), first)
    with torch.random.fork_rng(devices=[0]):
        torch.rand(5, device="cuda")


@program
def saved_and_loaded() -> list[float]:
    model = network().to(device)
    file = io.BytesIO()
    torch.save({"model": model.state_dict(), "x": data(4).to(device)}, file)
    file.seek(0)
    same = torch.load(file)
    assert same["x"].device.type == device
    file.seek(0)
    assert torch.load(file, map_location="cpu")["x"].device.type == "cpu"
    other = network().to(device)
    other.load_state_dict(same["model"])
    return copy.deepcopy(other).eval()(data(2, 1, 8, 8).to(device)).flatten().tolist()


@program
def recurrent() -> list[float]:
    found = []
    for kind in (nn.LSTM, nn.GRU, nn.RNN):
        torch.manual_seed(2)
        layer = kind(3, 5, num_layers=2, bidirectional=True).to(device)
        layer.flatten_parameters()
        x = data(7, 2, 3).to(device).requires_grad_()
        layer(x)[0].pow(2).sum().backward()
        found += x.grad.flatten().tolist()
    return found


@program
def transformer() -> list[float]:
    torch.manual_seed(4)
    layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True).to(device)
    x = data(2, 6, 16).to(device).requires_grad_()
    checkpoint(layer, x, use_reentrant=False).square().mean().backward()
    with torch.no_grad():
        inferred = layer.eval()(x)
    return [*x.grad.flatten().tolist(), *inferred.flatten().tolist()]


@program
def convolutions() -> list[float]:
    found = []
    for dim, kind in ((1, nn.Conv1d), (2, nn.Conv2d), (3, nn.Conv3d), (2, nn.ConvTranspose2d)):
        torch.manual_seed(dim)
        layer = kind(4, 6, 3, stride=2, padding=1, groups=2).to(device)
        x = data(2, 4, *[7] * dim).to(device).requires_grad_()
        layer(x).square().sum().backward()
        found += [*x.grad.flatten().tolist(), *layer.weight.grad.flatten().tolist(), *layer.bias.grad.tolist()]
        assert layer(data(0, 4, *[7] * dim).to(device)).shape[0] == 0
    return found


@program
def losses_with_paths_of_cudas_own() -> list[float]:
    logits = data(6, 2, 5).to(device).requires_grad_()
    targets = torch.tensor([[1, 2], [3, 4]]).to(device)
    loss = F.ctc_loss(logits.log_softmax(2), targets, torch.tensor([6, 6]), torch.tensor([2, 2]))
    loss.backward()
    grid = F.affine_grid(torch.eye(2, 3)[None].to(device), [1, 1, 4, 4], align_corners=False)
    sampled = F.grid_sample(data(1, 1, 4, 4).to(device), grid, align_corners=False)
    return [loss.item(), *logits.grad.flatten().tolist(), *sampled.flatten().tolist()]


@program
def data_parallel() -> list[float]:
    model = nn.DataParallel(network().to(device)) if has_cuda else network()
    return model.eval()(data(2, 1, 8, 8).to(device)).flatten().tolist()


@program
def graphs() -> list[float]:
    x = data(8).to(device)
    if not has_cuda:
        return (x * 3).tolist()
    still = torch.zeros(8, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = still * 3
    still.copy_(x)
    graph.replay()
    return out.tolist()


@program
def storages() -> list[int]:
    x = torch.arange(4, dtype=torch.uint8).to(device)
    storage = x.untyped_storage()
    storage.resize_(0)
    storage.resize_(4)
    x.copy_(torch.arange(4))
    return [*x.tolist(), torch.UntypedStorage(8, device=device).nbytes(), torch.from_dlpack(x).sum().item()]


@program
def nested_tensors() -> list[float]:
    nested = torch.nested.nested_tensor([data(2, 3), data(4, 3)], device=device)
    return torch.nested.to_padded_tensor(nested * 2, 0.0).flatten().tolist()


@program
def torch_compile() -> list[float]:
    model = network().to(device).eval()
    return (
        torch.compile(model)(data(2, 1, 8, 8).to(device)).flatten().tolist()
        if has_cuda
        else (model(data(2, 1, 8, 8)).flatten().tolist())
    )


@program
def torch_compile_training() -> list[float]:
    model = network().to(device)
    optimizer = torch.optim.Adam(model.parameters(), 0.01)
    return losses(torch.compile(model) if has_cuda else model, optimizer)


@program
def torch_compile_with_graphs() -> list[float]:
    model = network().to(device)
    optimizer = torch.optim.Adam(model.parameters(), 0.01)
    if not has_cuda:
        return losses(model, optimizer)
    torch._dynamo.reset()  # forgets the sizes of other programs
    replay = torch.cuda.CUDAGraph.replay
    with mock.patch.object(torch.cuda.CUDAGraph, "replay", autospec=True, side_effect=replay) as replays:
        found = losses(torch.compile(model, mode="reduce-overhead"), optimizer)
    assert replays.call_count == 4 + 3
    return found


def main() -> None:
    results: dict[str, Any] = {}
    for name, run in PROGRAMS.items():
        try:
            results[name] = {"result": run()}
        except Exception:
            results[name] = {"error": traceback.format_exc()}
    dml = getattr(torch, "dml", None)
    results["device"] = device
    results["fallbacks"] = dml.fallbacks() if has_cuda and dml is not None else {}
    json.dump(results, sys.stdout)


@program
def quantised_tensors() -> list[float]:
    x = data(4, 8)
    one = torch.quantize_per_tensor(x.to(device), 0.05, 3, torch.qint8)
    each = torch.quantize_per_channel(x.to(device), torch.full((4,), 0.1), torch.arange(4), 0, torch.quint8)
    layer = torch.ao.quantization.quantize_dynamic(nn.Sequential(nn.Linear(8, 4)), {nn.Linear}, torch.qint8)
    numbers = one.t().dequantize().t() + each.cpu().dequantize().to(device)
    return [*numbers.flatten().tolist(), float(one.int_repr().sum()), float(layer(x.to(device)).isfinite().sum())]


if __name__ == "__main__":
    main()
