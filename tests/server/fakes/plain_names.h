// Names of a front of plain structs, which are no contract's.
#pragma once

#include <string>

#include "absl/strings/str_cat.h"
#include "server/calls/call_names.h"

namespace longshort {

class PlainNames final : public CallNames {
 public:
  const char* rpc() const override { return "Ask"; }
  const char* method() const override { return "plain.Questions/Ask"; }
  const char* streaming_rpc() const override { return "Tell"; }
  RpcAccess access() const override { return {.scope = Scope::kInfer}; }
  using CallNames::Of;
  std::string Of(const FieldPath& path) const override {
    std::string name = NameOf(path.field);
    if (path.index.has_value()) absl::StrAppend(&name, "#", *path.index);
    if (path.id_index.has_value()) absl::StrAppend(&name, ", id ", *path.id_index);
    return name;
  }
  std::string KindsOf(CallField field) const override {
    return field == CallField::kImage ? "a picture" : "words or ids";
  }

 private:
  static const char* NameOf(CallField field) {
    switch (field) {
      case CallField::kText:
        return "text";
      case CallField::kTexts:
        return "texts";
      case CallField::kSecondText:
        return "other text";
      case CallField::kPrompt:
        return "beginning";
      case CallField::kImage:
        return "picture";
      case CallField::kImages:
        return "pictures";
      case CallField::kTruncate:
        return "cut";
      case CallField::kTopK:
        return "classes";
      case CallField::kTokenLogProbabilities:
        return "details";
      case CallField::kMaxTokens:
        return "length";
      case CallField::kCompletions:
        return "variants";
      case CallField::kStop:
        return "end";
      case CallField::kTopP:
        return "nucleus";
      case CallField::kLogitBias:
        return "bias";
      default:
        return "field";
    }
  }
};

inline const PlainNames kPlainNames;

}  // namespace longshort
