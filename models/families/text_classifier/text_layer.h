// One layer of the text classifier: its weights and computation, over a packed batch of documents.
#pragma once

#include <cstdint>

#include "ATen/core/Tensor.h"
#include "absl/types/span.h"
#include "models/ops/document_attention/packed_documents.h"
#include "models/ops/item_attention/item_attention.h"
#include "models/ops/layers/linear.h"
#include "models/ops/rows/cpu_kernels.h"

namespace longshort::models {

// Rows of a batch: the CLS rows, one for each document, then the tokens'. One matrix, so that there is one product per
// weight.
struct HiddenRows {
  at::Tensor all;             // [cls_rows + rows, D]
  int64_t cls_rows = 0;       // 0: there are no CLS rows
  at::Tensor first_cls = {};  // [cls_rows, D]: the CLS rows of their first layer, which are not in `all`

  at::Tensor cls() const { return first_cls.defined() ? first_cls : all.narrow(0, 0, cls_rows); }
  at::Tensor tokens() const { return first_cls.defined() ? all : all.narrow(0, cls_rows, all.size(0) - cls_rows); }
  // Puts all rows in one matrix.
  void Join();
};

struct TextLayer {
  LayerNorm norm1, norm2;
  Linear query, key, value, output;
  LayerNorm window_norm;      // dual_ln_l: for the tokens' keys and values; undefined: none
  LayerNorm shared_norm;      // dual_ln_s: for the keys and values of CLS and the landmarks; undefined: none
  Linear dynamic_projection;  // dconv_fc; undefined: no landmarks
  at::Tensor value_taps;      // mha.conv [H, kernel]; undefined: no convolution
  FeedForward feed_forward;
  Linear joined = {};  // query, key, value and dynamic_projection, on GPUs
  int64_t heads = 0;
  bool norms_after = false;  // norm1 and norm2 are behind the sums, not before attention and feed_forward
  // norm1 normalises the CLS rows before attention. Without effect if norms_after.
  bool normalized_cls = false;
  // A CLS row attends to the keys and values of all tokens, and to its own after shared_norm. Otherwise it attends to
  // the tokens' attention output before the convolution, and to its own key and value without shared_norm.
  bool cls_sees_keys = false;

  // The layer's output. With `cls_only`, it computes only the CLS rows, because the tokens' rows are not read later.
  //   documents  number of documents of the batch in which `attention` attends
  HiddenRows operator()(HiddenRows hidden, int64_t documents, ItemAttention& attention, bool cls_only) const;
  // The multiply-adds of all matrix products and convolutions of a batch. Masked tokens cause none.
  int64_t MultiplyAdds(const DocumentCounts& batch, bool has_cls, bool cls_only) const;

  void MoveBy(TensorMove& move);

 private:
  // What attention reads.
  struct Projections {
    at::Tensor queries;      // of the tokens; undefined if only keys and values are read
    RowKeyValues window;     // of the tokens, after window_norm
    at::Tensor logits;       // of the tokens: dynamic_projection's
    at::Tensor cls_queries;  // [documents, D]; meaningless without CLS
    RowKeyValues cls;        // the same, before shared_norm; undefined without CLS
  };

  HiddenRows AttentionInput(const HiddenRows& hidden, ItemAttention& attention) const;
  // In two ways: the reference, and for training (models/ops/layer_halves/layer_halves.h).
  //   only_keys  no query of a token is read
  Projections Project(const HiddenRows& hidden, bool only_keys, ItemAttention& attention) const;
  Projections ProjectFused(const HiddenRows& hidden) const;
  // The keys and values that all tokens see in addition to their windows: [documents, m, D], CLS first.
  //   logits  of the dynamic projection
  //   tokens  the tokens' keys and values, after window_norm
  //   cls     those of CLS, [documents, D], after shared_norm where CLS sees keys or there are no landmarks; undefined
  //           without CLS
  RowKeyValues SharedVectors(const at::Tensor& logits, const RowKeyValues& tokens, const RowKeyValues& cls,
                             int64_t documents, ItemAttention& attention) const;
  at::Tensor Finish(const at::Tensor& rows, const at::Tensor& attended, ItemAttention& attention) const;
};

// --- layers for serving on CPUs, by the fused kernels of models/ops/document_layer/document_layer.h ---
//
// The reference is TextLayer on LibTorch, which has the same result and also serves training, GPUs and other types.

// Whether the kernels compute these layers faster than LibTorch: float32 weights on the CPU, few enough for a core's
// cache, no convolution of values, and no gradients to keep.
bool CanFuse(absl::Span<const TextLayer> layers, const PackedDocuments& packed);
// Whether that holds for short documents, too, gradients aside.
bool CanFuse(absl::Span<const TextLayer> layers);

// The last layer's rows. With `cls_only`, the CLS rows only.
//   tokens     [rows, D]: the first layer's input
//   cls        [documents, D]: the CLS rows, which join in layer `cls_layer`; undefined: none
// REQUIRES: CanFuse(layers, packed).
HiddenRows RunFused(absl::Span<const TextLayer> layers, const PackedDocuments& packed, const at::Tensor& tokens,
                    const at::Tensor& cls, int64_t cls_layer, bool cls_only,
                    cpu::InstructionSet set = cpu::BestInstructionSet());

}  // namespace longshort::models
