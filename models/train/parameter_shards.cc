#include "models/train/parameter_shards.h"

#include <future>
#include <utility>

#include "ATen/core/Tensor.h"

namespace longshort {

ParameterShards::ParameterShards(std::vector<NamedParameter> parameters, int64_t shards)
    : parameters_(std::move(parameters)), shards_(shards) {
  for (std::vector<NamedParameter>& shard : shards_) {
    for (const NamedParameter& parameter : parameters_) {
      const at::Tensor alias = parameter.value.detach();
      shard.push_back({parameter.name, alias.set_requires_grad(parameter.value.requires_grad())});
    }
  }
}

void ParameterShards::Run(const std::function<void(int64_t shard)>& work) {
  std::vector<std::future<void>> running;
  running.reserve(shards_.size());
  for (int64_t shard = 0; shard < size(); ++shard) {
    running.push_back(std::async(std::launch::async, [&work, shard] { work(shard); }));
  }
  for (const std::future<void>& shard : running) shard.wait();
  for (std::future<void>& shard : running) shard.get();

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

}  // namespace longshort
