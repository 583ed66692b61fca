// A language model whose logits are a hash of what a Transformer-LS query sees, read from the pages it is given.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "models/model.h"

namespace longshort::core {

// Chunks of 4 tokens give 12 vectors each, so every ring comes round within about 200 tokens, and vectors of one chunk
// lie on two pages now and then. W is no multiple of C, and no length is one of the page size.
//
// Bytes of pages are round numbers, which tests can add up. Where pages are read and written, tests use the real
// numbers.
models::LanguageModelInfo SmallModelInfo();
models::LanguageModelInfo SmallModelInfoWithRealPages();

// Keeps in its pages what the real model keeps there, with tokens in place of keys and values:
//   window page    the tokens of its rows
//   memory page    a hash of (form B, the tokens of the chunk, t) for vector j = chunk*R + t
//   segment page   the same of form A
//   open chunk     the tokens of the chunk that is not full
// A query's logits are a hash of all that it sees, in order. So a page that is wrong, written too early or lost, a
// wrong position or a wrong segment start each give other logits than LogitsAfter, which knows no pages.
//
// Pages hold rubbish until they are written. Step checks what models/model.h demands of a slice.
class FakeLanguageModel final : public models::LanguageModel {
 public:
  using Weights = models::LanguageModelWeights;

  explicit FakeLanguageModel(const models::LanguageModelInfo& info = SmallModelInfo()) : info_(info) {}

  const models::LanguageModelInfo& info() const override { return info_; }
  // A replica follows this one's settings, later changes included.
  models::LanguageModelWeights::Replica Replicate(const models::WorkerDevice& device) const;
  absl::Status AllocateCache(const models::CachePages& pages) override;
  absl::StatusOr<models::StepResult> Step(absl::Span<const models::Slice> slices) override;
  // Runs the step. FinishStep returns what it led to, its error included, as a device does.
  absl::Status BeginStep(absl::Span<const models::Slice> slices) override;
  absl::StatusOr<models::StepResult> FinishStep() override;
  int64_t steps_at_once() const override { return original_->at_once; }
  // Steps that have begun and are not finished.
  int64_t begun() const { return static_cast<int64_t>(begun_steps_.size()); }
  void Rest() override {
    if (original_->on_rest) original_->on_rest();
  }
  absl::Status CopyPage(models::PageKind kind, models::PageId from, models::PageId to) override;
  // The bytes of its numbers.
  absl::StatusOr<std::string> ReadPage(models::PageKind kind, models::PageId page,
                                       const models::PageRows& rows) const override;
  absl::Status WritePage(models::PageKind kind, models::PageId page, std::string_view bytes) override;

  // The logits after a whole history, with segments at the multiples of L; [V].
  std::vector<float> LogitsAfter(absl::Span<const int32_t> history) const;

  // The result of steps_at_once().
  int64_t at_once = 1;
  // The device's time for each step, if it runs several at once.
  absl::Duration device_time;
  // Called at the beginning of every step. What it returns, unless OK, is the result of the step.
  std::function<absl::Status(absl::Span<const models::Slice>)> on_step;
  // Called before every copy. What it returns, unless OK, is the result.
  std::function<absl::Status()> on_copy;
  // Called with the logits of every step before they are returned.
  std::function<void(std::vector<float>&)> on_logits;
  // Called when the model is to rest.
  std::function<void()> on_rest;
  // Called for every replica. What it returns, unless OK, is the result.
  std::function<absl::Status()> on_replicate;
  // Called with the device of every replica.
  std::function<void(const models::WorkerDevice&)> on_device;

 private:
  absl::Status CheckSlice(const models::Slice& slice) const;
  absl::StatusOr<absl::Span<char>> PageMemory(models::PageKind kind, models::PageId page);
  // Of the segment that a position of the slice belongs to.
  int64_t SegmentStart(const models::Slice& slice, int64_t position) const;
  void RunToken(const models::Slice& slice, int64_t index);
  void FinishChunk(const models::Slice& slice, int64_t chunk);
  uint64_t HashOfQuery(const models::Slice& slice, int64_t position, int64_t segment_start) const;

  const models::LanguageModelInfo info_;
  const FakeLanguageModel* original_ = this;
  std::vector<std::vector<int32_t>> window_;      // [pages][64]
  std::vector<std::vector<uint64_t>> segment_;    // [pages][64]
  std::vector<std::vector<int32_t>> open_chunk_;  // [pages][C]
  std::vector<float> logits_;
  struct BegunStep {
    absl::Status status;
    std::vector<float> logits;
  };
  std::deque<BegunStep> begun_steps_;
  BegunStep finished_;  // the last one
};

}  // namespace longshort::core
