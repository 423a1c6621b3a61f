// Written by `make abi` from the sources of crates/torch.
// clang-format off
//
// The C ABI of the engine, libdml_torch. The PyTorch plugins call it through `plugin/engine.h`,
// and the Python package through `python/torch_dml/abi.py`. Both files are written from the
// sources of this crate (`tests/abi`). It is plain C without PyTorch's types.
//
// A function that can fail returns a `DmlStatus`; `dml_last_error()` has the message. Sizes and
// strides are in elements, memory figures in bytes. No panic crosses the interface, and no pointer
// argument is kept after the call. The interface is not safe against a caller that breaks the
// contract:
//
// - **places**: a pointer for a result is not null, aligned, and valid for a write of its type;
// - **arrays**: a pointer with a length is valid for that many initialised values. Nobody writes
//   them during the call, unless the call itself does. If the length is 0, the pointer may be
//   null;
// - **values**: a `DmlValue` has the content that its tag selects, and its arrays are valid as
//   above during the call;
// - **host**: the functions of a `DmlHost` may be called, with its `context`, on the calling
//   thread until the call returns;
// - **handles**: a handle is 0, or the result of the function that makes handles of its kind, and
//   was not freed. Several threads may use it at a time, but not while a thread frees it;
// - **texts**: a string is null or ends with a 0.
//
// The proofs of the `unsafe` blocks name the contract by these words.
#pragma once
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct DmlTensor DmlTensor;
typedef union DmlPayload DmlPayload;
typedef struct DmlValue DmlValue;
typedef struct DmlHost DmlHost;
typedef struct DmlRange DmlRange;
typedef struct DmlLaunch DmlLaunch;
typedef struct DmlActivity DmlActivity;
typedef struct DmlStat DmlStat;
typedef struct DmlPoolStats DmlPoolStats;
typedef struct DmlMemoryStats DmlMemoryStats;

// Version of this interface. Callers must be built for the same version.
#define DML_ABI_VERSION 12u

// The status of a call.
typedef enum DmlStatus {
  DML_OK = 0,  // It worked.
  DML_RUNTIME_ERROR = 1,  // `RuntimeError`
  DML_INDEX_ERROR = 2,  // `IndexError`
  DML_TYPE_ERROR = 3,  // `TypeError`
  DML_VALUE_ERROR = 4,  // `ValueError`
  DML_NOT_IMPLEMENTED = 5,  // `NotImplementedError`
  DML_OUT_OF_MEMORY = 6,  // `torch.OutOfMemoryError`
  DML_DEVICE_LOST = 7,  // `torch.AcceleratorError` where there is one, else `RuntimeError`
  DML_FALLBACK = 8,  // This operator has no kernel for these arguments: the CPU must run it.
  DML_INTERRUPTED = 9,  // The check of `dml_set_interrupt_check` ended a wait.
  DML_NEEDS_DATA = 10,  // `dml_infer`: the results depend on values.
} DmlStatus;

// The codes of dtypes.
typedef enum DmlDType {
  DML_BOOL = 0,
  DML_U8 = 1,
  DML_I8 = 2,
  DML_I16 = 3,
  DML_I32 = 4,
  DML_I64 = 5,
  DML_F16 = 6,
  DML_BF16 = 7,
  DML_F32 = 8,
  DML_F64 = 9,
  DML_U16 = 10,
  DML_U32 = 11,
  DML_U64 = 12,
  DML_C32 = 13,
  DML_C64 = 14,
  DML_C128 = 15,
  DML_F8E4M3FN = 16,
  DML_F8E5M2 = 17,
  DML_F8E4M3FNUZ = 18,
  DML_F8E5M2FNUZ = 19,
} DmlDType;

// The code of a dtype that the engine does not know.
#define DML_DTYPE_NONE 255u

// Where a tensor is: `DmlTensor.place`.
typedef enum DmlPlace {
  DML_PLACE_CPU = 0,  // Host memory.
  DML_PLACE_DML = 1,  // A device of this engine.
  DML_PLACE_OTHER = 2,  // Anything else.
} DmlPlace;

