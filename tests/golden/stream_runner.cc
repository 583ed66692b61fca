#include "tests/golden/stream_runner.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "core/cache/cache_grid.h"
#include "tests/core/fakes/stream_pages.h"

namespace longshort {
namespace {

// A stream on its way: what has been fed, and the pages that hold its state.
class RunningStream final {
 public:
  RunningStream(const CutStream& cut, const models::LanguageModelInfo& info, core::FreePages& free)
      : cut_(cut), vocabulary_size_(info.vocabulary_size), pages_(info, cut.stream->length(), free) {}

  int64_t steps() const { return static_cast<int64_t>(cut_.lengths.size()); }
  // Length of the slice at this step; 0 once the stream is over.
  int64_t LengthAt(int64_t step) const { return step < steps() ? cut_.lengths[step] : 0; }

  // The next `length` tokens, asking for logits from the first position where something is expected. Valid until the
  // next call.
  models::Slice NextSlice(int64_t length) {
    models::Slice slice;
    slice.tokens = absl::MakeConstSpan(cut_.stream->tokens).subspan(position_, length);
    slice.position = position_;
    slice.segment_start = cut_.stream->SegmentStart(position_);
    slice.logit_rows = LogitRows(length);
    pages_.FillIn(slice);
    return slice;
  }

  // Takes in the logits that NextSlice(length) asked for, and moves on.
  void Finish(int64_t length, absl::Span<const float> logits, Comparison& comparison) {
    const int64_t rows = LogitRows(length);
    for (int64_t row = 0; row < rows; ++row) {
      const std::vector<float>& expected = cut_.stream->expected[position_ + length - rows + row];
      if (expected.empty()) continue;
      Compare(logits.subspan(row * vocabulary_size_, vocabulary_size_), expected, comparison);
    }
    position_ += length;
  }

  int64_t LogitRows(int64_t length) const {
    const auto first = cut_.stream->expected.begin() + position_;
    const auto wanted = std::find_if(first, first + length, [](const auto& expected) { return !expected.empty(); });
    return first + length - wanted;
  }

 private:
  static void Compare(absl::Span<const float> logits, const std::vector<float>& expected, Comparison& comparison) {
    const double largest = *std::max_element(logits.begin(), logits.end());
    double sum = 0;
    for (const float logit : logits) sum += std::exp(logit - largest);
    const double log_sum = largest + std::log(sum);
    for (size_t token = 0; token < expected.size(); ++token) {
      const double difference = std::abs(logits[token] - log_sum - expected[token]);
      Keep(difference, comparison);
    }
    ++comparison.rows;
  }

  // A NaN is larger than any number.
  static void Keep(double difference, Comparison& comparison) {
    double& largest = comparison.largest_difference;
    if (!std::isnan(largest) && !(difference <= largest)) largest = difference;
  }

  const CutStream& cut_;
  int64_t vocabulary_size_;
  core::StreamPages pages_;
  int64_t position_ = 0;
};

// One step: everybody's slice at once.
absl::Status RunStep(models::LanguageModel& model, int64_t step, std::vector<RunningStream>& running,
                     Comparison& comparison) {
  std::vector<models::Slice> slices;
  for (RunningStream& stream : running) {
    if (const int64_t length = stream.LengthAt(step); length > 0) slices.push_back(stream.NextSlice(length));
  }
  if (slices.empty()) return absl::OkStatus();
  LS_ASSIGN_OR_RETURN(const models::StepResult result, model.Step(slices));
  comparison.replayed_steps += result.counts.was_replayed;

  absl::Span<const float> logits = result.logits;
  for (RunningStream& stream : running) {
    const int64_t length = stream.LengthAt(step);
    if (length == 0) continue;
    const int64_t values = stream.LogitRows(length) * model.info().vocabulary_size;
    if (values > static_cast<int64_t>(logits.size())) return absl::InternalError("a step returned too few logits");
    stream.Finish(length, logits.first(values), comparison);
    logits.remove_prefix(values);
  }
  return logits.empty() ? absl::OkStatus() : absl::InternalError("a step returned too many logits");
}

}  // namespace

models::CachePages PagesForStreams(const models::LanguageModel& model, absl::Span<const CutStream> streams) {
  models::CachePages pages;
  for (const CutStream& cut : streams) pages = pages + core::StreamPages::Needed(model.info(), cut.stream->length());
  return pages;
}

absl::StatusOr<Comparison> RunStreams(models::LanguageModel& model, absl::Span<const CutStream> streams,
                                      uint64_t seed) {
  core::FreePages free(PagesForStreams(model, streams));
  std::mt19937_64 random(seed);
  for (auto* pages : {&free.window, &free.segment, &free.open_chunk})
    std::shuffle(pages->begin(), pages->end(), random);
  std::vector<RunningStream> running;
  running.reserve(streams.size());
  for (const CutStream& cut : streams) running.emplace_back(cut, model.info(), free);
  int64_t steps = 0;
  for (const RunningStream& stream : running) steps = std::max(steps, stream.steps());
  Comparison comparison;
  for (int64_t step = 0; step < steps; ++step) LS_RETURN_IF_ERROR(RunStep(model, step, running, comparison));
  return comparison;
}

}  // namespace longshort
