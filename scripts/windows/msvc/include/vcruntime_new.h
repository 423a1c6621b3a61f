// operator new and delete, as the compiler runtime declares them.
#pragma once
#include <vcruntime.h>
extern "C++" {
#pragma pack(push, 8)
#ifndef __NOTHROW_T_DEFINED
#define __NOTHROW_T_DEFINED
namespace std {
struct nothrow_t {
  explicit nothrow_t() = default;
};
extern nothrow_t const nothrow;
}  // namespace std
#endif
namespace std {
enum class align_val_t : size_t {};
}
#pragma pack(pop)
void* __CRTDECL operator new(size_t size);
void* __CRTDECL operator new(size_t size, std::nothrow_t const&) noexcept;
void* __CRTDECL operator new[](size_t size);
void* __CRTDECL operator new[](size_t size, std::nothrow_t const&) noexcept;
void __CRTDECL operator delete(void*) noexcept;
void __CRTDECL operator delete(void*, std::nothrow_t const&) noexcept;
void __CRTDECL operator delete[](void*) noexcept;
void __CRTDECL operator delete[](void*, std::nothrow_t const&) noexcept;
void __CRTDECL operator delete(void*, size_t) noexcept;
void __CRTDECL operator delete[](void*, size_t) noexcept;
void* __CRTDECL operator new(size_t, std::align_val_t);
void* __CRTDECL operator new(size_t, std::align_val_t, std::nothrow_t const&) noexcept;
void* __CRTDECL operator new[](size_t, std::align_val_t);
void* __CRTDECL operator new[](size_t, std::align_val_t, std::nothrow_t const&) noexcept;
void __CRTDECL operator delete(void*, std::align_val_t) noexcept;
void __CRTDECL operator delete(void*, std::align_val_t, std::nothrow_t const&) noexcept;
void __CRTDECL operator delete[](void*, std::align_val_t) noexcept;
void __CRTDECL operator delete[](void*, std::align_val_t, std::nothrow_t const&) noexcept;
void __CRTDECL operator delete(void*, size_t, std::align_val_t) noexcept;
void __CRTDECL operator delete[](void*, size_t, std::align_val_t) noexcept;
#ifndef __PLACEMENT_NEW_INLINE
#define __PLACEMENT_NEW_INLINE
inline void* __CRTDECL operator new(size_t, void* where) noexcept { return where; }
inline void __CRTDECL operator delete(void*, void*) noexcept {}
#endif
#ifndef __PLACEMENT_VEC_NEW_INLINE
#define __PLACEMENT_VEC_NEW_INLINE
inline void* __CRTDECL operator new[](size_t, void* where) noexcept { return where; }
inline void __CRTDECL operator delete[](void*, void*) noexcept {}
#endif
}
