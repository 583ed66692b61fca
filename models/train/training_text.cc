#include "models/train/training_text.h"

#include <algorithm>
#include <array>
#include <utility>

#include "ATen/Functions.h"
#include "absl/strings/str_cat.h"

namespace longshort::models {

std::string ByteVocabulary(std::string_view text) {
  std::array<int64_t, 256> counts{};
  for (const char byte : text) ++counts[static_cast<unsigned char>(byte)];
  std::vector<std::pair<std::string, int64_t>> symbols;
  for (int byte = 0; byte < 256; ++byte) {
    if (byte != '\n') symbols.emplace_back(std::to_string(byte), counts[byte]);
  }
  std::sort(symbols.begin(), symbols.end(), [](const auto& a, const auto& b) {
    return a.second != b.second ? a.second > b.second : a.first < b.first;
  });
  std::string vocabulary;
  for (const auto& [symbol, count] : symbols) absl::StrAppend(&vocabulary, symbol, " ", count, "\n");
  return vocabulary;
}

StreamBatches::StreamBatches(std::vector<int32_t> ids, int64_t batch, int64_t tokens)
    : ids_(std::move(ids)),
      batch_(batch),
      tokens_(tokens),
      stream_length_((static_cast<int64_t>(ids_.size()) - 1) / batch),
      batches_per_pass_(stream_length_ / tokens) {}

StreamBatches::Batch StreamBatches::At(int64_t index) const {
  const int64_t pass = index / batches_per_pass_, within = index % batches_per_pass_;
  const int64_t size = static_cast<int64_t>(ids_.size());
  Batch result{.inputs = at::empty({batch_, tokens_}, at::kLong),
               .targets = at::empty({batch_, tokens_}, at::kLong),
               .starts = within == 0};
  int64_t* const inputs = result.inputs.mutable_data_ptr<int64_t>();
  int64_t* const targets = result.targets.mutable_data_ptr<int64_t>();
  for (int64_t row = 0; row < batch_; ++row) {
    const int64_t first = pass * (tokens_ / 2) + row * stream_length_ + within * tokens_;
    for (int64_t i = 0; i < tokens_; ++i) {
      inputs[row * tokens_ + i] = ids_[(first + i) % size];
      targets[row * tokens_ + i] = ids_[(first + i + 1) % size];
    }
  }
  return result;
}

}  // namespace longshort::models
