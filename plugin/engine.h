// The C ABI of the engine (libdml_torch), as implemented in crates/torch. Plain C, no PyTorch type.
//
// Every function that can fail returns a DmlStatus; the message is dml_last_error(), valid on the calling thread until
// its next call. Sizes and strides are in elements, memory figures in bytes.
//
// What every caller promises:
// - A pointer to be written through is not null and valid for a write of its type.
// - A pointer with a length is valid for so many values, which nobody writes during the call unless it is where the
//   call writes. With the length 0 it may be null. Nothing that a pointer leads to is kept after the call.
// - A string ends with a 0.
// - A handle is 0, or what the function that makes its kind has given, and was not freed. Several threads may use it
//   at a time, but not while one frees it.
#pragma once
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DML_ABI_VERSION 11u

typedef enum DmlStatus {
  DML_OK = 0,
  DML_RUNTIME_ERROR = 1,        // RuntimeError
  DML_INDEX_ERROR = 2,          // IndexError
  DML_TYPE_ERROR = 3,           // TypeError
  DML_VALUE_ERROR = 4,          // ValueError
  DML_NOT_IMPLEMENTED = 5,      // NotImplementedError
  DML_OUT_OF_MEMORY = 6,        // torch.OutOfMemoryError
  DML_DEVICE_LOST = 7,          // torch.AcceleratorError where there is one, else RuntimeError
  DML_FALLBACK = 8,             // this operator has no kernel for these arguments: run it on the CPU
  DML_INTERRUPTED = 9,          // a wait that the check of dml_set_interrupt_check ended
} DmlStatus;

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
  DML_DTYPE_NONE = 255,
} DmlDType;

typedef enum DmlPlace { DML_PLACE_CPU = 0, DML_PLACE_DML = 1, DML_PLACE_OTHER = 2 } DmlPlace;

enum DmlTensorFlags {
  DML_TENSOR_WRAPPED_NUMBER = 1,  // a Python scalar promoted to a 0-dim tensor
  DML_TENSOR_CONJ = 2,
  DML_TENSOR_NEG = 4,
};

// A strided tensor, borrowed for the time of one call.
typedef struct DmlTensor {
  void* impl;              // the plugin's TensorImpl; the engine hands it back, never reads it
  uint64_t data;           // address of the first element (GPU address, or host pointer when place is CPU)
  const int64_t* sizes;
  const int64_t* strides;
  uint64_t storage;        // address of the first byte of the storage
  uint64_t storage_bytes;
  int32_t dim;
  uint8_t dtype;           // DmlDType
  uint8_t place;           // DmlPlace
  uint8_t device;          // index of the device
  uint8_t flags;           // DmlTensorFlags
} DmlTensor;

typedef enum DmlTag {
  DML_NONE = 0,
  DML_TAG_BOOL = 1,
  DML_TAG_INT = 2,
  DML_TAG_DOUBLE = 3,
  DML_TAG_COMPLEX = 4,
  DML_TAG_TENSOR = 5,
  DML_TAG_INTS = 6,
  DML_TAG_DOUBLES = 7,
  DML_TAG_BOOLS = 8,
  DML_TAG_TENSORS = 9,
  DML_TAG_STRING = 10,
  DML_TAG_SCALARS = 11,
  DML_TAG_GENERATOR = 12,
  DML_TAG_DEVICE = 13,
  DML_TAG_UNSIGNED = 14,  // a result alone: an int whose bits are of uint64
} DmlTag;

// One argument or one result of an operator. dtype, layout and memory_format arguments travel as DML_TAG_INT:
// a dtype as its DmlDType, a memory format as 0 contiguous, 1 preserve, 2 channels_last, 3 channels_last_3d.
typedef struct DmlValue {
  uint8_t tag;             // DmlTag
  int64_t len;             // of a list or string
  union {
    uint8_t boolean;
    int64_t integer;       // DML_TAG_DEVICE: the index
    double number;         // DML_TAG_DOUBLE
    double complex[2];
    DmlTensor tensor;
    const int64_t* ints;
    const double* doubles;
    const uint8_t* bools;
    const DmlTensor* tensors;        // an undefined tensor in the list has impl == NULL
    const struct DmlValue* scalars;  // DML_TAG_SCALARS: values of tag BOOL, INT, DOUBLE or COMPLEX
    const char* string;
    uint64_t generator;              // handle from dml_generator_new, 0 for the device's default
  } u;
} DmlValue;

// torch.get_float32_matmul_precision()
typedef enum DmlPrecision {
  DML_PRECISION_HIGHEST = 0,
  DML_PRECISION_HIGH = 1,
  DML_PRECISION_MEDIUM = 2,
} DmlPrecision;

