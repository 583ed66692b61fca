#include "server/handlers/item_answer.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "core/sampling/sampler.h"
#include "server/calls/call_names.h"

namespace longshort::server {
namespace {

constexpr int64_t kDefaultTopK = 5;
// Wire size of one class without its label: index, probability, tags and lengths.
constexpr int64_t kClassBytes = 24;
// Wire size of one classification without its classes and logits: timings, document lengths, tags and lengths.
constexpr int64_t kItemBytes = 96;

// A class's result, by its logit. The model's problem type says what it is.
float ProbabilityOf(const core::LogProbabilities& softmax, absl::Span<const float> logits, int32_t index,
                    models::ProblemType type) {
  switch (type) {
    case models::ProblemType::kMultiLabel:
      return static_cast<float>(1 / (1 + std::exp(-static_cast<double>(logits[index]))));
    case models::ProblemType::kRegression:
      return logits[index];
    case models::ProblemType::kSingleLabel:
      break;
  }
  return static_cast<float>(std::exp(softmax.Of(index)));
}

}  // namespace

absl::StatusOr<ClassOptions> ReadClassAnswer(const ClassOptions& options, const models::ClassifierInfo& info,
                                             const CallNames& names) {
  constexpr int64_t kMax = std::numeric_limits<int32_t>::max();
  LS_RETURN_IF_ERROR(info.CheckHas(OutputOf(options)));
  LS_RETURN_IF_ERROR(CheckFieldRange([&] { return names.Of("top_k"); }, options.top_k, 0, kMax));
  ClassOptions answer = options;
  answer.top_k = std::min(options.top_k == 0 ? kDefaultTopK : options.top_k, info.classes);
  return answer;
}

models::ClassifierOutput OutputOf(const ClassOptions& answer) {
  return answer.features ? models::ClassifierOutput::kLogitsAndFeatures : models::ClassifierOutput::kLogits;
}

int64_t MaxBytes(const ClassOptions& answer, const models::ClassifierInfo& info) {
  size_t longest_label = 0;
  for (const std::string& label : info.labels) longest_label = std::max(longest_label, label.size());
  const int64_t per_class = (answer.all_logits ? 1 : 0) + (answer.all_probabilities ? 1 : 0);
  const int64_t features = answer.features ? info.vectors * info.width : 0;
  const int64_t values = (per_class * info.classes + features) * static_cast<int64_t>(sizeof(float));
  return kItemBytes + values + answer.top_k * (kClassBytes + static_cast<int64_t>(longest_label));
}

absl::Status CheckAnswerBytes(absl::FunctionRef<std::string()> field, int64_t items, int64_t item_bytes,
                              int64_t max_bytes) {
  const int64_t most = max_bytes / item_bytes;
  if (items <= most) return absl::OkStatus();
  return FieldError(field(), items * item_bytes,
                    absl::StrCat("in [0, ", max_bytes, "]",
                                 most == 0 ? "" : absl::StrCat(": send at most ", most, " items in one call")));
}

absl::Status CheckAnswerFits(const ClassOptions& answer, const models::ClassifierInfo& info, int64_t items,
                             int64_t max_bytes, const CallNames& names) {
  const auto name = [&] {
    return absl::StrCat("number of bytes to return (", names.Of("top_k"), " classes with their labels, ",
                        names.Of("all_logits"), answer.features ? ", features" : "", ", times items)");
  };
  return CheckAnswerBytes(name, items, MaxBytes(answer, info), max_bytes);
}

Classification AnswerOf(core::ItemResult result, const ClassOptions& answer, const models::ClassifierInfo& info) {
  Classification classification;
  const auto features = result.row.begin() + info.classes;
  classification.features.assign(features, result.row.end());
  result.row.erase(features, result.row.end());
  core::LogProbabilities softmax;         // its order is that of the logits
  if (softmax.SetRow(result.row).ok()) {  // the engine returns only finite logits
    const auto probability = [&](int32_t index) {
      return ProbabilityOf(softmax, result.row, index, info.problem_type);
    };
    for (const core::TokenLogProbability& likely : softmax.Likeliest(answer.top_k)) {
      ClassProbability& named = classification.classes.emplace_back();
      named.index = likely.token;
      if (!info.labels.empty()) named.label = info.labels[likely.token];
      named.probability = probability(likely.token);
    }
    if (answer.all_probabilities) {
      for (int32_t i = 0; i < static_cast<int32_t>(result.row.size()); ++i)
        classification.probabilities.push_back(probability(i));
    }
  }
  if (answer.all_logits) classification.logits = std::move(result.row);
  classification.timings = result.timings;
  return classification;
}

namespace {

// Wire size of one embedding without its numbers: timings, document lengths, tags and lengths.
constexpr int64_t kEmbeddingBytes = 96;

const char* NameOf(Pooling pooling) { return pooling == Pooling::kCls ? "POOLING_CLS" : "POOLING_MEAN"; }

}  // namespace

std::vector<Pooling> PoolingsOf(const models::ClassifierInfo& info) {
  std::vector<Pooling> poolings;
  if (info.has_cls) poolings.push_back(Pooling::kCls);
  if (!info.has_cls || info.input != models::ClassifierInput::kImage) poolings.push_back(Pooling::kMean);
  return poolings;
}

absl::StatusOr<models::ClassifierOutput> OutputOf(Pooling pooling, const models::ClassifierInfo& info,
                                                  const CallNames& names) {
  if (pooling == Pooling::kHead) return models::ClassifierOutput::kFeatures;
  const std::vector<Pooling> poolings = PoolingsOf(info);
  const std::string allowed =
      absl::StrJoin(poolings, " or ", [](std::string* text, Pooling one) { absl::StrAppend(text, NameOf(one)); });
  if (pooling == Pooling::kUnknown) {
    return absl::InvalidArgumentError(absl::StrCat(names.Of("pooling"), " is unknown; it must be unset, or ", allowed));
  }
  if (std::find(poolings.begin(), poolings.end(), pooling) == poolings.end()) {
    return absl::FailedPreconditionError(
        absl::StrCat(names.Of("pooling"), " is ", NameOf(pooling), "; the model has only ", allowed));
  }
  // The features of images are that pooling.
  return pooling == Pooling::kMean && info.input != models::ClassifierInput::kImage
             ? models::ClassifierOutput::kMeanOfTokens
             : models::ClassifierOutput::kFeatures;
}

int64_t MaxEmbeddingBytes(const models::ClassifierInfo& info) {
  return kEmbeddingBytes + info.width * static_cast<int64_t>(sizeof(float));
}

absl::Status CheckEmbeddingsFit(const models::ClassifierInfo& info, int64_t items, int64_t max_bytes) {
  const auto name = [&] { return absl::StrCat("number of bytes to return (", info.width, " numbers, times items)"); };
  return CheckAnswerBytes(name, items, MaxEmbeddingBytes(info), max_bytes);
}

Embedding EmbeddingOf(core::ItemResult result, bool normalize) {
  Embedding embedding{.values = std::move(result.row), .documents = {}, .timings = result.timings};
  if (!normalize) return embedding;
  double squares = 0;
  for (const float value : embedding.values) squares += static_cast<double>(value) * value;
  if (squares == 0) return embedding;
  const double length = std::sqrt(squares);
  for (float& value : embedding.values) value = static_cast<float>(value / length);
  return embedding;
}

}  // namespace longshort::server
