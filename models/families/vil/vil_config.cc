#include "models/families/vil/vil_config.h"

#include <array>
#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "base/strict_json.h"
#include "models/weights/config_fields.h"
#include "nlohmann/json.hpp"

namespace longshort::models {
namespace {

constexpr std::array<std::string_view, 1> kVilArchitecture = {"vil"};
constexpr std::array<ConfigField<VilConfig>, 5> kVilFields = {{
    {"image_size", &VilConfig::image_size, "Pixels of both sides; the preprocessing must crop to it.", 1, 1 << 12},
    {"channels", &VilConfig::channels, "Red, green, blue.", 3, 3},
    {"classes", &VilConfig::classes, "Classes.", 1, 1 << 20},
    {"embedding_norm", &VilConfig::embedding_norm, "A layer norm follows each stage's patch convolution."},
    {"average_pooling", &VilConfig::average_pooling,
     "The mean of all tokens is classified, even if the last stage has global tokens."},
}};
constexpr int64_t kMaxVilScores = int64_t{1} << 30;  // of one block and image

// Number of keys for one query of the stage.
int64_t KeysPerQuery(const VilStage& stage, int64_t side) {
  if (!stage.sparse) return side * side + stage.global_tokens;
  return stage.projection_rank + stage.WindowPlaces() + stage.global_tokens;
}

// Checks that a stage divides its grid evenly. The grid has `side` patches along a side; the image has `side_before`.
absl::Status CheckGrid(const VilStage& stage, int64_t side_before, int64_t side, std::string_view name) {
  const std::string stage_name = absl::StrFormat("%s: stage %d", name, stage.number);
  if (side == 0) {
    return absl::InvalidArgumentError(absl::StrFormat("%s: p is %d, but only %d remains of a side of the image",
                                                      stage_name, stage.patch_size, side_before));
  }
  if (stage.pairs == 0) return absl::OkStatus();
  if (stage.sparse && stage.window_size > 0 && side % stage.window_size != 0) {
    return absl::InvalidArgumentError(absl::StrFormat("%s: f is %d; it must divide the stage's grid of %d x %d patches",
                                                      stage_name, stage.window_size, side, side));
  }
  const int64_t scores = stage.heads * (side * side + stage.global_tokens) * KeysPerQuery(stage, side);
  if (scores > kMaxVilScores) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%s: its attention has %d scores (h %d, a grid of %d x %d patches), the limit is %d",
                        stage_name, scores, stage.heads, side, side, kMaxVilScores));
  }
  return absl::OkStatus();
}

// `side`: patches along a side of the stage's grid.
void AddEmbedding(const VilStage& stage, int64_t channels, int64_t side, bool norm, TensorList embedding) {
  embedding.AddAffine("proj", {stage.width, channels, stage.patch_size, stage.patch_size});
  if (norm) embedding.AddAffine("norm_embed", {stage.width});
  if (stage.global_tokens > 0) embedding.Add("cls_token", {1, stage.global_tokens, stage.width});
  if (!stage.absolute_positions) return;
  if (stage.global_tokens > 0) embedding.Add("cls_pos_embed", {1, stage.global_tokens, stage.width});
  embedding.Add("x_pos_embed", {1, side, stage.width / 2});
  embedding.Add("y_pos_embed", {1, side, stage.width / 2});
}

void AddSparseAttention(const VilStage& stage, TensorList attention) {
  if (stage.projection_rank > 0) {
    attention.AddAffine("to_dynamic_projection", {stage.heads * stage.projection_rank, stage.width});
  }
  attention.AddAffine("dual_ln_dp", {stage.width});
  attention.AddAffine("dual_ln_full", {stage.width});
  if (!stage.absolute_positions) {
    attention.Add("local_relative_position_bias_table", {WindowBiasRows(stage.window_size), stage.heads});
  }
}

void AddFullAttention(const VilStage& stage, int64_t side, TensorList attention) {
  if (stage.absolute_positions) return;
  const int64_t offsets = 2 * side - 1;  // of two patches, along one axis
  attention.Add("local_relative_position_bias_table", {offsets * offsets, stage.heads});
  if (stage.global_tokens == 0) return;
  attention.Add("g2l_relative_position_bias", {2, stage.heads, stage.global_tokens});
  attention.Add("g2g_relative_position_bias", {stage.heads, stage.global_tokens, stage.global_tokens});
}

}  // namespace

int64_t VilConfig::GridSide(size_t index) const {
  int64_t side = image_size;
  for (size_t stage = 0; stage <= index; ++stage) side /= stages[stage].patch_size;
  return side;
}

