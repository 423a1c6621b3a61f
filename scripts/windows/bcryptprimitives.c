/* bcryptprimitives.dll for Wine older than 9, which lacks it: Rust's standard library takes its random numbers from there. */
#include <windows.h>

BOOLEAN WINAPI SystemFunction036(void *buffer, ULONG length); /* RtlGenRandom, of advapi32.dll */

__declspec(dllexport) BOOL WINAPI ProcessPrng(BYTE *buffer, SIZE_T length) {
  while (length > 0) {
    const ULONG part = length > 0x40000000 ? 0x40000000 : (ULONG)length;
    if (!SystemFunction036(buffer, part)) return FALSE;
    buffer += part;
    length -= part;
  }
  return TRUE;
}
