#include "models/train/parameters.h"

#include <algorithm>
#include <cmath>
#include <exception>
#include <map>
#include <utility>

#include "ATen/CPUGeneratorImpl.h"
#include "ATen/Functions.h"
#include "ATen/TensorOperators.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "c10/core/GradMode.h"

namespace longshort::models {
namespace {

bool IsFrequencies(const std::string& name) { return name.ends_with(".inv_freq"); }

// Tables whose rows are looked up or added: they have no sum over inputs.
bool IsTable(const std::string& name) {
  return name.find("embed") != std::string::npos && !name.ends_with("embed.weight");
}

at::Tensor InitialValue(const TensorShape& tensor, at::Generator& generator) {
  const std::string& name = tensor.name;
  constexpr double kTableDeviation = 0.02;
  if (IsFrequencies(name)) {
    const double width = 2 * static_cast<double>(tensor.shape[0]);
    return at::pow(10000.0, at::arange(tensor.shape[0], at::kDouble) * (-2.0 / width)).to(at::kFloat);
  }
  if (name.ends_with(".running_mean") || name.ends_with("bias")) return at::zeros(tensor.shape);
  if (name.ends_with(".running_var")) return at::ones(tensor.shape);
  if (tensor.shape.size() == 1) return at::ones(tensor.shape);
  if (!name.ends_with(".weight") || IsTable(name)) return at::normal(0.0, kTableDeviation, tensor.shape, generator);
  double inputs = 1;
  for (size_t i = 1; i < tensor.shape.size(); ++i) inputs *= static_cast<double>(tensor.shape[i]);
  return at::normal(0.0, 1.0 / std::sqrt(inputs), tensor.shape, generator);
}

}  // namespace

std::vector<NamedParameter> InitialParameters(absl::Span<const TensorShape> tensors, uint64_t seed) {
  at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  std::vector<NamedParameter> parameters;
  for (const TensorShape& tensor : tensors) {
    at::Tensor value = InitialValue(tensor, generator);
    value.requires_grad_(tensor.is_trained);
    parameters.push_back({tensor.name, std::move(value)});
  }
  return parameters;
}

void Overwrite(const std::vector<NamedParameter>& begin, const std::vector<NamedParameter>& parameters) {
  const c10::NoGradGuard no_grad;
  for (const NamedParameter& value : begin) {
    for (const NamedParameter& parameter : parameters) {
      if (parameter.name == value.name) parameter.value.copy_(value.value);
    }
  }
}

absl::Status CopyStored(const SafetensorsFile& file, const std::vector<NamedParameter>& tensors) {
  const c10::NoGradGuard no_grad;
  for (const NamedParameter& tensor : tensors) {
    const StoredTensor* const stored = file.Find(tensor.name);
    const auto shape = tensor.value.sizes();
    if (stored == nullptr || !std::equal(shape.begin(), shape.end(), stored->shape.begin(), stored->shape.end())) {
      return absl::FailedPreconditionError(absl::StrCat("tensor ", tensor.name, " is missing or has another shape"));
    }
  }
  for (const NamedParameter& tensor : tensors) {
    at::Tensor value = at::empty(tensor.value.sizes());
    LS_RETURN_IF_ERROR(ReadAsFloat32(file, *file.Find(tensor.name),
                                     {value.mutable_data_ptr<float>(), static_cast<size_t>(value.numel())}));
    tensor.value.copy_(value);
  }
  return absl::OkStatus();
}

TensorSource ByName(const std::vector<NamedParameter>& parameters) {
  std::map<std::string, at::Tensor> by_name;
  for (const NamedParameter& parameter : parameters) by_name[parameter.name] = parameter.value;
  return [by_name = std::move(by_name)](const std::string& name) { return by_name.at(name); };
}

ParameterShards::ParameterShards(std::vector<NamedParameter> parameters, int64_t shards)
    : parameters_(std::move(parameters)), shards_(shards), threads_(static_cast<int>(shards) - 1) {
  for (std::vector<NamedParameter>& shard : shards_) {
    for (const NamedParameter& parameter : parameters_) {
      const at::Tensor alias = parameter.value.detach();
      shard.push_back({parameter.name, alias.set_requires_grad(parameter.value.requires_grad())});
    }
  }
}

void ParameterShards::Run(const std::function<void(int64_t shard)>& work) {
  std::vector<std::exception_ptr> errors(shards_.size());
  const auto run = [&work, &errors](int64_t shard) {
    try {
      work(shard);
    } catch (...) {
      errors[shard] = std::current_exception();
    }
  };
  for (int64_t shard = 1; shard < size(); ++shard) threads_.run([&run, shard] { run(shard); });
  run(0);
  threads_.waitWorkComplete();
  for (const std::exception_ptr& error : errors) {
    if (error != nullptr) std::rethrow_exception(error);
  }

  for (std::vector<NamedParameter>& shard : shards_) {
    for (size_t i = 0; i < parameters_.size(); ++i) {
      at::Tensor& gradient = shard[i].value.mutable_grad();
      if (!gradient.defined()) continue;
      at::Tensor& sum = parameters_[i].value.mutable_grad();
      if (sum.defined()) {
        sum.add_(gradient);
      } else {
        sum = gradient;
      }
      gradient = at::Tensor();
    }
  }
}

}  // namespace longshort::models
