// One layer of the text classifier: its weights and its maths, over a packed batch of documents.
#pragma once

#include <cstdint>

#include "ATen/core/Tensor.h"
#include "models/attention/item_attention.h"
#include "models/attention/packed_documents.h"
#include "models/layers/linear.h"

namespace longshort::models {

// The hidden state between layers.
struct HiddenRows {
  at::Tensor tokens;  // [rows, D]; undefined after a layer that gives the CLS rows only
  at::Tensor cls;     // [documents, D]; undefined: there is no CLS row
};

struct TextLayer {
  LayerNorm norm1, norm2;
  Linear query, key, value, output;
  LayerNorm window_norm;      // dual_ln_l: of the tokens' keys and values
  LayerNorm shared_norm;      // dual_ln_s: of CLS's and the landmarks' keys and values
  Linear dynamic_projection;  // dconv_fc; undefined: no landmarks
  at::Tensor value_taps;      // mha.conv [H, kernel]; undefined: no convolution
  Linear feed_forward_in, feed_forward_out;
  int64_t heads = 0;
  bool normalized_cls = false;  // whether CLS rows enter attention through norm1

  // The layer's output. Where nothing later reads the tokens (`cls_only`), only the CLS rows are finished.
  //   documents  of the batch in which `attention` attends
  HiddenRows operator()(const HiddenRows& hidden, int64_t documents, ItemAttention& attention, bool cls_only) const;
  // Of every matrix product and convolution of a batch, and none of them on a masked token.
  int64_t MultiplyAdds(const PackedDocuments& packed, bool has_cls, bool cls_only) const;

  void MoveBy(TensorMove& move);

 private:
  // What the tokens see beside their windows, after shared_norm: [documents, m, D], CLS first.
  //   tokens  keys and values, after window_norm
  //   cls     those of CLS, [documents, D]; undefined: there is none
  RowKeyValues SharedVectors(const at::Tensor& input, const RowKeyValues& tokens, const RowKeyValues& cls,
                             int64_t documents, ItemAttention& attention) const;
  at::Tensor Finish(const at::Tensor& rows, const at::Tensor& attended) const;
};

}  // namespace longshort::models
