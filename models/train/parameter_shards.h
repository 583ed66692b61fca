// The threads that share a step's work: all compute with the same weights, each with gradients of its own.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "models/train/named_parameter.h"

namespace longshort {

class ParameterShards final {
 public:
  ParameterShards(std::vector<NamedParameter> parameters, int64_t shards);

  int64_t size() const { return static_cast<int64_t>(shards_.size()); }
  // The weights as a shard sees them: their storage, no copy.
  const std::vector<NamedParameter>& of(int64_t shard) const { return shards_[shard]; }

  // Calls work(shard) for every shard, each in a thread of its own, and then adds the gradients that they left to those
  // of the weights, shard by shard. What `work` throws is thrown here, after all have ended.
  void Run(const std::function<void(int64_t shard)>& work);

 private:
  std::vector<NamedParameter> parameters_;
  std::vector<std::vector<NamedParameter>> shards_;
};

}  // namespace longshort
