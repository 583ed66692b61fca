#include "models/ops/document_attention/document_attention.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <vector>

#include "ATen/Functions.h"
#include "ATen/Parallel.h"
#include "ATen/TensorOperators.h"
#include "models/ops/document_attention/document_attention_kernels.h"
#include "models/ops/document_attention/packed_documents.h"
#include "models/ops/rows/cpu_kernels.h"
#include "torch/csrc/autograd/custom_function.h"

namespace longshort::models {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct RowPairs {
  std::vector<int64_t> to, from;  // [pairs]
};

// All pairs of rows of one document whose positions are `distance` apart: position(from) = position(to) + distance.
RowPairs RowsApart(const PackedDocuments& packed, int64_t distance) {
  RowPairs pairs;
  for (const PackedDocument& document : packed.documents) {
    const int64_t end = document.first_row + document.rows;
    for (int64_t row = document.first_row, other = row; row < end; ++row) {
      while (other < end && packed.positions[other] < packed.positions[row] + distance) ++other;
      if (other == end) break;
      if (packed.positions[other] != packed.positions[row] + distance) continue;
      pairs.to.push_back(row);
      pairs.from.push_back(other);
    }
  }
  return pairs;
}

// The number of segments, from the first on, that dropout computes at once: small ones would cost more calls of
// LibTorch than arithmetic.
size_t SegmentsOfBlock(absl::Span<const WindowSegment> segments) {
  constexpr int64_t kQueries = 64;
  size_t count = 1;
  while (count < segments.size() && segments[count].end_query - segments.front().first_query <= kQueries) ++count;
  return count;
}

// Marks the keys of a block that a query does not see: [queries, shared + keys].
at::Tensor Unseen(absl::Span<const WindowSegment> block, int64_t shared) {
  const int64_t first_query = block.front().first_query, first_key = block.front().first_key;
  at::Tensor unseen =
      at::ones({block.back().end_query - first_query, shared + block.back().end_key - first_key}, at::kBool);
  unseen.narrow(1, 0, shared).fill_(false);
  for (const WindowSegment& segment : block) {
    unseen.slice(0, segment.first_query - first_query, segment.end_query - first_query)
        .slice(1, shared + segment.first_key - first_key, shared + segment.end_key - first_key)
        .fill_(false);
  }
  return unseen;
}

}  // namespace

at::Tensor LongShortAttention1d(const PackedDocument& document, const at::Tensor& queries, const at::Tensor& keys,
                                const at::Tensor& values, const at::Tensor& shared_keys,
                                const at::Tensor& shared_values, Dropout* dropout) {
  if (document.rows == 0) return queries;
  const bool drops = dropout != nullptr && dropout->drops_attention();
  const at::Tensor by_head = queries.transpose(0, 1);
  std::vector<at::Tensor> attended;
  for (absl::Span<const WindowSegment> left = document.segments; !left.empty();) {
    const absl::Span<const WindowSegment> block = left.first(drops ? SegmentsOfBlock(left) : 1);
    left.remove_prefix(block.size());
    const int64_t first_key = block.front().first_key, end_key = block.back().end_key;
    // The keys and values that the block sees: [heads, m + keys, head_dim].
    const auto visible = [&](const at::Tensor& shared, const at::Tensor& rows) {
      return at::cat({shared, rows.slice(0, first_key, end_key)}).transpose(0, 1);
    };
    at::Tensor scores = at::matmul(by_head.slice(1, block.front().first_query, block.back().end_query),
                                   visible(shared_keys, keys).transpose(1, 2));
    if (block.size() > 1) scores = scores.masked_fill(Unseen(block, shared_keys.size(0)), -kInfinity);
    at::Tensor probabilities = scores.softmax(-1);
    if (drops) probabilities = dropout->OfAttention(probabilities);
    attended.push_back(at::matmul(probabilities, visible(shared_values, values)));
  }
  return at::cat(attended, 1).transpose(0, 1);
}

at::Tensor ConvolveValues(const PackedDocuments& packed, const at::Tensor& values, const at::Tensor& taps) {
  const int64_t kernel = taps.size(1);
  const at::TensorOptions integers = at::TensorOptions(at::kLong).device(values.device());
  at::Tensor sum = at::zeros_like(values);
  for (int64_t tap = 0; tap < kernel; ++tap) {
    const RowPairs pairs = RowsApart(packed, tap - kernel / 2);
    const at::Tensor read = values.index_select(0, at::tensor(pairs.from, integers)) * taps.select(1, tap).unsqueeze(1);
    sum = sum.index_add(0, at::tensor(pairs.to, integers), read);
  }
  return sum;
}

