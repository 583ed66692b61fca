#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "models/ops/causal_attention/cache_rows.h"
#include "models/ops/causal_attention/causal_attention_kernels.h"
#include "models/ops/cls_attention/cls_attention_kernels.h"
#include "models/ops/document_attention/document_attention_kernels.h"
#include "models/ops/document_attention/document_places_kernels.h"
#include "models/ops/grid_attention/grid_attention_kernels.h"
#include "models/ops/landmarks/landmarks_kernels.h"
#include "models/ops/pixels/pixels_kernels.h"
#include "models/ops/products/linear_maps.h"
#include "models/ops/products/row_products.h"
#include "models/ops/rows/many_norms.h"
#include "models/ops/rows/rows.h"
#include "models/ops/rows/token_embeddings.h"
#include "tests/models/gpu/counts/counts.h"

namespace longshort::models {
namespace {

constexpr int kWidth = 512, kHeads = 8, kChunkSize = 16;
// Shared memory of a block, on chips of the capabilities 9.0 and 8.6.
constexpr int64_t kMuchShared = 227 << 10, kLittleShared = 99 << 10;

class Launches {
 public:
  // `instance`: the template's arguments, as nvcc writes them.
  void Add(const KernelCall& call, const std::string& instance) {
    lines_.push_back(absl::StrFormat("launch, %s%s: threads=%d shared=%d", call.name,
                                     instance.empty() ? "" : absl::StrCat("<", instance, ">"), call.shape.threads,
                                     call.shape.shared_bytes));
  }
  std::vector<std::string> TakeLines() { return std::move(lines_); }