// What the engine asks of the plugin during dml_call. Callbacks return a DmlStatus and leave the message to
// dml_set_error.
typedef struct DmlHost {
  void* self;
  // A new uninitialised tensor on dml:`device`. strides may be NULL: contiguous. Owned by the call: what is not
  // returned is released when the call ends.
  int32_t (*empty)(void* self, const int64_t* sizes, const int64_t* strides, int32_t dim, uint8_t dtype, uint8_t device,
                   DmlTensor* out);
  // Resizes an `out=` tensor as at::native::resize_output does (warning included) and refreshes *tensor.
  int32_t (*resize)(void* self, DmlTensor* tensor, const int64_t* sizes, const int64_t* strides, int32_t dim);
  // A view of `base`'s storage, offset in elements from the start of the storage.
  int32_t (*view)(void* self, const DmlTensor* base, const int64_t* sizes, const int64_t* strides, int32_t dim,
                  int64_t storage_offset, DmlTensor* out);
  void (*warn)(void* self, const char* message);
  uint8_t (*matmul_precision)(void* self);  // DmlPrecision; asked by products of float32
  uint8_t (*product_dtype)(void* self);     // DmlDType that they round operands to; float32's: they do not
  uint8_t default_dtype;   // torch.get_default_dtype()
  uint8_t deterministic;   // torch.are_deterministic_algorithms_enabled()
} DmlHost;

// ---- identity and errors
uint32_t dml_abi_version(void);
const char* dml_version(void);
const char* dml_last_error(void);
void dml_set_error(const char* message);  // called by plugin callbacks before they return a status

// ---- operators
uint32_t dml_operator_count(void);
const char* dml_operator_name(uint32_t op);    // "aten::add.Tensor"
const char* dml_operator_schema(uint32_t op);  // as PyTorch prints it
int32_t dml_fallback_is_error(void);           // TORCH_DML_FALLBACK=error: no kernel is an error; read at each call
// Runs operator `op` on dml:`device`. Lists and strings in `results` belong to the engine and live until the calling
// thread's next dml_call. A missing result has tag DML_NONE.
int32_t dml_call(uint32_t op, int32_t device, const DmlValue* args, size_t nargs, const DmlHost* host,
                 DmlValue* results, size_t nresults);

// ---- devices
int32_t dml_device_count(int32_t* count);
const char* dml_device_info_json(int32_t device);  // NULL on error; keys as in crates/torch/src/device.rs
const char* dml_unsupported_adapters_json(void);
int32_t dml_self_test(int32_t device);             // runs a kernel that computes 1 + 2 and checks it
int32_t dml_synchronize(int32_t device);
int32_t dml_flush(int32_t device);
int32_t dml_idle(int32_t device, int32_t* idle);
int32_t dml_forked(void);                          // 1 in a child of a process that had started Vulkan
int32_t dml_simulate_loss(int32_t device);         // for tests
// Before the process ends: waits for the work that drivers were given, and saves compiled kernels. Work that no driver
// was given is not run.
void dml_shutdown(void);
// From now on every wait for a device asks `check` every 50 ms, on the thread that waits and with no lock of the engine
// held. It ends with DML_INTERRUPTED when the answer is not 0. A wait of an operator that only enqueues ends, too, but
// the operator is enqueued and succeeds. NULL: waits are not interrupted.
void dml_set_interrupt_check(int32_t (*check)(void));
// From now on messages call the devices CUDA devices.
void dml_stand_in_for_cuda(void);
// PyTorch 2.`minor` asks: some of what the CPU refuses or takes depends on it.
void dml_set_torch_minor(uint32_t minor);
int32_t dml_device_dtypes(int32_t device, uint32_t* mask);  // bit n: DmlDType n can be computed with

// ---- memory
// One figure over time; allocated and freed are totals since the start or the last dml_reset_accumulated_stats.
typedef struct DmlStat {
  int64_t current, peak, allocated, freed;
} DmlStat;

// Of the blocks up to 1 MiB, of those above, or of both. A block is active until it is freed: what PyTorch calls
// active is what it calls allocated.
typedef struct DmlPoolStats {
  DmlStat allocation, segment;  // counts
  DmlStat allocated_bytes, reserved_bytes, requested_bytes;
  int64_t inactive_split, inactive_split_bytes;  // now
} DmlPoolStats;

typedef struct DmlMemoryStats {
  DmlPoolStats all, small, large;
  int64_t num_alloc_retries, num_ooms;
} DmlMemoryStats;

