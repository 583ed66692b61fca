#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "models/families/vil/vil_config.h"
#include "models/families/vil/vil_stages.h"

namespace longshort::models {
namespace {

// The sparse attention of one block, without qkv and proj: landmarks, scores and weighted sums, first of the patches,
// then of the global token.
void AddSparseAttention(const VilStage& stage, int64_t patches, StageCost& cost) {
  const auto width = static_cast<double>(stage.width);
  const int64_t rank = stage.projection_rank, globals = stage.global_tokens;
  cost.multiply_adds += width * patches * stage.heads * rank;  // to_dynamic_projection
  cost.multiply_adds += 2 * width * rank * patches;            // landmarks: keys and values
  cost.multiply_adds += 2 * width * patches * (rank + stage.WindowPlaces() + globals);
  cost.multiply_adds += 2 * width * globals * (globals + patches);
  cost.normed_elements += 2 * width * (globals + patches + rank);  // dual_ln_full and dual_ln_dp
}

void AddBlocks(const VilStage& stage, int64_t patches, StageCost& cost) {
  const auto width = static_cast<double>(stage.width), tokens = static_cast<double>(stage.global_tokens + patches);
  const auto pairs = static_cast<double>(stage.pairs);
  StageCost pair;
  pair.multiply_adds = tokens * width * (3 * width + width);  // qkv and proj
  pair.multiply_adds += 2 * tokens * width * 4 * width;       // fc1 and fc2
  pair.normed_elements = 2 * tokens * width;
  if (stage.sparse) {
    AddSparseAttention(stage, patches, pair);
  } else {
    pair.multiply_adds += 2 * tokens * tokens * width;
  }
  cost.multiply_adds += pairs * pair.multiply_adds;
  cost.normed_elements += pairs * pair.normed_elements;
}

}  // namespace

std::vector<StageCost> VilCosts(const VilConfig& config) {
  std::vector<StageCost> costs;
  int64_t channels = config.channels;
  for (size_t index = 0; index < config.stages.size(); ++index) {
    const VilStage& stage = config.stages[index];
    const int64_t side = config.GridSide(index), patches = side * side;
    StageCost cost{.name = absl::StrFormat("stage %d", stage.number),
                   .tokens = stage.global_tokens + patches,
                   .width = stage.width};
    const auto embedded = static_cast<double>(patches * stage.width);
    cost.multiply_adds = embedded * channels * stage.patch_size * stage.patch_size;
    if (config.embedding_norm) cost.normed_elements = embedded;
    AddBlocks(stage, patches, cost);
    costs.push_back(cost);
    channels = stage.width;
  }
  const int64_t last_side = config.GridSide(config.stages.size() - 1);
  const int64_t pooled = config.PoolsAllTokens() ? config.stages.back().global_tokens + last_side * last_side : 1;
  costs.push_back({.name = "head",
                   .multiply_adds = static_cast<double>(channels * config.classes),
                   .normed_elements = static_cast<double>(pooled * channels)});

  std::vector<std::pair<std::string, size_t>> prefixes;
  prefixes.reserve(config.stages.size());
  for (size_t index = 0; index < config.stages.size(); ++index) {
    prefixes.emplace_back(absl::StrCat("layer", index + 1, "."), index);
  }
  AddParameters(VilTensors(config), prefixes, costs);
  return costs;
}

ModelDescription Describe(const VilConfig& config) {
  return {.architecture = "vil",
          .item = absl::StrFormat("one image of %d x %d pixels", config.image_size, config.image_size),
          .task = absl::StrCat("single_label_classification of ", config.classes, " classes"),
          .classes = config.classes,
          .stages = VilCosts(config)};
}

namespace vil {

FamilyConfig Config() {
  return {.architecture = "vil",
          .describe = ParseAndDescribe<ParseVilConfig>,
          .sections = {{"ViL-LS", "field", "A classifier of images of one size.", VilFields()},
                       {"Stages of ViL-LS", "letter",
                        "An architecture string has 3 or 4 stages with `_` between them. A stage is a list of letters, "
                        "each\nwith a number, with commas between them: `l1,h3,d96,n1,s1,g1,p4,f7,a0,r8_l2,...`.",
                        VilStageAttributes()}}};
}

}  // namespace vil
}  // namespace longshort::models
