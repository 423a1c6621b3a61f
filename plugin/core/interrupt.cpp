// Signals that arrive while a thread waits for a device.
//
// Python runs signal handlers in its main thread, between two bytecode instructions, so not while
// that thread waits in C++. During a wait, the engine therefore calls back every 50 ms, and the
// callback lets Python run its handlers. If a handler raises, the exception is stored, the wait
// ends, and the exception is raised again when the call that waited returns to Python.
//
// This library is not linked to Python: the Python package passes the functions that are needed.
// Nor can it throw the C++ exception by which torch's bindings signal that Python's error is set.
// So a Python function, registered as an operator, raises the stored exception, and the bindings
// throw.
//
// In a process without Python no functions are passed, and no wait is interrupted.
#include "core/interrupt.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>

#include <cstring>

#include "core/device.h"

#if defined(_WIN32)
#include <windows.h>
#else
#include <pthread.h>
#endif

namespace dml {

namespace detail {
std::atomic<bool> interruption_held{false};
}

namespace {

// Functions of Python's C API, passed by the Python package.
struct Python {
  int (*ensure_gil)();
  void (*release_gil)(int);
  int (*check_signals)();
  void (*fetch)(void**, void**, void**);
  void (*restore)(void*, void*, void*);
};
constexpr size_t kFunctions = 5;
static_assert(sizeof(Python) == kFunctions * sizeof(void*));

Python python;
// Python's id of its main thread; 0 while signals are not watched. `python` is set before it.
std::atomic<uint64_t> main_thread{0};
// The exception of a handler: type, value and traceback. Only the main thread accesses it.
void* held[3];

uint64_t this_thread() {
#if defined(_WIN32)
  return GetCurrentThreadId();
#else
  return (uint64_t)pthread_self();  // A number or a pointer: Python casts it alike.
#endif
}

bool is_watched_thread() { return main_thread.load(std::memory_order_acquire) == this_thread(); }

int32_t is_interrupted() {
  if (!is_watched_thread()) return 0;
  if (may_hold_interruption()) return 1;
  const int gil = python.ensure_gil();
  const bool raised = python.check_signals() != 0;
  if (raised) {
    python.fetch(&held[0], &held[1], &held[2]);
    detail::interruption_held.store(true, std::memory_order_relaxed);
  }
  python.release_gil(gil);
  return raised;
}

}  // namespace

bool holds_interruption() { return may_hold_interruption() && is_watched_thread(); }

void throw_interruption() {
  static const c10::OperatorHandle raise =
      c10::Dispatcher::singleton().findSchemaOrThrow("torch_dml::raise_interruption", "");
  torch::jit::Stack nothing;
  // Bypasses the modes and transforms of the caller: this is not an operation of the program.
  raise.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), &nothing);
  TORCH_CHECK(false, "interrupted while waiting for the device");
}

void register_interrupts() {
  // Leaked as every registration: see library().
  static auto& own = *new torch::Library(torch::Library::DEF, "torch_dml", std::nullopt, __FILE__, __LINE__);
  own.def("raise_interruption() -> ()");
  dml_set_interrupt_check(&is_interrupted);
}

}  // namespace dml

// From now on signals end the waits of `thread`, Python's id of its main thread; 0 switches it off.
// `functions` are PyGILState_Ensure, PyGILState_Release, PyErr_CheckSignals, PyErr_Fetch and
// PyErr_Restore.
DML_EXPORT void dml_plugin_watch_signals(uint64_t thread, void* const* functions) {
  if (thread != 0) std::memcpy(&dml::python, functions, sizeof(dml::python));
  dml::main_thread.store(thread, std::memory_order_release);
}

// Sets Python's error to the stored exception, if there is one. Needs the GIL and the main thread.
DML_EXPORT void dml_plugin_restore_interruption() {
  if (!dml::holds_interruption()) return;
  dml::detail::interruption_held.store(false, std::memory_order_relaxed);
  dml::python.restore(dml::held[0], dml::held[1], dml::held[2]);
}
