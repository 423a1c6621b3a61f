"""The engine's C ABI for ctypes.

Written by `make abi` from the sources of crates/torch.
"""

from __future__ import annotations

from ctypes import (
    POINTER,
    Structure,
    c_char_p,
    c_double,
    c_int32,
    c_int64,
    c_size_t,
    c_uint32,
    c_uint64,
    c_void_p,
)
from enum import IntEnum
from typing import Any

# Version of this interface. Callers must be built for the same version.
ABI_VERSION = 12


class DmlStatus(IntEnum):
    """The status of a call."""

    OK = 0
    RUNTIME_ERROR = 1
    INDEX_ERROR = 2
    TYPE_ERROR = 3
    VALUE_ERROR = 4
    NOT_IMPLEMENTED = 5
    OUT_OF_MEMORY = 6
    DEVICE_LOST = 7
    FALLBACK = 8
    INTERRUPTED = 9
    NEEDS_DATA = 10


class DmlDType(IntEnum):
    """The codes of dtypes."""

    BOOL = 0
    U8 = 1
    I8 = 2
    I16 = 3
    I32 = 4
    I64 = 5
    F16 = 6
    BF16 = 7
    F32 = 8
    F64 = 9
    U16 = 10
    U32 = 11
    U64 = 12
    C32 = 13
    C64 = 14
    C128 = 15
    F8E4M3FN = 16
    F8E5M2 = 17
    F8E4M3FNUZ = 18
    F8E5M2FNUZ = 19


# The code of a dtype that the engine does not know.
DTYPE_NONE = 255


class DmlPlace(IntEnum):
    """Where a tensor is: `DmlTensor.place`."""

    CPU = 0
    DML = 1
    OTHER = 2


class DmlTensorFlag(IntEnum):
    """Bits of `DmlTensor.flags`."""

    WRAPPED_NUMBER = 1
    CONJ = 2
    NEG = 4


class DmlTag(IntEnum):
    """The kinds of a `DmlValue`."""

    NONE = 0
    BOOL = 1
    INT = 2
    DOUBLE = 3
    COMPLEX = 4
    TENSOR = 5
    INTS = 6
    DOUBLES = 7
    BOOLS = 8
    TENSORS = 9
    STRING = 10
    SCALARS = 11
    GENERATOR = 12
    DEVICE = 13
    UNSIGNED = 14


class DmlPrecision(IntEnum):
    """`torch.get_float32_matmul_precision()`"""

    HIGHEST = 0
    HIGH = 1
    MEDIUM = 2


class DmlRange(Structure):
    """Bytes of a device's memory."""

    _fields_ = (
        ("address", c_uint64),
        ("bytes", c_uint64),
    )


class DmlLaunch(Structure):
    """A run of a kernel."""

    _fields_ = (
        ("params", c_void_p),
        ("params_bytes", c_size_t),
        ("reads", POINTER(DmlRange)),
        ("reads_count", c_size_t),
        ("writes", POINTER(DmlRange)),
        ("writes_count", c_size_t),
        ("groups", c_uint32 * 3),
    )


class DmlWork(IntEnum):
    """The kinds of a `DmlActivity`."""

    KERNEL = 0
    UPLOAD = 1
    DOWNLOAD = 2
    REPLAY = 3


class DmlStat(Structure):
    """One figure over time. Totals count from the start, or from the last
    `dml_reset_accumulated_stats`.
    """

    _fields_ = (
        ("current", c_int64),
        ("peak", c_int64),
        ("allocated", c_int64),
        ("freed", c_int64),
    )


class DmlPoolStats(Structure):
    """Figures of some blocks. A block is active until it is freed.
    What PyTorch calls active is what it calls allocated.
    """

    _fields_ = (
        ("allocation", DmlStat),
        ("segment", DmlStat),
        ("allocated_bytes", DmlStat),
        ("reserved_bytes", DmlStat),
        ("requested_bytes", DmlStat),
        ("inactive_split", c_int64),
        ("inactive_split_bytes", c_int64),
    )


class DmlMemoryStats(Structure):
    """A device's memory."""

    _fields_ = (
        ("all", DmlPoolStats),
        ("small", DmlPoolStats),
        ("large", DmlPoolStats),
        ("num_alloc_retries", c_int64),
        ("num_ooms", c_int64),
    )


