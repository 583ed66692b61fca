// The tensors that model.safetensors of a text classifier holds: the official names, `seq_classifer` included.
//
// Tensors without elements (mha.dconv_fc of a model without landmarks) are not stored.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/weights/tensor_shapes.h"
#include "models/weights/text_classifier_config.h"

namespace longshort {

// What the names of a layer's tensors start with: "model.transformer_1.", or "model.transformer." for tied layers.
std::string TextLayerPrefix(const TextClassifierConfig& config, int64_t layer);

// Every tensor of a model of this configuration, in the order of use: embeddings, layers, classifying head. All are
// trained.
std::vector<TensorShape> TextClassifierTensors(const TextClassifierConfig& config);

}  // namespace longshort
