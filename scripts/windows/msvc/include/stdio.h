// C99's functions that Wine does not declare.
#pragma once
#include_next <stdio.h>
#include <vcruntime.h>
_CRT_BEGIN_C_HEADER
int vfscanf(FILE*, const char*, va_list);
int vscanf(const char*, va_list);
int vsscanf(const char*, const char*, va_list);
_CRT_END_C_HEADER
