// Finds tensors that code makes on the CPU without saying so.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace longshort::models {

// What LibTorch was asked for while `run` ran that makes a tensor out of none, such as arange, without being told on
// which device: such a tensor lies on the CPU, and does not meet those of another device.
std::vector<std::string> FactoriesWithoutDevice(const std::function<void()>& run);

}  // namespace longshort::models
