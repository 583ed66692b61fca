#include "models/ops/landmarks/dynamic_projection.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "ATen/Functions.h"
#include "models/ops/document_attention/packed_documents.h"
#include "models/ops/landmarks/landmarks_kernels.h"
#include "models/ops/rows/cpu_kernels.h"
#include "torch/csrc/autograd/custom_function.h"

namespace longshort::models {

at::Tensor ProjectionWeights(const at::Tensor& logits, int64_t heads, int64_t chunk_size) {
  const int64_t batch = logits.size(0);
  const int64_t rank = logits.size(2) / heads;
  return logits.view({batch, -1, chunk_size, heads, rank}).permute({0, 1, 4, 3, 2}).softmax(-1);
}

at::Tensor MixChunks(const at::Tensor& weights, const at::Tensor& rows) {
  const int64_t batch = weights.size(0), chunks = weights.size(1), rank = weights.size(2), heads = weights.size(3);
  const int64_t chunk_size = weights.size(4), head_dim = rows.size(2) / heads;
  // [batch, chunks, heads, rank, chunk] x [batch, chunks, heads, chunk, head_dim]
  const at::Tensor by_head = rows.view({batch, chunks, chunk_size, heads, head_dim}).transpose(2, 3);
  const at::Tensor mixed = at::matmul(weights.transpose(2, 3), by_head);
  return mixed.transpose(2, 3).reshape({batch, chunks * rank, heads * head_dim});
}

}  // namespace longshort::models

namespace longshort::models::cpu {

void ChunkWeights(absl::Span<const float* const> logits, int64_t columns, float* weights) {
  const auto chunk_size = static_cast<int64_t>(logits.size());
  for (int64_t column = 0; column < columns; ++column) {
    float highest = logits[0][column];
    for (const float* const row : logits) highest = std::max(highest, row[column]);
    float sum = 0;
    for (int64_t i = 0; i < chunk_size; ++i) {
      float& weight = weights[i * columns + column];
      weight = std::exp(logits[i][column] - highest);
      sum += weight;
    }
    for (int64_t i = 0; i < chunk_size; ++i) weights[i * columns + column] /= sum;
  }
}

void MixChunk(absl::Span<const float* const> rows, const float* weights, int64_t heads, int64_t rank,
              int64_t head_width, float* mixed, int64_t stride) {
  const int64_t columns = heads * rank;
  for (int64_t t = 0; t < rank; ++t) std::fill_n(mixed + t * stride, heads * head_width, 0.0f);
  for (size_t i = 0; i < rows.size(); ++i) {
    for (int64_t t = 0; t < rank; ++t) {
      for (int64_t head = 0; head < heads; ++head) {
        const float weight = weights[static_cast<int64_t>(i) * columns + head * rank + t];
        const float* const from = rows[i] + head * head_width;
        float* const to = mixed + t * stride + head * head_width;
        for (int64_t c = 0; c < head_width; ++c) to[c] += weight * from[c];
      }
    }
  }
}

LONGSHORT_SELECT(void, MixLandmarks, (const LandmarkHead& head, const LandmarkOutput& output), (head, output))
LONGSHORT_SELECT_ANY(int64_t, LandmarkGradientScratchFloats, (const LandmarkHead& head), (head))
LONGSHORT_SELECT(void, DifferentiateLandmarks,
                 (const LandmarkHead& head, const LandmarkGradient& gradient, float* scratch),
                 (head, gradient, scratch))

}  // namespace longshort::models::cpu

