// The commands of longshort-train, one for each kind of model, and the options that they share.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/option_table.h"
#include "models/train/training_loop.h"

namespace longshort::models {

// Each parses its options from `arguments`, then trains, or prints help if --help is given.
// Errors: INVALID_ARGUMENT naming an option, and those of the trainer.
absl::Status RunLanguageModelCommand(const std::vector<std::string>& arguments);
absl::Status RunTextClassifierCommand(const std::vector<std::string>& arguments);
absl::Status RunImageClassifierCommand(const std::vector<std::string>& arguments);

inline constexpr int64_t kMaxSteps = 1'000'000'000;
inline constexpr int64_t kMaxInBatch = int64_t{1} << 20;
inline constexpr int64_t kMaxShards = 1024;

// The options that LoopOptions has in another form.
struct RunLength {
  std::optional<int64_t> steps;
  std::optional<absl::Duration> time;
};

void AddOutput(OptionTable& table, std::string& output_directory, LoopOptions& loop);
void AddLoop(OptionTable& table, LoopOptions& loop, RunLength& length);
void AddInitialWeights(OptionTable& table, bool& official_weights);
void AddDropout(OptionTable& table, double& rate);
void AddBfloat16Products(OptionTable& table, bool& bfloat16_products);

// Parses the options. If --help is given, prints `intro` and the table, and returns false. `others` are the arguments
// that are not options.
absl::StatusOr<bool> ReadOptions(OptionTable table, const std::vector<std::string>& arguments, const std::string& intro,
                                 std::vector<std::string>& others);

// Accepts the data as the only argument that is not an option, and fills in --out.
absl::Status CompletePaths(const std::vector<std::string>& others, std::string& data, std::string& output_directory);

// Completes the options that depend on others, and makes the folder of the default checkpoint.
absl::Status CompleteLoop(const std::string& output_directory, const RunLength& length, LoopOptions& loop);

}  // namespace longshort::models
