#include "models/families/cvt/cvt_config.h"

#include <algorithm>
#include <array>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "base/strict_json.h"
#include "models/weights/config_fields.h"
#include "nlohmann/json.hpp"

namespace longshort::models {
namespace {

constexpr std::array<ConfigField<CvtStage>, 8> kCvtStageFields = {{
    {"stage_widths", &CvtStage::width, "Width of a token; a multiple of the stage's heads.", 1, 1 << 14},
    {"stage_heads", &CvtStage::heads, "Attention heads.", 1, 1 << 10},
    {"stage_depths", &CvtStage::depth, "Blocks.", 1, 1 << 10},
    {"projection_ranks", &CvtStage::projection_rank, "r: landmarks of an image, for each head.", 1, 1 << 12},
    {"window_sizes", &CvtStage::window_size, "w: tokens along a side of a segment.", 1, 1 << 10},
    {"embedding_kernels", &CvtStage::embedding_kernel,
     "Kernel of the stage's embedding, in pixels or tokens along a side.", 1, 1 << 8},
    {"embedding_strides", &CvtStage::embedding_stride, "Stride of the embedding.", 1, 1 << 8},
    {"embedding_paddings", &CvtStage::embedding_padding,
     "Zeros on each side before the embedding; fewer than the kernel is long.", 0, 1 << 8},
}};

constexpr std::array<ConfigField<CvtConfig>, 9> kCvtFields = {{
    {"feed_forward_ratio", &CvtConfig::feed_forward_ratio,
     "Width inside the feed-forward part, in widths of the stage.", 1, 1 << 6},
    {"channels", &CvtConfig::channels, "Red, green, blue.", 3, 3},
    {"classes", &CvtConfig::classes, "Classes.", 1, 1 << 20},
    {"projection_kernel", &CvtConfig::projection_kernel,
     "Kernel of the depthwise convolutions before queries, keys and values; odd.", 1, 63},
    {"dynamic_projection_kernel", &CvtConfig::dynamic_projection_kernel,
     "Kernel of the depthwise convolution before the dynamic projection; odd.", 1, 63},
    {"layer_norm_epsilon", &CvtConfig::layer_norm_epsilon, "Added to the variance in layer norms."},
    {"batch_norm_epsilon", &CvtConfig::batch_norm_epsilon, "Added to the variance in batch norms."},
    {"weight_standardization_epsilon", &CvtConfig::weight_standardization_epsilon,
     "Added to the variance of standardised weights."},
    {"shared_dual_norm", &CvtConfig::shared_dual_norm,
     "Values are normalised by the DualLN of the keys, or (false) by their own."},
}};

constexpr std::array<std::string_view, 1> kCvtArchitecture = {"cvt"};
constexpr size_t kMaxCvtStages = 16;
constexpr int64_t kMaxCvtScores = int64_t{1} << 30;  // of one block and image

absl::Status CheckCvtStage(const CvtStage& stage, std::string_view stage_name) {
  LS_RETURN_IF_ERROR(CheckRanges(kCvtStageFields, stage, stage_name));
  if (stage.width % stage.heads != 0) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "%s: stage_widths is %d; it must be a multiple of stage_heads, %d", stage_name, stage.width, stage.heads));
  }
  if (stage.embedding_padding >= stage.embedding_kernel) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%s: embedding_paddings is %d; it must be below embedding_kernels, %d", stage_name,
                        stage.embedding_padding, stage.embedding_kernel));
  }
  return absl::OkStatus();
}

absl::Status CheckCvtFields(const CvtConfig& config, std::string_view name) {
  LS_RETURN_IF_ERROR(CheckRanges(kCvtFields, config, name));
  for (const int64_t CvtConfig::*kernel : {&CvtConfig::projection_kernel, &CvtConfig::dynamic_projection_kernel}) {
    if (config.*kernel % 2 == 1) continue;
    return absl::InvalidArgumentError(absl::StrFormat(
        "%s: %s is %d; it must be odd", name,
        kernel == &CvtConfig::projection_kernel ? "projection_kernel" : "dynamic_projection_kernel", config.*kernel));
  }
  return absl::OkStatus();
}

