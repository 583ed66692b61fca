// The time of one stream with a full memory, for a token and for a piece of a prompt, and the size of its cache:
// longshort-language-model-bench MODEL_DIRECTORY... (Google Benchmark's own flags work too; --benchmark_format=json).

#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "benchmark/benchmark.h"
#include "core/cache/cache_grid.h"
#include "core/cache/paged_cache.h"
#include "models/families/language_model/transformer_ls.h"
#include "tests/core/fakes/stream_pages.h"

namespace longshort {
namespace {

constexpr int kPieceTokens = 256;

// One stream, fed with made-up tokens.
class Stream {
 public:
  Stream(models::LanguageModel& model, core::PagedCache& cache)
      : model_(model), sequence_(*cache.Begin({}, 0, core::kAnyNumberOfTokens)), tokens_(kPieceTokens) {
    for (int64_t i = 0; i < kPieceTokens; ++i) {
      tokens_[i] = static_cast<int32_t>(i * 7919 % model.info().vocabulary_size);
    }
  }

  absl::Status Read(int64_t count) {
    models::Slice slice;
    slice.tokens = absl::MakeConstSpan(tokens_).subspan(0, count);
    slice.logit_rows = 1;
    LS_RETURN_IF_ERROR(sequence_->FillIn(slice));
    LS_RETURN_IF_ERROR(model_.Step({slice}).status());
    sequence_->OnRead(slice.tokens);
    return absl::OkStatus();
  }
  int64_t position() const { return sequence_->position(); }

 private:
  models::LanguageModel& model_;
  const std::unique_ptr<core::CachedSequence> sequence_;
  std::vector<int32_t> tokens_;
};

// What the server reserves for a stream of any length.
int64_t StreamBytes(const models::LanguageModel& model) {
  return core::Bytes(core::PagesForStreams(model.info(), 1), model.info().page_bytes);
}

void ShowProgress(const std::string& text) {
  if (isatty(STDERR_FILENO) == 1) std::fputs(text.c_str(), stderr);
}

// state.range(0) tokens a step.
void Read(benchmark::State& state, const std::string& directory, const std::string& precision) {
  auto loaded = models::LoadLanguageModel(directory, {.precision = precision, .threads = 0});
  if (!loaded.ok()) return state.SkipWithError(loaded.status().ToString().c_str());
  const std::unique_ptr<models::LanguageModel> replica = loaded->NewReplica({}).value();
  models::LanguageModel& model = *replica;
  // A piece may be longer than the block that a stream's reservation is for.
  const models::CachePages more = core::StreamPages::Needed(model.info(), 2 * kPieceTokens);
  const auto cache = core::PagedCache::Create(model, core::PagesForStreams(model.info(), 1) + more);
  if (!cache.ok()) return state.SkipWithError(cache.status().ToString().c_str());

  Stream stream(model, **cache);
  const models::LanguageModelInfo& info = model.info();
  const int64_t full = info.memory_length + info.segment_length;
  while (stream.position() < full) {
    if (!stream.Read(kPieceTokens).ok()) return state.SkipWithError("a step failed");
    ShowProgress(absl::StrFormat("\rreading %d of %d tokens ", stream.position(), full));
  }
  ShowProgress("\r\033[K");
  for (auto _ : state) {
    if (!stream.Read(state.range(0)).ok()) return state.SkipWithError("a step failed");
  }
  state.counters["step_tokens"] = static_cast<double>(state.range(0));
  state.counters["memory_tokens"] = static_cast<double>(info.memory_length);
  state.counters["stream_bytes"] = static_cast<double>(StreamBytes(model));
  state.counters["parameters"] = static_cast<double>(info.parameters);
}

}  // namespace
}  // namespace longshort

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  for (int i = 1; i < argc; ++i) {
    const std::string directory = argv[i];
    for (const char* const precision : {"fp32", "bf16", "int8"}) {
      const std::string name = absl::StrCat(directory, "/", precision);
      const auto read = [=](benchmark::State& state) { longshort::Read(state, directory, precision); };
      for (const auto& [tokens, steps] : {std::pair(1, 256), std::pair(longshort::kPieceTokens, 16)}) {
        benchmark::RegisterBenchmark(name.c_str(), read)
            ->Arg(tokens)
            ->UseRealTime()
            ->Unit(benchmark::kMillisecond)
            ->Iterations(steps);
      }
    }
  }
  benchmark::RunSpecifiedBenchmarks();
}
