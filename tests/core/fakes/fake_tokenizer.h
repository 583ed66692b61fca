// A tokenizer from a table: what each id stands for.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "models/tokenizer/tokenizer.h"

namespace longshort::core {

// An id whose piece is empty is never to be sampled.
class FakeTokenizer final : public models::Tokenizer {
 public:
  explicit FakeTokenizer(std::vector<std::string> pieces) : pieces_(std::move(pieces)) {}

  Unit unit() const override { return Unit::kByte; }
  int64_t vocabulary_size() const override { return static_cast<int64_t>(pieces_.size()); }
  bool IsProducible(int32_t id) const override { return !pieces_[id].empty(); }
  absl::StatusOr<models::DocumentBeginning> EncodeBeginning(std::string_view, int64_t) const override {
    return absl::UnimplementedError("the engine never encodes");
  }
  absl::StatusOr<std::vector<models::TokenSpan>> Spans(std::string_view) const override {
    return absl::UnimplementedError("the engine never encodes");
  }
  std::string_view Decode(int32_t id) const override { return pieces_[id]; }

 private:
  const std::vector<std::string> pieces_;
};

}  // namespace longshort::core
