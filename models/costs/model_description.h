// What a model costs, known from its config.json alone: for operators who choose a model, and for tests against the
// published figures.
//
// Counted as fvcore counts, which the published figures come from: 1 for each multiply-add of a convolution, linear
// layer or matrix product, 5 for each element that a layer norm or batch norm gives; softmax, GELU and additions are
// free.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "models/costs/stage_cost.h"

namespace longshort {

// A row of the description.
struct StageDescription {
  StageCost cost;
  // The length and width of the sequence that runs through its blocks; 0 where nothing does.
  int64_t tokens = 0;
  int64_t width = 0;

  // In multiply-adds, norms included.
  double work() const { return cost.multiply_adds + StageCost::kPerNormElement * cost.normed_elements; }
};

struct ModelDescription {
  std::string architecture;
  std::string item;  // what the multiply-adds are of: "one image of 224 x 224 pixels"
  std::vector<StageDescription> stages;
  // Language models only: what a stream keeps at the most, in numbers (4 bytes each in fp32, 2 in bf16), and in bytes
  // of float32 whatever the precision.
  int64_t cached_numbers = 0;
  int64_t open_chunk_bytes = 0;

  int64_t parameters() const;
  double work() const;
};

// Reads config.json of any architecture. `name` stands for the file in errors.
// Errors: INVALID_ARGUMENT naming the file and what is wrong in it.
absl::StatusOr<ModelDescription> DescribeConfig(std::string_view text, const std::string& name);

// The description as a table, with its totals and what was counted; ends with a newline.
std::string ToText(const ModelDescription& description);

}  // namespace longshort
