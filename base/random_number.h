// Random numbers for ids and seeds, not for secrets.
#pragma once

#include <cstdint>

namespace longshort {

// Of a generator that the system seeds once for each thread: drawing every number from the system took longer than the
// rest of a small call.
uint64_t RandomNumber();

}  // namespace longshort
