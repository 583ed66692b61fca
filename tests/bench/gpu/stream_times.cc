#include "tests/bench/gpu/stream_times.h"

#include <algorithm>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/status_macros.h"
#include "core/cache/cache_pages.h"
#include "models/families/costs.h"
#include "models/families/describe.h"
#include "models/families/language_model/transformer_ls.h"
#include "tests/bench/gpu/device_tools.h"
#include "tests/rings/ring_pages.h"

namespace longshort {
namespace {

// Of a step that reads the tokens before: so long that a GPU is busy, and short enough for every stream's pages.
constexpr int64_t kReadTokens = 64;

struct BenchStream {
  RingPages pages;
  int64_t max_in_slice = 0;
  int64_t position = 0;
  std::vector<int32_t> tokens = {};  // the next ones

  // A slice of the next `count` tokens, which stays valid until the next call.
  models::Slice Next(const models::LanguageModelInfo& info, int64_t count, std::mt19937_64& random) {
    tokens.resize(count);
    for (int32_t& token : tokens) token = static_cast<int32_t>(random() % info.vocabulary_size);
    models::Slice slice = At(info, position);
    slice.tokens = tokens;
    slice.logit_rows = 1;
    pages.FillIn(slice);
    position += count;
    return slice;
  }
  // What a query at `from` sees.
  models::Slice Seen(const models::LanguageModelInfo& info, int64_t from) {
    tokens.assign(1, 0);
    models::Slice slice = At(info, from);
    slice.tokens = tokens;
    pages.FillIn(slice);
    return slice;
  }

 private:
  static models::Slice At(const models::LanguageModelInfo& info, int64_t position) {
    models::Slice slice;
    slice.position = position;
    slice.segment_start = position / info.segment_length * info.segment_length;
    return slice;
  }
};

class Bench {
 public:
  Bench(models::LanguageModel& model, const StreamWork& work) : model_(model), work_(work) {}

  absl::Status Prepare() {
    const int64_t max = std::max(work_.step_tokens, kReadTokens);
    models::CachePages needed = PagesForRings(model_.info(), max) * work_.streams;
    if (work_.prompt_tokens > 0) needed = Sum(needed, PagesForRings(model_.info(), work_.prompt_tokens));
    LS_RETURN_IF_ERROR(model_.AllocateCache(needed));
    pools_ = std::make_unique<RingPools>(needed);
    for (int64_t i = 0; i < work_.streams; ++i) LS_RETURN_IF_ERROR(Add(streams_, max));
    if (work_.prompt_tokens > 0) LS_RETURN_IF_ERROR(Add(prompts_, work_.prompt_tokens));
    return absl::OkStatus();
  }

  absl::Status ReadBefore() {
    const models::LanguageModelInfo& info = model_.info();
    const int64_t tokens = work_.read_before < 0 ? info.memory_length + info.segment_length : work_.read_before;
    const auto read = [&](BenchStream& stream) -> absl::Status {
      while (stream.position < tokens) {
        const int64_t count = std::min(stream.max_in_slice, tokens - stream.position);
        LS_RETURN_IF_ERROR(model_.Step({stream.Next(info, count, random_)}).status());
      }
      return absl::OkStatus();
    };
    LS_RETURN_IF_ERROR(read(streams_.front()));
    for (size_t i = 1; i < streams_.size(); ++i) LS_RETURN_IF_ERROR(Copy(streams_.front(), streams_[i]));
    for (BenchStream& prompt : prompts_) LS_RETURN_IF_ERROR(read(prompt));
    return absl::OkStatus();
  }

  // Of one step.
  absl::StatusOr<absl::Duration> Step() {
    std::vector<models::Slice> slices;
    for (BenchStream& stream : streams_) slices.push_back(stream.Next(model_.info(), work_.step_tokens, random_));
    for (BenchStream& prompt : prompts_) slices.push_back(prompt.Next(model_.info(), work_.prompt_tokens, random_));
    const absl::Time begin = absl::Now();
    LS_RETURN_IF_ERROR(model_.Step(slices).status());
    return absl::Now() - begin;
  }

 private:
  static models::CachePages Sum(const models::CachePages& a, const models::CachePages& b) {
    return {a.window + b.window, a.segment + b.segment, a.open_chunk + b.open_chunk};
  }
  absl::Status Add(std::vector<BenchStream>& streams, int64_t max) {
    LS_ASSIGN_OR_RETURN(RingPages pages, RingPages::Acquire(*pools_, model_.info(), max));
    streams.push_back({.pages = std::move(pages), .max_in_slice = max});
    return absl::OkStatus();
  }

