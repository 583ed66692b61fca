// Tensors on an emulated GPU are the processor's, wherever they were left. So they are moved to another device here.

#include <vector>

#include "gtest/gtest.h"
#include "models/families/language_model/decoder.h"
#include "tests/models/families/language_model/random_decoder.h"

namespace longshort::models::move_decoder_test {

TEST(MoveDecoder, LeavesNoTensorBehind) {
  Decoder decoder = RandomDecoder(SmallConfig(), 5);
  int between = 0;
  decoder.Move(at::kMeta, [&] { ++between; });
  EXPECT_EQ(between, decoder.config.layers);
  std::vector<at::Tensor> tensors = {decoder.embedding, decoder.output.weight, decoder.output.bias,
                                     decoder.inverse_frequencies};
  for (const DecoderLayer& layer : decoder.layers) {
    for (const Linear* const map :
         {&layer.query_and_logits, &layer.key_and_value, &layer.output, &layer.window_positions, &layer.chunk_positions,
          &layer.feed_forward_in, &layer.feed_forward_out}) {
      tensors.insert(tensors.end(), {map->weight, map->bias});
    }
    for (const LayerNorm* const norm : {&layer.window_norm, &layer.chunk_norm, &layer.norm1, &layer.norm2}) {
      tensors.insert(tensors.end(), {norm->gain, norm->bias});
    }
    tensors.insert(tensors.end(), {layer.window_bias, layer.relative_bias});
  }
  for (size_t i = 0; i < tensors.size(); ++i) {
    EXPECT_TRUE(!tensors[i].defined() || tensors[i].is_meta()) << "tensor " << i;
  }
}

}  // namespace longshort::models::move_decoder_test
