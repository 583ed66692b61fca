#include "core/requests/delta_buffer.h"

#include <utility>

namespace longshort::core {

GenerationDelta DeltaBuffer::Append(GeneratedToken token, std::string_view bytes) {
  held_tokens_.push_back({.token = std::move(token), .due = appended_bytes_ + (bytes.empty() ? 0 : 1)});
  appended_bytes_ += static_cast<int64_t>(bytes.size());
  return Deliver(stop_strings_.Append(bytes));
}

GenerationDelta DeltaBuffer::Flush() { return Deliver(stop_strings_.Flush()); }

GenerationDelta DeltaBuffer::Deliver(std::string bytes) {
  delivered_bytes_ += static_cast<int64_t>(bytes.size());
  GenerationDelta delta{.bytes = std::move(bytes), .tokens = {}};
  while (!held_tokens_.empty() && held_tokens_.front().due <= delivered_bytes_) {
    delta.tokens.push_back(std::move(held_tokens_.front().token));
    held_tokens_.pop_front();
  }
  return delta;
}

}  // namespace longshort::core
