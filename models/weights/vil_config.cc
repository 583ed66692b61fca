#include "models/weights/vil_config.h"

#include <array>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "base/strict_json.h"
#include "models/weights/config_fields.h"

namespace longshort {
namespace {

constexpr std::array<std::string_view, 1> kVilArchitecture = {"vil"};
constexpr std::array<std::string_view, 8> kVilFields = {"architecture",    "stages",       "image_size",
                                                        "channels",        "classes",      "embedding_norm",
                                                        "average_pooling", "preprocessing"};
constexpr int64_t kMostVilPixels = int64_t{1} << 12;  // of a side
constexpr int64_t kMostClasses = int64_t{1} << 20;
constexpr int64_t kMostVilScores = int64_t{1} << 30;  // of one block and image

// The keys that one query of the stage meets.
int64_t KeysPerQuery(const VilStage& stage, int64_t side) {
  if (!stage.sparse) return side * side + stage.global_tokens;
  return stage.projection_rank + stage.WindowPlaces() + stage.global_tokens;
}

// Checks how a stage divides its grid, which is `side` patches wide and was `side_before` before the stage.
absl::Status CheckGrid(const VilStage& stage, int64_t side_before, int64_t side, std::string_view name) {
  const std::string stage_name = absl::StrFormat("%s: stage %d", name, stage.number);
  if (side == 0) {
    return absl::InvalidArgumentError(absl::StrFormat("%s: p is %d, but only %d remains of a side of the image",
                                                      stage_name, stage.patch_size, side_before));
  }
  if (stage.pairs == 0) return absl::OkStatus();
  if (stage.sparse && stage.window_size > 0 && side % stage.window_size != 0) {
    return absl::InvalidArgumentError(absl::StrFormat("%s: f is %d, it must divide the stage's grid of %d x %d patches",
                                                      stage_name, stage.window_size, side, side));
  }
  const int64_t scores = stage.heads * (side * side + stage.global_tokens) * KeysPerQuery(stage, side);
  if (scores > kMostVilScores) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%s: its attention has %d scores (h %d, a grid of %d x %d patches), the limit is %d",
                        stage_name, scores, stage.heads, side, side, kMostVilScores));
  }
  return absl::OkStatus();
}

}  // namespace

int64_t VilConfig::GridSide(size_t index) const {
  int64_t side = image_size;
  for (size_t stage = 0; stage <= index; ++stage) side /= stages[stage].patch_size;
  return side;
}

absl::Status CheckVilConfig(const VilConfig& config, std::string_view name) {
  LS_RETURN_IF_ERROR(CheckRange(name, "image_size", config.image_size, 1, kMostVilPixels));
  LS_RETURN_IF_ERROR(CheckRange(name, "channels", config.channels, 3, 3));
  LS_RETURN_IF_ERROR(CheckRange(name, "classes", config.classes, 1, kMostClasses));
  const std::string stages_name = absl::StrCat(std::string(name), ": stages");
  LS_RETURN_IF_ERROR(CheckVilStages(config.stages, stages_name));
  int64_t side = config.image_size;
  for (size_t index = 0; index < config.stages.size(); ++index) {
    const int64_t side_before = side;
    side = config.GridSide(index);
    LS_RETURN_IF_ERROR(CheckGrid(config.stages[index], side_before, side, stages_name));
  }
  const ImagePreprocessingConfig& preprocessing = config.preprocessing;
  if (preprocessing.crop_height != config.image_size || preprocessing.crop_width != config.image_size) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%s: preprocessing crops to %d x %d pixels (crop_height x crop_width), it must be image_size, "
                        "%d, on both sides",
                        name, preprocessing.crop_height, preprocessing.crop_width, config.image_size));
  }
  return absl::OkStatus();
}

absl::StatusOr<VilConfig> ParseVilConfig(std::string_view text, const std::string& name) {
  LS_ASSIGN_OR_RETURN(const JsonFields fields, JsonFields::Parse(text, name));
  LS_RETURN_IF_ERROR(fields.Choice("architecture", kVilArchitecture).status());
  LS_RETURN_IF_ERROR(fields.RefuseUnknown(kVilFields));

  VilConfig config;
  LS_ASSIGN_OR_RETURN(const std::string stages, fields.Text("stages"));
  LS_ASSIGN_OR_RETURN(config.stages, ParseVilStages(stages, absl::StrCat(name, ": stages")));
  LS_ASSIGN_OR_RETURN(config.image_size, fields.Integer("image_size"));
  LS_ASSIGN_OR_RETURN(config.channels, fields.Integer("channels"));
  LS_ASSIGN_OR_RETURN(config.classes, fields.Integer("classes"));
  LS_ASSIGN_OR_RETURN(config.embedding_norm, fields.Boolean("embedding_norm"));
  LS_ASSIGN_OR_RETURN(config.average_pooling, fields.Boolean("average_pooling"));
  LS_ASSIGN_OR_RETURN(config.preprocessing, ReadImagePreprocessing(fields));
  LS_RETURN_IF_ERROR(CheckVilConfig(config, name));
  return config;
}

std::string ToJson(const VilConfig& config) {
  const nlohmann::ordered_json document = {{"architecture", kVilArchitecture.front()},
                                           {"stages", ToText(config.stages)},
                                           {"image_size", config.image_size},
                                           {"channels", config.channels},
                                           {"classes", config.classes},
                                           {"embedding_norm", config.embedding_norm},
                                           {"average_pooling", config.average_pooling},
                                           {"preprocessing", ToJson(config.preprocessing)}};
  return document.dump(2) + "\n";
}

}  // namespace longshort
