#include "models/text_classifier/document_attention.h"

#include <vector>

#include "ATen/Functions.h"
#include "models/attention/long_short_attention_1d.h"

namespace longshort {

at::Tensor AttendDocuments(const PackedDocuments& packed, int64_t heads, const at::Tensor& queries,
                           const at::Tensor& keys, const at::Tensor& values, const at::Tensor& shared_keys,
                           const at::Tensor& shared_values) {
  const std::vector<int64_t> lengths = packed.Lengths();
  const auto split = [&](const at::Tensor& rows) { return rows.unflatten(1, {heads, -1}).split_with_sizes(lengths); };
  const std::vector<at::Tensor> q = split(queries), k = split(keys), v = split(values);
  const std::vector<at::Tensor> sk = shared_keys.unflatten(2, {heads, -1}).unbind(0);
  const std::vector<at::Tensor> sv = shared_values.unflatten(2, {heads, -1}).unbind(0);
  std::vector<at::Tensor> attended;
  for (size_t i = 0; i < packed.documents.size(); ++i)
    attended.push_back(LongShortAttention1d(packed.documents[i], q[i], k[i], v[i], sk[i], sv[i]));
  return at::cat(attended).flatten(1);
}

int64_t AttentionMultiplyAdds(const PackedDocuments& packed, int64_t shared, int64_t model_width) {
  int64_t pairs = packed.rows() * shared;
  for (const PackedDocument& document : packed.documents) pairs += document.VisiblePairs();
  return 2 * pairs * model_width;
}

}  // namespace longshort
