"""Modules of `module_db`: compared with the CPU, memory formats, gradients, pickling."""

from __future__ import annotations

import copy
import io

import torch
from torch.testing._internal.common_device_type import instantiate_device_type_tests
from torch.testing._internal.common_modules import module_db, modules
from torch.testing._internal.common_utils import TestCase, freeze_rng_state, gradcheck, noncontiguous_like, run_tests
from torch.utils._pytree import tree_leaves, tree_map_only

FLOATS = (torch.float32, torch.float64)


def moved(value, device):
    """`value` with copies of its tensors on a device."""
    return tree_map_only(torch.Tensor, lambda t: t.detach().clone().to(device).requires_grad_(t.requires_grad), value)


def differentiable(value):
    return [t for t in tree_leaves(value) if isinstance(t, torch.Tensor) and t.requires_grad]


def random(module, training):
    """Whether a module draws random numbers, which differ between dtypes."""
    return training and any("Drop" in type(m).__name__ or getattr(m, "dropout", 0) for m in module.modules())


def built(info, given, device, dtype, training):
    """The module for a set of inputs."""
    arguments = given.constructor_input
    module = info.module_cls(*arguments.args, **arguments.kwargs).to(device).to(dtype).train(training)
    if info.is_lazy:  # Its parameters get their shapes from the first input.
        args, kwargs = moved((given.forward_input.args, given.forward_input.kwargs), device)
        with torch.no_grad():
            module(*args, **kwargs)
    return module


class TestModule(TestCase):
    """Tests of every module."""

    def _inputs(self, info, device, dtype, training, requires_grad=False):
        for given in info.module_inputs_func(
            info, device=device, dtype=dtype, requires_grad=requires_grad, training=training
        ):
            if given.forward_input is not None:
                yield given

    def _run(self, module, arguments):
        with freeze_rng_state():
            return module(*arguments.args, **arguments.kwargs)

    @modules(module_db, allowed_dtypes=FLOATS)
    def test_forward(self, device, dtype, module_info, training):
        """The module agrees with PyTorch's reference, if there is one."""
        for given in self._inputs(module_info, device, dtype, training):
            module = built(module_info, given, device, dtype, training)
            arguments = given.forward_input
            found = self._run(module, arguments)
            if given.reference_fn is not None:
                self.assertEqual(found, given.reference_fn(module, *arguments.args, **arguments.kwargs))

    @modules(module_db, allowed_dtypes=FLOATS)
    def test_cpu_gpu_parity(self, device, dtype, module_info, training):
        """Values and gradients agree with the CPU's."""
        for given in self._inputs(module_info, "cpu", dtype, training, requires_grad=True):
            module = built(module_info, given, "cpu", dtype, training)
            expected = self._values_and_gradients(module, given, "cpu", dtype)
            found = self._values_and_gradients(copy.deepcopy(module), given, device, dtype)
            if dtype is torch.float64 or random(module, training):
                self.assertEqual(found, expected, exact_device=False)
            else:
                exact = self._values_and_gradients(copy.deepcopy(module), given, "cpu", torch.float64)
                self._assert_as_exact(found, expected, exact)

    def _values_and_gradients(self, module, given, place, dtype):
        """The outputs of a copy of a module, and the gradients of inputs and parameters."""
        module = copy.deepcopy(module).to(place).to(dtype)
        arguments = copy.copy(given.forward_input)
        arguments.args, arguments.kwargs = tree_map_only(
            torch.Tensor,
            lambda t: (t.detach().to(dtype) if t.is_floating_point() else t.detach().clone()).requires_grad_(
                t.requires_grad
            ),
            moved((arguments.args, arguments.kwargs), place),
        )
        output = self._run(module, arguments)
        outputs = [t for t in differentiable(output) if t.is_floating_point()]
        if outputs:
            sum(t.square().sum() for t in outputs).backward()
        inputs = differentiable((arguments.args, arguments.kwargs))
        return output, [t.grad for t in (*inputs, *module.parameters())]

    def _assert_as_exact(self, found, expected, exact):
        """Assert that errors are at most a few roundings of the largest of all numbers, or not much
        larger than the CPU's.

        Of all numbers, since a gradient may be the remainder of numbers that cancel.
        """
        floats = [t for t in tree_leaves(exact) if isinstance(t, torch.Tensor) and t.is_floating_point() and t.numel()]
        largest = max((t.nan_to_num().abs().max().item() for t in floats), default=0.0)
        for ours, cpus, right in zip(*map(tree_leaves, (found, expected, exact)), strict=True):
            if not any(right is t for t in floats):
                self.assertEqual(ours, cpus, exact_device=False)
                continue
            self.assertEqual((ours.dtype, ours.shape), (cpus.dtype, cpus.shape))
            self.assertEqual(ours.isnan().cpu(), cpus.isnan())
            ours, cpus = ((t.cpu() - right).nan_to_num().abs().max().item() for t in (ours, cpus))
            self.assertLessEqual(ours, 16 * torch.finfo(torch.float32).eps * largest + 4 * cpus)

    @modules(module_db, allowed_dtypes=FLOATS)
    def test_non_contiguous_tensors(self, device, dtype, module_info, training):
        """Inputs and parameters that are not contiguous give the same values."""
        for given in self._inputs(module_info, device, dtype, training):
            module = built(module_info, given, device, dtype, training)
            arguments = given.forward_input
            expected = self._run(copy.deepcopy(module), arguments)
            spread = copy.copy(arguments)
            spread.args, spread.kwargs = tree_map_only(
                torch.Tensor, noncontiguous_like, (arguments.args, arguments.kwargs)
            )
            self.assertEqual(self._run(module, spread), expected)

    @modules(module_db, allowed_dtypes=(torch.float64,))
    def test_grad(self, device, dtype, module_info, training):
        """Gradients agree with finite differences."""
        for given in self._inputs(module_info, device, dtype, training, requires_grad=True):
            module = built(module_info, given, device, dtype, training)
            arguments = given.forward_input
            inputs = differentiable((arguments.args, arguments.kwargs))
            if not inputs:
                continue

            def values(*_ignored, module=module, arguments=arguments):
                output = self._run(module, arguments)
                return tuple(t for t in tree_leaves(output) if isinstance(t, torch.Tensor) and t.is_floating_point())

            with freeze_rng_state():
                self.assertTrue(
                    gradcheck(
                        values,
                        (*inputs, *module.parameters()),
                        check_undefined_grad=False,
                        nondet_tol=module_info.gradcheck_nondet_tol,
                        fast_mode=True,
                    )
                )

    @modules(module_db, allowed_dtypes=(torch.float32,))
    def test_save_load(self, device, dtype, module_info, training):
        """A module's state that was saved on the device gives the same values, there and on the
        CPU.
        """
        for given in self._inputs(module_info, device, dtype, training):
            module = built(module_info, given, device, dtype, training)
            buffer = io.BytesIO()
            torch.save(module.state_dict(), buffer)
            for place in (device, "cpu"):
                buffer.seek(0)
                twin = built(module_info, given, place, dtype, training)
                twin.load_state_dict(torch.load(buffer, map_location=place, weights_only=True))
                self.assertEqual(twin.state_dict(), module.state_dict(), exact_device=False)


instantiate_device_type_tests(TestModule, globals())

if __name__ == "__main__":
    run_tests()
