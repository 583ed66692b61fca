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

// One over the square root of the inputs of one output.
double InverseRoot(const std::vector<int64_t>& map) {
  double inputs = 1;
  for (size_t i = 1; i < map.size(); ++i) inputs *= static_cast<double>(map[i]);
  return 1 / std::sqrt(inputs);
}

class Initializer final {
 public:
  Initializer(absl::Span<const TensorShape> tensors, uint64_t seed, InitialWeights distribution)
      : distribution_(distribution), generator_(at::make_generator<at::CPUGeneratorImpl>(seed)) {
    for (const TensorShape& tensor : tensors) shapes_[tensor.name] = tensor.shape;
  }

  at::Tensor Value(const TensorShape& tensor) {
    const std::string& name = tensor.name;
    if (IsFrequencies(name)) {
      const double width = 2 * static_cast<double>(tensor.shape[0]);
      return at::pow(10000.0, at::arange(tensor.shape[0], at::kDouble) * (-2.0 / width)).to(at::kFloat);
    }
    if (name.ends_with(".running_mean")) return at::zeros(tensor.shape);
    if (name.ends_with(".running_var")) return at::ones(tensor.shape);
    if (name.ends_with("bias")) return Bias(tensor);
    if (tensor.shape.size() > 1) return Map(tensor);
    return distribution_ == InitialWeights::kLanguageModel ? Normal(1, kDeviation, tensor.shape)
                                                           : at::ones(tensor.shape);
  }

 private:
  static constexpr double kDeviation = 0.02;

  at::Tensor Normal(double mean, double deviation, const std::vector<int64_t>& shape) {
    return at::normal(mean, deviation, shape, generator_);
  }
  at::Tensor Uniform(double bound, const std::vector<int64_t>& shape) {
    return at::empty(shape).uniform_(-bound, bound, generator_);
  }

  // A bias of a map, a norm, or of the scores of all positions, [heads, head_dim].
  at::Tensor Bias(const TensorShape& tensor) {
    if (distribution_ == InitialWeights::kLanguageModel && tensor.shape.size() > 1) {
      return Normal(0, kDeviation, tensor.shape);
    }
    const auto map = shapes_.find(absl::StrCat(tensor.name.substr(0, tensor.name.size() - 4), "weight"));
    const size_t dimensions = map == shapes_.end() ? 0 : map->second.size();
    if ((distribution_ == InitialWeights::kLongRangeArena && dimensions > 1) ||
        (distribution_ == InitialWeights::kCvt && dimensions > 2)) {
      return Uniform(InverseRoot(map->second), tensor.shape);
    }
    return at::zeros(tensor.shape);
  }

  // A map or a table.
  at::Tensor Map(const TensorShape& tensor) {
    const bool is_arena = distribution_ == InitialWeights::kLongRangeArena;
    if (is_arena && (tensor.name.ends_with("cls_embed") || tensor.name.ends_with("mha.conv.weight"))) {
      return at::zeros(tensor.shape);
    }
    const bool is_matrix_of_cvt = distribution_ == InitialWeights::kCvt && tensor.shape.size() == 2;
    if (!tensor.name.ends_with(".weight") || IsTable(tensor.name) || is_matrix_of_cvt ||
        distribution_ == InitialWeights::kLanguageModel) {
      return Normal(0, kDeviation, tensor.shape);
    }
    const double scale = InverseRoot(tensor.shape);
    return distribution_ == InitialWeights::kScaled ? Normal(0, scale, tensor.shape) : Uniform(scale, tensor.shape);
  }

  const InitialWeights distribution_;
  at::Generator generator_;
  std::map<std::string, std::vector<int64_t>> shapes_;
};

}  // namespace

std::vector<NamedParameter> InitialParameters(absl::Span<const TensorShape> tensors, uint64_t seed,
                                              InitialWeights distribution) {
  Initializer initializer(tensors, seed, distribution);
  std::vector<NamedParameter> parameters;
  for (const TensorShape& tensor : tensors) {
    at::Tensor value = initializer.Value(tensor);
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
}

void ParameterShards::RunStep(const std::function<void(int64_t shard)>& work) {
  Run(work);
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
