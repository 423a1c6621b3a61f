"""Operators of `op_db`: compared with NumPy and the CPU, their errors, memory formats, variants and
gradients.
"""

from __future__ import annotations

from numbers import Integral

import torch
from torch.testing._internal.common_device_type import OpDTypes, instantiate_device_type_tests, ops
from torch.testing._internal.common_methods_invocations import binary_ufuncs, op_db, unary_ufuncs
from torch.testing._internal.common_utils import TestCase, TestGradients, run_tests
from torch.testing._internal.opinfo import core
from torch.utils._pytree import tree_leaves

# Excluded: masked operators, whose references take masks as tensors, and unary and binary
# functions, which have separate tests.
WITH_NUMPY = [
    op
    for op in op_db
    if op.ref is not None
    and not isinstance(op, (core.UnaryUfuncInfo, core.BinaryUfuncInfo))
    and not op.name.startswith("masked.")
]
WITHOUT_NUMPY = [op for op in op_db if op.ref is None or op.name.startswith("masked.")]
WITH_ERRORS = [op for op in op_db if op.error_inputs_func is not None]
UNARY = [op for op in unary_ufuncs if op.ref is not None]
BINARY = [op for op in binary_ufuncs if op.ref is not None]
# Excluded: conversions to a dtype of lower precision, which have no finite differences.
WITH_GRADIENTS = [op for op in op_db if op.name not in ("half", "float", "bfloat16", "chalf", "cfloat")]
# Dtypes of NumPy's precision: narrower ones are compared with these elsewhere.
WIDE = (torch.float64, torch.int64, torch.complex128)
FULL = (torch.float32, torch.float64, torch.int64, torch.complex64)
# Random results differ between devices and runs.
RANDOM = {
    *("bernoulli", "cauchy", "exponential", "geometric", "log_normal", "multinomial", "normal", "rand_like"),
    *("randint", "randint_like", "randn", "randn_like", "uniform", "empty", "empty_like", "empty_permuted"),
    *("empty_strided", "new_empty", "new_empty_strided", "nn.functional.alpha_dropout", "nn.functional.dropout"),
    *("nn.functional.dropout2d", "nn.functional.dropout3d", "nn.functional.feature_alpha_dropout"),
    *("nn.functional.fractional_max_pool2d", "nn.functional.fractional_max_pool3d", "nn.functional.rrelu"),
    *("nn.functional.multi_head_attention_forward", "nn.functional.scaled_dot_product_attention"),
    *("pca_lowrank", "svd_lowrank"),
}
DETERMINISTIC = [op for op in op_db if op.name not in RANDOM]


def differentiable(value):
    """The differentiable tensors in `value`."""
    return [t for t in tree_leaves(value) if isinstance(t, torch.Tensor) and t.requires_grad]


def numpy_of(op):
    """NumPy's function, with PyTorch's argument names."""
    if not isinstance(op, core.SpectralFuncInfo):
        return op.ref
    if op.ndimensional is core.SpectralFuncType.OneD:
        return lambda *args, dim=-1, **kwargs: op.ref(*args, axis=dim, **kwargs)

    def of_several(*args, **kwargs):
        if "dim" in kwargs:
            dim = kwargs.pop("dim")
            kwargs["axes"] = (dim,) if isinstance(dim, Integral) else dim
        return op.ref(*args, **kwargs)

    return of_several


def called(op, sample):
    return op(sample.input, *sample.args, **sample.kwargs)


