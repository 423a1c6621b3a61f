// Signals that arrive while a thread waits for a device.
#pragma once
#include <atomic>

namespace dml {

namespace detail {
extern std::atomic<bool> interruption_held;
}

// Waits ask from now on whether a Python signal handler has raised.
void register_interrupts();

// Throws what a signal handler raised during a wait of this thread; Python sees that exception,
// unchanged.
[[noreturn]] void throw_interruption();

// Whether this thread holds what a signal handler raised. An operator that only enqueued succeeds
// all the same, and asks then.
bool holds_interruption();

// As holds_interruption, true for other threads too: cheap.
inline bool may_hold_interruption() { return detail::interruption_held.load(std::memory_order_relaxed); }

}  // namespace dml