int64_t ConvolvedPairs(const PackedDocuments& packed, int64_t kernel) {
  int64_t pairs = 0;
  for (const PackedDocument& document : packed.documents) {
    const int64_t end_row = document.first_row + document.rows;
    // The row reads [begin, end).
    for (int64_t row = document.first_row, begin = row, end = row; row < end_row; ++row) {
      while (packed.positions[begin] < packed.positions[row] - kernel / 2) ++begin;
      while (end < end_row && packed.positions[end] <= packed.positions[row] + kernel / 2) ++end;
      pairs += end - begin;
    }
  }
  return pairs;
}

}  // namespace longshort::models

namespace longshort::models::cpu {

LONGSHORT_SELECT_ANY(int64_t, AttendDocumentScratchFloats, (const DocumentHead& head), (head))
LONGSHORT_SELECT_ANY(int64_t, DocumentGradientScratchFloats, (const DocumentHead& head), (head))
LONGSHORT_SELECT(void, AttendDocument, (const DocumentHead& head, const DocumentOutput& output, float* scratch),
                 (head, output, scratch))
LONGSHORT_SELECT(void, DifferentiateDocument,
                 (const DocumentHead& head, const DocumentGradients& gradients, float* scratch),
                 (head, gradients, scratch))

}  // namespace longshort::models::cpu

namespace longshort::models {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Variable;
using torch::autograd::variable_list;

// The op's inputs, each contiguous float32.
struct Inputs {
  at::Tensor queries, keys, values;       // [rows, D]
  at::Tensor shared_keys, shared_values;  // [documents, m, D]
};

// One head of one document, and its place in the batch.
struct Place {
  cpu::DocumentHead head;
  int64_t first_row = 0;         // of the document's tokens
  int64_t first_shared_row = 0;  // of its shared vectors
  int64_t first_channel = 0;     // of the head
  int64_t head_index = 0;
};

Place PlaceOf(const PackedDocuments& packed, int64_t heads, const Inputs& inputs, int64_t index) {
  const int64_t document_index = index / heads, head_index = index % heads, shared = inputs.shared_keys.size(1);
  const PackedDocument& document = packed.documents[document_index];
  const int64_t head_width = inputs.queries.size(1) / heads;
  const int64_t row = document.first_row, shared_row = document_index * shared, channel = head_index * head_width;
  return {.head = {.head_width = head_width,
                   .rows = document.rows,
                   .shared = shared,
                   .segments = document.segments.data(),
                   .segment_count = static_cast<int64_t>(document.segments.size()),
                   .query_scale = 1.0F / std::sqrt(static_cast<float>(head_width)),
                   .queries = RowsFrom(inputs.queries, row, channel),
                   .keys = RowsFrom(inputs.keys, row, channel),
                   .values = RowsFrom(inputs.values, row, channel),
                   .shared_keys = RowsFrom(inputs.shared_keys, shared_row, channel),
                   .shared_values = RowsFrom(inputs.shared_values, shared_row, channel)},
          .first_row = row,
          .first_shared_row = shared_row,
          .first_channel = channel,
          .head_index = head_index};
}

// Calls work(place, scratch) for every head of every document, in parallel.
void ForEachHead(const PackedDocuments& packed, int64_t heads, const Inputs& inputs,
                 int64_t (*scratch_floats)(const cpu::DocumentHead& head),
                 const std::function<void(const Place& place, float* scratch)>& work) {
  const auto count = static_cast<int64_t>(packed.documents.size()) * heads;
  at::parallel_for(0, count, /*grain_size=*/1, [&](int64_t begin, int64_t end) {
    std::vector<float> scratch;
    for (int64_t index = begin; index < end; ++index) {
      const Place place = PlaceOf(packed, heads, inputs, index);
      scratch.resize(std::max(scratch.size(), static_cast<size_t>(scratch_floats(place.head))));
      work(place, scratch.data());
    }
  });
}

class AttendFunction final : public torch::autograd::Function<AttendFunction> {
 public:
  static Variable forward(AutogradContext* context, const std::shared_ptr<const PackedDocuments>& packed, int64_t heads,
                          int64_t others, const Variable& queries, const Variable& keys, const Variable& values,
                          const Variable& shared_keys, const Variable& shared_values) {
    const Inputs inputs{queries.contiguous(), keys.contiguous(), values.contiguous(), shared_keys.contiguous(),
                        shared_values.contiguous()};
    at::Tensor attended = at::empty({others + packed->rows(), inputs.queries.size(1)}, inputs.queries.options());
    const at::Tensor log_sums = at::empty({heads, packed->rows()}, attended.options());
    ForEachHead(*packed, heads, inputs, cpu::AttendDocumentScratchFloats, [&](const Place& place, float* scratch) {
      cpu::AttendDocument(place.head,
                          {.attended = MutableRowsFrom(attended, others + place.first_row, place.first_channel),
                           .log_sums = MutableRowsFrom(log_sums, place.head_index, place.first_row).data},
                          scratch);
    });
    context->save_for_backward(
        {inputs.queries, inputs.keys, inputs.values, inputs.shared_keys, inputs.shared_values, log_sums});
    context->saved_data["heads"] = heads;
    context->saved_data["others"] = others;
    context->saved_data["packed"] = HeldDocuments::Hold(packed);
    return attended;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const Inputs inputs{saved[0], saved[1], saved[2], saved[3], saved[4]};
    const at::Tensor& log_sums = saved[5];
    const int64_t heads = context->saved_data["heads"].toInt();
    const int64_t others = context->saved_data["others"].toInt();
    const at::Tensor from = gradients[0].narrow(0, others, inputs.queries.size(0)).contiguous();
    const Inputs to{at::empty_like(inputs.queries), at::empty_like(inputs.keys), at::empty_like(inputs.values),
                    at::empty_like(inputs.shared_keys), at::empty_like(inputs.shared_values)};
    ForEachHead(HeldDocuments::In(context->saved_data["packed"]), heads, inputs, cpu::DocumentGradientScratchFloats,
                [&](const Place& place, float* scratch) {
                  const int64_t row = place.first_row, shared_row = place.first_shared_row;
                  const int64_t channel = place.first_channel;
                  cpu::DifferentiateDocument(place.head,
                                             {.attended = RowsFrom(from, row, channel),
                                              .log_sums = RowsFrom(log_sums, place.head_index, row).data,
                                              .queries = MutableRowsFrom(to.queries, row, channel),
                                              .keys = MutableRowsFrom(to.keys, row, channel),
                                              .values = MutableRowsFrom(to.values, row, channel),
                                              .shared_keys = MutableRowsFrom(to.shared_keys, shared_row, channel),
                                              .shared_values = MutableRowsFrom(to.shared_values, shared_row, channel)},
                                             scratch);
                });
    return {Variable(), Variable(), Variable(), to.queries, to.keys, to.values, to.shared_keys, to.shared_values};
  }
};

}  // namespace