int32_t dml_allocate(int32_t device, uint64_t bytes, uint64_t* address);
void dml_free(int32_t device, uint64_t address);
int32_t dml_upload(int32_t device, uint64_t address, const void* source, uint64_t bytes);
int32_t dml_download(int32_t device, uint64_t address, void* target, uint64_t bytes);
int32_t dml_memory_stats(int32_t device, DmlMemoryStats* stats);
const char* dml_memory_stats_json(int32_t device);  // the same figures, keys as torch.accelerator.memory_stats has them
const char* dml_queue_stats_json(int32_t device);  // launches, fused kernels, barriers, submits, waits
const char* dml_validation_json(void);  // of the process: what Vulkan's validation layer reported, by kind
const char* dml_kernel_stats_json(void);  // of the process: kernels, what their emission and compilation took
const char* dml_memory_snapshot_json(int32_t device);  // keys as torch.cuda.memory_snapshot has them
int32_t dml_block_bytes(int32_t device, uint64_t address, uint64_t* bytes);  // of a block in use, 0 when there is none
int32_t dml_memory_info(int32_t device, uint64_t* free, uint64_t* total);
int32_t dml_empty_cache(int32_t device);
int32_t dml_reset_peak_stats(int32_t device);
int32_t dml_reset_accumulated_stats(int32_t device);
int32_t dml_set_memory_fraction(int32_t device, double fraction);

// ---- pinned host memory
// An address is unique in the process. Freeing may come before the copies with it are done.
int32_t dml_host_allocate(int32_t device, uint64_t bytes, void** address);
void dml_host_free(const void* address);
int32_t dml_host_is_pinned(const void* address);  // 1 for an address inside of it
int32_t dml_host_empty_cache(void);
int32_t dml_host_stats(DmlPoolStats* stats);  // of all devices together; a peak is the sum of their peaks
void dml_host_reset_stats(int32_t peaks);  // the peaks, else the totals

// ---- random numbers
int32_t dml_generator_new(int32_t device, uint64_t* generator);  // a generator beside the default one
void dml_generator_free(uint64_t generator);
// generator 0 with a device index means that device's default generator
int32_t dml_generator_seed(uint64_t generator, int32_t device, uint64_t seed);
void dml_generator_seed_all(uint64_t seed);  // the default ones; opens no device
int32_t dml_generator_get(uint64_t generator, int32_t device, uint64_t* seed, uint64_t* offset);
int32_t dml_generator_set(uint64_t generator, int32_t device, uint64_t seed, uint64_t offset);

// ---- graphs
// A capture belongs to the thread that began it: what that thread runs on the device is kept, not run. Handles own what
// they stand for. crates/engine/src/graph says what a graph promises.
int32_t dml_graph_pool_new(int32_t device, uint64_t* pool);  // memory that several graphs allocate from
void dml_graph_pool_free(uint64_t pool);  // its graphs keep it
int32_t dml_graph_begin(int32_t device, uint64_t pool, uint64_t* capture);  // pool 0: a new one
int32_t dml_graph_end(uint64_t capture, uint64_t* graph);  // the capture is over and its handle gone, also on failure
void dml_graph_discard(uint64_t capture);
int32_t dml_graph_replay(uint64_t graph);
const char* dml_graph_stats_json(uint64_t graph);  // keys as in crates/torch/src/graph.rs
void dml_graph_free(uint64_t graph);
int32_t dml_is_capturing(int32_t device, int32_t* capturing);  // whether the calling thread is

// ---- events
int32_t dml_event_record(int32_t device, int32_t timing, uint64_t* event);
int32_t dml_event_query(uint64_t event, int32_t* done);
int32_t dml_event_wait(uint64_t event);
int32_t dml_event_elapsed(uint64_t start, uint64_t end, double* milliseconds);
void dml_event_free(uint64_t event);

// ---- profiling
typedef enum DmlWork { DML_KERNEL = 0, DML_UPLOAD = 1, DML_DOWNLOAD = 2, DML_REPLAY = 3 } DmlWork;

// One command that ran on a device. Times are nanoseconds since 1970 by the host's clock, from and to.
typedef struct DmlActivity {
  const char* name;  // the kernel's, or "graph replay", "upload", "download"
  const char* op;  // the operator that enqueued it
  uint64_t correlation;  // what dml_profile_correlate said there
  int64_t enqueued[2];  // on the host
  int64_t ran[2];  // on the device; activities of a device do not overlap
  uint64_t bytes_read, bytes_written;
  uint32_t groups[3], group_size[3];  // of a kernel
  uint32_t launches;  // of a graph; else 1
  int32_t device;
  uint8_t work;  // DmlWork
} DmlActivity;

int32_t dml_profile_start(void);  // every device, those opened later too; fails where there are no timestamps
// Waits for every device, ends the profile, and hands over what ran, each device's commands in their order.
int32_t dml_profile_stop(void* self, void (*each)(void* self, const DmlActivity* activity));
void dml_profile_correlate(uint64_t id);  // what the calling thread enqueues belongs to this id; 0: to none

// ---- where the host's time goes
const uint32_t* dml_measuring(void);  // a word that is not 0 while some thread measures
uint32_t dml_measure_enter(void);  // the plugin's code begins; returns what dml_measure_leave takes
void dml_measure_leave(uint32_t token);
int32_t dml_measure_begin(void);  // the calling thread is measured from now on
const char* dml_measure_end_json(void);  // keys as in crates/torch/src/measure.rs; NULL if nothing was begun

#ifdef __cplusplus
}
#endif
