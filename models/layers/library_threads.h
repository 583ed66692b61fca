// How many threads LibTorch uses.
#pragma once

namespace longshort {

// Has LibTorch use so many threads for what this thread asks of it from now on; 0 leaves its own choice. Cheap when
// nothing changes: a model calls it before each step, because the thread that runs it may be a new one.
void UseThreads(int threads);

}  // namespace longshort
