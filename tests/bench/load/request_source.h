// Makes the requests of a workload: request i is the same in every run with the same seed.
#pragma once

#include <cstdint>
#include <string>
#include <variant>

#include "absl/status/statusor.h"
#include "longshort/v1/inference.pb.h"
#include "open_inference/v2/service.pb.h"
#include "tests/bench/load/workload.h"

namespace longshort::load {

using Request =
    std::variant<v1::GenerateRequest, v1::ScoreTextRequest, v1::ClassifyImageRequest, inference::ModelInferRequest>;

// Thread-safe.
class RequestSource final {
 public:
  // Errors: NOT_FOUND if the workload's image cannot be read.
  static absl::StatusOr<RequestSource> Create(const Workload& workload, uint64_t seed);

  Request Make(int64_t index) const;

 private:
  RequestSource(const Workload& workload, uint64_t seed) : workload_(workload), seed_(seed) {}

  v1::GenerateRequest Generate(int64_t index) const;
  v1::ScoreTextRequest Score(int64_t index) const;
  v1::ClassifyImageRequest Classify(int64_t index) const;
  // A prompt: the shared tokens of this index's prefix, then tokens drawn by `draw`.
  v1::Input Prompt(int64_t index, uint64_t draw) const;

  Workload workload_;
  uint64_t seed_;
  std::string image_;  // of the file
};

}  // namespace longshort::load
