// Returns freed memory, which the allocator keeps for reuse, to the system.
#pragma once

#include <malloc.h>

#include <cstddef>

// jemalloc's control function: reads or writes the setting `name`, or performs the action `name`. Returns 0 or an
// errno. Null in programs without jemalloc (tests of core, sanitized builds).
extern "C" [[gnu::weak]] int mallctl(const char* name, void* read, size_t* read_bytes, void* written,
                                     size_t written_bytes);

namespace longshort {

// Uses jemalloc if the program has it, else glibc. Takes milliseconds. Thread-safe.
inline void ReturnFreedMemory() {
  if (mallctl == nullptr) {
    malloc_trim(0);
  } else {
    mallctl("arena.4096.purge", nullptr, nullptr, nullptr, 0);  // 4096: all arenas
  }
}

}  // namespace longshort
