"""Views, aliasing and storages: which tensors share memory."""

from __future__ import annotations

import copy

import pytest
import torch

from tests.support.compare import assert_matches_cpu
from tests.support.dtypes import dtypes
from tests.support.memory import allocated


def numbers(n: int = 12) -> torch.Tensor:
    return torch.arange(float(n), device="dml")


def test_views_share_memory():
    x = numbers()
    for view in (
        x.view(3, 4),
        x.reshape(4, 3).t(),
        x[2:],
        x.as_strided((3, 2), (4, 1), 1),
        x.unfold(0, 3, 3),
        x.detach(),
    ):
        assert view.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()
        assert view._is_view() or not view.requires_grad
        assert view.data_ptr() == x.data_ptr() + 4 * view.storage_offset()
    x.view(3, 4)[1].fill_(9)
    assert x.tolist() == [0, 1, 2, 3, 9, 9, 9, 9, 8, 9, 10, 11]
    x.as_strided((3,), (4,), 1).add_(100)
    assert x[1::4].tolist() == [101, 109, 109]


def test_a_write_through_one_view_is_seen_through_the_others():
    x = numbers()
    a, b = x[:8].view(2, 4), x[4:]
    a.mul_(2)
    b.add_(1)
    expected = torch.arange(12.0)
    expected[:8] *= 2
    expected[4:] += 1
    assert torch.equal(x.cpu(), expected)
    assert a._version == b._version == x._version > 0


@dtypes(torch.uint8, torch.int16, torch.float32, torch.int64, torch.float16)
def test_view_as_another_dtype(dtype):
    assert_matches_cpu(lambda t: t.view(dtype), torch.arange(16, dtype=torch.int64).view(2, 8), widen=False)
    assert_matches_cpu(lambda t: t.view(torch.uint8).view(dtype), torch.arange(4.0), widen=False)


def test_set_in_all_its_forms():
    x = numbers()
    y = torch.empty(0, device="dml")
    assert y.set_(x).data_ptr() == x.data_ptr() and y.shape == x.shape and y.is_set_to(x)
    y.set_(x.untyped_storage(), 2, (2, 3), (3, 1))
    assert y.tolist() == [[2, 3, 4], [5, 6, 7]]
    y.set_(x, 1, (2, 2), (2, 1))
    assert y.tolist() == [[1, 2], [3, 4]]
    torch.storage._reset_warn_typed_storage_removal()  # PyTorch warns once in a process
    with pytest.warns(UserWarning, match="TypedStorage"):
        y.set_(x.storage())
    assert y.tolist() == x.tolist()
    assert y.set_().numel() == 0
    with pytest.raises(RuntimeError):
        y.set_(torch.ones(3).untyped_storage())
    with pytest.raises(RuntimeError):
        y.set_(torch.ones(3, dtype=torch.int64, device="dml"))


def test_resize():
    x = numbers(6)
    assert x.resize_(2, 2).tolist() == [[0, 1], [2, 3]]
    assert x.resize_(10)[:6].tolist() == [0, 1, 2, 3, 4, 5]  # the old elements are preserved
    assert x.resize_as_(torch.ones(3)).shape == (3,)
    x.resize_(2, 3, 2, 2, memory_format=torch.channels_last)
    assert x.is_contiguous(memory_format=torch.channels_last)
    with pytest.raises(RuntimeError):
        numbers()[1:].requires_grad_().resize_(40)


def test_untyped_storage():
    x = numbers(6)
    storage = x.untyped_storage()
    assert storage.device == torch.device("dml", 0) and storage.nbytes() == storage.size() == 24
    assert storage.is_dml and not storage.is_cuda and not storage.is_pinned()
    storage.resize_(48)
    assert storage.nbytes() == 48 and x.tolist() == [0, 1, 2, 3, 4, 5]
    twin = storage.clone()
    assert twin.device == storage.device and twin.data_ptr() != storage.data_ptr()
    assert storage.cpu().device.type == "cpu" and storage.cpu().dml().is_dml
    storage.fill_(0)
    assert x.tolist() == [0] * 6
    assert twin.tolist()[4:8] == [0, 0, 128, 63]
    storage[3] = 7
    assert storage[3] == 7
    other = torch.UntypedStorage(16, device="dml")
    other.copy_(torch.UntypedStorage(16).fill_(3))
    assert other.tolist() == [3] * 16
    storage.resize_(0)
    assert storage.nbytes() == 0


def test_a_tensor_beyond_its_storage_raises():
    """The CPU crashes the process with SIGSEGV."""
    x, y = numbers(10), numbers(10)
    for size in (0, 20):
        x.untyped_storage().resize_(size)
        for use in (
            lambda: x + 1,
            lambda: x.add_(1),
            lambda: x.sum(),
            lambda: x.cpu(),
            lambda: x.fill_(1),
            lambda: y.copy_(x),
            lambda: x.copy_(y),
            lambda: torch.cat([y, x]),
            lambda: torch.add(y, y, out=x),
            lambda: torch._foreach_add([y, x], 1),
            lambda: x.view(2, 5) @ y.view(5, 2),
        ):
            with pytest.raises(RuntimeError, match="was resized to"):
                use()
    assert (x[:0] + 1).shape == (0,) and (x[:5] + 1).shape == (5,)
    x.untyped_storage().resize_(40)
    x.copy_(y)
    assert (x + 1).tolist() == [i + 1 for i in range(10)]