  // Makes `to` a stream that has read what `from` has.
  absl::Status Copy(BenchStream& from, BenchStream& to) {
    const models::Slice source = from.Seen(model_.info(), from.position),
                        target = to.Seen(model_.info(), from.position);
    const auto copy = [&](models::PageKind kind, const models::PageRange& pages,
                          const models::PageRange& copies) -> absl::Status {
      for (size_t i = 0; i < pages.ids.size(); ++i) {
        if (pages.ids[i] != models::kZeroPage) LS_RETURN_IF_ERROR(model_.CopyPage(kind, pages.ids[i], copies.ids[i]));
      }
      return absl::OkStatus();
    };
    LS_RETURN_IF_ERROR(copy(models::PageKind::kWindow, source.window_pages, target.window_pages));
    LS_RETURN_IF_ERROR(copy(models::PageKind::kSegment, source.memory_pages, target.memory_pages));
    LS_RETURN_IF_ERROR(copy(models::PageKind::kSegment, source.segment_pages, target.segment_pages));
    LS_RETURN_IF_ERROR(model_.CopyPage(models::PageKind::kOpenChunk, source.open_chunk, target.open_chunk));
    to.position = from.position;
    return absl::OkStatus();
  }

  models::LanguageModel& model_;
  const StreamWork& work_;
  std::unique_ptr<RingPools> pools_;  // the streams' pages go first
  std::vector<BenchStream> streams_, prompts_;
  std::mt19937_64 random_{1};
};

// What a step must compute and read.
nlohmann::json Costs(const StreamWork& work, const models::ModelDescription& description) {
  const double cached = work.precision == "fp32" ? 4.0 : 2.0;
  const auto streams = static_cast<double>(work.streams + (work.prompt_tokens > 0 ? 1 : 0));
  const auto tokens = static_cast<double>(work.streams * work.step_tokens + work.prompt_tokens);
  double flops = 0;
  for (const models::StageCost& stage : description.stages) {
    flops += 2 * stage.multiply_adds * (stage.name == "output" ? streams : tokens);
  }
  return {{"step_tokens", tokens},
          {"step_flops", flops},
          {"step_bytes", static_cast<double>(models::WeightBytes(description.parameters(), work.precision)) +
                             cached * streams * static_cast<double>(description.cached_numbers)}};
}

}  // namespace

absl::StatusOr<nlohmann::json> MeasureStreams(const StreamWork& work, const GoldenDevice& device) {
  LS_ASSIGN_OR_RETURN(const models::ModelDirectory directory, models::OpenModelDirectory(work.model));
  LS_ASSIGN_OR_RETURN(const models::ModelDescription description,
                      models::DescribeConfig(directory.config_text, directory.config_path()));
  const int64_t used_before = UsedMemory(device);
  LS_ASSIGN_OR_RETURN(const models::LanguageModelWeights weights,
                      models::LoadLanguageModel(
                          directory, {.precision = work.precision, .devices = device.devices, .gpus = device.gpus}));
  const models::WorkerDevice worker = device.devices.empty() ? models::WorkerDevice{} : device.devices.front();
  LS_ASSIGN_OR_RETURN(const std::unique_ptr<models::LanguageModel> model, weights.NewReplica(worker));
  const ResidentPeak resident;
  Bench bench(*model, work);
  LS_RETURN_IF_ERROR(bench.Prepare());
  const absl::Time begin = absl::Now();
  LS_RETURN_IF_ERROR(bench.ReadBefore());
  nlohmann::json found = Costs(work, description);
  found["read_seconds"] = absl::ToDoubleSeconds(absl::Now() - begin);
  for (int64_t step = 0; step < work.warm_up_steps; ++step) LS_RETURN_IF_ERROR(bench.Step().status());
  StartProfiling(device);
  std::vector<double> seconds;
  for (int64_t step = 0; step < work.steps; ++step) {
    LS_ASSIGN_OR_RETURN(const absl::Duration took, bench.Step());
    seconds.push_back(absl::ToDoubleSeconds(took));
  }
  found["step_seconds"] = seconds;
  found["stream_bytes"] = core::Bytes(core::PagesForStreams(model->info(), 1), model->info().page_bytes);
  found["resident_peak"] = resident.Bytes();
  found["used_memory"] = UsedMemory(device) - used_before;
  return found;
}

}  // namespace longshort