# What each function returns, and its arguments.
FUNCTIONS: dict[str, tuple[Any, list[Any]]] = {
    "dml_last_error": (c_char_p, []),
    "dml_set_error": (None, [c_char_p]),
    "dml_abi_version": (c_uint32, []),
    "dml_version": (c_char_p, []),
    "dml_operator_count": (c_uint32, []),
    "dml_operator_name": (c_char_p, [c_uint32]),
    "dml_operator_schema": (c_char_p, [c_uint32]),
    "dml_fallback_is_error": (c_int32, []),
    "dml_call": (c_int32, [c_uint32, c_int32, c_void_p, c_size_t, c_void_p, c_void_p, c_size_t]),
    "dml_infer": (c_int32, [c_uint32, c_int32, c_void_p, c_size_t, c_void_p, c_void_p, c_size_t]),
    "dml_device_count": (c_int32, [POINTER(c_int32)]),
    "dml_device_info_json": (c_char_p, [c_int32]),
    "dml_unsupported_adapters_json": (c_char_p, []),
    "dml_device_dtypes": (c_int32, [c_int32, POINTER(c_uint32)]),
    "dml_self_test": (c_int32, [c_int32]),
    "dml_synchronize": (c_int32, [c_int32]),
    "dml_flush": (c_int32, [c_int32]),
    "dml_idle": (c_int32, [c_int32, POINTER(c_int32)]),
    "dml_forked": (c_int32, []),
    "dml_simulate_loss": (c_int32, [c_int32]),
    "dml_set_interrupt_check": (None, [c_void_p]),
    "dml_stand_in_for_cuda": (None, []),
    "dml_set_torch_minor": (None, [c_uint32]),
    "dml_shutdown": (None, []),
    "dml_queue_stats_json": (c_char_p, [c_int32]),
    "dml_kernel_stats_json": (c_char_p, []),
    "dml_validation_json": (c_char_p, []),
    "dml_set_child_command": (c_int32, [POINTER(c_char_p), c_size_t]),
    "dml_answer_child_query": (c_int32, [c_char_p]),
    "dml_allocate": (c_int32, [c_int32, c_uint64, POINTER(c_uint64)]),
    "dml_free": (None, [c_int32, c_uint64]),
    "dml_upload": (c_int32, [c_int32, c_uint64, c_void_p, c_uint64]),
    "dml_download": (c_int32, [c_int32, c_uint64, c_void_p, c_uint64]),
    "dml_memory_stats": (c_int32, [c_int32, POINTER(DmlMemoryStats)]),
    "dml_memory_stats_json": (c_char_p, [c_int32]),
    "dml_memory_snapshot_json": (c_char_p, [c_int32]),
    "dml_block_bytes": (c_int32, [c_int32, c_uint64, POINTER(c_uint64)]),
    "dml_memory_info": (c_int32, [c_int32, POINTER(c_uint64), POINTER(c_uint64)]),
    "dml_empty_cache": (c_int32, [c_int32]),
    "dml_reset_peak_stats": (c_int32, [c_int32]),
    "dml_reset_accumulated_stats": (c_int32, [c_int32]),
    "dml_set_memory_fraction": (c_int32, [c_int32, c_double]),
    "dml_host_allocate": (c_int32, [c_int32, c_uint64, POINTER(c_void_p)]),
    "dml_host_free": (None, [c_void_p]),
    "dml_host_is_pinned": (c_int32, [c_void_p]),
    "dml_host_empty_cache": (c_int32, []),
    "dml_host_stats": (c_int32, [POINTER(DmlPoolStats)]),
    "dml_host_reset_stats": (None, [c_int32]),
    "dml_generator_new": (c_int32, [c_int32, POINTER(c_uint64)]),
    "dml_generator_free": (None, [c_uint64]),
    "dml_generator_seed": (c_int32, [c_uint64, c_int32, c_uint64]),
    "dml_generator_seed_all": (None, [c_uint64]),
    "dml_generator_get": (c_int32, [c_uint64, c_int32, POINTER(c_uint64), POINTER(c_uint64)]),
    "dml_generator_set": (c_int32, [c_uint64, c_int32, c_uint64, c_uint64]),
    "dml_graph_pool_new": (c_int32, [c_int32, POINTER(c_uint64)]),
    "dml_graph_pool_free": (None, [c_uint64]),
    "dml_graph_begin": (c_int32, [c_int32, c_uint64, POINTER(c_uint64)]),
    "dml_graph_end": (c_int32, [c_uint64, POINTER(c_uint64)]),
    "dml_graph_discard": (None, [c_uint64]),
    "dml_graph_replay": (c_int32, [c_uint64]),
    "dml_graph_stats_json": (c_char_p, [c_uint64]),
    "dml_graph_free": (None, [c_uint64]),
    "dml_is_capturing": (c_int32, [c_int32, POINTER(c_int32)]),
    "dml_kernel_from_text": (c_int32, [c_int32, c_char_p, c_size_t, POINTER(c_uint64)]),
    "dml_kernel_free": (None, [c_uint64]),
    "dml_kernel_interface_json": (c_char_p, [c_uint64]),
    "dml_launch": (c_int32, [c_int32, c_uint64, POINTER(DmlLaunch)]),
    "dml_launch_values": (c_int32, [c_int32, c_uint64, POINTER(c_uint64), c_size_t, POINTER(c_uint32)]),
    "dml_index_fault": (c_int32, [c_int32, POINTER(c_uint64), POINTER(c_uint32)]),
    "dml_event_record": (c_int32, [c_int32, c_int32, POINTER(c_uint64)]),
    "dml_event_query": (c_int32, [c_uint64, POINTER(c_int32)]),
    "dml_event_wait": (c_int32, [c_uint64]),
    "dml_event_elapsed": (c_int32, [c_uint64, c_uint64, POINTER(c_double)]),
    "dml_event_free": (None, [c_uint64]),
    "dml_profile_start": (c_int32, []),
    "dml_profile_stop": (c_int32, [c_void_p, c_void_p]),
    "dml_profile_correlate": (None, [c_uint64]),
    "dml_measuring": (POINTER(c_uint32), []),
    "dml_measure_enter": (c_uint32, []),
    "dml_measure_leave": (None, [c_uint32]),
    "dml_measure_begin": (c_int32, []),
    "dml_measure_end_json": (c_char_p, []),
}
