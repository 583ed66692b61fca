#include "server/handlers/embedding.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/handlers/class_answer.h"

namespace longshort::server {
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

absl::Status CheckEmbeddingsFit(const models::ClassifierInfo& info, int64_t items, const CallNames& names) {
  const auto name = [&] { return absl::StrCat("number of bytes to return (", info.width, " numbers, times items)"); };
  return CheckAnswerBytes(name, items, MaxEmbeddingBytes(info), names);
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
