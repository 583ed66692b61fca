// A classifier whose logits are sums over the item, and a listener and an observer that keep what they hear.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "absl/status/status.h"
#include "core/requests/classifier_engine.h"
#include "gtest/gtest.h"
#include "models/classifier.h"
#include "tests/core/fakes/end_signal.h"

namespace longshort::core {

// Three classes; the logit of class c is (c + 1) * the sum of the item's ids or values. Embeddings have two numbers:
// the sum, and 1 for features or 2 for the mean of tokens. Checks what models/classifier.h demands of a batch.
class FakeClassifier final : public models::Classifier {
 public:
  using Weights = models::ClassifierWeights;

  FakeClassifier();

  const models::ClassifierInfo& info() const override { return info_; }
  models::ClassifierInfo& mutable_info() { return info_; }
  // A replica follows this one's settings, later changes included.
  models::ClassifierWeights::Replica Replicate(const models::WorkerDevice& device) const;
  absl::StatusOr<models::ClassifierResult> Run(absl::Span<const models::ClassifierItem* const> items,
                                               models::ClassifierOutput output) override;
  // Runs the batch. FinishBatch returns what it led to, its error included, as a device does.
  absl::Status BeginBatch(absl::Span<const models::ClassifierItem* const> items,
                          models::ClassifierOutput output) override;
  absl::StatusOr<models::ClassifierResult> FinishBatch() override;
  int64_t batches_at_once() const override { return original_->at_once; }
  void Rest() override {
    if (original_->on_rest) original_->on_rest();
  }

  // The row of one item: logits [3], logits and features [5], or an embedding [2].
  static std::vector<float> RowOf(const models::ClassifierItem& item, models::ClassifierOutput output);
  // Of logits.
  static std::vector<float> LogitsOf(const models::ClassifierItem& item);

  // Called at the beginning of every batch. What it returns, unless OK, is the result.
  std::function<absl::Status(absl::Span<const models::ClassifierItem* const>)> on_batch;
  // Changes the rows of a batch before they are returned.
  std::function<void(std::vector<float>&)> on_logits;
  // The result of batches_at_once().
  int64_t at_once = 1;
  // Called when the first batch that has begun is to be finished.
  std::function<void()> on_finish;
  // Called when the classifier is to rest.
  std::function<void()> on_rest;
  // Called for every replica. What it returns, unless OK, is the result.
  std::function<absl::Status()> on_replicate;

 private:
  const FakeClassifier* original_ = this;
  models::ClassifierInfo info_;
  std::vector<float> rows_;
  struct BegunBatch {
    absl::StatusOr<models::ClassifierResult> result;
    std::vector<float> rows;
  };
  std::deque<BegunBatch> begun_;
  std::vector<float> finished_rows_;
};

// A document of the one token `id`, and an image whose only value (of height * width) that is not 0 is `value`.
models::ClassifierItem Document(int32_t id, int64_t tokens = 1);
models::ClassifierItem ImageOf(int64_t height, int64_t width, float value);

class RecordingClassificationListener final : public ClassificationListener {
 public:
  void OnFinished(absl::StatusOr<ItemResult> result) override {
    EXPECT_FALSE(end.ended()) << "OnFinished was called twice";
    scores = std::move(result);
    if (on_finished) on_finished();
    end.Notify();
  }

  // May be read once `end` is.
  absl::StatusOr<ItemResult> scores = absl::UnknownError("not heard yet");
  EndSignal end;
  std::function<void()> on_finished;
};

// Thread-safe while it hears; read it when the engine is drained.
class RecordingClassificationObserver final : public ClassifierEngineObserver {
 public:
  struct Record {
    std::mutex mutex;
    std::vector<absl::Duration> prepared;
    std::vector<absl::Duration> queued;
    std::vector<BatchReport> batches;
    std::vector<absl::Status> failures;
    std::vector<absl::Status> rebuilt;
    std::vector<absl::StatusCode> ended;
    ClassifierEngineState state;
  };

  // The record outlives the observer, which the engine owns.
  explicit RecordingClassificationObserver(std::shared_ptr<Record> record) : record_(std::move(record)) {}

  void OnPrepared(absl::Duration preparation) override { Add(record_->prepared, preparation); }
  void OnQueued(absl::Duration waited) override { Add(record_->queued, waited); }
  void OnBatch(const BatchReport& batch) override { Add(record_->batches, batch); }
  void OnFailure(const absl::Status& failure) override { Add(record_->failures, failure); }
  void OnWorkerRebuilt(const absl::Status& status) override { Add(record_->rebuilt, status); }
  void OnEnded(const absl::Status& status) override { Add(record_->ended, status.code()); }
  void OnState(const ClassifierEngineState& state) override {
    std::lock_guard lock(record_->mutex);
    record_->state = state;
  }

 private:
  template <typename Value>
  void Add(std::vector<Value>& values, const Value& value) {
    std::lock_guard lock(record_->mutex);
    values.push_back(value);
  }

  const std::shared_ptr<Record> record_;
};

}  // namespace longshort::core
