// C11's clock, which Wine does not declare.
#pragma once
#include_next <time.h>
#include <vcruntime.h>
_CRT_BEGIN_C_HEADER
#ifndef _TIMESPEC_DEFINED
#define _TIMESPEC_DEFINED
struct timespec { time_t tv_sec; long tv_nsec; };
#endif
struct _timespec64 { __time64_t tv_sec; long tv_nsec; };
__declspec(dllimport) int __cdecl _timespec64_get(struct _timespec64*, int);
static __inline int timespec_get(struct timespec* t, int base) { return _timespec64_get((struct _timespec64*)t, base); }
_CRT_END_C_HEADER
