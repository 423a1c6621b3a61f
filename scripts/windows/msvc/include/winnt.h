#pragma once
// The compiler has it built in, and takes no definition.
#define _InterlockedCompareExchange128 _wine_InterlockedCompareExchange128
#include_next <winnt.h>
#undef _InterlockedCompareExchange128