// Bits of `DmlTensor.flags`.
typedef enum DmlTensorFlag {
  DML_TENSOR_FLAG_WRAPPED_NUMBER = 1,  // A Python scalar promoted to a 0-dim tensor.
  DML_TENSOR_FLAG_CONJ = 2,  // The conjugate bit.
  DML_TENSOR_FLAG_NEG = 4,  // The negative bit.
} DmlTensorFlag;

// A strided tensor, borrowed for the time of one call.
struct DmlTensor {
  void* handle;  // The plugin's object. The engine hands it back and never reads it.
  // Address of the first element: a GPU address, or a host pointer where `place` is the CPU.
  uint64_t data;
  const int64_t* sizes;  // `dim` sizes.
  const int64_t* strides;  // `dim` strides.
  uint64_t storage;  // Address of the storage's first byte.
  uint64_t storage_bytes;  // Bytes of the storage.
  int32_t dim;  // Number of dimensions.
  uint8_t dtype;  // A `DmlDType`.
  uint8_t place;  // A `DmlPlace`.
  uint8_t device;  // Index of the device.
  uint8_t flags;  // Bits of `DmlTensorFlag`.
};

// The kinds of a `DmlValue`.
typedef enum DmlTag {
  DML_TAG_NONE = 0,  // Nothing.
  DML_TAG_BOOL = 1,  // `bool`
  // `int`; also a dtype as its `DmlDType`, and a memory format: 0 contiguous, 1 preserve,
  // 2 channels_last, 3 channels_last_3d.
  DML_TAG_INT = 2,
  DML_TAG_DOUBLE = 3,  // `float`
  DML_TAG_COMPLEX = 4,  // `complex`
  DML_TAG_TENSOR = 5,  // `Tensor`
  DML_TAG_INTS = 6,  // `int[]`
  DML_TAG_DOUBLES = 7,  // `float[]`
  DML_TAG_BOOLS = 8,  // `bool[]`
  DML_TAG_TENSORS = 9,  // `Tensor[]`
  DML_TAG_STRING = 10,  // `str`
  DML_TAG_SCALARS = 11,  // `Scalar[]`
  DML_TAG_GENERATOR = 12,  // `Generator`
  DML_TAG_DEVICE = 13,  // `Device`
  DML_TAG_UNSIGNED = 14,  // A result alone: an int whose bits are those of a uint64.
} DmlTag;

// The content of a `DmlValue`. Its tag selects the member.
union DmlPayload {
  uint8_t boolean;  // `DML_TAG_BOOL`
  int64_t integer;  // `DML_TAG_INT`, `DML_TAG_UNSIGNED`, and the index of a `DML_TAG_DEVICE`
  double number;  // `DML_TAG_DOUBLE`
  double complex[2];  // `DML_TAG_COMPLEX`
  DmlTensor tensor;  // `DML_TAG_TENSOR`
  const int64_t* ints;  // `DML_TAG_INTS`
  const double* doubles;  // `DML_TAG_DOUBLES`
  const uint8_t* bools;  // `DML_TAG_BOOLS`
  const DmlTensor* tensors;  // `DML_TAG_TENSORS`. An undefined tensor of the list has no handle.
  const DmlValue* scalars;  // `DML_TAG_SCALARS`: values of tag BOOL, INT, DOUBLE or COMPLEX.
  const char* string;  // `DML_TAG_STRING`
  // `DML_TAG_GENERATOR`: a handle of `dml_generator_new`, or 0 for the device's default one.
  uint64_t generator;
};

// One argument or one result of an operator.
struct DmlValue {
  uint8_t tag;  // A `DmlTag`.
  int64_t len;  // Length of a list or string.
  DmlPayload u;  // The value.
};

