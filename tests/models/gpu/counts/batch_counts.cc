#include <algorithm>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ATen/Functions.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "c10/core/InferenceMode.h"
#include "models/device/model_gpu.h"
#include "models/families/cvt/cvt_config.h"
#include "models/families/cvt/cvt_network.h"
#include "models/families/family.h"
#include "models/families/text_classifier/text_network.h"
#include "models/families/vil/vil_config.h"
#include "models/families/vil/vil_network.h"
#include "models/ops/document_attention/document_attention_kernels.h"
#include "models/ops/item_attention/gpu_item_attention.h"
#include "tests/models/gpu/counts/counts.h"
#include "tests/models/gpu/counts/recorder.h"

namespace longshort::models {
namespace {

constexpr int64_t kItems = 32, kDocumentTokens = 4000, kSide = 224;

// Adds to the last kernels that a call launches the bytes of its operands, each of which is read or written once.
class CountedAttention final : public ItemAttention {
 public:
  CountedAttention(ItemAttention& attention, Recorder& recorder) : attention_(attention), recorder_(recorder) {}

  at::Tensor AttendInDocuments(const RowsToAttend& rows, int64_t others) override {
    at::Tensor attended = attention_.AttendInDocuments(rows, others);
    Count({rows.queries, rows.tokens.keys, rows.tokens.values, rows.shared.keys, rows.shared.values}, {attended});
    return attended;
  }
  at::Tensor AttendInGrids(const RowsToAttend& rows, const TokenGrid& grid, const WindowGeometry& window,
                           const WindowBias& bias, int64_t others) override {
    at::Tensor attended = attention_.AttendInGrids(rows, grid, window, bias, others);
    Count({rows.queries, rows.tokens.keys, rows.tokens.values, rows.shared.keys, rows.shared.values}, {attended});
    return attended;
  }
  RowKeyValues Landmarks(const RowsToCompress& rows, const RowKeyValues& before) override {
    RowKeyValues landmarks = attention_.Landmarks(rows, before);
    Count({rows.logits, rows.tokens.keys, rows.tokens.values}, {landmarks.keys, landmarks.values});
    return landmarks;
  }
  void AttendToRows(const OwnRowsToAttend& rows) override {
    attention_.AttendToRows(rows);
    Count({rows.queries, rows.own.keys, rows.own.values, rows.rows.keys, rows.rows.values}, {rows.attended});
  }
  void ConvolveValues(const RowsToConvolve& rows) override {
    attention_.ConvolveValues(rows);
    Count({rows.taps, rows.values, rows.sums}, {rows.sums});
  }
  at::Tensor MeanOfRows(const at::Tensor& rows, int64_t length) override {
    at::Tensor means = attention_.MeanOfRows(rows, length);
    Count({rows}, {means});
    return means;
  }
  at::Tensor Embed(const at::Tensor& table, const at::Tensor& ids, const at::Tensor& position_table,
                   const at::Tensor& positions) override {
    at::Tensor rows = attention_.Embed(table, ids, position_table, positions);
    Count({ids, positions, rows, rows}, {rows});  // as many elements of both tables
    return rows;
  }
  at::Tensor Add(const Linear& map, const at::Tensor& inputs, const at::Tensor& rows) override {
    at::Tensor sum = attention_.Add(map, inputs, rows);
    Count({inputs, map.weight, map.bias, rows}, {sum});
    return sum;
  }
  at::Tensor Gelu(const Linear& map, const at::Tensor& inputs) override {
    at::Tensor activated = attention_.Gelu(map, inputs);
    Count({inputs, map.weight, map.bias}, {activated});
    return activated;
  }
  at::Tensor Norm(const LayerNorm& norm, const at::Tensor& rows) override {
    at::Tensor normed = attention_.Norm(norm, rows);
    Count({rows}, {normed});
    return normed;
  }
  at::Tensor NormBehind(const at::Tensor& others, const LayerNorm& norm, const at::Tensor& rows) override {
    at::Tensor all = attention_.NormBehind(others, norm, rows);
    Count({rows}, {all.narrow(0, others.size(0), rows.size(0))});
    return all;
  }
  RowKeyValues NormBoth(const LayerNorm& key_norm, const LayerNorm& value_norm, const RowKeyValues& rows) override {
    RowKeyValues normed = attention_.NormBoth(key_norm, value_norm, rows);
    Count({rows.keys, rows.values}, {normed.keys, normed.values});
    return normed;
  }

 private:
  static int64_t BytesOf(const at::Tensor& tensor) { return static_cast<int64_t>(tensor.nbytes()); }
  void Count(const std::vector<at::Tensor>& read, const std::vector<at::Tensor>& written) {
    Node& node = recorder_.nodes().back();
    for (const at::Tensor& tensor : read) node.read_bytes.push_back(BytesOf(tensor));
    for (const at::Tensor& tensor : written) node.written_bytes += BytesOf(tensor);
  }

  ItemAttention& attention_;
  Recorder& recorder_;
};

// Weights on the host whose memory is never touched. They are moved to the device as served networks are.
TensorSource SourceOf(const std::vector<TensorShape>& shapes) {
  auto tensors = std::make_shared<std::map<std::string, at::Tensor>>();
  for (const TensorShape& tensor : shapes) (*tensors)[tensor.name] = at::empty(tensor.shape, at::kFloat);
  return [tensors](const std::string& name) { return tensors->at(name); };
}

std::string LineOfBatch(const std::string& name, at::ScalarType type, const Nodes& nodes) {
  int64_t bytes = 0, upload = 0;
  Nodes on_device;
  for (const Node& node : nodes) {
    if (node.is_copy()) {
      upload += node.written_bytes;
      continue;
    }
    for (const int64_t read : node.read_bytes) bytes += read;
    bytes += node.written_bytes;
    on_device.push_back(node);
  }
  return absl::StrFormat("batch, %s, %s: upload=%d bytes=%d nodes=%s", name, type == at::kFloat ? "fp32" : "bf16",
                         upload, bytes, TextOfNodes(on_device));
}

class Batches {
 public:
  Batches(Recorder& recorder) : recorder_(recorder) {}

