// What <cstdlib> asks for beside Wine's.
#pragma once
#include_next <stdlib.h>
#include <vcruntime.h>
_CRT_BEGIN_C_HEADER
int at_quick_exit(void (*)(void));
__declspec(noreturn) void quick_exit(int);
_CRT_END_C_HEADER
#ifdef __cplusplus
#ifndef _ABS_DEFINED
#define _ABS_DEFINED
extern "C++" {
inline long abs(long x) noexcept { return labs(x); }
inline long long abs(long long x) noexcept { return x < 0 ? -x : x; }
}
#endif
#endif