// `torch.get_float32_matmul_precision()`
typedef enum DmlPrecision {
  DML_PRECISION_HIGHEST = 0,  // "highest"
  DML_PRECISION_HIGH = 1,  // "high"
  DML_PRECISION_MEDIUM = 2,  // "medium"
} DmlPrecision;

// Functions of the plugin that the engine calls during `dml_call`. A function that fails returns a
// `DmlStatus` and sets the message with `dml_set_error`.
struct DmlHost {
  void* context;  // Passed back to each function.
  // A new uninitialised tensor on dml:`device`. `strides` may be null: contiguous. The call owns
  // it: tensors that are not returned are released when the call ends.
  int32_t (*empty)(
      void* context,
      const int64_t* sizes,
      const int64_t* strides,
      int32_t dim,
      uint8_t dtype,
      uint8_t device,
      DmlTensor* out);
  // Resizes an `out=` tensor as at::native::resize_output does, warning included, and refreshes
  // it.
  int32_t (*resize)(
      void* context,
      DmlTensor* tensor,
      const int64_t* sizes,
      const int64_t* strides,
      int32_t dim);
  // A view of `base`'s storage. The offset counts elements from the storage's start.
  int32_t (*view)(
      void* context,
      const DmlTensor* base,
      const int64_t* sizes,
      const int64_t* strides,
      int32_t dim,
      int64_t storage_offset,
      DmlTensor* out);
  void (*warn)(void* context, const char* message);  // A warning for the user.
  // How float32 is multiplied: a `DmlPrecision`. Asked by products of float32.
  uint8_t (*matmul_precision)(void* context);
  // The `DmlDType` that products round float32 operands to; float32's where they do not.
  uint8_t (*product_dtype)(void* context);
  uint8_t default_dtype;  // `torch.get_default_dtype()`
  uint8_t deterministic;  // `torch.are_deterministic_algorithms_enabled()`
};

// Bytes of a device's memory.
struct DmlRange {
  uint64_t address;  // The address of the first byte.
  uint64_t bytes;  // The number of bytes.
};

// A run of a kernel.
struct DmlLaunch {
  // The parameter block, in the host's byte order: addresses (8 bytes) and numbers in the
  // kernel's order, each aligned to its size, the block's end to 4. The address 0 stands for
  // memory without bytes.
  const void* params;
  size_t params_bytes;  // Bytes of the parameter block.
  // What the kernel may read. Accesses to bytes that are not named are not ordered.
  const DmlRange* reads;
  size_t reads_count;  // Number of ranges that it may read.
  const DmlRange* writes;  // What the kernel may write.
  size_t writes_count;  // Number of ranges that it may write.
  uint32_t groups[3];  // Workgroups in each dimension. None run if one is 0.
};

// The kinds of a `DmlActivity`.
typedef enum DmlWork {
  DML_WORK_KERNEL = 0,  // A kernel ran.
  DML_WORK_UPLOAD = 1,  // Bytes came from the host.
  DML_WORK_DOWNLOAD = 2,  // Bytes went to the host.
  DML_WORK_REPLAY = 3,  // A graph was replayed.
} DmlWork;

// One command that ran on a device. Times are nanoseconds since 1970 by the host's clock, from and
// to.
struct DmlActivity {
  const char* name;  // The kernel's name, or "graph replay", "upload", "download".
  const char* op;  // The operator that enqueued it.
  uint64_t correlation;  // The id of `dml_profile_correlate` when it was enqueued.
  int64_t enqueued[2];  // When the host enqueued it.
  int64_t ran[2];  // When it ran on the device. The activities of a device do not overlap.
  uint64_t bytes_read;  // Bytes named as read.
  uint64_t bytes_written;  // Bytes named as written.
  uint32_t groups[3];  // Workgroups of a kernel.
  uint32_t group_size[3];  // Invocations of a workgroup.
  uint32_t launches;  // Launches and copies of a graph; else 1.
  int32_t device;  // Index of the device.
  uint8_t work;  // A `DmlWork`.
};