// Attention scores of one block, for images of the size that the preprocessing gives.
absl::Status CheckCvtScores(const CvtConfig& config, std::string_view name) {
  int64_t height = config.preprocessing.crop_height, width = config.preprocessing.crop_width;
  for (size_t index = 0; index < config.stages.size(); ++index) {
    const CvtStage& stage = config.stages[index];
    height = stage.EmbeddedLength(height);
    width = stage.EmbeddedLength(width);
    const int64_t seen = stage.window_size + 2 * std::max<int64_t>(1, stage.window_size / 2);
    // Below 2^63: fewer than 2^29 tokens, 2^23 keys and 2^11 heads.
    const int64_t scores = stage.heads * height * width * (stage.projection_rank + seen * seen);
    if (scores > kMaxCvtScores) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "%s: stage %d: its attention has %d scores (stage_heads %d, a grid of %d x %d tokens), the limit is %d", name,
          index + 1, scores, stage.heads, height, width, kMaxCvtScores));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<CvtStage>> ReadCvtStages(const JsonView& fields, const std::string& name) {
  std::vector<CvtStage> stages;
  for (const ConfigField<CvtStage>& field : kCvtStageFields) {
    LS_ASSIGN_OR_RETURN(const std::vector<int64_t> values, fields.Integers(field.name));
    if (field.name == kCvtStageFields.front().name) stages.resize(std::min(values.size(), kMaxCvtStages + 1));
    if (values.empty() || values.size() != stages.size()) {
      return absl::InvalidArgumentError(
          absl::StrFormat("%s: %s has %d numbers; it must have one for each stage, as stage_widths has, at most %d",
                          name, field.name, values.size(), kMaxCvtStages));
    }
    for (size_t index = 0; index < values.size(); ++index)
      stages[index].*std::get<int64_t CvtStage::*>(field.member) = values[index];
  }
  return stages;
}

void AddCvtSeparable(int64_t out, int64_t in, int64_t kernel, bool batch_norm, TensorList convolution) {
  convolution.AddAffine("depthwise", {in, 1, kernel, kernel});
  if (batch_norm) {
    convolution.AddAffine("bn", {in});
    convolution.Add("bn.running_mean", {in}, /*is_trained=*/false);
    convolution.Add("bn.running_var", {in}, /*is_trained=*/false);
  }
  convolution.AddAffine("pointwise", {out, in, 1, 1});
}

void AddCvtBlock(const CvtConfig& config, const CvtStage& stage, TensorList block) {
  const int64_t width = stage.width;
  block.AddAffine("norm1", {width});
  TensorList attention = block.Sub("attn");
  for (const char* const name : {"to_q", "to_k", "to_v"}) {
    AddCvtSeparable(width, width, config.projection_kernel, true, attention.Sub(name));
  }
  AddCvtSeparable(stage.heads * stage.projection_rank, width, config.dynamic_projection_kernel, false,
                  attention.Sub("to_dyn"));
  attention.AddAffine("ln_l", {width});
  attention.AddAffine("ln_g", {width});
  if (!config.shared_dual_norm) {
    attention.AddAffine("ln_l_v", {width});
    attention.AddAffine("ln_g_v", {width});
  }
  attention.AddAffine("proj", {width, width});
  block.AddAffine("norm2", {width});
  block.AddAffine("fc1", {config.feed_forward_ratio * width, width});
  block.AddAffine("fc2", {width, config.feed_forward_ratio * width});
}

}  // namespace

int64_t CvtStage::EmbeddedLength(int64_t length) const {
  const int64_t room = length + 2 * embedding_padding - embedding_kernel;
  return room < 0 ? 0 : room / embedding_stride + 1;
}

