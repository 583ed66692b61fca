// The layers of a text network for serving on CPUs, by the fused kernels of models/ops/document_layer/document_layer.h.
// The reference is TextLayer on LibTorch, which has the same result and also serves training, GPUs and other types.
#pragma once

#include <cstdint>

#include "ATen/core/Tensor.h"
#include "absl/types/span.h"
#include "models/families/text_classifier/text_layer.h"
#include "models/ops/document_attention/packed_documents.h"
#include "models/ops/rows/instruction_set.h"

namespace longshort::models {

// Whether the kernels compute these layers faster than LibTorch: float32 weights on the CPU, few enough for a core's
// cache, no convolution of values, and no gradients to keep.
bool CanFuse(absl::Span<const TextLayer> layers, const PackedDocuments& packed);
// Whether that holds for short documents, too, gradients aside.
bool CanFuse(absl::Span<const TextLayer> layers);

// The last layer's rows. With `cls_only`, the CLS rows only.
//   tokens     [rows, D]: the first layer's input
//   cls        [documents, D]: the CLS rows, which join in layer `cls_layer`; undefined: none
// REQUIRES: CanFuse(layers, packed).
HiddenRows RunFused(absl::Span<const TextLayer> layers, const PackedDocuments& packed, const at::Tensor& tokens,
                    const at::Tensor& cls, int64_t cls_layer, bool cls_only,
                    cpu::InstructionSet set = cpu::BestInstructionSet());

}  // namespace longshort::models
