// The requests of a workload and their arrival times. Both are equal in all runs with the same seed.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <variant>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "longshort/v1/inference.pb.h"
#include "open_inference/v2/service.pb.h"
#include "tools/load/workload.h"

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
  // Makes a request of the Open Inference Protocol with the same document, or the same pixels.
  inference::ModelInferRequest InferDocuments(int64_t index) const;
  inference::ModelInferRequest InferPixels(int64_t index) const;
  // Returns the tokens of the prefix that `index` has, then tokens drawn with the number `draw`.
  v1::Input Prompt(int64_t index, uint64_t draw) const;

  Workload workload_;
  uint64_t seed_;
  std::string image_;  // content of the image file
};

// Draws the arrival times of an open loop's requests, as many independent clients produce them. The times do not
// depend on the server. Equal rates and seeds give equal times.
class PoissonArrivals final {
 public:
  // REQUIRES: per_second > 0.
  PoissonArrivals(double per_second, uint64_t seed) : per_second_(per_second), random_(seed) {}

  // Returns the time of the next arrival, from the start. Successive results rise.
  absl::Duration Next();

 private:
  const double per_second_;
  std::mt19937_64 random_;
  absl::Duration last_ = absl::ZeroDuration();
};

}  // namespace longshort::load
