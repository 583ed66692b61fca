// How many bytes the cache of each model may take, decided when models are loaded.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace longshort {

class CacheBudget {
 public:
  // `memory_bytes`: what the process may use; 0 if unknown (then nothing is refused).
  explicit CacheBudget(int64_t memory_bytes) : memory_bytes_(memory_bytes) {}

  // Takes bytes out of the budget that will be used whatever is cached: weights, prompts, messages, images.
  void SetAside(int64_t bytes) { set_aside_bytes_ += bytes; }

  // Whether the memory holds what is set aside and reserved. Errors: RESOURCE_EXHAUSTED naming `model`, the last that
  // was added, and the bytes of both.
  absl::Status Check(const std::string& model) const;

  // Reserves `wanted` bytes for a model's cache; 0 takes `usual`, or what fits in half of the memory beside what is set
  // aside and reserved. Returns the bytes, at least 1. Errors: RESOURCE_EXHAUSTED naming --cache-bytes and the most
  // that would fit.
  absl::StatusOr<int64_t> Reserve(const std::string& model, int64_t wanted, int64_t usual);

 private:
  const int64_t memory_bytes_;  // 0 if unknown
  int64_t set_aside_bytes_ = 0;
  int64_t reserved_bytes_ = 0;
};

}  // namespace longshort
