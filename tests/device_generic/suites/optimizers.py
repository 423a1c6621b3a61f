"""Optimizers of `optim_db`: their implementations compared with each other and the CPU, and their
states.
"""

from __future__ import annotations

import copy
import io
from functools import partial

import torch
from torch.testing._internal.common_device_type import instantiate_device_type_tests
from torch.testing._internal.common_optimizers import optim_db, optims
from torch.testing._internal.common_utils import TestCase, run_tests
from torch.utils._pytree import tree_map_only

STEPS = 5
DENSE = [info for info in optim_db if not info.only_supports_sparse_grads]


def parameters(info, device, dtype):
    """Reproducible parameters with the shapes that an optimizer accepts."""
    generator = torch.Generator().manual_seed(3)
    shapes = ((4, 3), (2, 5)) if info.name == "Muon" else ((4, 3), (5,), (2, 3, 2), ())
    return [torch.randn(shape, generator=generator, dtype=dtype).to(device).requires_grad_() for shape in shapes]


def loss_of(values):
    """A smooth loss whose gradient differs in every step and every element."""
    squares = [value.abs().square() for value in values]
    return sum((square * (1 + index) + (square + 2).log()).sum() for index, square in enumerate(squares))


def described(desc):
    """The message of a difference, with the arguments of the optimizer."""
    return lambda text: f"{desc}: {text}"


def stepped(optimizer, values, info, steps=STEPS):
    """Run some steps of an optimizer."""

    def closure():
        optimizer.zero_grad()
        loss = loss_of(values)
        loss.backward()
        return loss

    for _ in range(min(steps, 2) if info.step_requires_closure else steps):  # Such a step consists of many.
        if info.step_requires_closure:
            optimizer.step(closure)
        else:
            closure()
            optimizer.step()


class TestOptimRenewed(TestCase):
    """Tests of every optimizer."""

    def _made(self, info, device, dtype, **more):
        """An optimizer for each set of arguments, with its parameters."""
        for given in info.optim_inputs_func(device=device, dtype=dtype):
            values = parameters(info, device, dtype)
            kwargs = tree_map_only(torch.Tensor, lambda t: t.to(device), {**given.kwargs, **more})
            yield given.desc, info.optim_cls(values, **kwargs), values

    @optims(DENSE, dtypes=[torch.float32, torch.float64, torch.complex64])
    def test_cpu_parity(self, device, dtype, optim_info):
        """Parameters after some steps agree with the CPU's."""
        if dtype.is_complex and not optim_info.supports_complex:
            self.skipTest("the optimizer takes no complex parameters")
        for given in optim_info.optim_inputs_func(device="cpu", dtype=dtype):
            found = []
            for place in ("cpu", device):
                values = parameters(optim_info, place, dtype)
                kwargs = tree_map_only(torch.Tensor, lambda t, place=place: t.to(place), given.kwargs)
                stepped(optim_info.optim_cls(values, **kwargs), values, optim_info)
                found.append([value.detach() for value in values])
            self.assertEqual(found[1], found[0], exact_device=False, msg=described(given.desc))

    @optims([info for info in DENSE if "foreach" in info.supported_impls], dtypes=[torch.float32, torch.float64])
    def test_foreach_matches_forloop(self, device, dtype, optim_info):
        """Operators on lists of tensors and a loop over single tensors give the same parameters."""
        loops = self._made(optim_info, device, dtype, foreach=False)
        lists = self._made(optim_info, device, dtype, foreach=True)
        for (desc, loop, first), (_, together, second) in zip(loops, lists, strict=True):
            stepped(loop, first, optim_info)
            stepped(together, second, optim_info)
            self.assertEqual(second, first, msg=described(desc))

    @optims([info for info in DENSE if "fused" in info.supported_impls], dtypes=[torch.float32])
    def test_fused_matches_forloop(self, device, dtype, optim_info):
        """A fused step and the loop give the same parameters."""
        loops = self._made(optim_info, device, dtype, foreach=False)
        fused = self._made(optim_info, device, dtype, fused=True)
        for (desc, loop, first), (_, one, second) in zip(loops, fused, strict=True):
            stepped(loop, first, optim_info)
            stepped(one, second, optim_info)
            self.assertEqual(second, first, msg=described(desc))

    @optims(DENSE, dtypes=[torch.float32])
    def test_forloop_goes_right_direction(self, device, dtype, optim_info):
        """The loss decreases, unless it is to be maximised."""
        for desc, optimizer, values in self._made(optim_info, device, dtype):
            maximize = optimizer.param_groups[0].get("maximize", False)
            before = loss_of(values).item()
            stepped(optimizer, values, optim_info, steps=20)
            after = loss_of(values).item()
            self.assertTrue(after > before if maximize else after < before, f"{desc}: {before} -> {after}")

    @optims(DENSE, dtypes=[torch.float32])
    def test_state_dict_deterministic(self, device, dtype, optim_info):
        """A state that was saved and loaded continues like the original."""
        for desc, optimizer, values in self._made(optim_info, device, dtype):
            stepped(optimizer, values, optim_info)
            buffer = io.BytesIO()
            torch.save(optimizer.state_dict(), buffer)
            buffer.seek(0)
            twins = [value.detach().clone().requires_grad_() for value in values]
            twin = type(optimizer)(twins, **({"lr": optimizer.param_groups[0]["lr"]}))
            twin.load_state_dict(torch.load(buffer, map_location=device, weights_only=False))
            stepped(optimizer, values, optim_info)
            stepped(twin, twins, optim_info)
            self.assertEqual(twins, values, msg=described(desc))

    @optims(DENSE, dtypes=[torch.float32])
    def test_deepcopy(self, device, dtype, optim_info):
        """A copy of an optimizer has its own state, on the device."""
        for _, optimizer, values in self._made(optim_info, device, dtype):
            stepped(optimizer, values, optim_info, steps=1)
            twin = copy.deepcopy(optimizer)
            self.assertEqual(twin.state_dict(), optimizer.state_dict())

    @optims(DENSE, dtypes=[torch.float32])
    def test_step_is_noop_when_params_have_no_grad(self, device, dtype, optim_info):
        """Parameters without gradients do not change."""
        for _, optimizer, values in self._made(optim_info, device, dtype):
            before = [value.detach().clone() for value in values]
            optimizer.step(partial(loss_of, before))
            self.assertEqual([value.detach() for value in values], before)


instantiate_device_type_tests(TestOptimRenewed, globals())

if __name__ == "__main__":
    run_tests()
