#include "tests/bench/gpu/stream_times.h"

#include <algorithm>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/status_macros.h"
#include "core/cache/cache_grid.h"
#include "core/cache/paged_cache.h"
#include "models/families/family.h"
#include "models/families/language_model/transformer_ls.h"
#include "tests/bench/gpu/device_tools.h"

namespace longshort {
namespace {

// Of a step that reads the tokens before: so long that a GPU is busy, and short enough for every stream's pages.
constexpr int64_t kReadTokens = 64;

struct BenchStream {
  std::unique_ptr<core::CachedSequence> sequence;
  int64_t step_tokens = 0;
  std::vector<int32_t> tokens = {};  // of the last slice

  // A slice of the next `count` tokens, which stays valid until the next call.
  absl::StatusOr<models::Slice> Next(const models::LanguageModelInfo& info, int64_t count, std::mt19937_64& random) {
    tokens.resize(count);
    for (int32_t& token : tokens) token = static_cast<int32_t>(random() % info.vocabulary_size);
    models::Slice slice;
    slice.tokens = tokens;
    slice.logit_rows = 1;
    LS_RETURN_IF_ERROR(sequence->FillIn(slice));
    return slice;
  }
};

class Bench {
 public:
  Bench(models::LanguageModel& model, const StreamWork& work) : model_(model), work_(work) {}

  absl::Status Prepare() {
    const int64_t prompts = work_.prompt_tokens > 0 ? 1 : 0;
    const models::CachePages capacity = core::PagesForStreams(model_.info(), work_.streams + prompts) +
                                        PagesOfSlice(std::max(work_.step_tokens, kReadTokens)) * work_.streams +
                                        PagesOfSlice(work_.prompt_tokens) * prompts;
    LS_ASSIGN_OR_RETURN(cache_, core::PagedCache::Create(model_, capacity));
    for (std::vector<BenchStream>* streams : {&streams_, &prompts_}) {
      const bool are_prompts = streams == &prompts_;
      streams->resize(are_prompts ? prompts : work_.streams);
      for (BenchStream& stream : *streams) {
        stream.step_tokens = are_prompts ? work_.prompt_tokens : work_.step_tokens;
        LS_ASSIGN_OR_RETURN(stream.sequence, cache_->Begin({}, 0, core::kAnyNumberOfTokens));
      }
    }
    return absl::OkStatus();
  }

  absl::Status ReadBefore() {
    const models::LanguageModelInfo& info = model_.info();
    const int64_t tokens = work_.read_before < 0 ? info.memory_length + info.segment_length : work_.read_before;
    const auto read = [&](BenchStream& stream) -> absl::Status {
      while (stream.sequence->position() < tokens) {
        const int64_t count = std::min(std::max(stream.step_tokens, kReadTokens), tokens - stream.sequence->position());
        LS_ASSIGN_OR_RETURN(const models::Slice slice, stream.Next(info, count, random_));
        LS_RETURN_IF_ERROR(model_.Step({slice}).status());
        stream.sequence->OnRead(stream.tokens);
      }
      return absl::OkStatus();
    };
    LS_RETURN_IF_ERROR(read(streams_.front()));
    LS_RETURN_IF_ERROR(CopyFirstStream());
    for (BenchStream& prompt : prompts_) LS_RETURN_IF_ERROR(read(prompt));
    return absl::OkStatus();
  }

  // Of one step.
  absl::StatusOr<absl::Duration> Step() {
    std::vector<models::Slice> slices;
    for (std::vector<BenchStream>* streams : {&streams_, &prompts_}) {
      for (BenchStream& stream : *streams) {
        LS_ASSIGN_OR_RETURN(slices.emplace_back(), stream.Next(model_.info(), stream.step_tokens, random_));
      }
    }
    const absl::Time begin = absl::Now();
    LS_RETURN_IF_ERROR(model_.Step(slices).status());
    const absl::Duration took = absl::Now() - begin;
    for (std::vector<BenchStream>* streams : {&streams_, &prompts_}) {
      for (BenchStream& stream : *streams) stream.sequence->OnRead(stream.tokens);
    }
    return took;
  }

 private:
  // What a slice of so many tokens needs at most beyond its stream's reservation.
  models::CachePages PagesOfSlice(int64_t tokens) const {
    const models::LanguageModelInfo& info = model_.info();
    const int64_t vectors = tokens / info.chunk_size * info.chunk_rank;
    return {.window = tokens / info.rows_per_page + 1, .segment = 2 * (vectors / info.rows_per_page + 1)};
  }

  // The other streams have read what the first one has, and have pages of their own.
  absl::Status CopyFirstStream() {
    const int64_t position = streams_.front().sequence->position();
    if (position == 0) return absl::OkStatus();
    const std::vector<int32_t> tokens(position + 1, 0);  // of which a session has not read the last
    const core::ParkedId first = cache_->Park(std::move(streams_.front().sequence));
    LS_ASSIGN_OR_RETURN(const core::ParkedPages pages, cache_->Export(first));
    for (BenchStream& stream : streams_) {
      core::ParkedId id = first;
      if (&stream != &streams_.front()) {
        stream.sequence = nullptr;  // its reservation is for the copy
        LS_ASSIGN_OR_RETURN(id, cache_->Import(pages, tokens));
      }
      LS_ASSIGN_OR_RETURN(stream.sequence, cache_->Resume(id, core::kAnyNumberOfTokens));
    }
    return absl::OkStatus();
  }

  models::LanguageModel& model_;
  const StreamWork& work_;
  std::unique_ptr<core::PagedCache> cache_;  // outlives the streams
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
