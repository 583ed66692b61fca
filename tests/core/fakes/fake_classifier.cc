#include "tests/core/fakes/fake_classifier.h"

#include <numeric>

namespace longshort::core {
namespace {

constexpr int64_t kClasses = 3;

float SumOf(const models::ClassifierItem& item) {
  if (const auto* image = std::get_if<models::ImageItem>(&item); image != nullptr) {
    return std::accumulate(image->values.begin(), image->values.end(), 0.0F);
  }
  float sum = 0;
  for (const std::vector<int32_t>& document : std::get<models::TokenItem>(item).documents) {
    sum = std::accumulate(document.begin(), document.end(), sum);
  }
  return sum;
}

}  // namespace

FakeClassifier::FakeClassifier() {
  info_.architecture = "text_classifier";
  info_.classes = kClasses;
  info_.documents = 1;
  info_.vocabulary_size = 1000;
  info_.max_document_tokens = 1000;
}

std::vector<float> FakeClassifier::LogitsOf(const models::ClassifierItem& item) {
  const float sum = SumOf(item);
  return {sum, 2 * sum, 3 * sum};
}

models::ClassifierWeights::Replica FakeClassifier::Replicate(const models::WorkerDevice&) const {
  if (original_->on_replicate) {
    if (absl::Status status = original_->on_replicate(); !status.ok()) return status;
  }
  auto replica = std::make_unique<FakeClassifier>();
  replica->original_ = original_;
  return replica;
}

absl::StatusOr<models::ClassifierResult> FakeClassifier::Classify(
    absl::Span<const models::ClassifierItem* const> items) {
  EXPECT_FALSE(items.empty());
  if (original_->on_batch) {
    if (absl::Status status = original_->on_batch(items); !status.ok()) return status;
  }
  logits_.clear();
  for (const models::ClassifierItem* item : items) {
    EXPECT_EQ(item->index(), items.front()->index());
    if (const auto* image = std::get_if<models::ImageItem>(item); image != nullptr) {
      EXPECT_EQ(image->height, std::get<models::ImageItem>(*items.front()).height);
      EXPECT_EQ(image->width, std::get<models::ImageItem>(*items.front()).width);
    }
    const std::vector<float> logits = LogitsOf(*item);
    logits_.insert(logits_.end(), logits.begin(), logits.end());
  }
  if (original_->on_logits) original_->on_logits(logits_);
  return models::ClassifierResult{.logits = logits_, .counts = {.multiply_adds = 7}};
}

models::ClassifierItem Document(int32_t id, int64_t tokens) {
  return models::TokenItem{.documents = {std::vector<int32_t>(tokens, id)}};
}

models::ClassifierItem ImageOf(int64_t height, int64_t width, float value) {
  models::ImageItem image{.height = height, .width = width, .values = std::vector<float>(height * width)};
  image.values.front() = value;
  return image;
}

}  // namespace longshort::core