// One figure over time. Totals count from the start, or from the last
// `dml_reset_accumulated_stats`.
struct DmlStat {
  int64_t current;  // Now.
  int64_t peak;  // The most since the last reset.
  int64_t allocated;  // Sum of increases.
  int64_t freed;  // Sum of decreases.
};

// Figures of some blocks. A block is active until it is freed.
// What PyTorch calls active is what it calls allocated.
struct DmlPoolStats {
  DmlStat allocation;  // Blocks in use.
  DmlStat segment;  // Segments held from the driver.
  DmlStat allocated_bytes;  // Bytes in use, rounded up.
  DmlStat reserved_bytes;  // Bytes held from the driver.
  DmlStat requested_bytes;  // Bytes in use, as asked for.
  int64_t inactive_split;  // Free blocks of segments in use, now.
  int64_t inactive_split_bytes;  // Their bytes.
};

// A device's memory.
struct DmlMemoryStats {
  DmlPoolStats all;  // All blocks.
  DmlPoolStats small;  // Blocks up to 1 MiB.
  DmlPoolStats large;  // Blocks above 1 MiB.
  int64_t num_alloc_retries;  // Allocations tried again after a release.
  int64_t num_ooms;  // Allocations that failed.
};

// ---- Errors as statuses, messages per thread, and the conversion of panics.

// The message of the calling thread's last failed call, valid until its next call.
const char* dml_last_error(void);

// Sets the calling thread's message. Called by the plugin's callbacks before they return a status.
void dml_set_error(const char* message);

// Version of this interface: `DML_ABI_VERSION` as the engine was built for.
uint32_t dml_abi_version(void);

// Version of the engine, such as "0.1.0".
const char* dml_version(void);

// ---- The table of operators, and their calls.

// Number of operators in the table.
uint32_t dml_operator_count(void);

// An operator's name, such as "aten::add.Tensor"; null when there is none of this index.
const char* dml_operator_name(uint32_t op);

// An operator's schema as PyTorch prints it; null when there is none of this index.
const char* dml_operator_schema(uint32_t op);

// Whether `TORCH_DML_FALLBACK` makes an operator without a kernel an error. Read at each call, as
// programs may change the variable.
int32_t dml_fallback_is_error(void);

// Runs operator `op` on dml:`device`. Lists and strings in `results` belong to the engine and live
// until the calling thread's next `dml_call`. A missing result has the tag NONE.
int32_t dml_call(
    uint32_t op,
    int32_t device,
    const DmlValue* args,
    size_t nargs,
    const DmlHost* host,
    DmlValue* results,
    size_t nresults);

// Describes the results of a call of operator `op` on dml:`device` without running it, as tensors
// without a handle and without memory. Lists, sizes and strides in `results` belong to the engine
// and live until the calling thread's next `dml_infer`.
int32_t dml_infer(
    uint32_t op,
    int32_t device,
    const DmlValue* args,
    size_t nargs,
    const DmlHost* host,
    DmlValue* results,
    size_t nresults);

// ---- Devices.

// The number of devices. The error says what is missing: the loader, or a usable adapter.
int32_t dml_device_count(int32_t* count);

// The description of a device as JSON; null on error. Does not open the device.
//
// Keys: `name`, `vendor`, `kind` ("discrete", "integrated", "virtual", "software"), `driver`,
// `driver_info`, `api_version` ("1.3.224"), `memory_total` and `memory_free` (bytes), `f16`,
// `bf16`, `f64`, `i64` (arithmetic), `matrix` (matrix units), `timestamps` (times of kernels can
// be measured), `subnormals` (sums and products keep them), `software`, `uuid` (hexadecimal).
const char* dml_device_info_json(int32_t device);

// The adapters that cannot be used, as JSON: `[{"name": ..., "reason": ...}]`.
const char* dml_unsupported_adapters_json(void);

// The dtypes that a device computes with: bit `n` is the `DmlDType` n.
int32_t dml_device_dtypes(int32_t device, uint32_t* mask);

