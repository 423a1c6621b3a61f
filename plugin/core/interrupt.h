// Signals that arrive while a thread waits for a device.
#pragma once
#include <atomic>

namespace dml {

namespace detail {
extern std::atomic<bool> interruption_held;
}

// From now on, waits check whether a Python signal handler has raised.
void register_interrupts();

// Throws what a signal handler raised during a wait of this thread; Python sees that exception,
// unchanged.
[[noreturn]] void throw_interruption();

// Whether a signal handler's exception is pending on this thread. An operator that only enqueued
// work succeeds in spite of it, and then checks.
bool holds_interruption();

// A cheap test before holds_interruption: also true if another thread has a pending exception.
inline bool may_hold_interruption() { return detail::interruption_held.load(std::memory_order_relaxed); }

}  // namespace dml
