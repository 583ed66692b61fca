#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "models/families/cvt/cvt_config.h"

namespace longshort::models {
namespace {

int64_t RoundUp(int64_t length, int64_t unit) { return (length + unit - 1) / unit * unit; }

// One block of a stage whose grid has rows x columns tokens.
StageCost BlockCost(const CvtConfig& config, const CvtStage& stage, int64_t rows, int64_t columns) {
  const auto width = static_cast<double>(stage.width), tokens = static_cast<double>(rows * columns);
  const int64_t rank = stage.projection_rank;
  const int64_t taps = config.projection_kernel * config.projection_kernel;
  const int64_t dynamic_taps = config.dynamic_projection_kernel * config.dynamic_projection_kernel;
  const int64_t seen = stage.window_size + 2 * std::max<int64_t>(1, stage.window_size / 2);
  // Queries are padded to whole segments.
  const int64_t queries = RoundUp(rows, stage.window_size) * RoundUp(columns, stage.window_size);

  StageCost cost;
  cost.multiply_adds += 3 * tokens * width * (taps + width);                     // to_q, to_k, to_v
  cost.multiply_adds += tokens * width * (dynamic_taps + stage.heads * rank);    // to_dyn
  cost.multiply_adds += 2 * rank * tokens * width;                               // landmarks: keys and values
  cost.multiply_adds += 2 * queries * (rank + seen * seen) * width;              // scores and weighted sums
  cost.multiply_adds += tokens * width * width;                                  // proj
  cost.multiply_adds += 2 * tokens * width * config.feed_forward_ratio * width;  // fc1 and fc2
  cost.normed_elements = (2 + 3 + 2) * tokens * width + 2 * rank * width;        // norm1, norm2; bn; ln_l; ln_g
  return cost;
}

// All costs except the parameters.
std::vector<StageCost> WorkOf(const CvtConfig& config, int64_t height, int64_t width) {
  std::vector<StageCost> costs;
  int64_t rows = height, columns = width, channels = config.channels;
  for (size_t index = 0; index < config.stages.size(); ++index) {
    const CvtStage& stage = config.stages[index];
    rows = stage.EmbeddedLength(rows);
    columns = stage.EmbeddedLength(columns);
    const auto embedded = static_cast<double>(rows * columns * stage.width), depth = static_cast<double>(stage.depth);
    const StageCost block = BlockCost(config, stage, rows, columns);
    costs.push_back({.name = absl::StrFormat("stage %d", index + 1),
                     .tokens = rows * columns,
                     .width = stage.width,
                     .multiply_adds = embedded * channels * stage.embedding_kernel * stage.embedding_kernel +
                                      depth * block.multiply_adds,
                     .normed_elements = embedded + depth * block.normed_elements});
    channels = stage.width;
  }
  costs.push_back({.name = "head",
                   .multiply_adds = static_cast<double>(channels * config.classes),
                   .normed_elements = static_cast<double>(rows * columns * channels)});
  return costs;
}

}  // namespace

std::vector<StageCost> CvtCosts(const CvtConfig& config, int64_t height, int64_t width) {
  std::vector<StageCost> costs = WorkOf(config, height, width);
  std::vector<std::pair<std::string, size_t>> prefixes;
  prefixes.reserve(config.stages.size());
  for (size_t index = 0; index < config.stages.size(); ++index) {
    prefixes.emplace_back(absl::StrCat("stages.", index, "."), index);
  }
  AddParameters(CvtTensors(config), prefixes, costs);
  return costs;
}

double CvtMultiplyAdds(const CvtConfig& config, int64_t height, int64_t width) {
  double sum = 0;
  for (const StageCost& cost : WorkOf(config, height, width)) sum += cost.multiply_adds;
  return sum;
}

ModelDescription Describe(const CvtConfig& config) {
  const int64_t height = config.preprocessing.crop_height, width = config.preprocessing.crop_width;
  return {.architecture = "cvt",
          .item = absl::StrFormat("one image of %d x %d pixels", width, height),
          .task = absl::StrCat("single_label_classification of ", config.classes, " classes"),
          .classes = config.classes,
          .stages = CvtCosts(config, height, width)};
}

namespace cvt {

FamilyConfig Config() {
  return {
      .architecture = "cvt",
      .describe = ParseAndDescribe<ParseCvtConfig>,
      .sections = {{"CvT\\*-LS", "field", "A classifier of images of any size, with 1 to 16 stages.", CvtFields()}}};
}

}  // namespace cvt
}  // namespace longshort::models