// Runs a kernel that computes 1 + 2 and checks the sum.
int32_t dml_self_test(int32_t device);

// Waits for all work of a device, and returns its errors.
int32_t dml_synchronize(int32_t device);

// Submits pending work.
int32_t dml_flush(int32_t device);

// Whether all work is done.
int32_t dml_idle(int32_t device, int32_t* idle);

// 1 in a child of a process that had started Vulkan: it can use no device.
int32_t dml_forked(void);

// For tests: the device is lost from now on.
int32_t dml_simulate_loss(int32_t device);

// From now on every wait for a device calls `check` every 50 ms, on the waiting thread and without
// a lock of the engine. If the result is not 0, the wait ends with `DML_INTERRUPTED`. A wait of an
// operator that only enqueues also ends, but the operator is enqueued and succeeds. Null: waits
// are not interrupted.
void dml_set_interrupt_check(int32_t (*check)(void));

// From now on messages call the devices CUDA devices.
void dml_stand_in_for_cuda(void);

// Sets PyTorch's version, 2.`minor`: the CPU accepts different arguments in different versions.
void dml_set_torch_minor(uint32_t minor);

// Before the process ends: waits for all work that drivers have, and saves compiled kernels. Work
// that no driver has is not run.
void dml_shutdown(void);

// Statistics of a device's queue as JSON; null on error. Keys: `commands` (enqueued launches and
// copies), `fused_launches` (launches that ran as part of a fused kernel), `fused_kernels` (runs
// of fused kernels), `barriers`, `submits`, `waits`.
const char* dml_queue_stats_json(int32_t device);

// The cost of kernels in this process as JSON; null on error. Keys: `kernels` (compiled, or found
// in the cache), `emit_ns`, `compile_ns` (over all threads), `longest_ns`, `wait_ns` (time during
// which submissions waited for kernels).
const char* dml_kernel_stats_json(void);

// The messages of Vulkan's validation layer in this process as JSON: a list, empty without
// `TORCH_DML_VALIDATION=1`; null on error. Keys: `id` (the rule), `text` (the first message),
// `count`.
const char* dml_validation_json(void);

// ---- Questions to drivers that end some processes: they are asked in a child process.

// Sets the command that starts a child process, which calls `dml_answer_child_query` with one more
// argument, and ends: `count` words in UTF-8, the program first. To be called before the first
// call that lists devices.
//
// Without it, what such a question is about is not used.
int32_t dml_set_child_command(const char* const* words, size_t count);

// In such a child process: writes the answer to the standard output.
int32_t dml_answer_child_query(const char* question);

// ---- Device memory.

// Allocates memory of a device.
int32_t dml_allocate(int32_t device, uint64_t bytes, uint64_t* address);

// Frees memory. Work that was enqueued before may still use it.
void dml_free(int32_t device, uint64_t address);

// Copies host memory to the device; the source may change when this returns.
int32_t dml_upload(int32_t device, uint64_t address, const void* source, uint64_t bytes);

// Copies device memory to the host, after the work so far.
int32_t dml_download(int32_t device, uint64_t address, void* target, uint64_t bytes);

// The allocator's figures.
int32_t dml_memory_stats(int32_t device, DmlMemoryStats* out);

// The same figures as JSON, with `torch.accelerator.memory_stats`' keys; null on error.
const char* dml_memory_stats_json(int32_t device);

// The segments and blocks as JSON: a list of segments, with `torch.cuda.memory_snapshot`'s keys;
// null on error.
const char* dml_memory_snapshot_json(int32_t device);

// Bytes of the block in use that contains an address; 0 if there is none.
int32_t dml_block_bytes(int32_t device, uint64_t address, uint64_t* bytes);

// Free bytes, and the device's total.
int32_t dml_memory_info(int32_t device, uint64_t* free, uint64_t* total);

// Returns unused memory to the driver. A device that was not used has none, and is not opened.
int32_t dml_empty_cache(int32_t device);

