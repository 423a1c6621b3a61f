// The part of the C++ runtime that a program for the MSVC ABI links statically: start and end of a
// library or program, allocation, guards of static variables, and what run-time type information
// needs.
#include <vcruntime_new.h>
#include <vcruntime_typeinfo.h>
#include <stdlib.h>
#include <windows.h>

extern "C" {
int _fltused = 0x9875;
uintptr_t __security_cookie = 0x00002B992DDFA232;
void __security_check_cookie(uintptr_t) {}
int __isa_available = 0;

// Thread-local storage.
#pragma section(".tls", read, write)
#pragma section(".tls$ZZZ", read, write)
#pragma section(".CRT$XLA", read)
#pragma section(".CRT$XLZ", read)
__declspec(allocate(".tls")) char _tls_start = 0;
__declspec(allocate(".tls$ZZZ")) char _tls_end = 0;
__declspec(allocate(".CRT$XLA")) PIMAGE_TLS_CALLBACK __xl_a = 0;
__declspec(allocate(".CRT$XLZ")) PIMAGE_TLS_CALLBACK __xl_z = 0;
unsigned long _tls_index = 0;
#pragma section(".rdata$T", read)
__declspec(allocate(".rdata$T")) extern const IMAGE_TLS_DIRECTORY64 _tls_used = {
    (ULONGLONG)&_tls_start, (ULONGLONG)&_tls_end, (ULONGLONG)&_tls_index, (ULONGLONG)(&__xl_a + 1), 0, {0}};

// Initialisers, in the order in which the linker sorts the sections.
typedef void(__cdecl* Initialiser)(void);
typedef int(__cdecl* IntInitialiser)(void);
#pragma section(".CRT$XIA", read)
#pragma section(".CRT$XIZ", read)
#pragma section(".CRT$XCA", read)
#pragma section(".CRT$XCZ", read)
__declspec(allocate(".CRT$XIA")) IntInitialiser __xi_a = 0;
__declspec(allocate(".CRT$XIZ")) IntInitialiser __xi_z = 0;
__declspec(allocate(".CRT$XCA")) Initialiser __xc_a = 0;
__declspec(allocate(".CRT$XCZ")) Initialiser __xc_z = 0;

struct OnexitTable { void *first, *last, *end; };
__declspec(dllimport) int _initialize_onexit_table(OnexitTable*);
__declspec(dllimport) int _register_onexit_function(OnexitTable*, int(__cdecl*)(void));
__declspec(dllimport) int _execute_onexit_table(OnexitTable*);
static OnexitTable at_exit;
int __cdecl atexit(void(__cdecl* function)(void)) { return _register_onexit_function(&at_exit, (int(__cdecl*)(void))function); }

// Guards of static variables in functions.
const int kUninitialised = 0, kInitialising = -1, kFirst = (int)0x80000000;
int _Init_global_epoch = kFirst;
__declspec(thread) int _Init_thread_epoch = kFirst;
static CRITICAL_SECTION guard;
static CONDITION_VARIABLE initialised = CONDITION_VARIABLE_INIT;
void __cdecl _Init_thread_header(int* once) {
  EnterCriticalSection(&guard);
  if (*once == kUninitialised) {
    *once = kInitialising;
  } else {
    while (*once == kInitialising) {
      SleepConditionVariableCS(&initialised, &guard, INFINITE);
      if (*once == kUninitialised) {
        *once = kInitialising;
        LeaveCriticalSection(&guard);
        return;
      }
    }
    _Init_thread_epoch = _Init_global_epoch;
  }
  LeaveCriticalSection(&guard);
}
void __cdecl _Init_thread_footer(int* once) {
  EnterCriticalSection(&guard);
  *once = ++_Init_global_epoch;
  _Init_thread_epoch = _Init_global_epoch;
  LeaveCriticalSection(&guard);
  WakeAllConditionVariable(&initialised);
}
void __cdecl _Init_thread_abort(int* once) {
  EnterCriticalSection(&guard);
  *once = kUninitialised;
  LeaveCriticalSection(&guard);
  WakeAllConditionVariable(&initialised);
}

static void start() {
  InitializeCriticalSection(&guard);
  _initialize_onexit_table(&at_exit);
  for (IntInitialiser* at = &__xi_a; at < &__xi_z; ++at)
    if (*at) (*at)();
  for (Initialiser* at = &__xc_a; at < &__xc_z; ++at)
    if (*at) (*at)();
}

#if defined(PROGRAM)
int main();
__declspec(dllimport) __declspec(noreturn) void __cdecl exit(int);
void __cdecl mainCRTStartup(void) {
  start();
  const int status = main();
  _execute_onexit_table(&at_exit);
  exit(status);
}
#else
BOOL WINAPI _DllMainCRTStartup(HINSTANCE, DWORD reason, void* at_process_end) {
  if (reason == DLL_PROCESS_ATTACH) start();
  if (reason == DLL_PROCESS_DETACH && !at_process_end) _execute_onexit_table(&at_exit);
  return TRUE;
}
#endif
// Thread-local variables that need a constructor get it on their first use in a thread, or when the
// thread begins. Their destructors are not run.
#pragma section(".CRT$XDA", read)
#pragma section(".CRT$XDZ", read)
#pragma section(".CRT$XLC", read)
__declspec(allocate(".CRT$XDA")) Initialiser __xd_a = 0;
__declspec(allocate(".CRT$XDZ")) Initialiser __xd_z = 0;
__declspec(thread) char __tls_guard = 0;
void __cdecl __dyn_tls_on_demand_init() {
  if (__tls_guard) return;
  __tls_guard = 1;
  for (Initialiser* at = &__xd_a; at < &__xd_z; ++at)
    if (*at) (*at)();
}
void WINAPI on_thread(void*, DWORD reason, void*) {
  if (reason == DLL_THREAD_ATTACH) __dyn_tls_on_demand_init();
}
extern const PIMAGE_TLS_CALLBACK __dyn_tls_init;
__declspec(allocate(".CRT$XLC")) const PIMAGE_TLS_CALLBACK __dyn_tls_init = (PIMAGE_TLS_CALLBACK)on_thread;
int __cdecl __tlregdtor(Initialiser) { return 0; }

// What std::call_once calls.
int __stdcall __std_init_once_begin_initialize_clr(void** once, unsigned long flags, int* pending, void** context) {
  return InitOnceBeginInitialize((PINIT_ONCE)once, flags, pending, context);
}
int __stdcall __std_init_once_complete_clr(void** once, unsigned long flags, void* context) {
  return InitOnceComplete((PINIT_ONCE)once, flags, context);
}
void __stdcall __std_init_once_link_alternate_names_and_abort() { abort(); }
}

