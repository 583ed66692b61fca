#include "models/ops/cls_attention/cls_attention.h"

#include <vector>

#include "ATen/Functions.h"
#include "models/ops/cls_attention/cls_attention_kernels.h"
#include "models/ops/document_attention/packed_documents.h"
#include "models/ops/rows/cpu_kernels.h"
#include "torch/csrc/autograd/custom_function.h"

namespace longshort::models::cpu {

LONGSHORT_SELECT(void, AttendFromCls, (const ClsHead& head, float* weights, float* attended), (head, weights, attended))
LONGSHORT_SELECT(void, DifferentiateCls, (const ClsHead& head, const ClsGradient& gradient, float* scratch),
                 (head, gradient, scratch))

}  // namespace longshort::models::cpu

namespace longshort::models {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Variable;
using torch::autograd::variable_list;

// The inputs, each contiguous.
struct ClsInputs {
  at::Tensor queries, own_keys, own_values;  // [documents, d]
  at::Tensor keys, values;                   // [rows, d]
};

// Calls work(head, document, first row, first channel, first weight) for every head of every document.
template <typename Work>
void ForEachClsHead(const PackedDocuments& packed, int64_t heads, const ClsInputs& inputs, const Work& work) {
  const int64_t width = inputs.keys.size(1) / heads;
  int64_t first_weight = 0;
  for (int64_t document = 0; document < std::ssize(packed.documents); ++document) {
    const int64_t row = packed.documents[document].first_row, rows = packed.documents[document].rows;
    for (int64_t head = 0; head < heads; ++head) {
      const int64_t channel = head * width;
      work(cpu::ClsHead{.head_width = width,
                        .rows = rows,
                        .query = RowsFrom(inputs.queries, document, channel).data,
                        .own_key = RowsFrom(inputs.own_keys, document, channel).data,
                        .own_value = RowsFrom(inputs.own_values, document, channel).data,
                        .keys = RowsFrom(inputs.keys, row, channel),
                        .values = RowsFrom(inputs.values, row, channel)},
           document, row, channel, first_weight);
      first_weight += cpu::ClsWeights(rows);
    }
  }
}

class AttendFromFunction final : public torch::autograd::Function<AttendFromFunction> {
 public:
  static Variable forward(AutogradContext* context, const std::shared_ptr<const PackedDocuments>& packed, int64_t heads,
                          const Variable& queries, const Variable& own_keys, const Variable& own_values,
                          const Variable& keys, const Variable& values) {
    // Copies, because the caller may change the rows before the gradient reads them.
    const at::Tensor copied_keys = keys.clone(at::MemoryFormat::Contiguous);
    const bool are_same = keys.const_data_ptr() == values.const_data_ptr() && keys.strides() == values.strides();
    const ClsInputs inputs{queries.contiguous(), own_keys.contiguous(), own_values.contiguous(), copied_keys,
                           are_same ? copied_keys : values.clone(at::MemoryFormat::Contiguous)};
    int64_t count = 0;
    for (const PackedDocument& document : packed->documents) count += heads * cpu::ClsWeights(document.rows);
    const at::Tensor attended = at::empty_like(inputs.queries), weights = at::empty({count}, attended.options());
    ForEachClsHead(*packed, heads, inputs,
                   [&](const cpu::ClsHead& head, int64_t document, int64_t /*row*/, int64_t channel, int64_t weight) {
                     cpu::AttendFromCls(head, weights.mutable_data_ptr<float>() + weight,
                                        MutableRowsFrom(attended, document, channel).data);
                   });
    context->save_for_backward(
        {inputs.queries, inputs.own_keys, inputs.own_values, inputs.keys, inputs.values, weights});
    context->saved_data["heads"] = heads;
    context->saved_data["packed"] = HeldDocuments::Hold(packed);
    return attended;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const ClsInputs inputs{saved[0], saved[1], saved[2], saved[3], saved[4]};
    const at::Tensor to_attended = gradients[0].contiguous();
    const ClsInputs to{at::empty_like(saved[0]), at::empty_like(saved[1]), at::empty_like(saved[2]),
                       at::empty_like(saved[3]), at::empty_like(saved[4])};
    std::vector<float> scratch;
    ForEachClsHead(HeldDocuments::In(context->saved_data["packed"]), context->saved_data["heads"].toInt(), inputs,
                   [&](const cpu::ClsHead& head, int64_t document, int64_t row, int64_t channel, int64_t weight) {
                     scratch.resize(cpu::ClsWeights(head.rows));
                     cpu::DifferentiateCls(head,
                                           {.weights = saved[5].const_data_ptr<float>() + weight,
                                            .attended = RowsFrom(to_attended, document, channel).data,
                                            .query = MutableRowsFrom(to.queries, document, channel).data,
                                            .own_key = MutableRowsFrom(to.own_keys, document, channel).data,
                                            .own_value = MutableRowsFrom(to.own_values, document, channel).data,
                                            .keys = MutableRowsFrom(to.keys, row, channel),
                                            .values = MutableRowsFrom(to.values, row, channel)},
                                           scratch.data());
                   });
    return {Variable(), Variable(), to.queries, to.own_keys, to.own_values, to.keys, to.values};
  }
};

}  // namespace

at::Tensor AttendFromDocuments(const std::shared_ptr<const PackedDocuments>& packed, int64_t heads,
                               const at::Tensor& queries, const RowKeyValues& own, const RowKeyValues& rows) {
  return AttendFromFunction::apply(packed, heads, queries, own.keys, own.values, rows.keys, rows.values);
}

}  // namespace longshort::models