class TestCommon(TestCase):
    """Tests of every operator."""

    exact_dtype = True

    @ops(WITH_NUMPY, allowed_dtypes=WIDE)
    def test_numpy_ref(self, device, dtype, op):
        """The values agree with NumPy's, for PyTorch's larger set of inputs."""
        for sample in op.reference_inputs(device, dtype):
            self.compare_with_reference(op, numpy_of(op), sample, exact_dtype=False)

    @ops([op for op in WITHOUT_NUMPY if op.name not in RANDOM], dtypes=OpDTypes.any_one)
    def test_compare_cpu(self, device, dtype, op):
        """If NumPy has no such function, the values agree with the CPU's."""
        for sample in op.reference_inputs(device, dtype):
            there = sample.transform(lambda t: t.cpu() if isinstance(t, torch.Tensor) else t)
            if "device" in there.kwargs:
                there.kwargs["device"] = "cpu"
            expected, found = called(op, there), called(op, sample)
            process = sample.output_process_fn_grad or (lambda output: output)
            self.assertEqual(process(found), process(expected), exact_device=False)

    @ops(WITH_ERRORS, dtypes=OpDTypes.none)
    def test_errors(self, device, op):
        """Invalid inputs are refused with the messages that PyTorch expects."""
        for wrong in op.error_inputs(device):
            with self.assertRaisesRegex(wrong.error_type, wrong.error_regex):
                called(op, wrong.sample_input)

    @ops(DETERMINISTIC, allowed_dtypes=(torch.float32, torch.int64, torch.complex64))
    def test_noncontiguous_samples(self, device, dtype, op):
        """Tensors that are not contiguous give the same values and gradients."""
        differentiable = op.supports_autograd and dtype in op.supported_backward_dtypes(torch.device(device).type)
        for sample in op.sample_inputs(device, dtype, requires_grad=differentiable):
            twin = sample.noncontiguous()
            expected, found = called(op, sample), called(op, twin)
            self.assertEqual(found, expected)
            if differentiable:
                self._compare_gradients(op, (sample, expected), (twin, found))

    def _compare_gradients(self, op, first, second):
        gradients = []
        for sample, output in (first, second):
            output = sample.output_process_fn_grad(output)
            outputs = differentiable(output)
            inputs = differentiable((sample.input, sample.args, sample.kwargs))
            if not outputs or not inputs:
                return
            ones = [torch.ones_like(t) for t in outputs]
            gradients.append(torch.autograd.grad(outputs, inputs, ones, allow_unused=True))
        self.assertEqual(gradients[1], gradients[0])

    @ops(DETERMINISTIC, dtypes=OpDTypes.any_one)
    def test_variant_consistency_eager(self, device, dtype, op):
        """The method, Python's operator and the in-place form give the function's result."""
        variants = [op.get_method(), op.get_operator(), *(alias.op for alias in op.aliases)]
        in_place = [op.get_inplace(), op.get_inplace_operator()]
        for sample in op.sample_inputs(device, dtype):
            expected = called(op, sample)
            for variant in filter(None, variants):
                if sample.kwargs and variant is op.get_operator():  # Python's operators have no keyword arguments.
                    continue
                self.assertEqual(variant(sample.input, *sample.args, **sample.kwargs), expected)
            fits = isinstance(expected, torch.Tensor) and isinstance(sample.input, torch.Tensor)
            if not fits or sample.broadcasts_input or not torch.can_cast(expected.dtype, sample.input.dtype):
                continue
            for variant in filter(None, in_place):
                if sample.kwargs and variant is op.get_inplace_operator():
                    continue
                given = sample.input.clone()
                found = variant(given, *sample.args, **sample.kwargs)
                self.assertIs(found, given)
                self.assertEqual(found, expected.to(given.dtype))


class TestUnaryUfuncs(TestCase):
    """Unary functions at the edges of their domains."""

    def _compare(self, op, samples, dtype):
        for sample in samples:
            kwargs, numpy_kwargs = op.sample_kwargs(sample.input.device, dtype, sample.input)
            found = op(sample.input, **kwargs)
            expected = op.ref(sample.input.cpu().numpy(), **numpy_kwargs)
            self.assertEqual(found, expected, exact_device=False, exact_dtype=False, equal_nan=True)

    @ops(UNARY, allowed_dtypes=FULL)
    def test_reference_numerics_small(self, device, dtype, op):
        samples = core.generate_elementwise_unary_small_value_tensors(op, device=device, dtype=dtype)
        self._compare(op, samples, dtype)

    @ops(UNARY, allowed_dtypes=(torch.float32, torch.float64, torch.complex64))
    def test_reference_numerics_large(self, device, dtype, op):
        samples = core.generate_elementwise_unary_large_value_tensors(op, device=device, dtype=dtype)
        self._compare(op, samples, dtype)

    @ops(UNARY, allowed_dtypes=(torch.float32, torch.float64, torch.complex64))
    def test_reference_numerics_extremal(self, device, dtype, op):
        samples = core.generate_elementwise_unary_extremal_value_tensors(op, device=device, dtype=dtype)
        self._compare(op, samples, dtype)


