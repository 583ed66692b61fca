// A decoder's weights on their way to a GPU.
#pragma once

#include <functional>

#include "c10/core/Device.h"
#include "models/language_model/decoder.h"

namespace longshort {

// `between` is called before each layer, and may throw. Throws what LibTorch throws.
void MoveDecoder(const at::Device& device, Decoder& decoder, const std::function<void()>& between);

}  // namespace longshort