struct __type_info_node {
  __declspec(align(16)) void* head[2];
};
__type_info_node __type_info_root_node;
type_info::~type_info() noexcept {}

namespace std {
nothrow_t const nothrow{};
}
// The exception of a failed allocation is made by the C++ library.
namespace std {
[[noreturn]] __declspec(dllimport) void __cdecl _Xbad_alloc();
}
void* operator new(size_t size) {
  if (void* block = malloc(size ? size : 1)) return block;
  std::_Xbad_alloc();
}
void* operator new(size_t size, std::nothrow_t const&) noexcept { return malloc(size ? size : 1); }
void* operator new[](size_t size) { return operator new(size); }
void* operator new[](size_t size, std::nothrow_t const& n) noexcept { return operator new(size, n); }
void operator delete(void* block) noexcept { free(block); }
void operator delete(void* block, std::nothrow_t const&) noexcept { free(block); }
void operator delete[](void* block) noexcept { free(block); }
void operator delete[](void* block, std::nothrow_t const&) noexcept { free(block); }
void operator delete(void* block, size_t) noexcept { free(block); }
void operator delete[](void* block, size_t) noexcept { free(block); }
void* operator new(size_t size, std::align_val_t align) {
  if (void* block = _aligned_malloc(size, (size_t)align)) return block;
  std::_Xbad_alloc();
}
void* operator new[](size_t size, std::align_val_t align) { return operator new(size, align); }
void operator delete(void* block, std::align_val_t) noexcept { _aligned_free(block); }
void operator delete[](void* block, std::align_val_t) noexcept { _aligned_free(block); }
void operator delete(void* block, size_t, std::align_val_t) noexcept { _aligned_free(block); }
void operator delete[](void* block, size_t, std::align_val_t) noexcept { _aligned_free(block); }
// The table that every type's description points to. Nobody calls through it.
extern "C" void* const dml_type_info_vftable[1] = {nullptr};
#pragma comment(linker, "/alternatename:??_7type_info@@6B@=dml_type_info_vftable")