absl::Status CheckVilConfig(const VilConfig& config, std::string_view name) {
  LS_RETURN_IF_ERROR(CheckRanges(kVilFields, config, name));
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
        absl::StrFormat("%s: preprocessing crops to %d x %d pixels (crop_height x crop_width); it must be image_size, "
                        "%d, on both sides",
                        name, preprocessing.crop_height, preprocessing.crop_width, config.image_size));
  }
  return absl::OkStatus();
}

std::vector<FieldDescription> VilFields() {
  std::vector<FieldDescription> fields = {DescribeChoice("architecture", kVilArchitecture, "The family.")};
  fields.push_back({"stages", "an architecture string", "Its attributes: see Stages of ViL-LS."});
  AddDescriptions(kVilFields, fields);
  fields.push_back({"preprocessing", "an object", "See Preprocessing of images."});
  return fields;
}

absl::StatusOr<VilConfig> ParseVilConfig(std::string_view text, const std::string& name) {
  LS_ASSIGN_OR_RETURN(const JsonView fields, JsonView::Parse(text, name));
  LS_RETURN_IF_ERROR(fields.Choice("architecture", kVilArchitecture).status());
  LS_RETURN_IF_ERROR(fields.RefuseUnknown(NamesOf(VilFields())));

  VilConfig config;
  LS_ASSIGN_OR_RETURN(const std::string stages, fields.Text("stages"));
  LS_ASSIGN_OR_RETURN(config.stages, ParseVilStages(stages, absl::StrCat(name, ": stages")));
  LS_RETURN_IF_ERROR(ReadFields(fields, kVilFields, config));
  LS_ASSIGN_OR_RETURN(config.preprocessing, ReadImagePreprocessing(fields));
  LS_RETURN_IF_ERROR(CheckVilConfig(config, name));
  return config;
}

std::string ToJson(const VilConfig& config) {
  nlohmann::ordered_json document = {{"architecture", kVilArchitecture.front()}, {"stages", ToText(config.stages)}};
  WriteFields(kVilFields, config, document);
  document["preprocessing"] = ToJson(config.preprocessing);
  return document.dump(2) + "\n";
}

int64_t WindowBiasRows(int64_t window_size) {
  const int64_t half = window_size / 2;
  return 2 * (window_size + half - 1) * (2 * half + window_size + 1) + 1;
}

int64_t VilKernelBiasElements(const VilConfig& config) {
  int64_t elements = 0;
  for (size_t index = 0; index < config.stages.size(); ++index) {
    const VilStage& stage = config.stages[index];
    if (stage.absolute_positions) continue;
    const int64_t offsets = 2 * config.GridSide(index) - 1;  // of two patches, along one axis
    const int64_t of_head =
        stage.sparse ? stage.window_size * stage.window_size * stage.WindowPlaces() : offsets * offsets;
    elements += stage.pairs * stage.heads * of_head;
  }
  return elements;
}

int64_t VilPairBiasElements(const VilConfig& config) {
  int64_t elements = 0;
  for (size_t index = 0; index < config.stages.size(); ++index) {
    const VilStage& stage = config.stages[index];
    if (stage.sparse || stage.absolute_positions) continue;
    const int64_t side = config.GridSide(index), tokens = stage.global_tokens + side * side;
    elements += stage.pairs * stage.heads * tokens * VilBiasStride(tokens);
  }
  return elements;
}

std::vector<TensorShape> VilTensors(const VilConfig& config) {
  std::vector<TensorShape> tensors;
  int64_t channels = config.channels;
  for (size_t index = 0; index < config.stages.size(); ++index) {
    const VilStage& stage = config.stages[index];
    const int64_t side = config.GridSide(index), width = stage.width;
    const auto module = [&](int64_t number) { return absl::StrCat("layer", stage.number, ".", number, "."); };
    AddEmbedding(stage, channels, side, config.embedding_norm, TensorList(module(0), tensors));
    for (int64_t pair = 0; pair < stage.pairs; ++pair) {
      const std::string attention = module(2 * pair + 1), feed_forward = module(2 * pair + 2);
      TensorList(attention, tensors).AddAffine("norm", {width});
      TensorList attention_map(absl::StrCat(attention, "attn."), tensors);
      attention_map.AddAffine("qkv", {3 * width, width});
      if (stage.sparse) {
        AddSparseAttention(stage, attention_map);
      } else {
        AddFullAttention(stage, side, attention_map);
      }
      attention_map.AddAffine("proj", {width, width});
      TensorList(feed_forward, tensors).AddAffine("norm", {width});
      TensorList mlp(absl::StrCat(feed_forward, "mlp."), tensors);
      mlp.AddAffine("fc1", {4 * width, width});
      mlp.AddAffine("fc2", {width, 4 * width});
    }
    channels = width;
  }
  TensorList head("", tensors);
  head.AddAffine("norm", {channels});
  head.AddAffine("head", {config.classes, channels});
  return tensors;
}

}  // namespace longshort::models
