// The state of a conversion is a struct whose name is part of the names of the STL's streams; Wine
// has a number.
#pragma once
#include <vcruntime.h>
#define mbstate_t _wine_mbstate_t
#include_next <wchar.h>
#undef mbstate_t
typedef _Mbstatet mbstate_t;
#include <stdio.h>
_CRT_BEGIN_C_HEADER
int fwide(FILE*, int);
int mbsinit(const mbstate_t*);
int vfwscanf(FILE*, const wchar_t*, va_list);
int vswscanf(const wchar_t*, const wchar_t*, va_list);
int vwscanf(const wchar_t*, va_list);
long double wcstold(const wchar_t*, wchar_t**);
_CRT_END_C_HEADER
