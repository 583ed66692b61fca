#include "models/train/initial_values.h"

#include <cmath>
#include <utility>

#include "ATen/CPUGeneratorImpl.h"
#include "ATen/Functions.h"

namespace longshort {
namespace {

bool IsRunningStatistic(const std::string& name) {
  return name.ends_with(".running_mean") || name.ends_with(".running_var");
}

// Tables that are looked up or added, where nothing is summed over inputs.
bool IsTable(const std::string& name) {
  return name.find("embed") != std::string::npos && !name.ends_with("embed.weight");
}

at::Tensor InitialValue(const TensorShape& tensor, at::Generator& generator) {
  const std::string& name = tensor.name;
  constexpr double kTableDeviation = 0.02;
  if (name.ends_with(".running_mean") || name.ends_with(".bias")) return at::zeros(tensor.shape);
  if (name.ends_with(".running_var")) return at::ones(tensor.shape);
  if (tensor.shape.size() == 1) return at::ones(tensor.shape);
  if (!name.ends_with(".weight") || IsTable(name)) return at::normal(0.0, kTableDeviation, tensor.shape, generator);
  double inputs = 1;
  for (size_t i = 1; i < tensor.shape.size(); ++i) inputs *= static_cast<double>(tensor.shape[i]);
  return at::normal(0.0, 1.0 / std::sqrt(inputs), tensor.shape, generator);
}

}  // namespace

std::vector<NamedParameter> InitialValues(absl::Span<const TensorShape> tensors, uint64_t seed) {
  at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  std::vector<NamedParameter> parameters;
  for (const TensorShape& tensor : tensors) {
    at::Tensor value = InitialValue(tensor, generator);
    value.requires_grad_(!IsRunningStatistic(tensor.name));
    parameters.push_back({tensor.name, std::move(value)});
  }
  return parameters;
}

}  // namespace longshort
