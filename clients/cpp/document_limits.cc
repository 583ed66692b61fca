#include "clients/cpp/document_limits.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"

namespace longshort {
namespace {

absl::Status FitLanguageModel(const v1::Model& model, const v1::Input& input) {
  const int64_t tokens = CountTokens(input, model.tokenizer());
  const int64_t limit = model.limits().prompt_tokens();
  if (tokens <= limit) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("it has ", tokens, " tokens; the server takes at most ", limit,
                   " in one document. Start the server with --max-prompt-tokens=", tokens,
                   " to score it with the memory carried on, or cut it: \"split --line-bytes=", limit,
                   " FILE\" makes parts that are each scored from an empty memory."));
}

absl::Status FitClassifier(const v1::Model& model, bool truncate, v1::Input& input) {
  const bool a_byte_a_token = model.tokenizer() == "bytes_plus_one";
  if (!input.has_ids() && !a_byte_a_token) return absl::OkStatus();
  const int64_t tokens = CountTokens(input, model.tokenizer());
  const int64_t limit = model.classifier().max_document_tokens();
  if (tokens <= limit) return absl::OkStatus();
  if (!truncate) {
    return absl::InvalidArgumentError(absl::StrCat("it has ", tokens, " tokens; the model takes at most ", limit,
                                                   ". --truncate reads only the first ", limit, "."));
  }
  const int64_t kept = limit + 1;
  if (input.has_ids()) {
    input.mutable_ids()->mutable_ids()->Truncate(static_cast<int>(kept));
  } else {
    input.mutable_raw()->resize(static_cast<size_t>(kept));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status FitDocument(const v1::Model& model, bool truncate, DocumentInputs& inputs) {
  if (!model.has_classifier()) return FitLanguageModel(model, inputs.first);
  absl::Status first = FitClassifier(model, truncate, inputs.first);
  if (!first.ok() || !inputs.second.has_value()) return first;
  return FitClassifier(model, truncate, *inputs.second);
}

}  // namespace longshort
