// The tensors that model.safetensors of a CvT*-LS holds.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "models/weights/cvt_config.h"
#include "models/weights/tensor_shapes.h"

namespace longshort {

// Every tensor of a model of this configuration, which holds the rules of CheckCvtConfig, in the order of use: stage by
// stage, then `norm` and `head`. All are trained, but for the batch norms' running statistics.
std::vector<TensorShape> CvtTensors(const CvtConfig& config);

// Whether this is a running mean or variance of a batch norm: no parameter, but kept with them.
bool IsRunningStatistic(std::string_view tensor_name);

// Trained numbers.
int64_t CountParameters(const CvtConfig& config);

}  // namespace longshort
