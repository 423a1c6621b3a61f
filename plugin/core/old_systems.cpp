// Symbols that the headers of a new libstdc++ use and the libraries of an old Linux lack.
//
// A wheel is compiled with a new GCC and loads from glibc 2.28 and GCC 8's libstdc++ on
// (manylinux_2_28). tests/package/test_wheel.py checks that nothing newer is asked for.
#ifdef __linux__
#include <sstream>

// libstdc++'s shared_ptr counts without atomics while the process has a single thread, and asks
// glibc 2.32 whether it has. PyTorch always has several: the answer is no.
extern "C" __attribute__((visibility("hidden"))) char __libc_single_threaded;
char __libc_single_threaded = 0;

#if defined(_GLIBCXX_RELEASE) && _GLIBCXX_RELEASE >= 11
// C++20's forms of std::stringbuf::str, which PyTorch's messages are made with, are in libstdc++
// from GCC 11 on.
template std::string std::stringbuf::str() const &;
template std::string std::stringbuf::str() &&;
#endif

#endif
