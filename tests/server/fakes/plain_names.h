// Names of a front of plain structs, which are no contract's.
#pragma once

#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "server/calls/call_names.h"

namespace longshort::server {

inline std::string PlainNameOf(const FieldPath& path) {
  static const auto* const kNames = new std::map<std::string_view, const char*>{{"input", "text"},
                                                                                {"inputs", "texts"},
                                                                                {"second_input", "other text"},
                                                                                {"second_inputs", "other texts"},
                                                                                {"prompt", "beginning"},
                                                                                {"images", "pictures"},
                                                                                {"truncate", "cut"},
                                                                                {"top_k", "classes"},
                                                                                {"token_log_probabilities", "details"},
                                                                                {"max_tokens", "length"},
                                                                                {"completions", "variants"},
                                                                                {"stop", "end"},
                                                                                {"sampling.top_p", "nucleus"},
                                                                                {"sampling.logit_bias", "bias"}};
  const auto found = kNames->find(path.field);
  std::string name = found == kNames->end() ? "field" : found->second;
  if (path.index.has_value()) {
    if (path.field == "inputs" || path.field == "second_inputs" || path.field == "images")
      name.pop_back();  // one of several
    absl::StrAppend(&name, "#", *path.index);
  }
  if (path.id_index.has_value()) absl::StrAppend(&name, ", id ", *path.id_index);
  return name;
}

inline constexpr FieldVocabulary kPlainVocabulary = {
    .name_of = PlainNameOf, .text_kinds = "words or ids", .image_kinds = "a picture", .streaming_rpc = "Stream"};
inline constexpr CallNames kPlainNames(kPlainVocabulary, "plain.Questions/Ask", {.scope = Scope::kInfer});

}  // namespace longshort::server