  // `features` returns what the head reads.
  template <typename Network, typename Features>
  void AddImages(const std::string& name, Network network, at::ScalarType type, const Features& features) {
    TensorMove move = TensorMove::ForGpu(at::kMeta, type);
    network.MoveBy(move);
    const std::unique_ptr<GpuItemAttention> gpu = OpenGpu();
    CountedAttention attention(*gpu, recorder_);
    const ImageItem image{.height = kSide,
                          .width = kSide,
                          .values = {},
                          .bytes = std::vector<uint8_t>(3 * kSide * kSide),
                          .values_of_bytes = std::make_shared<const std::vector<float>>(3 * 256)};
    const std::vector<const ImageItem*> images(kItems, &image);
    Nodes nodes;
    recorder_.Take();
    gpu->RunImages(
        images, /*channels=*/3,
        [&](const at::Tensor& batch) {
          const at::Tensor logits = network.head(features(network, batch, attention)).to(at::kFloat);
          nodes = TakeNodes(/*read=*/batch.numel(), /*written=*/static_cast<int64_t>(batch.nbytes()));
          return at::zeros_like(logits, at::TensorOptions(at::kCPU));  // the logits have no data to copy
        },
        /*prepared=*/false);
    lines_.push_back(LineOfBatch(name, type, nodes));
  }
  void AddText(const std::string& name, TextNetwork network, at::ScalarType type) {
    TensorMove move = TensorMove::ForGpu(at::kMeta, type);
    network.MoveBy(move);
    const std::unique_ptr<GpuItemAttention> gpu = OpenGpu();
    CountedAttention attention(*gpu, recorder_);
    const std::vector<int32_t> document(kDocumentTokens, 1);
    const std::vector<absl::Span<const int32_t>> documents(kItems, document);
    const PackedIds packed = network.PackForGpu(documents);
    Nodes nodes;
    recorder_.Take();
    gpu->RunDocuments(
        packed,
        [&](const DocumentTokens& tokens) {
          const at::Tensor logits = network.Run(ClassifierOutput::kLogits, tokens, attention);
          const int64_t row_bytes = sizeof(int64_t) + sizeof(cuda::WindowRows);
          nodes = TakeNodes(/*read=*/0, tokens.ids.size(0) * row_bytes);
          return at::zeros_like(logits, at::TensorOptions(at::kCPU));
        },
        /*prepared=*/false);
    lines_.push_back(LineOfBatch(name, type, nodes));
  }

  std::vector<std::string> TakeLines() { return std::move(lines_); }

 private:
  // Takes the nodes of a batch. The first kernel, which precedes the layers, reads and writes this many bytes.
  Nodes TakeNodes(int64_t read, int64_t written) {
    Nodes nodes = recorder_.Take();
    const auto first =
        std::find_if(nodes.begin(), nodes.end(), [](const Node& node) { return node.kernel.has_value(); });
    first->read_bytes = {read};
    first->written_bytes = written;
    return nodes;
  }
  std::unique_ptr<GpuItemAttention> OpenGpu() {
    const ModelGpu gpu = {
        .tensors = at::kMeta,
        .open = [this]() -> absl::StatusOr<std::unique_ptr<GpuDevice>> { return MakeRecordingDevice(recorder_); },
        .loss = std::make_shared<GpuLoss>()};
    return MakeGpuItemAttention(gpu, cuda::kMaxHeadWidth).value();
  }

  Recorder& recorder_;
  std::vector<std::string> lines_;
};

}  // namespace

std::vector<std::string> LinesOfBatches() {
  const c10::InferenceMode inference;
  Recorder recorder;
  Batches batches(recorder);
  const auto preset = [](std::string_view name) { return FindPreset(name); };
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    for (const std::string name : {"vil-ls-medium-224", "vil-ls-base-224"}) {
      const VilConfig config = ParseVilConfig(preset(name), name).value();
      batches.AddImages(name, MakeVilNetwork(config, SourceOf(VilTensors(config))), type,
                        [](const VilNetwork& network, const at::Tensor& images, ItemAttention& attention) {
                          return network.Features(images, attention);
                        });
    }
    const std::string cvt_name = "cvt-ls-13-224";
    const CvtConfig config = ParseCvtConfig(preset(cvt_name), cvt_name).value();
    CvtNetwork cvt = MakeCvtNetwork(config, SourceOf(CvtTensors(config)));
    cvt.PrepareForServing();
    batches.AddImages(cvt_name, std::move(cvt), type,
                      [](const CvtNetwork& network, const at::Tensor& images, ItemAttention& attention) {
                        return network.Features(images, /*statistics=*/nullptr, attention);
                      });
    const std::string text_name = "lra-text";
    const TextClassifierConfig text = ParseTextClassifierConfig(preset(text_name), text_name).value();
    batches.AddText(text_name, MakeTextNetwork(text, SourceOf(TextClassifierTensors(text))), type);
  }
  return batches.TakeLines();
}

}  // namespace longshort::models
