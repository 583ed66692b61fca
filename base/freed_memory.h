// What the process has freed and its allocator keeps for later.
#pragma once

#include <malloc.h>

#include <cstddef>

// jemalloc's: reads what `name` stands for, writes it, or does it. Returns 0, or an errno. Null in programs without
// jemalloc (tests of core, sanitized builds).
extern "C" [[gnu::weak]] int mallctl(const char* name, void* read, size_t* read_bytes, void* written,
                                     size_t written_bytes);

namespace longshort {

// Gives it back to the system: jemalloc's where the program has it, else glibc's. Thread: any; takes milliseconds.
inline void ReturnFreedMemory() {
  if (mallctl == nullptr) {
    malloc_trim(0);
  } else {
    mallctl("arena.4096.purge", nullptr, nullptr, nullptr, 0);  // 4096: of all arenas
  }
}

}  // namespace longshort
