// How many streams of each model fit in memory, decided when models are loaded.
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

  // Takes bytes out of the budget that will be used whatever streams there are: weights, prompts, messages, images.
  void SetAside(int64_t bytes) { set_aside_bytes_ += bytes; }

  // Whether the memory holds what is set aside and reserved. Errors: RESOURCE_EXHAUSTED naming `model`, the last that
  // was added, and the bytes of both.
  absl::Status Check(const std::string& model) const;

  // Reserves the caches of `wanted` streams; 0 takes 16, or as many as fit in half of the memory beside what is set
  // aside and reserved. Returns the number of streams, at least 1. Errors: RESOURCE_EXHAUSTED naming --max-streams, the
  // bytes it needs and the most that would fit.
  absl::StatusOr<int64_t> Reserve(const std::string& model, int64_t bytes_per_stream, int64_t wanted);

 private:
  const int64_t memory_bytes_;  // 0 if unknown
  int64_t set_aside_bytes_ = 0;
  int64_t reserved_bytes_ = 0;
};

}  // namespace longshort
