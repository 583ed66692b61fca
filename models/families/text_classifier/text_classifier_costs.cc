#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "models/families/text_classifier/text_classifier_config.h"

namespace longshort::models {
namespace {

// Number of keys in the window of a query: its segment and max(w / 2, 1) tokens on both sides, or all `tokens`. Without
// window and landmarks, a query sees itself.
int64_t WindowKeys(const TextClassifierConfig& config, int64_t tokens) {
  const int64_t window = config.window_size;
  if (window == 0) return config.projection_rank == 0 ? 1 : 0;
  return std::min(window + 2 * std::max<int64_t>(window / 2, 1), tokens);
}

// The attention of one layer over `tokens` tokens and `cls` (0 or 1) CLS rows.
StageCost AttentionCost(const TextClassifierConfig& config, int64_t tokens, int64_t cls) {
  const int64_t width = config.model_width, rank = config.projection_rank, rows = tokens + cls;
  StageCost cost;
  cost.multiply_adds = 4 * rows * width * width;               // W_q, W_k, W_v, W_o
  cost.multiply_adds += tokens * width * config.heads * rank;  // dconv_fc
  cost.multiply_adds += 2 * rank * tokens * width;             // landmarks
  // Scores and weighted sums.
  cost.multiply_adds += 2 * tokens * (cls + rank + WindowKeys(config, tokens)) * width;
  cost.multiply_adds += 2 * cls * rows * width;                     // the same of the CLS query
  cost.multiply_adds += config.value_convolution * tokens * width;  // depthwise
  // dual_ln_l and dual_ln_s of keys and values.
  if (config.dual_norm) cost.normed_elements = 2 * (tokens + cls + rank) * width;
  return cost;
}

// A layer over one document.
StageCost LayerCost(const TextClassifierConfig& config, int64_t tokens, int64_t cls) {
  StageCost cost = AttentionCost(config, tokens, cls);
  const int64_t width = config.model_width, rows = tokens + cls;
  cost.multiply_adds += 2 * rows * width * config.feed_forward_width;
  // norm1 does not change a learned CLS row, unless normalized_cls.
  const bool raw_cls = config.HasClsParameter() && !config.normalized_cls;
  cost.normed_elements += (raw_cls ? tokens : rows) * width + rows * width;
  return cost;
}

// CLS rows that are tokens, in each document.
int64_t ClsTokens(const TextClassifierConfig& config) {
  return config.cls == ClsKind::kVocabulary || config.cls == ClsKind::kFirstToken ? 1 : 0;
}

bool JoinsCls(const TextClassifierConfig& config, int64_t layer) {
  return config.cls != ClsKind::kNone && (config.cls != ClsKind::kLastLayer || layer == config.layers - 1);
}

StageCost HeadCost(const TextClassifierConfig& config, int64_t tokens) {
  StageCost cost{.name = "head"};
  if (config.classes > 0) cost.multiply_adds = config.HeadWidth() * (config.HeadInputs() + config.classes);
  // model.norm normalises a learned CLS row, or all rows without one.
  if (config.layer_norm == LayerNormPlace::kBefore) {
    const int64_t rows = config.HasClsParameter() ? 1 : tokens + ClsTokens(config);
    cost.normed_elements = config.NetworkDocuments() * config.model_width * rows;
  }
  return cost;
}

const char* NameOf(ProblemType type) {
  switch (type) {
    case ProblemType::kMultiLabel:
      return "multi_label_classification of";
    case ProblemType::kRegression:
      return "regression of";
    case ProblemType::kSingleLabel:
      break;
  }
  return "single_label_classification of";
}

// An item of an encoder may be a pair, whatever it was trained on.
std::string TaskOf(const TextClassifierConfig& config) {
  if (config.classes == 0) return "an encoder without a head";
  const bool is_regression = config.problem_type == ProblemType::kRegression;
  const char* unit = is_regression         ? (config.classes == 1 ? "number" : "numbers")
                     : config.classes == 1 ? "class"
                                           : "classes";
  return absl::StrCat(NameOf(config.problem_type), " ", config.classes, " ", unit, ", trained on ",
                      config.documents == 2 ? "pairs of documents" : "single documents");
}

}  // namespace

ModelDescription Describe(const TextClassifierConfig& config) {
  // The official code pads every document to the length of the position table.
  const int64_t tokens = config.max_sequence_length - ClsTokens(config), documents = config.NetworkDocuments();
  ModelDescription description;
  description.architecture = "text_classifier";
  description.item = absl::StrFormat("%s of %d tokens", documents == 1 ? "one document" : "two documents",
                                     config.JoinsPairs() ? config.max_sequence_length : tokens);
  StageCost embedding{.name = "embedding"};
  if (config.layer_norm == LayerNormPlace::kAfter)
    embedding.normed_elements = config.max_sequence_length * config.model_width;
  description.task = TaskOf(config);
  description.classes = config.classes;
  description.stages.push_back(embedding);
  std::vector<std::pair<std::string, size_t>> prefixes = {{"model.embeddings.", 0}, {"model.cls_embed", 0}};
  for (int64_t layer = 0; layer < config.layers; ++layer) {
    prefixes.emplace_back(TextLayerPrefix(config, layer), description.stages.size());
    const int64_t cls = JoinsCls(config, layer) ? 1 : 0;
    StageCost cost = LayerCost(config, tokens, cls);
    cost.name = absl::StrCat("layer ", layer + 1);
    cost.multiply_adds *= documents;
    cost.normed_elements *= documents;
    cost.tokens = tokens + cls;
    cost.width = config.model_width;
    description.stages.push_back(cost);
  }
  description.stages.push_back(HeadCost(config, tokens));
  // Tied layers share their tensors, which count in the first layer.
  AddParameters(TextClassifierTensors(config), prefixes, description.stages);
  return description;
}

namespace text_classifier {

FamilyConfig Config() {
  return {.architecture = "text_classifier",
          .describe = ParseAndDescribe<ParseTextClassifierConfig>,
          .sections = {
              {"Text classifier", "field",
               "The classifiers of Long Range Arena, and the\n"
               "[long-document encoder](models/long_document_encoder.md). Lengths are in tokens.",
               TextClassifierFields()},
              {"Preprocessing of pixel sequences", "field",
               "The object `preprocessing` of a text classifier with the tokenizer `pixels`.", PixelSequenceFields()}}};
}

}  // namespace text_classifier
}  // namespace longshort::models
