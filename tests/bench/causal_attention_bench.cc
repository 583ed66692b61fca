// The kernel of causal attention alone: multiply-adds per second for each instruction set of this machine, one query at
// a time (decoding) and in tiles (prompts). longshort-causal-attention-bench [--help]

#include <cstdint>
#include <numeric>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "benchmark/benchmark.h"
#include "models/ops/causal_attention/causal_attention_kernels.h"
#include "tests/models/ops/instruction_set_name.h"

namespace longshort::models::cpu {
namespace {

// The zoo's language model, behind a full memory: one layer of it.
constexpr int64_t kHeads = 6, kHeadWidth = 32, kWindow = 128, kChunk = 16, kMemory = 1024, kSegment = 256;

// A stream's pages of one layer. All numbers are zero, which takes as long as any other.
template <typename Element>
class Stream {
 public:
  explicit Stream(int64_t queries)
      : ids_((kWindow + kMemory) / kPageRows + 4),
        pages_(static_cast<int64_t>(ids_.size()) * PageElements()),
        window_table_(TableElements(kWindow)),
        chunk_table_(TableElements((kMemory + kSegment) / kChunk)),
        floats_(queries * kHeads * kHeadWidth),
        output_(floats_.size()),
        scratch_(AttentionScratchFloats(kHeadWidth, kHeads)) {
    std::iota(ids_.begin(), ids_.end(), 0);
    const int64_t position = kMemory + kSegment - queries, vectors = kMemory / kChunk;
    run_ = {.head_width = kHeadWidth,
            .window_length = kWindow,
            .chunk_size = kChunk,
            .chunk_rank = 1,
            .heads = kHeads,
            .queries = floats_.data(),
            .output = output_.data(),
            .stride = kHeads * kHeadWidth,
            .count = queries,
            .position = position,
            .window_bias = floats_.data(),
            .relative_bias = floats_.data(),
            .first_vector = 0,
            .segment_vector = vectors,
            .memory = Pages(0),
            .segment = Pages(vectors / kPageRows),
            .window = Pages((position - kWindow) / kPageRows),
            .chunk_distances = {chunk_table_.data(), (kMemory + kSegment) / kChunk},
            .window_distances = {window_table_.data(), kWindow},
            .scratch = scratch_.data()};
  }

  void Attend(InstructionSet set) const { models::cpu::Attend(run_, set); }
  // Of content, distance and value, for each key that a query sees: as the formula has them, however few are done.
  int64_t MultiplyAdds() const {
    int64_t keys = 0;
    for (int64_t i = 0; i < run_.count; ++i) keys += kWindow + (run_.position + i) / kChunk;
    return kHeads * keys * kHeadWidth * 3;
  }

 private:
  static constexpr int64_t kHeadElements = 2 * kHeadWidth * kPageRows;
  static int64_t PageElements() { return kHeads * kHeadElements; }
  static int64_t TableElements(int64_t count) { return kHeads * kHeadWidth * (count + 2 * kBlock); }

  KeyPages<Element> Pages(int64_t first) const {
    return {.first = first,
            .count = static_cast<int64_t>(ids_.size()),
            .ids = ids_.data(),
            .pages = pages_.data(),
            .zero_page = pages_.data(),
            .page_elements = PageElements(),
            .key_offset = 0,
            .value_offset = kHeadWidth * kPageRows,
            .head_elements = kHeadElements};
  }

  std::vector<int64_t> ids_;
  std::vector<Element> pages_, window_table_, chunk_table_;
  std::vector<float> floats_, output_, scratch_;
  AttentionRun<Element> run_;
};

template <typename Element>
void Attend(benchmark::State& state, InstructionSet set) {
  Stream<Element> stream(state.range(0));
  for (auto _ : state) {
    stream.Attend(set);
    benchmark::ClobberMemory();
  }
  state.counters["multiply_adds"] =
      benchmark::Counter(static_cast<double>(stream.MultiplyAdds()), benchmark::Counter::kIsIterationInvariantRate);
}

template <typename Element>
void Register(InstructionSet set) {
  const char* const element = std::is_same_v<Element, float> ? "float32" : "bfloat16";
  benchmark::RegisterBenchmark(absl::StrCat(InstructionSetName(set), "/", element, "/queries").c_str(), Attend<Element>,
                               set)
      ->Arg(1)
      ->Arg(64);
}

}  // namespace
}  // namespace longshort::models::cpu

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  using longshort::models::cpu::InstructionSet;
  for (const InstructionSet set : {InstructionSet::kBaseline, InstructionSet::kAvx2, InstructionSet::kAvx512}) {
    if (set > longshort::models::cpu::BestInstructionSet()) break;
    longshort::models::cpu::Register<float>(set);
    longshort::models::cpu::Register<longshort::models::cpu::BFloat16>(set);
  }
  benchmark::RunSpecifiedBenchmarks();
}