def test_a_cpu_tensor_beyond_its_storage_raises():
    x, one, y = torch.arange(10.0), torch.tensor(1.0), numbers(10)
    for size in (0, 20):
        x.untyped_storage().resize_(size)
        for use in (lambda: x.dml(), lambda: y.copy_(x), lambda: x.copy_(y)):
            with pytest.raises(RuntimeError, match=f"lies outside its storage of {size} bytes"):
                use()
    one.untyped_storage().resize_(0)
    for use in (lambda: y + one, lambda: y.fill_(one), lambda: torch.add(y, one, out=y)):
        with pytest.raises(RuntimeError, match="lies outside its storage of 0 bytes"):
            use()
    assert x[:5].fill_(3).dml().tolist() == [3] * 5  # Elements added by the resize are uninitialised.
    assert y.tolist() == list(range(10))


@pytest.mark.filterwarnings("ignore:TypedStorage")
def test_typed_storage():
    x = numbers(4)
    storage = x.storage()
    assert storage.is_dml and storage.dtype == torch.float32 and storage.tolist() == [0, 1, 2, 3]
    storage[1] = 5
    assert x.tolist() == [0, 5, 2, 3]
    assert torch.zeros(3).storage().dml().is_dml


def test_memory_of_a_view_lives_as_long_as_the_view():
    before = allocated()
    view = torch.arange(1000.0, device="dml")[3:5]
    torch.ones(1000, device="dml").mul_(7)  # would reuse the block if it were free
    assert view.tolist() == [3, 4]
    assert torch.dml.memory_allocated() > before
    del view
    assert torch.dml.memory_allocated() == before


def test_inference_mode():
    with torch.inference_mode():
        x = torch.ones(3, device="dml")
        y = (x * 2).view(3, 1)
        y.add_(1)
        moved = torch.zeros(3).to("dml")
    assert y.is_inference() and moved.is_inference() and y.tolist() == [[3]] * 3
    with pytest.raises(RuntimeError, match="nference"):
        x.requires_grad_().mul(2)
    with pytest.raises(RuntimeError, match="inference"):
        moved.add_(1)


def test_no_grad():
    w = torch.ones(3, device="dml", requires_grad=True)
    with torch.no_grad():
        y = w * 2
        w.add_(1)
    assert not y.requires_grad and w.requires_grad and w.tolist() == [2, 2, 2]
    with torch.no_grad(), torch.enable_grad():
        assert (w * 2).requires_grad


def test_deepcopy():
    leaf = torch.ones(3, device="dml", requires_grad=True)
    (leaf * 2).sum().backward()
    twin = copy.deepcopy(leaf)
    assert twin.requires_grad and twin.device == leaf.device and twin.data_ptr() != leaf.data_ptr()
    assert torch.equal(twin.grad.cpu(), leaf.grad.cpu())
    base = numbers(4)
    a, b = copy.deepcopy([base, base[1:]])
    a[1] = 9
    assert b[0].item() == 9 and base[1].item() == 1
    parameter = copy.deepcopy(torch.nn.Parameter(numbers(3)))
    assert isinstance(parameter, torch.nn.Parameter) and parameter.is_dml
    shallow = copy.copy(base)
    assert shallow.data_ptr() == base.data_ptr()


def test_numbers_and_text():
    x = torch.tensor([1.5, -2.0], device="dml")
    assert repr(x) == "tensor([ 1.5000, -2.0000], device='dml:0')"
    assert repr(torch.arange(3, device="dml")) == "tensor([0, 1, 2], device='dml:0')"
    assert repr(torch.tensor(True, device="dml")) == "tensor(True, device='dml:0')"
    assert repr(torch.empty(0, 2, device="dml")) == "tensor([], device='dml:0', size=(0, 2))"
    assert "..." in repr(torch.zeros(2000, device="dml", dtype=torch.float16))
    assert "requires_grad=True" in repr(torch.nn.Parameter(x))
    assert f"{x[0]:.2f}" == "1.50" and f"{x[0]}" == "1.5"
    assert x.tolist() == [1.5, -2.0] and float(x[0]) == 1.5 and int(x[1]) == -2 and bool(x[0])
    assert [y.item() for y in x] == [1.5, -2.0]
    assert list(range(3))[torch.tensor(2, device="dml")] == 2
    with pytest.raises(ValueError, match="one element"):
        float(x)


def test_numpy_wants_the_cpu():
    import numpy

    x = torch.ones(2, device="dml")
    for convert in (torch.Tensor.numpy, numpy.asarray):
        with pytest.raises(TypeError, match=r"can't convert dml:0 device type tensor to numpy.*Tensor\.cpu"):
            convert(x)
    assert x.numpy(force=True).tolist() == x.cpu().numpy().tolist() == [1, 1]
    assert torch.from_numpy(numpy.arange(3)).dml().tolist() == [0, 1, 2]


def test_default_device():
    with torch.device("dml"):
        assert torch.ones(2).is_dml and torch.nn.Linear(2, 2).weight.is_dml
    torch.set_default_device("dml")
    try:
        assert torch.ones(2).is_dml and torch.tensor([1]).is_dml
    finally:
        torch.set_default_device(None)