class TestBinaryUfuncs(TestCase):
    """Binary functions: broadcasting, mixed dtypes, scalars, and the edges of their domains."""

    def _compare(self, op, samples):
        for sample in samples:
            self.compare_with_reference(op, op.ref, sample, exact_dtype=False, equal_nan=True)

    @ops(BINARY, allowed_dtypes=WIDE)
    def test_reference_numerics(self, device, dtype, op):
        self._compare(op, op.reference_inputs(device, dtype))

    @ops(BINARY, allowed_dtypes=FULL)
    def test_reference_numerics_small_values(self, device, dtype, op):
        samples = core.generate_elementwise_binary_small_value_tensors(op, device=device, dtype=dtype)
        self._compare(op, samples)

    @ops(BINARY, allowed_dtypes=FULL)
    def test_reference_numerics_large_values(self, device, dtype, op):
        samples = core.generate_elementwise_binary_large_value_tensors(op, device=device, dtype=dtype)
        self._compare(op, samples)

    @ops(BINARY, allowed_dtypes=(torch.float32, torch.float64, torch.complex64))
    def test_reference_numerics_extremal_values(self, device, dtype, op):
        samples = core.generate_elementwise_binary_extremal_value_tensors(op, device=device, dtype=dtype)
        self._compare(op, samples)

    @ops(BINARY, allowed_dtypes=FULL)
    def test_broadcasting(self, device, dtype, op):
        self._compare(op, core.generate_elementwise_binary_broadcasting_tensors(op, device=device, dtype=dtype))


class TestFwdGradients(TestGradients):
    """Forward-mode derivatives agree with finite differences."""

    @ops(WITH_GRADIENTS, dtypes=OpDTypes.supported_backward, allowed_dtypes=(torch.float64, torch.complex128))
    def test_forward_mode_AD(self, device, dtype, op):
        self._skip_helper(op, device, dtype)
        if not op.supports_forward_ad:
            self.skipTest("the operator has no forward derivative")
        self._grad_test_helper(
            device, dtype, op, op.get_op(), check_forward_ad=True, check_backward_ad=False, check_batched_grad=False
        )


class TestBwdGradients(TestGradients):
    """Gradients, and second gradients, agree with finite differences."""

    @ops(WITH_GRADIENTS, dtypes=OpDTypes.supported_backward, allowed_dtypes=(torch.float64, torch.complex128))
    def test_fn_grad(self, device, dtype, op):
        self._skip_helper(op, device, dtype)
        if dtype not in op.supported_backward_dtypes(torch.device(device).type):
            self.skipTest("the operator has no gradient of this dtype")
        self._grad_test_helper(device, dtype, op, op.get_op())

    @ops(WITH_GRADIENTS, dtypes=OpDTypes.supported_backward, allowed_dtypes=(torch.float64, torch.complex128))
    def test_fn_gradgrad(self, device, dtype, op):
        self._skip_helper(op, device, dtype)
        if not op.supports_gradgrad:
            self.skipTest("the operator has no second gradient")
        self._check_helper(device, dtype, op, op.get_op(), "bwgrad_bwgrad")


for case in (TestCommon, TestUnaryUfuncs, TestBinaryUfuncs, TestFwdGradients, TestBwdGradients):
    instantiate_device_type_tests(case, globals())
del case

if __name__ == "__main__":
    run_tests()
