#include "models/language_model/move_decoder.h"

#include "models/layers/tensor_move.h"

namespace longshort {

void MoveDecoder(const at::Device& device, Decoder& decoder, const std::function<void()>& between) {
  TensorMove move(device);
  move(decoder.embedding, decoder.output, decoder.inverse_frequencies);
  for (DecoderLayer& layer : decoder.layers) {
    between();
    move(layer.query_and_logits, layer.key_and_value, layer.output, layer.window_positions, layer.chunk_positions);
    move(layer.feed_forward_in, layer.feed_forward_out);
    move(layer.window_norm, layer.chunk_norm, layer.norm1, layer.norm2);
    move(layer.window_bias, layer.relative_bias);
  }
}

}  // namespace longshort
