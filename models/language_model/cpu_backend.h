// The language model's backend on the CPU.
#pragma once

#include <functional>
#include <memory>

#include "models/language_model/backend.h"
#include "models/language_model/decoder.h"

namespace longshort {

// Pages hold float32 numbers, or bfloat16 ones if such are the decoder's matrices that meet tokens. Brings these into
// the order of the library's products, and drops what only position tables are made of. `threads`: of a step at the
// most; 0 takes one for each core. Throws what LibTorch throws.
std::unique_ptr<LanguageModelBackend> MakeCpuBackend(Decoder& decoder, int threads,
                                                     const std::function<void()>& between);

}  // namespace longshort
