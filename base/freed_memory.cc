#include "base/freed_memory.h"

#include <malloc.h>

#include <cstddef>

// jemalloc's; null in programs without it (tests of core, sanitized builds).
extern "C" [[gnu::weak]] int mallctl(const char* name, void* old_value, size_t* old_bytes, void* new_value,
                                     size_t new_bytes);

namespace longshort {

void ReturnFreedMemory() {
  if (mallctl == nullptr) {
    malloc_trim(0);
  } else {
    mallctl("arena.4096.purge", nullptr, nullptr, nullptr, 0);  // 4096: of all arenas
  }
}

}  // namespace longshort
