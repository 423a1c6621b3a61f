"""Random generators and their states."""

from __future__ import annotations

import copy
import pickle
import sys

import pytest
import torch

from tests.support.processes import run_python


def same(a: torch.Tensor, b: torch.Tensor) -> bool:
    return torch.equal(a.cpu(), b.cpu())


@pytest.mark.smoke
def test_random_state():
    torch.manual_seed(7)
    assert torch.dml.initial_seed() == 7
    first = torch.rand(5, device="dml")
    state = torch.dml.get_rng_state()
    second = torch.rand(5, device="dml")
    torch.dml.set_rng_state(state)
    assert same(torch.rand(5, device="dml"), second)
    torch.dml.manual_seed(7)
    assert same(torch.rand(5, device="dml"), first)
    torch.dml.manual_seed_all(7)
    assert same(torch.rand(5, device="dml"), first)
    with torch.random.fork_rng(devices=[0], device_type="dml"):
        torch.dml.manual_seed(1)
        torch.rand(5, device="dml")
    assert same(torch.rand(5, device="dml"), second)
    assert torch.dml.seed() == torch.dml.initial_seed()
    assert torch.dml.seed_all() == torch.dml.initial_seed()


def test_random_state_refuses_nonsense():
    with pytest.raises(TypeError):
        torch.dml.set_rng_state(torch.zeros(16))
    with pytest.raises(RuntimeError, match="16"):
        torch.dml.set_rng_state(torch.zeros(5, dtype=torch.uint8))


def test_default_generators():
    generators = torch.dml.default_generators
    assert len(generators) == torch.dml.device_count()
    generators[0].manual_seed(3)
    assert torch.dml.initial_seed(0) == generators[0].initial_seed() == 3
    state = generators[0].get_state()
    a = torch.rand(3, device="dml")
    generators[-1].set_state(state)
    assert len(generators) > 1 or same(torch.rand(3, device="dml"), a)
    with pytest.raises(IndexError):
        generators[99]


def test_generators_of_ones_own():
    mine = torch.Generator("dml").manual_seed(5)
    torch.manual_seed(1)
    expected = torch.rand(3, device="dml")
    torch.manual_seed(1)
    numbers = torch.rand(3, device="dml", generator=mine)
    assert same(torch.rand(3, device="dml"), expected)
    mine.manual_seed(5)
    assert same(torch.rand(3, device="dml", generator=mine), numbers)


def test_a_generator():
    generator = torch.Generator("dml")
    assert generator.device == torch.device("dml", 0) and generator.initial_seed() == torch.Generator().initial_seed()
    assert generator.manual_seed(3) is generator
    state = generator.get_state()
    assert state.dtype == torch.uint8 and state.device.type == "cpu"
    numbers = torch.randn(3, generator=generator, device="dml")
    assert not same(torch.randn(3, generator=generator, device="dml"), numbers)
    generator.set_state(state)
    assert same(torch.randn(3, generator=generator, device="dml"), numbers)
    assert generator.seed() == generator.initial_seed() != 3
    generator.manual_seed(-1)
    assert generator.initial_seed() == 2**64 - 1
    for wrong in (torch.zeros(3, dtype=torch.uint8), torch.zeros(16), torch.zeros(16, dtype=torch.uint8, device="dml")):
        with pytest.raises((RuntimeError, TypeError), match="state"):
            generator.set_state(wrong)


@pytest.mark.parametrize("clone", [lambda g: g.clone_state(), copy.deepcopy, lambda g: pickle.loads(pickle.dumps(g))])
def test_copies_of_a_generator(clone):
    generator = torch.Generator("dml").manual_seed(9)
    torch.rand(5, device="dml", generator=generator)
    twin = clone(generator)
    assert twin.device == generator.device and twin.initial_seed() == 9
    numbers = torch.rand(5, device="dml", generator=generator)
    assert same(torch.rand(5, device="dml", generator=twin), numbers)


def test_a_generator_of_another_kind_of_device():
    for wrong in (
        lambda: torch.rand(2, device="dml", generator=torch.Generator()),
        lambda: torch.rand(2, generator=torch.Generator("dml")),
    ):
        with pytest.raises(RuntimeError, match=r"dml.*cpu|cpu.*dml"):
            wrong()


def test_operators_take_the_generator():
    for draw in (
        lambda g: torch.randn(100, device="dml", generator=g),
        lambda g: torch.randint(9, (100,), device="dml", generator=g),
        lambda g: torch.empty(100, device="dml").uniform_(generator=g),
        lambda g: torch.bernoulli(torch.full((100,), 0.5, device="dml"), generator=g),
        lambda g: torch.randperm(50, device="dml", generator=g),
    ):
        generator = torch.Generator("dml").manual_seed(4)
        first, second = draw(generator), draw(generator)
        assert not same(first, second)
        assert same(draw(generator.manual_seed(4)), first)


def test_fork_rng_leaves_the_state():
    state = torch.dml.get_rng_state()
    with torch.random.fork_rng(devices=range(torch.dml.device_count()), device_type="dml"):
        torch.manual_seed(1)
        torch.rand(100, device="dml")
        assert not torch.equal(torch.dml.get_rng_state(), state)
    assert torch.equal(torch.dml.get_rng_state(), state)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_seeding_starts_no_driver():
    """The seed is used by each device that is opened later."""
    body = """
import torch, torch_dml
torch.manual_seed(11)
with open("/proc/self/maps") as maps:
    assert "libvulkan" not in maps.read()
assert torch.dml.initial_seed() == torch.dml.initial_seed(1) == 11
a = torch.rand(3, device="dml:1")
torch.manual_seed(11)
print(torch.equal(a.cpu(), torch.rand(3, device="dml").cpu()))
"""
    result = run_python("-c", body)
    assert result.stdout == "True\n", result.stderr