absl::Status CheckCvtImageSize(const CvtConfig& config, int64_t height, int64_t width) {
  int64_t rows = height, columns = width;
  for (size_t index = 0; index < config.stages.size(); ++index) {
    const CvtStage& stage = config.stages[index];
    const int64_t next_rows = stage.EmbeddedLength(rows), next_columns = stage.EmbeddedLength(columns);
    if (next_rows == 0 || next_columns == 0) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "an image of %d x %d pixels (height x width) is too small: stage %d embeds with a kernel of %d and a padding "
          "of %d, and has %d x %d left",
          height, width, index + 1, stage.embedding_kernel, stage.embedding_padding, rows, columns));
    }
    rows = next_rows;
    columns = next_columns;
  }
  return absl::OkStatus();
}

std::vector<FieldDescription> CvtFields() {
  std::vector<FieldDescription> fields;
  AddDescriptions(kCvtStageFields, fields);
  for (FieldDescription& field : fields) absl::StrAppend(&field.values, ", one for each stage");
  fields.insert(fields.begin(), DescribeChoice("architecture", kCvtArchitecture, "The family."));
  AddDescriptions(kCvtFields, fields);
  fields.push_back({"preprocessing", "an object", "See Preprocessing of images."});
  return fields;
}

absl::Status CheckCvtConfig(const CvtConfig& config, std::string_view name) {
  if (config.stages.empty() || config.stages.size() > kMaxCvtStages) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%s: there are %d stages; there must be 1..%d", name, config.stages.size(), kMaxCvtStages));
  }
  for (size_t index = 0; index < config.stages.size(); ++index) {
    LS_RETURN_IF_ERROR(CheckCvtStage(config.stages[index], absl::StrFormat("%s: stage %d", name, index + 1)));
  }
  LS_RETURN_IF_ERROR(CheckCvtFields(config, name));
  const absl::Status fits =
      CheckCvtImageSize(config, config.preprocessing.crop_height, config.preprocessing.crop_width);
  if (!fits.ok()) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%s: preprocessing: crop_height and crop_width: %s", name, fits.message()));
  }
  return CheckCvtScores(config, name);
}

absl::StatusOr<CvtConfig> ParseCvtConfig(std::string_view text, const std::string& name) {
  LS_ASSIGN_OR_RETURN(const JsonView fields, JsonView::Parse(text, name));
  LS_RETURN_IF_ERROR(fields.Choice("architecture", kCvtArchitecture).status());
  LS_RETURN_IF_ERROR(fields.RefuseUnknown(NamesOf(CvtFields())));

  CvtConfig config;
  LS_ASSIGN_OR_RETURN(config.stages, ReadCvtStages(fields, name));
  LS_RETURN_IF_ERROR(ReadFields(fields, kCvtFields, config));
  LS_ASSIGN_OR_RETURN(config.preprocessing, ReadImagePreprocessing(fields));
  LS_RETURN_IF_ERROR(CheckCvtConfig(config, name));
  return config;
}

std::string ToJson(const CvtConfig& config) {
  nlohmann::ordered_json document;
  document["architecture"] = kCvtArchitecture.front();
  for (const ConfigField<CvtStage>& field : kCvtStageFields) {
    const auto member = std::get<int64_t CvtStage::*>(field.member);
    for (const CvtStage& stage : config.stages) document[std::string(field.name)].push_back(stage.*member);
  }
  WriteFields(kCvtFields, config, document);
  document["preprocessing"] = ToJson(config.preprocessing);
  return document.dump(2) + "\n";
}

std::vector<TensorShape> CvtTensors(const CvtConfig& config) {
  std::vector<TensorShape> tensors;
  TensorList model("", tensors);
  int64_t channels = config.channels;
  for (size_t index = 0; index < config.stages.size(); ++index) {
    const CvtStage& stage = config.stages[index];
    TensorList part = model.Sub(absl::StrCat("stages.", index));
    part.AddAffine("embed", {stage.width, channels, stage.embedding_kernel, stage.embedding_kernel});
    part.AddAffine("embed_norm", {stage.width});
    for (int64_t block = 0; block < stage.depth; ++block) {
      AddCvtBlock(config, stage, part.Sub(absl::StrCat("blocks.", block)));
    }
    channels = stage.width;
  }
  model.AddAffine("norm", {channels});
  model.AddAffine("head", {config.classes, channels});
  return tensors;
}

}  // namespace longshort::models