namespace longshort::models {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Variable;
using torch::autograd::variable_list;

// One head of one document, and where its rows, its landmarks and its channels begin.
struct LandmarkPlace {
  cpu::LandmarkHead head;
  int64_t first_row = 0, first_landmark = 0, first_channel = 0, first_logit = 0;
  int64_t first_weight = 0;
};

// Calls work(place) for every head of every document. logits [rows, heads * R]; keys, values [rows, d].
template <typename Work>
void ForEachLandmarkHead(const PackedDocuments& packed, int64_t heads, const at::Tensor& logits, const at::Tensor& keys,
                         const at::Tensor& values, const Work& work) {
  const int64_t rank = logits.size(1) / heads, width = keys.size(1) / heads, padded = cpu::PaddedHeadWidth(rank);
  for (size_t index = 0; index < packed.documents.size(); ++index) {
    const PackedDocument& document = packed.documents[index];
    for (int64_t head = 0; head < heads; ++head) {
      const int64_t row = document.first_row, channel = head * width, logit = head * rank;
      work(LandmarkPlace{.head = {.head_width = width,
                                  .rows = document.rows,
                                  .rank = rank,
                                  .logits = RowsFrom(logits, row, logit),
                                  .keys = RowsFrom(keys, row, channel),
                                  .values = RowsFrom(values, row, channel)},
                         .first_row = row,
                         .first_landmark = static_cast<int64_t>(index) * rank,
                         .first_channel = channel,
                         .first_logit = logit,
                         .first_weight = (row * heads + head * document.rows) * padded});
    }
  }
}

class MixFunction final : public torch::autograd::Function<MixFunction> {
 public:
  static variable_list forward(AutogradContext* context, const std::shared_ptr<const PackedDocuments>& packed,
                               int64_t heads, const Variable& given_logits, const Variable& given_keys,
                               const Variable& given_values) {
    const at::Tensor logits = given_logits.contiguous(), keys = given_keys.contiguous(),
                     values = given_values.contiguous();
    const int64_t rank = logits.size(1) / heads, documents = std::ssize(packed->documents);
    const at::Tensor mixed_keys = at::empty({documents, rank, keys.size(1)}, keys.options()),
                     mixed_values = at::empty_like(mixed_keys),
                     weights = at::empty({packed->rows() * heads * cpu::PaddedHeadWidth(rank)}, keys.options());
    ForEachLandmarkHead(*packed, heads, logits, keys, values, [&](const LandmarkPlace& place) {
      cpu::MixLandmarks(place.head,
                        {.weights = weights.mutable_data_ptr<float>() + place.first_weight,
                         .keys = MutableRowsFrom(mixed_keys, place.first_landmark, place.first_channel),
                         .values = MutableRowsFrom(mixed_values, place.first_landmark, place.first_channel)});
    });
    context->save_for_backward({logits, keys, values, weights, mixed_keys, mixed_values});
    context->saved_data["heads"] = heads;
    context->saved_data["packed"] = HeldDocuments::Hold(packed);
    return {mixed_keys, mixed_values};
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &logits = saved[0], &keys = saved[1], &values = saved[2], &weights = saved[3];
    const at::Tensor to_mixed_keys = gradients[0].contiguous(), to_mixed_values = gradients[1].contiguous();
    const at::Tensor to_logits = at::empty_like(logits), to_keys = at::empty_like(keys),
                     to_values = at::empty_like(values);
    std::vector<float> scratch;
    ForEachLandmarkHead(HeldDocuments::In(context->saved_data["packed"]), context->saved_data["heads"].toInt(), logits,
                        keys, values, [&](const LandmarkPlace& place) {
                          scratch.resize(cpu::LandmarkGradientScratchFloats(place.head));
                          const auto landmarks = [&](const at::Tensor& of) {
                            return RowsFrom(of, place.first_landmark, place.first_channel);
                          };
                          cpu::DifferentiateLandmarks(
                              place.head,
                              {.weights = weights.const_data_ptr<float>() + place.first_weight,
                               .landmark_keys = landmarks(saved[4]),
                               .landmark_values = landmarks(saved[5]),
                               .to_landmark_keys = landmarks(to_mixed_keys),
                               .to_landmark_values = landmarks(to_mixed_values),
                               .logits = MutableRowsFrom(to_logits, place.first_row, place.first_logit),
                               .keys = MutableRowsFrom(to_keys, place.first_row, place.first_channel),
                               .values = MutableRowsFrom(to_values, place.first_row, place.first_channel)},
                              scratch.data());
                        });
    return {Variable(), Variable(), to_logits, to_keys, to_values};
  }
};

}  // namespace

RowKeyValues MixDocuments(const std::shared_ptr<const PackedDocuments>& packed, int64_t heads, const at::Tensor& logits,
                          const RowKeyValues& tokens) {
  const variable_list mixed = MixFunction::apply(packed, heads, logits, tokens.keys, tokens.values);
  return {.keys = mixed[0], .values = mixed[1]};
}

}  // namespace longshort::models
