#include "models/language_model/gpu/move_decoder.h"

namespace longshort {
namespace {

void MoveTo(const at::Device& device, at::Tensor& tensor) {
  if (tensor.defined()) tensor = tensor.to(device);
}
void MoveTo(const at::Device& device, Linear& map) {
  MoveTo(device, map.weight);
  MoveTo(device, map.bias);
}
void MoveTo(const at::Device& device, LayerNorm& norm) {
  MoveTo(device, norm.gain);
  MoveTo(device, norm.bias);
}

}  // namespace

void MoveDecoder(const at::Device& device, Decoder& decoder, const std::function<void()>& between) {
  MoveTo(device, decoder.embedding);
  MoveTo(device, decoder.output);
  MoveTo(device, decoder.inverse_frequencies);
  for (DecoderLayer& layer : decoder.layers) {
    between();
    for (Linear* const map : {&layer.query_and_logits, &layer.key_and_value, &layer.output, &layer.window_positions,
                              &layer.chunk_positions, &layer.feed_forward_in, &layer.feed_forward_out}) {
      MoveTo(device, *map);
    }
    for (LayerNorm* const norm : {&layer.window_norm, &layer.chunk_norm, &layer.norm1, &layer.norm2}) {
      MoveTo(device, *norm);
    }
    MoveTo(device, layer.window_bias);
    MoveTo(device, layer.relative_bias);
  }
}

}  // namespace longshort
