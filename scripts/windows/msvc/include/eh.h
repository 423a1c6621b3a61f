// What <exception> asks for beside Wine's.
#pragma once
#include_next <eh.h>
extern "C" __declspec(dllimport) terminate_handler __cdecl _get_terminate(void);
