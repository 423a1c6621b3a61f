// The compiler's runtime as the STL's headers expect it: macros and the few types of its C part.
#pragma once
#define _VCRUNTIME_H
#include <corecrt.h>
#include <vadefs.h>
#include <sal.h>
#include <stddef.h>
#include <errno.h>

#ifndef _MBSTATET_DEFINED
#define _MBSTATET_DEFINED
// The type whose name is part of the names of the STL's streams.
typedef struct _Mbstatet {
  unsigned long _Wchar;
  unsigned short _Byte, _State;
} _Mbstatet;
#endif

#ifdef __cplusplus
#define _CRT_BEGIN_C_HEADER extern "C" {
#define _CRT_END_C_HEADER }
#else
#define _CRT_BEGIN_C_HEADER
#define _CRT_END_C_HEADER
#endif
#define _VCRTIMP __declspec(dllimport)
#define _VCRT_NOALIAS __declspec(noalias)
#define _VCRT_RESTRICT __declspec(restrict)
#define _VCRT_ALLOCATOR __declspec(allocator)
#ifndef _CRTIMP
#define _CRTIMP __declspec(dllimport)
#endif
#define __CRTDECL __cdecl
#define __CLRCALL_OR_CDECL __cdecl
#define __CLRCALL_PURE_OR_CDECL __cdecl
#define _CRTIMP_PURE _CRTIMP
#define _CRTDATA_IMP _CRTIMP
#define _UNALIGNED __unaligned
#define _CRT_UNUSED(x) (void)x
#define _CRT_ALIGN(x) __declspec(align(x))
#define _VCRT_ALIGN(x) __declspec(align(x))
#define _CONST_RETURN const
#define _ANONYMOUS_UNION
#define _ANONYMOUS_STRUCT
#define _CRT_STRINGIZE_(x) #x
#define _CRT_STRINGIZE(x) _CRT_STRINGIZE_(x)
#define _CRT_WIDE_(s) L##s
#define _CRT_WIDE(s) _CRT_WIDE_(s)
#define _CRT_CONCATENATE_(a, b) a##b
#define _CRT_CONCATENATE(a, b) _CRT_CONCATENATE_(a, b)
#define _CRT_UNPARENTHESIZE_(...) __VA_ARGS__
#define _CRT_UNPARENTHESIZE(...) _CRT_UNPARENTHESIZE_ __VA_ARGS__
#ifndef _CRT_DEPRECATE_TEXT
#define _CRT_DEPRECATE_TEXT(text)
#endif
#ifndef _CRT_INSECURE_DEPRECATE
#define _CRT_INSECURE_DEPRECATE(replacement)
#endif
#define _CRT_NONSTDC_DEPRECATE(name)

#ifdef __cplusplus
#define _STL_LANG _MSVC_LANG
#else
#define _STL_LANG 0L
#endif
#define _HAS_CXX17 (_STL_LANG > 201402L)
#define _HAS_CXX20 (_STL_LANG > 201703L)
#define _HAS_CXX23 (_STL_LANG > 202002L)
#define _HAS_CXX26 0
#define _HAS_NODISCARD 1
#ifndef _HAS_EXCEPTIONS
#define _HAS_EXCEPTIONS 1
#endif
#define _NODISCARD [[nodiscard]]
#define _CRT_HAS_CXX17 _HAS_CXX17
#define _MSVC_CONSTEXPR

#define _MRTIMP2 _CRTIMP2
#define _MRTIMP2_PURE _CRTIMP2
#define _MRTIMP _CRTIMP
#define _MRTIMP2_NPURE _CRTIMP2
#define _CRT_SATELLITE_CODECVT_IDS_NOIMPORT
#define _CRT_SATELLITE_CODECVT_IDS __declspec(dllimport)
#define _CRT_SATELLITE_1
#define _CRT_SATELLITE_2
#define _PGLOBAL
#define _AGLOBAL
#define _CRTIMP2_IMPORT __declspec(dllimport)
#define _CRTIMP2 _CRTIMP2_IMPORT
#define _CRTIMP2_PURE _CRTIMP2
#define _CRTIMP2_PURE_IMPORT _CRTIMP2_IMPORT
#define __CLR_OR_THIS_CALL
#define _CRT_GUARDOVERFLOW
#ifndef _Analysis_assume_
#define _Analysis_assume_(x)
#endif
#define _CRT_SECURE_INVALID_PARAMETER(x) ::_invalid_parameter_noinfo_noreturn()
#ifdef __cplusplus
extern "C" __declspec(dllimport) __declspec(noreturn) void __cdecl _invalid_parameter_noinfo_noreturn(void);
#endif

_CRT_BEGIN_C_HEADER
void __cdecl __security_check_cookie(uintptr_t);
extern uintptr_t __security_cookie;
_CRT_END_C_HEADER
