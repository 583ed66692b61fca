#include <algorithm>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "ATen/Functions.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "core/cache/cache_grid.h"
#include "core/cache/paged_cache.h"
#include "models/device/model_gpu.h"
#include "models/families/language_model/backend.h"
#include "models/families/language_model/decoder.h"
#include "models/families/language_model/gpu_step.h"
#include "models/families/language_model/language_model_config.h"
#include "models/families/language_model/transformer_ls.h"
#include "tests/models/gpu/counts/counts.h"
#include "tests/models/gpu/counts/recorder.h"
#include "tests/models/gpu/counts/step_bytes.h"

namespace longshort::models {
namespace {

constexpr WorkerDevice kWorker = {.kind = DeviceKind::kEmulated};
constexpr int64_t kManyStreams = 256, kReadTokens = 512, kPromptTokens = 4096;

void Check(const absl::Status& status) {
  if (!status.ok()) throw std::runtime_error(status.ToString());
}

// The language model as a worker on a GPU serves it, without weights: 44M parameters, M = 8,192, bfloat16.
class CountedModel {
 public:
  explicit CountedModel(Recorder& recorder) : recorder_(recorder) {
    std::map<std::string, at::Tensor> tensors;
    for (const TensorShape& tensor : LanguageModelTensors(config_)) {
      tensors[tensor.name] = at::empty(tensor.shape, at::TensorOptions(at::kMeta).dtype(at::kFloat));
    }
    Decoder decoder =
        MakeDecoder(config_, at::kBFloat16, [&tensors](const std::string& name) { return tensors.at(name); });
    const auto open = [this]() -> absl::StatusOr<std::unique_ptr<GpuDevice>> {
      std::unique_ptr<RecordingDevice> device = MakeRecordingDevice(recorder_);
      device_ = device.get();
      return device;
    };
    const ModelGpu gpu = {.tensors = at::kMeta, .open = open, .loss = std::make_shared<GpuLoss>()};
    PreparedDevice prepared = PrepareForGpu(std::move(decoder), gpu, [] {}).value();
    model_ = PlaceOf({config_, {}}, kWorker, std::move(prepared)).new_replica(kWorker).value();
    const int64_t more = kReadTokens / model_->info().rows_per_page + 1;
    const CachePages pages = core::PagesForStreams(model_->info(), kManyStreams) +
                             CachePages{.window = more, .segment = 2 * more} * kManyStreams;
    cache_ = core::PagedCache::Create(*model_, pages).value();
  }

  // The nodes of each graph, in the order of its shape.
  std::vector<Nodes> Graphs() const { return {device_->graphs().rbegin(), device_->graphs().rend()}; }

  // The nodes of a step of streams that have read `before` tokens each.
  Nodes Step(int64_t streams, int64_t before, int64_t tokens) {
    std::vector<std::unique_ptr<core::CachedSequence>> sequences;
    for (int64_t stream = 0; stream < streams; ++stream) {
      sequences.push_back(cache_->Begin({}, 0, core::kAnyNumberOfTokens).value());
      for (int64_t read = 0; read < before; read += kReadTokens) {
        Check(Read({&sequences.back(), 1}, std::min(kReadTokens, before - read), /*logits=*/0));
      }
    }
    recorder_.Take();
    const absl::Status status = Read(absl::MakeSpan(sequences), tokens, /*logits=*/1);
    // A step without a graph ends with LibTorch's copy of the logits, which a tensor without data refuses.
    if (streams * tokens <= GraphLimits().rows) Check(status);
    return recorder_.Take();
  }

 private:
  absl::Status Read(absl::Span<std::unique_ptr<core::CachedSequence>> sequences, int64_t tokens, int64_t logits) {
    const std::vector<int32_t> ids(tokens, 1);
    std::vector<Slice> slices;
    for (const std::unique_ptr<core::CachedSequence>& sequence : sequences) {
      Slice& slice = slices.emplace_back();
      slice.tokens = ids;
      slice.logit_rows = logits;
      LS_RETURN_IF_ERROR(sequence->FillIn(slice));
    }
    LS_RETURN_IF_ERROR(model_->Step(slices).status());
    for (const std::unique_ptr<core::CachedSequence>& sequence : sequences) sequence->OnRead(ids);
    return absl::OkStatus();
  }

  Recorder& recorder_;
  const LanguageModelConfig config_;
  RecordingDevice* device_ = nullptr;  // the model's
  std::unique_ptr<LanguageModel> model_;
  std::unique_ptr<core::PagedCache> cache_;
};

// A line for all shapes of a kind that have the same nodes.
std::vector<std::string> LinesOfGraphs(const std::vector<StepShape>& shapes, const std::vector<Nodes>& graphs) {
  std::map<std::pair<std::string, std::string>, std::vector<int64_t>> rows;
  for (size_t i = 0; i < shapes.size(); ++i) {
    const StepShape& shape = shapes[i];
    const std::string kind = shape.tiles > 0         ? shape.single_rows > 0 ? "tiles and single rows" : "tiles"
                             : shape.full_chunks > 0 ? "ends of chunks"
                                                     : "single rows";
    rows[{kind, TextOfNodes(graphs.at(i))}].push_back(shape.rows);
  }
  std::vector<std::string> lines;
  for (const auto& [of, buckets] : rows) {
    lines.push_back(absl::StrCat("graph, ", of.first, " of ", absl::StrJoin(buckets, " "), ": nodes=", of.second));
  }
  return lines;
}

std::string LineOfStep(const std::string& name, const Nodes& nodes) {
  const StepCount count = CountStep(nodes);
  const StepBytes& bytes = count.bytes;
  const StepWork& work = count.work;
  const auto count_if = [&nodes](const auto& is) { return std::count_if(nodes.begin(), nodes.end(), is); };
  const auto products = count_if([](const Node& node) { return node.name == "mm" || node.name == "MultiplyRows"; });
  const auto attention =
      count_if([](const Node& node) { return node.name.starts_with("Attend") || node.name == "MergeBlocks"; });
  return absl::StrFormat(
      "step, %s: nodes=%d products=%d attention=%d upload=%d download=%d weights=%d seen_cache=%d cache=%d "
      "distances=%d "
      "partial=%d product_rows=%d rows=%d product_gflops=%.3f single_blocks=%d tile_window_blocks=%d "
      "tile_vector_blocks=%d",
      name, count_if([](const Node& node) { return !node.is_copy(); }), products, attention, bytes.upload,
      bytes.download, bytes.weights, bytes.seen_cache, bytes.cache, bytes.distances, bytes.partial, bytes.product_rows,
      bytes.rows, work.product_flops / 1e9, work.single_blocks, work.tile_window_blocks, work.tile_vector_blocks);
}

}  // namespace

std::vector<std::string> LinesOfSteps() {
  Recorder recorder;
  CountedModel model(recorder);
  std::vector<std::string> lines = LinesOfGraphs(ShapesOfGraphs({}, GraphLimits().rows), model.Graphs());
  // A full memory, and half of a segment and of a chunk.
  constexpr int64_t kFull = 8192 + 256, kMiddle = kFull + 128 + 8, kLastOfChunk = kMiddle + 7;
  lines.push_back(LineOfStep("1 stream", model.Step(1, kMiddle, 1)));
  lines.push_back(LineOfStep("256 streams", model.Step(kManyStreams, kMiddle, 1)));
  lines.push_back(LineOfStep("256 streams whose chunks end", model.Step(kManyStreams, kLastOfChunk, 1)));
  lines.push_back(LineOfStep("a prompt's 4096 tokens", model.Step(1, kFull, kPromptTokens)));
  return lines;
}

}  // namespace longshort::models
