// Measures the sampler's time for one row of logits, beside that of its plain reference, which sorts the row.
//   chrt -r 1 build/release/bin/longshort-sampler-bench
#include <cstdint>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "benchmark/benchmark.h"
#include "core/sampling/sampler.h"
#include "tests/core/sampling/plain_sampler.h"

namespace longshort::core {
namespace {

// Logits whose distribution is flat (a spread of 1 keeps about 20,000 of 32,000 tokens at top-p 0.9) or peaked.
std::vector<float> Row(int64_t size, double spread) {
  std::mt19937 random(1);
  std::normal_distribution<double> logit(0, spread);
  std::vector<float> row(size);
  for (float& x : row) x = static_cast<float>(logit(random));
  return row;
}

SampleableTokens AllOf(int64_t size) {
  std::vector<int32_t> tokens(size);
  std::iota(tokens.begin(), tokens.end(), 0);
  return std::make_shared<const std::vector<int32_t>>(std::move(tokens));
}

template <typename Tested>
Tested Make(const SamplingOptions& options, int64_t size) {
  if constexpr (std::is_same_v<Tested, Sampler>) {
    return Sampler(options, AllOf(size), {});
  } else {
    return PlainSampler(options, AllOf(size), size, {});
  }
}

template <typename Tested>
void Measure(benchmark::State& state, const SamplingOptions& options) {
  const int64_t size = state.range(0);
  const std::vector<float> row = Row(size, static_cast<double>(state.range(1)));
  Tested sampler = Make<Tested>(options, size);
  int64_t position = 0;
  for (auto _ : state) benchmark::DoNotOptimize(sampler.Sample(row, position++));
}

struct Case {
  const char* name;
  double temperature = 0.8;
  int64_t top_k = 0;
  double top_p = 1;
  double repetition_penalty = 1;
};
constexpr Case kCases[] = {{.name = "greedy", .temperature = 0},
                           {.name = "temperature"},
                           {.name = "top-k 50", .top_k = 50},
                           {.name = "top-k 2000", .top_k = 2000},
                           {.name = "top-p 0.9", .top_p = 0.9},
                           {.name = "top-k 50, top-p 0.9", .top_k = 50, .top_p = 0.9},
                           {.name = "repetition penalty", .repetition_penalty = 1.2}};

void Register(const Case& measured) {
  SamplingOptions options;
  options.temperature = measured.temperature;
  options.top_k = measured.top_k;
  options.top_p = measured.top_p;
  options.repetition_penalty = measured.repetition_penalty;
  const std::string name = measured.name;
  for (auto* benchmark : {benchmark::RegisterBenchmark((name + ", plain").c_str(), Measure<PlainSampler>, options),
                          benchmark::RegisterBenchmark(name.c_str(), Measure<Sampler>, options)}) {
    benchmark->ArgNames({"V", "spread"})->Args({208, 3})->Args({32000, 1})->Args({32000, 4});
    benchmark->Unit(benchmark::kMicrosecond);
  }
}

}  // namespace
}  // namespace longshort::core

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  for (const longshort::core::Case& measured : longshort::core::kCases) longshort::core::Register(measured);
  benchmark::RunSpecifiedBenchmarks();
}
