"""Saving, loading, pickling."""

from __future__ import annotations

import io
import pickle

import pytest
import torch


def content() -> dict[str, torch.Tensor]:
    base = torch.arange(10, device="dml")
    return {
        "floats": torch.arange(4.0, device="dml"),
        "view": base[2:5],
        "base": base,
        "half": torch.arange(3, device="dml", dtype=torch.bfloat16),
        "complex": torch.tensor([1 + 2j, 3j]).to("dml"),
        "bools": torch.tensor([True, False], device="dml"),
        "leaf": torch.ones(2, device="dml").requires_grad_(),
        "empty": torch.empty(0, 3, device="dml"),
        "host": torch.arange(3),
    }


def check(loaded: dict[str, torch.Tensor], saved: dict[str, torch.Tensor]) -> None:
    assert loaded.keys() == saved.keys()
    for key, tensor in saved.items():
        assert torch.equal(loaded[key].cpu(), tensor.cpu()), key
        assert loaded[key].dtype == tensor.dtype and loaded[key].requires_grad == tensor.requires_grad


@pytest.mark.parametrize("zipped", [True, False], ids=["zip", "legacy"])
@pytest.mark.parametrize(
    ("where", "device"),
    [
        (None, "dml:0"),
        ("cpu", "cpu"),
        ("dml", "dml:0"),
        ("dml:1", "dml:1"),
        (torch.device("dml", 1), "dml:1"),
        ({"dml:0": "cpu"}, "cpu"),
        ({"dml:0": "dml:1"}, "dml:1"),
        (lambda storage, place: storage, "cpu"),
    ],
    ids=lambda value: "function" if callable(value) else str(value),
)
def test_save_and_load(where, device, zipped):
    saved = content()
    file = io.BytesIO()
    torch.save(saved, file, _use_new_zipfile_serialization=zipped)
    file.seek(0)
    weights_only = zipped or not callable(where)
    loaded = torch.load(file, map_location=where, weights_only=weights_only)
    check(loaded, saved)
    assert loaded["floats"].device == torch.device(device)
    loaded["base"][2] = 77  # views still share
    assert loaded["view"][0].item() == 77


@pytest.mark.parametrize("zipped", [True, False], ids=["zip", "legacy"])
@pytest.mark.parametrize("where", [None, "cpu", "dml:1"])
@pytest.mark.parametrize("layout", ["coo", "csr", "csc", "bsr", "bsc"])
def test_sparse(layout, where, zipped):
    dense = torch.arange(24.0).reshape(4, 6).fmod(3.0)
    blocks = {"blocksize": (2, 3)} if layout.startswith("b") else {}
    saved = dense.to_sparse(layout=getattr(torch, f"sparse_{layout}"), **blocks).to("dml")
    file = io.BytesIO()
    torch.save({"sparse": saved, "dense": dense.to("dml")}, file, _use_new_zipfile_serialization=zipped)
    file.seek(0)
    loaded = torch.load(file, map_location=where)
    assert loaded["sparse"].layout == saved.layout
    assert loaded["sparse"].device == torch.device(where or "dml:0")
    assert torch.equal(loaded["sparse"].cpu().to_dense(), dense) and torch.equal(loaded["dense"].cpu(), dense)
    if layout == "coo":
        assert loaded["sparse"].is_coalesced()


@pytest.mark.parametrize("where", [None, "cpu", "dml"])
def test_load_mapped(tmp_path, where):
    saved = content()
    torch.save(saved, tmp_path / "saved.pt")
    loaded = torch.load(tmp_path / "saved.pt", mmap=True, map_location=where)
    check(loaded, saved)
    assert loaded["floats"].device.type == (where or "dml")


@pytest.mark.parametrize("zipped", [True, False], ids=["zip", "legacy"])
@pytest.mark.parametrize("name", ["privateuseone", "privateuseone:0", "privateuseone:1"])
def test_load_what_torch_directml_saved(name, zipped, monkeypatch):
    # It does not name its backend, so files contain torch's name of the dispatch key.
    saved = content()
    file = io.BytesIO()
    with monkeypatch.context() as context:
        context.setattr(torch.serialization, "location_tag", lambda storage: name if storage.is_dml else "cpu")
        torch.save(saved, file, _use_new_zipfile_serialization=zipped)
    file.seek(0)
    loaded = torch.load(file)
    check(loaded, saved)
    assert loaded["floats"].device == torch.device("dml", int(name.endswith("1")))
    file.seek(0)
    assert torch.load(file, map_location="cpu")["floats"].device.type == "cpu"


def test_from_the_cpu():
    file = io.BytesIO()
    torch.save({"a": torch.arange(4.0)}, file)
    for where in ("dml", {"cpu": "dml"}, torch.device("dml:0")):
        file.seek(0)
        assert torch.load(file, map_location=where)["a"].device == torch.device("dml:0")


def test_a_device_that_is_not_there():
    file = io.BytesIO()
    torch.save(torch.ones(2, device="dml"), file)
    for where in ("dml:31", {"dml:0": "dml:31"}):
        file.seek(0)
        with pytest.raises(RuntimeError, match=r"device 31.*map_location"):
            torch.load(file, map_location=where)


def test_pickle():
    x = torch.arange(4.0, device="dml")
    y = pickle.loads(pickle.dumps(x))
    assert y.device == x.device and torch.equal(x.cpu(), y.cpu())
    parameter = pickle.loads(pickle.dumps(torch.nn.Parameter(x)))
    assert isinstance(parameter, torch.nn.Parameter) and parameter.is_dml
    stats = pickle.loads(pickle.dumps(torch.device("dml", 1)))
    assert stats == torch.device("dml", 1)


def test_state_dicts(tmp_path):
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2)).to("dml")
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
    model(torch.randn(5, 4, device="dml")).sum().backward()
    optimizer.step()
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, tmp_path / "checkpoint.pt")

    twin = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2)).to("dml")
    other = torch.optim.AdamW(twin.parameters(), lr=0.5)
    saved = torch.load(tmp_path / "checkpoint.pt", map_location="cpu")
    twin.load_state_dict(saved["model"])
    other.load_state_dict(saved["optimizer"])
    x = torch.randn(5, 4, device="dml")
    for network, steps in ((model, optimizer), (twin, other)):
        steps.zero_grad()
        network(x).square().sum().backward()
        steps.step()
    for a, b in zip(model.parameters(), twin.parameters(), strict=True):
        assert b.is_dml and torch.equal(a.cpu(), b.cpu())
    assert other.state[twin[0].weight]["exp_avg"].is_dml

    host = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2))
    host.load_state_dict(model.state_dict())
    assert torch.equal(host[0].weight, model[0].weight.cpu())
    empty = torch.nn.Sequential(*(layer.to("meta") for layer in host))
    empty.load_state_dict(model.state_dict(), assign=True)
    assert empty[0].weight.is_dml