 private:
  std::vector<std::string> lines_;
};

void AddOfTypeAndWidth(cuda::ElementType element, int width, const std::string& instance, Launches& launches) {
  const cuda::CausalAttention causal = {.element = element, .heads = 1, .head_width = width};
  const KernelCall prompt = cuda::PromptAttentionCall({.attention = causal, .tile_count = 1}, kMuchShared);
  const KernelCall in_one_stage = cuda::PromptAttentionCall({.attention = causal, .tile_count = 1}, kLittleShared);
  launches.Add(prompt, instance);
  if (prompt.function != in_one_stage.function) launches.Add(in_one_stage, instance);
  launches.Add(cuda::AttendToBlocksCall({.attention = causal, .row_count = 1, .max_blocks = 1}), instance);
  const cuda::RowAttention rows = {.element = element, .heads = 1, .head_width = width};
  launches.Add(cuda::DocumentAttentionCall({.attention = rows, .tile_count = 1}), instance);
  const float bias = 0;
  for (const bool has_bias : {false, true}) {
    launches.Add(cuda::WindowAttention2dCall({.attention = rows,
                                              .images = 1,
                                              .image_rows = 1,
                                              .height = 1,
                                              .width = 1,
                                              .side = 1,
                                              .bias = cuda::WindowBias(has_bias ? &bias : nullptr, 1, 1)}),
                 absl::StrCat(instance, has_bias ? ", true" : ", false"));
  }
  launches.Add(cuda::MixSplitsCall(
                   {.element = element, .heads = 1, .head_width = width, .rank = 1, .items = 1, .max_splits = 1}),
               instance);
}

void AddOfWidth(int width, Launches& launches) {
  const std::string instance = absl::StrCat(width);
  const cuda::CausalAttention causal = {.heads = 1, .head_width = width};
  launches.Add(cuda::MergeBlocksCall({.attention = causal, .row_count = 1, .max_blocks = 1}), instance);
  const cuda::ClsAttention cls = {.heads = 1, .head_width = width, .items = 1, .max_splits = 1};
  launches.Add(cuda::AttendToRowsCall(cls), instance);
  launches.Add(cuda::MergeRowsCall(cls), instance);
}

// Kernels whose threads have `channels` channels at once, 1 or 4, as their rows' strides allow.
void AddOfRows(int channels, Launches& launches) {
  const std::string instance = absl::StrCat(channels);
  char memory = 0;
  const cuda::Rows rows = {.data = nullptr, .stride = channels}, misaligned = {.data = &memory, .stride = channels};
  const cuda::Rows& some = channels == 4 ? rows : misaligned;
  launches.Add(cuda::EmbedRowsCall({.count = 1, .width = kWidth, .output = some}), instance);
  launches.Add(cuda::NormRowsCall({.input = some, .count = 1, .width = kWidth, .output = some}), instance);
  launches.Add(cuda::ManyNormsCall({.count = 1, .width = kWidth, .kinds = 1, .each = {{.input = some}}}), instance);
  launches.Add(cuda::EmbedTokensCall({.count = 1, .width = kWidth, .output = some}), instance);
  launches.Add(cuda::ActivateRowsCall({.rows = some, .count = 1, .width = kWidth}), instance);
  launches.Add(cuda::GatherRowsCall({.input = some, .count = 1, .width = kWidth, .output = some}), instance);
  const cuda::ChunkRows chunks = {.inputs = some,
                                  .keys_values = some,
                                  .logits = some,
                                  .heads = kHeads,
                                  .head_width = kWidth / kHeads,
                                  .chunk_size = kChunkSize,
                                  .chunk_rank = 1,
                                  .page_floats = 4};
  launches.Add(cuda::MixChunksCall({.rows = chunks, .count = 1, .mixed_inputs = some, .mixed_keys_values = some}),
               instance);
  for (const cuda::ElementType element : {cuda::ElementType::kFloat, cuda::ElementType::kBFloat16}) {
    const cuda::WriteRows write = {.element = element,
                                   .heads = kHeads,
                                   .head_width = kWidth / kHeads,
                                   .window = {.keys_values = some, .count = 1}};
    launches.Add(cuda::WriteRowsCall(write),
                 absl::StrCat(element == cuda::ElementType::kFloat ? "float" : "BFloat16", ", ", instance));
  }
  launches.Add(cuda::NormalisePixelsCall({.images = 1, .channels = 1, .plane = channels, .values = nullptr}), instance);
  launches.Add(cuda::ValueConvolutionCall(
                   {.heads = 1, .head_width = 4, .kernel = 1, .tile_count = 1, .values = some, .sums = some}),
               instance);
}

}  // namespace

std::vector<std::string> LinesOfLaunches() {
  Launches launches;
  for (const int width : {32, 64, 128}) {
    AddOfTypeAndWidth(cuda::ElementType::kFloat, width, absl::StrCat("float, ", width), launches);
    AddOfTypeAndWidth(cuda::ElementType::kBFloat16, width, absl::StrCat("BFloat16, ", width), launches);
    AddOfWidth(width, launches);
  }
  for (const int side : {64, 128}) {
    for (const cuda::ElementType element : {cuda::ElementType::kFloat, cuda::ElementType::kBFloat16}) {
      launches.Add(cuda::LinearMapCall({.element = element, .count = 1, .width = kWidth, .outputs = 1}, side),
                   absl::StrCat(element == cuda::ElementType::kFloat ? "float, " : "BFloat16, ", side));
    }
  }
  AddOfRows(1, launches);
  AddOfRows(4, launches);
  launches.Add(cuda::MergeSplitsCall({.heads = kHeads, .head_width = kWidth / kHeads, .rank = 1, .items = 1}), "");
  for (const int tiles : {1, 2}) {  // of 8 rows
    launches.Add(cuda::RowProductsCall({.outputs = 1, .width = kWidth, .count = 8 * tiles}), absl::StrCat(tiles));
  }
  launches.Add(cuda::SumSplitsCall({.width = kWidth, .items = 1, .max_splits = 1}), "");
  launches.Add(cuda::MergeSumsCall({.width = kWidth, .items = 1, .max_splits = 1}), "");
  launches.Add(cuda::PlaceDocumentsCall({.tile_count = 1}), "");
  return launches.TakeLines();
}

}  // namespace longshort::models
