// The cost of continuing after a cached prefix, and of reading the prefix:
// longshort-prefix-reuse-bench MODEL_DIRECTORY... (Google Benchmark's own flags work too; --benchmark_format=json).

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "benchmark/benchmark.h"
#include "core/cache/cache_grid.h"
#include "core/cache/paged_cache.h"
#include "models/families/language_model/transformer_ls.h"

namespace longshort {
namespace {

constexpr int64_t kPrefixTokens = 4096;
constexpr int64_t kTokensPerStep = 512;

// Reads what the sequence has not read of `tokens`, and asks for the last one's logits.
absl::Status Read(models::LanguageModel& model, core::CachedSequence& sequence, absl::Span<const int32_t> tokens) {
  const auto end = static_cast<int64_t>(tokens.size());
  while (sequence.position() < end) {
    models::Slice slice;
    const int64_t count = sequence.MaxTokens(std::min(end - sequence.position(), kTokensPerStep));
    slice.tokens = tokens.subspan(sequence.position(), count);
    slice.logit_rows = sequence.position() + count == end ? 1 : 0;
    if (absl::Status filled = sequence.FillIn(slice); !filled.ok()) return filled;
    if (absl::Status stepped = model.Step({slice}).status(); !stepped.ok()) return stepped;
    sequence.OnRead(slice.tokens);
  }
  return absl::OkStatus();
}

// Time to the first logits of a prompt of a prefix and one token; the prefix was read before, and is found if `reuse`.
void FirstToken(benchmark::State& state, const std::string& directory, const std::string& precision, bool reuse) {
  const auto weights = models::LoadLanguageModel(directory, {.precision = precision, .threads = 0});
  if (!weights.ok()) return state.SkipWithError(weights.status().ToString().c_str());
  const auto model = weights->NewReplica({});
  if (!model.ok()) return state.SkipWithError(model.status().ToString().c_str());
  auto cache = core::PagedCache::Create(**model, core::PagesForStreams((*model)->info(), 2));
  if (!cache.ok()) return state.SkipWithError(cache.status().ToString().c_str());
  std::vector<int32_t> prompt(kPrefixTokens + 1);
  for (int64_t i = 0; i <= kPrefixTokens; ++i) {
    prompt[i] = static_cast<int32_t>(i * 7919 % (*model)->info().vocabulary_size);
  }
  const auto run = [&](int64_t max_reused) {
    auto sequence = (*cache)->Begin(prompt, max_reused, kPrefixTokens + 1);
    return sequence.ok() ? Read(**model, **sequence, prompt) : sequence.status();
  };
  if (absl::Status read = run(0); !read.ok()) return state.SkipWithError(read.ToString().c_str());
  for (auto _ : state) {
    if (absl::Status read = run(reuse ? kPrefixTokens : 0); !read.ok()) {
      return state.SkipWithError(read.ToString().c_str());
    }
  }
  const core::CacheCounters counters = (*cache)->state().counters;
  state.counters["reused_tokens"] =
      static_cast<double>(counters.reused_tokens) / static_cast<double>(state.iterations());
}

}  // namespace
}  // namespace longshort

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  for (int i = 1; i < argc; ++i) {
    const std::string directory = argv[i];
    for (const char* const precision : {"fp32", "bf16"}) {
      for (const bool reuse : {false, true}) {
        benchmark::RegisterBenchmark(
            absl::StrCat(directory, "/", precision, reuse ? "/reuse" : "/read").c_str(),
            [=](benchmark::State& state) { longshort::FirstToken(state, directory, precision, reuse); })
            ->UseRealTime()
            ->Unit(benchmark::kMillisecond);
      }
    }
  }
  benchmark::RunSpecifiedBenchmarks();
}
