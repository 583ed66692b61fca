#include "models/attention/document_graphs.h"

#include <algorithm>
#include <utility>

#include "ATen/Functions.h"
#include "base/status_macros.h"

namespace longshort {
namespace {

// The largest first: what LibTorch reserves for it is enough for the others, which have it in turn.
constexpr int64_t kRows[] = {4096, 3072, 2048, 1536, 1024, 768, 512, 384, 256, 192, 128, 64};
constexpr int64_t kDocuments[] = {32, 16, 8, 4, 2, 1};

// Any documents of so many rows together: each ends with a tile that may not be full.
DocumentShape ShapeOf(int64_t rows, int64_t documents) {
  return {.rows = rows, .documents = documents, .tiles = rows / cuda::kTileRows + documents, .most_rows = rows};
}

}  // namespace

ItemAttention::Documents TensorsOf(const DocumentsOnDevice& documents, at::Device device) {
  const auto tensor = [&](const int64_t* numbers) {
    return at::from_blob(const_cast<int64_t*>(numbers), {documents.shape.rows},
                         at::TensorOptions(at::kLong).device(device));
  };
  return {.ids = tensor(documents.ids), .positions = tensor(documents.positions), .count = documents.shape.documents};
}

int64_t DocumentGraphs::Bytes(const GraphLimits& most, int64_t classes) {
  return static_cast<int64_t>(ShapeOf(most.document_rows, most.documents).bytes() +
                              most.documents * classes * sizeof(float));
}

absl::Status DocumentGraphs::Capture(int64_t item_documents, const ItemAttention::DocumentLayers& layers) {
  const PackedDocuments none;
  std::vector<Graph> graphs;
  for (const int64_t rows : kRows) {
    for (const int64_t documents : kDocuments) {
      if (rows > most_.document_rows || documents > most_.documents || documents % item_documents != 0) continue;
      const DocumentShape room = ShapeOf(rows, documents);
      LS_RETURN_IF_ERROR(upload_.Reserve(room.bytes()));
      LS_ASSIGN_OR_RETURN(char* const host, upload_.Begin(room.bytes()));
      DocumentArrays(none).Write(room, host);
      LS_RETURN_IF_ERROR(upload_.Queue());
      LS_RETURN_IF_ERROR(device_.BeforeLibraryCalls());
      const DocumentsOnDevice on_device = DocumentsIn(upload_.as<char>(), room);
      const auto run = [this, layers, on_device, tensors = TensorsOf(on_device, tensors_)] {
        use_(on_device);
        return layers(tensors);
      };
      LS_ASSIGN_OR_RETURN(BatchGraph batch, CaptureBatch(device_, run, logits_));
      graphs.push_back({.room = room, .batch = std::move(batch)});
    }
  }
  graphs_ = std::move(graphs);
  return absl::OkStatus();
}

DocumentGraphs::Graph* DocumentGraphs::Find(const DocumentShape& shape) {
  const auto found = std::find_if(graphs_.rbegin(), graphs_.rend(),
                                  [&shape](const Graph& graph) { return graph.room.HasRoomFor(shape); });
  return found == graphs_.rend() ? nullptr : &*found;
}

absl::Status DocumentGraphs::Run(Graph& graph, const DocumentArrays& documents, int64_t items, float* logits) {
  LS_ASSIGN_OR_RETURN(char* const host, upload_.Begin(graph.room.bytes()));
  documents.Write(graph.room, host);
  LS_RETURN_IF_ERROR(upload_.Queue());
  return RunBatch(device_, graph.batch, items, logits);
}

}  // namespace longshort
