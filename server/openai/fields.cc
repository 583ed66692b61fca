#include "server/openai/fields.h"

#include <algorithm>
#include <cstddef>
#include <iterator>

#include "absl/strings/ascii.h"

namespace longshort::server {
namespace {

bool IsField(std::string_view word) {
  const auto refused = [&](const RefusedField& one) { return one.field == word; };
  return std::find(kCompletionsFields.begin(), kCompletionsFields.end(), word) != kCompletionsFields.end() ||
         std::find(kEmbeddingsFields.begin(), kEmbeddingsFields.end(), word) != kEmbeddingsFields.end() ||
         std::any_of(std::begin(kRefusedFields), std::end(kRefusedFields), refused);
}

}  // namespace

std::optional<std::string_view> FieldIn(std::string_view message) {
  const auto is_name = [](char c) { return absl::ascii_isalnum(c) || c == '_'; };
  for (size_t begin = 0; begin < message.size();) {
    size_t end = begin;
    while (end < message.size() && is_name(message[end])) ++end;
    const std::string_view word = message.substr(begin, end - begin);
    if (IsField(word)) return word;
    begin = end + 1;
  }
  return std::nullopt;
}

}  // namespace longshort::server
