// Signals that arrive while a thread waits for a device.
//
// Python runs signal handlers in its main thread, between two instructions: not while that thread
// waits in here. So the engine asks every 50 ms of a wait, and the answer lets Python run them.
// What a handler raises is held, the wait ends, and the exception goes on where the call that
// waited returns to Python.
//
// This library is not linked to Python: the Python package hands over the functions that are
// needed. Nor can it name the C++ exception by which torch's bindings say that Python's error is
// set. A Python function, registered as an operator, raises what is held, and the bindings throw
// that exception.
//
// Where there is no Python, nobody hands over anything, and no wait is interrupted.
#include "interrupt.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>

#include <cstring>

#include "device.h"

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

// Of Python's C API, as the package hands it over.
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
// Python's name of its main thread; 0 while signals are not watched. `python` is written before.
std::atomic<uint64_t> main_thread{0};
// What a handler raised: type, value and traceback. Only the main thread reads and writes it.
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
  // Past the modes and transforms that the caller may be in: this is no operation of the program.
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

// From now on signals end the waits of `thread`, Python's name of its main thread; 0: no longer.
// `functions` are PyGILState_Ensure, PyGILState_Release, PyErr_CheckSignals, PyErr_Fetch and
// PyErr_Restore.
DML_EXPORT void dml_plugin_watch_signals(uint64_t thread, void* const* functions) {
  if (thread != 0) std::memcpy(&dml::python, functions, sizeof(dml::python));
  dml::main_thread.store(thread, std::memory_order_release);
}

// Sets Python's error to what is held, if anything is. With the GIL, on the main thread.
DML_EXPORT void dml_plugin_restore_interruption() {
  if (!dml::holds_interruption()) return;
  dml::detail::interruption_held.store(false, std::memory_order_relaxed);
  dml::python.restore(dml::held[0], dml::held[1], dml::held[2]);
}
