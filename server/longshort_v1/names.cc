#include "server/longshort_v1/names.h"

#include <string_view>

#include "absl/strings/str_cat.h"

namespace longshort {
namespace {

const char* NameOf(CallField field, const char* session_id) {
  switch (field) {
    case CallField::kModelName:
      return "model.name";
    case CallField::kModelVersion:
      return "model.version";
    case CallField::kTexts:
      return "inputs";
    case CallField::kText:
      return "input";
    case CallField::kSecondTexts:
      return "second_inputs";
    case CallField::kSecondText:
      return "second_input";
    case CallField::kPrompt:
      return "prompt";
    case CallField::kImages:
    case CallField::kImage:
      return "images";
    case CallField::kOptions:
      return "options";
    case CallField::kTokenLogProbabilities:
      return "token_log_probabilities";
    case CallField::kTopAlternatives:
      return "top_alternatives";
    case CallField::kTruncate:
      return "truncate";
    case CallField::kTopK:
      return "top_k";
    case CallField::kAllLogits:
      return "all_logits";
    case CallField::kMaxTokens:
      return "max_tokens";
    case CallField::kCompletions:
      return "completions";
    case CallField::kEcho:
      return "echo";
    case CallField::kStop:
      return "stop";
    case CallField::kTemperature:
      return "sampling.temperature";
    case CallField::kSamplingTopK:
      return "sampling.top_k";
    case CallField::kTopP:
      return "sampling.top_p";
    case CallField::kMinP:
      return "sampling.min_p";
    case CallField::kRepetitionPenalty:
      return "sampling.repetition_penalty";
    case CallField::kFrequencyPenalty:
      return "sampling.frequency_penalty";
    case CallField::kPresencePenalty:
      return "sampling.presence_penalty";
    case CallField::kLogitBias:
      return "sampling.logit_bias";
    case CallField::kSession:
      return "session";
    case CallField::kSessionId:
      return session_id;
    case CallField::kExpectedTokens:
      return std::string_view(session_id) == "session.id" ? "session.expected_tokens" : "expected_tokens";
    case CallField::kSessionBytes:
      return "header.data_bytes";
    case CallField::kOwner:
      return "owner";
    case CallField::kKeepOwner:
      return "beginning.keep_owner";
    case CallField::kAllOwners:
      return "all_owners";
    case CallField::kPageSize:
      return "page_size";
    case CallField::kPageToken:
      return "page_token";
  }
  return "";
}

// A text is one of several where its call has several, and the call's only one elsewhere.
CallField WithIndex(CallField field) {
  if (field == CallField::kText) return CallField::kTexts;
  if (field == CallField::kSecondText) return CallField::kSecondTexts;
  return field;
}

}  // namespace

std::string V1Names::Of(const FieldPath& path) const {
  std::string name = NameOf(path.index.has_value() ? WithIndex(path.field) : path.field, session_id_);
  if (path.index.has_value()) absl::StrAppend(&name, "[", *path.index, "]");
  switch (path.part) {
    case TextPart::kWhole:
      break;
    case TextPart::kText:
      name += ".text";
      break;
    case TextPart::kBytes:
      name += ".raw";
      break;
    case TextPart::kIds:
      name += ".ids";
      break;
  }
  if (path.id_index.has_value()) absl::StrAppend(&name, ".ids[", *path.id_index, "]");
  return name;
}

std::string V1Names::KindsOf(CallField field) const {
  return field == CallField::kImage ? "encoded, or a tensor with values" : "text, raw or ids";
}

}  // namespace longshort
