// The tokenizer byte_level_bpe alone, on one thread: bytes per second of a text, and of one word without an end.
// longshort-tokenizer-bench TOKENIZER.json TEXT [--help]

#include <cstdint>
#include <iostream>
#include <memory>
#include <string>

#include "base/files.h"
#include "base/status_macros.h"
#include "benchmark/benchmark.h"
#include "models/tokenizer/tokenizers.h"

namespace longshort::models {
namespace {

constexpr size_t kFileLimitBytes = size_t{1} << 30;
constexpr int64_t kRows = 1 << 20;  // more than any vocabulary has

void Encode(benchmark::State& state, const TextEncoder& tokenizer, const std::string& text) {
  int64_t tokens = 0;
  for (auto _ : state) {
    const auto beginning = tokenizer.EncodeBeginning(text, 4096);
    if (!beginning.ok()) return state.SkipWithError(beginning.status().ToString().c_str());
    tokens = beginning->tokens;
  }
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(text.size()));
  state.counters["bytes_per_token"] = static_cast<double>(text.size()) / static_cast<double>(tokens);
}

absl::Status Run(const std::string& tokenizer_path, const std::string& text_path) {
  LS_ASSIGN_OR_RETURN(const std::string file, ReadTextFile(tokenizer_path, kFileLimitBytes));
  LS_ASSIGN_OR_RETURN(const std::string text, ReadTextFile(text_path, kFileLimitBytes));
  LS_ASSIGN_OR_RETURN(const std::unique_ptr<TextEncoder> tokenizer, LoadByteLevelBpe(file, tokenizer_path, kRows));
  std::string word;
  while (word.size() < (1 << 20)) word += "thequickbrownfox";
  benchmark::RegisterBenchmark("Load", [&](benchmark::State& state) {
    for (auto _ : state) benchmark::DoNotOptimize(LoadByteLevelBpe(file, tokenizer_path, kRows));
  })->Unit(benchmark::kMillisecond);
  benchmark::RegisterBenchmark("Text", [&](benchmark::State& state) {
    Encode(state, *tokenizer, text);
  })->Unit(benchmark::kMillisecond);
  for (const size_t bytes : {size_t{1} << 10, size_t{1} << 15, size_t{1} << 20}) {
    benchmark::RegisterBenchmark(("OneWord/" + std::to_string(bytes)).c_str(), [&, bytes](benchmark::State& state) {
      Encode(state, *tokenizer, word.substr(0, bytes));
    })->Unit(benchmark::kMillisecond);
  }
  benchmark::RunSpecifiedBenchmarks();
  return absl::OkStatus();
}

}  // namespace
}  // namespace longshort::models

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (argc != 3) {
    std::cerr << "usage: longshort-tokenizer-bench TOKENIZER.json TEXT" << std::endl;
    return 2;
  }
  const absl::Status status = longshort::models::Run(argv[1], argv[2]);
  if (!status.ok()) std::cerr << "longshort-tokenizer-bench: " << status.message() << std::endl;
  return status.ok() ? 0 : 1;
}
