// The training text of a byte model: its vocabulary, and batches of parallel streams of its ids.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ATen/core/Tensor.h"

namespace longshort::models {

// vocabulary.txt of a byte model: all bytes except the newline, sorted by falling count in `text`, then by the symbol
// as a string.
std::string ByteVocabulary(std::string_view text);

// Cuts ids into `batch` parallel streams of equal length, and each of them into pieces of `tokens` tokens.
class StreamBatches final {
 public:
  // REQUIRES: ids.size() > batch * tokens.
  StreamBatches(std::vector<int32_t> ids, int64_t batch, int64_t tokens);

  struct Batch {
    at::Tensor inputs;    // [batch, tokens] int64
    at::Tensor targets;   // [batch, tokens] int64: the token after each input
    bool starts = false;  // the streams start here: earlier memory does not apply
  };

  // Batch `index` of an endless sequence of passes. The ids form a ring, and the streams of pass n start n * `tokens` /
  // 2 later in it. So each pass cuts the text at other places.
  Batch At(int64_t index) const;
  int64_t batches_per_pass() const { return batches_per_pass_; }

 private:
  std::vector<int32_t> ids_;
  int64_t batch_, tokens_, stream_length_, batches_per_pass_;
};

}  // namespace longshort::models