// Sets each peak to the current figure.
int32_t dml_reset_peak_stats(int32_t device);

// Sets the totals to zero.
int32_t dml_reset_accumulated_stats(int32_t device);

// Limits this process to a part of the device's memory.
int32_t dml_set_memory_fraction(int32_t device, double fraction);

// ---- Pinned host memory. Its addresses are unique in the process, so only the allocation names a
// device.

// Memory of the host that a device reads and writes itself.
int32_t dml_host_allocate(int32_t device, uint64_t bytes, void** address);

// Frees pinned memory. Copies that were enqueued before may still use it.
void dml_host_free(const void* address);

// 1 if an address is inside pinned memory of any device.
int32_t dml_host_is_pinned(const void* address);

// Returns unused pinned memory to the system.
int32_t dml_host_empty_cache(void);

// The figures of all devices' pinned memory together. A peak is the sum of their peaks.
int32_t dml_host_stats(DmlPoolStats* out);

// Sets each peak to the current figure, or with 0 the totals to zero.
void dml_host_reset_stats(int32_t peaks);

// ---- Random generators. A handle is a reference to a generator; 0 is the device's default generator.

// A new generator, in addition to the device's default one.
int32_t dml_generator_new(int32_t device, uint64_t* generator);

// Drops a handle.
void dml_generator_free(uint64_t generator);

// Moves to the start of `seed`'s stream. Generator 0 is the device's default one, here and below.
int32_t dml_generator_seed(uint64_t generator, int32_t device, uint64_t seed);

// Seeds the default generators of all devices; opens none.
void dml_generator_seed_all(uint64_t seed);

// Seed and offset.
int32_t dml_generator_get(uint64_t generator, int32_t device, uint64_t* seed, uint64_t* offset);

// Sets seed and offset.
int32_t dml_generator_set(uint64_t generator, int32_t device, uint64_t seed, uint64_t offset);

// ---- Graphs. A handle owns its pool, capture or graph.

// A pool of memory that several graphs share.
int32_t dml_graph_pool_new(int32_t device, uint64_t* pool);

// Drops a handle of a pool. The pool's graphs keep the pool.
void dml_graph_pool_free(uint64_t pool);

// Begins a capture of the calling thread's work on a device. The thread's work is recorded, not
// run, until the capture ends. Pool 0: a new pool.
int32_t dml_graph_begin(int32_t device, uint64_t pool, uint64_t* capture);

// Ends a capture, on the thread that began it. The capture is over and its handle invalid also on
// failure.
int32_t dml_graph_end(uint64_t capture, uint64_t* graph);

// Ends a capture without a graph.
void dml_graph_discard(uint64_t capture);

// Enqueues a graph's work.
int32_t dml_graph_replay(uint64_t handle);

// Statistics of a graph as JSON: `captured` (launches), `launches` and `barriers` (of a replay),
// `barriers_in_order` (barriers that a replay in the order of the capture would need). Null on
// error.
const char* dml_graph_stats_json(uint64_t handle);

// Drops a graph. Enqueued replays run.
void dml_graph_free(uint64_t graph);

// Whether the calling thread is capturing. Opens no device.
int32_t dml_is_capturing(int32_t device, int32_t* capturing);

// ---- Kernels of one's own. A text is one kernel of the engine's language,
// `kernel double [64, 1, 1] { .. }`: its reference is the rustdoc of `dml_kernel::text`, an
// example is `examples/own_kernel.py`.

// A kernel of a device, from `length` bytes of text. A text that is no kernel is a
// `DML_VALUE_ERROR` whose message begins with line and column, "3:15: "; a kernel that needs a
// feature that the adapter lacks is a `DML_NOT_IMPLEMENTED`. Equal kernels are compiled once, in
// the background, however their texts are laid out.
int32_t dml_kernel_from_text(int32_t device, const char* text, size_t length, uint64_t* kernel);

