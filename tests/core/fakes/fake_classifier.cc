#include "tests/core/fakes/fake_classifier.h"

#include <numeric>
#include <utility>

namespace longshort::core {
namespace {

constexpr int64_t kClasses = 3, kWidth = 2;

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
  info_.width = kWidth;
  info_.documents = 1;
  info_.vocabulary_size = 1000;
  info_.max_document_tokens = 1000;
}

std::vector<float> FakeClassifier::LogitsOf(const models::ClassifierItem& item) {
  return RowOf(item, models::ClassifierOutput::kLogits);
}

std::vector<float> FakeClassifier::RowOf(const models::ClassifierItem& item, models::ClassifierOutput output) {
  const float sum = SumOf(item);
  if (output == models::ClassifierOutput::kLogits) return {sum, 2 * sum, 3 * sum};
  if (output == models::ClassifierOutput::kLogitsAndFeatures) return {sum, 2 * sum, 3 * sum, sum, 1};
  return {sum, output == models::ClassifierOutput::kFeatures ? 1.0F : 2.0F};
}

models::ClassifierWeights::Replica FakeClassifier::Replicate(const models::WorkerDevice&) const {
  if (original_->on_replicate) {
    if (absl::Status status = original_->on_replicate(); !status.ok()) return status;
  }
  auto replica = std::make_unique<FakeClassifier>();
  replica->original_ = original_;
  return replica;
}

absl::StatusOr<models::ClassifierResult> FakeClassifier::Run(absl::Span<const models::ClassifierItem* const> items,
                                                             models::ClassifierOutput output) {
  EXPECT_FALSE(items.empty());
  if (original_->on_batch) {
    if (absl::Status status = original_->on_batch(items); !status.ok()) return status;
  }
  rows_.clear();
  for (const models::ClassifierItem* item : items) {
    EXPECT_EQ(item->index(), items.front()->index());
    if (const auto* image = std::get_if<models::ImageItem>(item); image != nullptr) {
      EXPECT_EQ(image->height, std::get<models::ImageItem>(*items.front()).height);
      EXPECT_EQ(image->width, std::get<models::ImageItem>(*items.front()).width);
    }
    const std::vector<float> row = RowOf(*item, output);
    rows_.insert(rows_.end(), row.begin(), row.end());
  }
  if (original_->on_logits) original_->on_logits(rows_);
  return models::ClassifierResult{.rows = rows_, .counts = {.multiply_adds = 7}};
}

absl::Status FakeClassifier::BeginBatch(absl::Span<const models::ClassifierItem* const> items,
                                        models::ClassifierOutput output) {
  EXPECT_LT(static_cast<int64_t>(begun_.size()), batches_at_once());
  absl::StatusOr<models::ClassifierResult> result = Run(items, output);
  begun_.push_back({.result = std::move(result), .rows = rows_});
  return absl::OkStatus();
}

absl::StatusOr<models::ClassifierResult> FakeClassifier::FinishBatch() {
  const BegunBatch batch = std::move(begun_.front());
  begun_.pop_front();
  if (original_->on_finish) original_->on_finish();
  if (!batch.result.ok()) return batch.result.status();
  finished_rows_ = batch.rows;
  return models::ClassifierResult{.rows = finished_rows_, .counts = batch.result->counts};
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
