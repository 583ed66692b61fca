// The host's work for a batch of documents on a GPU before the GPU starts: longshort-packing-bench.
// Long Range Arena's text: windows of 8 positions.

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "benchmark/benchmark.h"
#include "models/ops/document_attention/packed_documents.h"
#include "models/ops/item_attention/batches_on_device.h"

namespace longshort::models {
namespace {

// state.range(0) documents of state.range(1) tokens. If state.range(2), every tenth token is masked.
void PackDocumentsForGpu(benchmark::State& state) {
  std::vector<int32_t> document(state.range(1), 7);
  for (size_t i = 5; state.range(2) != 0 && i < document.size(); i += 10) document[i] = 0;
  const std::vector<std::vector<int32_t>> documents(state.range(0), document);
  const std::vector<absl::Span<const int32_t>> spans(documents.begin(), documents.end());
  std::vector<char> memory;
  size_t bytes = 0;
  for ([[maybe_unused]] const auto iteration : state) {
    const PackedIds packed = PackIds(spans, {.size = 8, .see_nothing = true});
    const DocumentArrays arrays(packed);
    bytes = arrays.UploadBytes(arrays.shape());
    memory.resize(bytes);
    arrays.Write(arrays.shape(), memory.data());
    benchmark::DoNotOptimize(memory.data());
    benchmark::ClobberMemory();
  }
  state.counters["upload_bytes"] = static_cast<double>(bytes);
}
BENCHMARK(PackDocumentsForGpu)
    ->Args({32, 4000, 0})
    ->Args({32, 4000, 1})
    ->Args({1, 4000, 0})
    ->Unit(benchmark::kMicrosecond);

// The multiply-adds that are counted while the GPU runs.
void CountPairs(benchmark::State& state) {
  const std::vector<int32_t> document(4000, 7);
  const PackedIds packed =
      PackIds(std::vector<absl::Span<const int32_t>>(32, document), {.size = 8, .see_nothing = true});
  for ([[maybe_unused]] const auto iteration : state) benchmark::DoNotOptimize(CountsOf(packed, /*taps=*/0));
}
BENCHMARK(CountPairs)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace longshort::models

BENCHMARK_MAIN();
