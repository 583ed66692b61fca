// Finds tensors that code creates on the CPU by default.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace longshort::models {

// Returns the LibTorch factory calls of `run`, such as arange, without a device argument. Their tensors are on the CPU,
// and cannot be combined with tensors of another device.
std::vector<std::string> FactoriesWithoutDevice(const std::function<void()>& run);

}  // namespace longshort::models
