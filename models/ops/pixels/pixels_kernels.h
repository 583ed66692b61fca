// Pixels of images as a model's input, on GPUs: bytes are uploaded, and normalised there.
#pragma once

#include <cstdint>

#include "models/device/kernel_call.h"

namespace longshort::models::cuda {

// values = the table's entry of each byte. Pixels that are no bytes are normalised values already, which are copied.
struct PixelsToNormalise {
  const int32_t* are_bytes;  // one number; 0: `pixels` is float32
  const float* table;        // [channels, 256], read for bytes
  const void* pixels;        // [images, channels, plane]
  int64_t images;
  int channels;
  int plane;      // pixels of a channel
  float* values;  // [images, channels, plane]
};
KernelCall NormalisePixelsCall(const PixelsToNormalise& arguments);

}  // namespace longshort::models::cuda