// Drops a handle of a kernel. Launches that are enqueued still run.
void dml_kernel_free(uint64_t kernel);

// A kernel's interface as JSON; null on error. Keys: `name`, `workgroup` (invocations in each
// dimension), `bytes` (of the parameter block), `params`: of each, in order, `name`, `kind`
// ("input", "output" or "param"), `dtype` ("f32"), `offset` in the block.
const char* dml_kernel_interface_json(uint64_t kernel);

// Enqueues a run of a kernel, in order with all other work, or captures it.
//
// Checked: each range is memory in use of the device; the address of an output is in what may be
// written, that of an input in what may be read or written; addresses are aligned to their
// elements; the adapter runs so many workgroups. Not checked: the indices that the kernel
// computes. A kernel that leaves its ranges reads or overwrites other tensors.
int32_t dml_launch(int32_t device, uint64_t kernel, const DmlLaunch* launch);

// Enqueues a run of a kernel whose arguments have been checked, or captures it: what compiled
// programs call. There are `count` values, one for each parameter: the address of a tensor's first
// element, or 0 of an empty tensor, or that of [`dml_index_fault`], and the bits of a number in
// the low bytes.
//
// A tensor's allocation counts as read or written in whole. Checked: addresses are in allocations
// in use of the device, and aligned to their elements. Not checked: the indices that the kernel
// computes.
int32_t dml_launch_values(
    int32_t device,
    uint64_t kernel,
    const uint64_t* values,
    size_t count,
    const uint32_t* groups);

// Where a kernel that the calling thread launches reports an index out of range, as elements of
// u32, and the number to report for the error. The first invocation that exchanges element 0 from
// 0 to 1 writes the others: 1 the number, 2 and 3 the index as i64, 4 and 5 the size, 6 the
// dimension. The next launch or synchronisation raises an `IndexError`.
int32_t dml_index_fault(int32_t device, uint64_t* address, uint32_t* number);

// ---- Events. A handle owns its event.

// Records an event after all work so far; with `timing`, also the time at which the device reaches
// it.
int32_t dml_event_record(int32_t device, int32_t timing, uint64_t* event);

// Whether the work before the event is done.
int32_t dml_event_query(uint64_t handle, int32_t* done);

// Waits for the work before the event.
int32_t dml_event_wait(uint64_t handle);

// Milliseconds between two events recorded for timing.
int32_t dml_event_elapsed(uint64_t start, uint64_t end, double* milliseconds);

// Drops an event.
void dml_event_free(uint64_t handle);

// ---- Activities of the devices, for PyTorch's profiler.

// Starts to profile every device, including devices that are opened later. Fails for devices
// without timestamps.
int32_t dml_profile_start(void);

// Waits for every device, ends the profile, and passes each activity to `each`, for each device in
// order.
int32_t dml_profile_stop(void* context, void (*each)(void* context, const DmlActivity* activity));

// From now on the calling thread's commands belong to this id; 0: to none.
void dml_profile_correlate(uint64_t id);

// ---- The host's time, for `bench ops --breakdown`.

// A word that is not 0 while some thread measures: callers check it before they enter a stage.
const uint32_t* dml_measuring(void);

// Enters the plugin's code, whose own time counts as unpacking. Returns the token of
// `dml_measure_leave`.
uint32_t dml_measure_enter(void);

// Leaves the plugin's code.
void dml_measure_leave(uint32_t token);

// Measures the calling thread from now on.
int32_t dml_measure_begin(void);

// The calling thread's time since `dml_measure_begin` as JSON; null if that was not called.
//
// Keys: `elapsed_ns`, `clock_ns` (the cost of reading the clock at both ends of a stage;
// subtracted), and `stages`: for each, `ns` without the stages inside it, and how often it was
// `entered`. `beside` is the work of the submitting threads meanwhile: nanoseconds of `record` and
// `submit`, and the number of `commands`.
const char* dml_measure_end_json(void);

#ifdef __cplusplus
}
#endif
