// What the process has freed and its allocator keeps for later.
#pragma once

namespace longshort {

// Gives it back to the system: jemalloc's where the program has it, else glibc's. Thread: any; takes milliseconds.
void ReturnFreedMemory();

}  // namespace longshort
