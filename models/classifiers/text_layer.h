// One layer of the text classifier: its weights and computation, over a packed batch of documents.
#pragma once

#include <cstdint>

#include "ATen/core/Tensor.h"
#include "models/attention/item_attention.h"
#include "models/attention/packed_documents.h"
#include "models/layers/linear.h"

namespace longshort::models {

// The hidden state between layers.
struct HiddenRows {
  at::Tensor tokens;  // [rows, D]; undefined after a layer that computes only the CLS rows
  at::Tensor cls;     // [documents, D]; undefined without CLS rows
};

struct TextLayer {
  LayerNorm norm1, norm2;
  Linear query, key, value, output;
  LayerNorm window_norm;      // dual_ln_l: for the tokens' keys and values
  LayerNorm shared_norm;      // dual_ln_s: for the keys and values of CLS and the landmarks
  Linear dynamic_projection;  // dconv_fc; undefined: no landmarks
  at::Tensor value_taps;      // mha.conv [H, kernel]; undefined: no convolution
  Linear feed_forward_in, feed_forward_out;
  int64_t heads = 0;
  bool normalized_cls = false;  // norm1 normalises the CLS rows before attention

  // The layer's output. With `cls_only`, it computes only the CLS rows, because the tokens' rows are not read later.
  //   documents  number of documents of the batch in which `attention` attends
  HiddenRows operator()(const HiddenRows& hidden, int64_t documents, ItemAttention& attention, bool cls_only) const;
  // The multiply-adds of all matrix products and convolutions of a batch. Masked tokens cause none.
  int64_t MultiplyAdds(const PackedDocuments& packed, bool has_cls, bool cls_only) const;

  void MoveBy(TensorMove& move);

 private:
  // The keys and values that all tokens see in addition to their windows, after shared_norm: [documents, m, D], CLS
  // first.
  //   tokens  the tokens' keys and values, after window_norm
  //   cls     those of CLS, [documents, D]; undefined without CLS
  RowKeyValues SharedVectors(const at::Tensor& input, const RowKeyValues& tokens, const RowKeyValues& cls,
                             int64_t documents, ItemAttention& attention) const;
  at::Tensor Finish(const at::Tensor& rows, const at::Tensor& attended) const;
};

}  // namespace longshort::models
