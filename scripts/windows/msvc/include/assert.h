// Wine declares another function than UCRT's macro calls.
#ifdef __cplusplus
extern "C"
#endif
__declspec(dllimport) __declspec(noreturn) void __cdecl _wassert(const wchar_t*, const wchar_t*, unsigned);
#include_next <assert.h>