at::Tensor AttendDocuments(const std::shared_ptr<const PackedDocuments>& packed, int64_t heads,
                           const at::Tensor& queries, const at::Tensor& keys, const at::Tensor& values,
                           const at::Tensor& shared_keys, const at::Tensor& shared_values, int64_t others,
                           Dropout* dropout) {
  const bool drops = dropout != nullptr && dropout->drops_attention();
  if (queries.device().is_cpu() && queries.scalar_type() == at::kFloat && !drops) {
    return AttendFunction::apply(packed, heads, others, queries, keys, values, shared_keys, shared_values);
  }
  return at::cat(
      {at::empty({others, queries.size(1)}, queries.options()),
       AttendDocumentsByReference(*packed, heads, queries, keys, values, shared_keys, shared_values, dropout)});
}

at::Tensor AttendDocumentsByReference(const PackedDocuments& packed, int64_t heads, const at::Tensor& queries,
                                      const at::Tensor& keys, const at::Tensor& values, const at::Tensor& shared_keys,
                                      const at::Tensor& shared_values, Dropout* dropout) {
  const double scale = std::sqrt(static_cast<double>(heads) / static_cast<double>(queries.size(1)));
  std::vector<at::Tensor> attended;
  for (size_t i = 0; i < packed.documents.size(); ++i) {
    const PackedDocument& document = packed.documents[i];
    const auto rows = [&](const at::Tensor& of_all) {
      return of_all.narrow(0, document.first_row, document.rows).unflatten(1, {heads, -1});
    };
    const auto shared = [&](const at::Tensor& of_all) {
      return of_all.select(0, static_cast<int64_t>(i)).unflatten(1, {heads, -1});
    };
    attended.push_back(LongShortAttention1d(document, rows(queries) * scale, rows(keys), rows(values),
                                            shared(shared_keys), shared(shared_values), dropout));
  }
  return at::cat(attended).flatten(1);
}

int64_t AttentionMultiplyAdds(const DocumentCounts& counts, int64_t shared, int64_t model_width) {
  return 2 * (counts.rows * shared + counts.visible_pairs) * model_width;
}

}  // namespace longshort::models
