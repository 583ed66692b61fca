// The tokens of a job's stream, by stream position: its history, the tokens of the request, and the generated ones.
//
//   0 ........ own_begin ........ given_end ........ end
//     history         given             generated
//             ^ with a history, its last token, which the model has not read yet
//
// The rows of all tokens before `read` are in the cache, or can be computed again from here.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/types/span.h"

namespace longshort::core {

class TokenStream final {
 public:
  static constexpr auto kTokenBytes = static_cast<int64_t>(sizeof(int32_t));

  // If `history` is empty, `given` is not.
  TokenStream(std::vector<int32_t> history, std::vector<int32_t> given)
      : given_begin_(static_cast<int64_t>(history.size())),
        given_end_(given_begin_ + static_cast<int64_t>(given.size())),
        read_(own_begin()),
        tokens_(std::move(history.empty() ? given : history)) {
    if (given_begin_ > 0) tokens_.insert(tokens_.end(), given.begin(), given.end());
  }

  int64_t own_begin() const { return given_begin_ == 0 ? 0 : given_begin_ - 1; }
  int64_t given_begin() const { return given_begin_; }
  int64_t given_end() const { return given_end_; }
  int64_t end() const { return static_cast<int64_t>(tokens_.size()); }
  int64_t read() const { return read_; }
  // The tokens that its memory has room for.
  int64_t capacity() const { return static_cast<int64_t>(tokens_.capacity()); }

  int32_t operator[](int64_t position) const { return tokens_[position]; }
  const std::vector<int32_t>& all() const { return tokens_; }
  absl::Span<const int32_t> Unread() const { return absl::MakeConstSpan(tokens_).subspan(read_); }

  void Append(int32_t token) { tokens_.push_back(token); }
  void MarkReadUntil(int64_t position) { read_ = position; }

 private:
  int64_t given_begin_;
  int64_t given_end_;
  int64_t read_;
  std::vector<int32_t> tokens_;
};

}  // namespace longshort::core
