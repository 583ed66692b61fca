#include "server/open_inference_v2/names.h"

#include "absl/strings/str_cat.h"

namespace longshort {
namespace {

std::string NameOf(CallField field) {
  switch (field) {
    case CallField::kModelName:
      return "model_name";
    case CallField::kModelVersion:
      return "model_version";
    case CallField::kTexts:
      return "documents";
    case CallField::kText:
      return kDocumentInput;
    case CallField::kSecondTexts:
      return "second documents";
    case CallField::kSecondText:
      return kSecondDocumentInput;
    case CallField::kPrompt:
      return kPromptInput;
    case CallField::kImages:
      return "images";
    case CallField::kImage:
      return kImageInput;
    case CallField::kTopK:
      return "parameters.classification";
    case CallField::kAllLogits:
      return "logits";
    case CallField::kMaxTokens:
      return "parameters.max_tokens";
    case CallField::kCompletions:
      return "parameters.completions";
    case CallField::kEcho:
      return "parameters.echo";
    case CallField::kStop:
      return "parameters.stop";
    case CallField::kTruncate:
      return "parameters.truncate";
    case CallField::kTemperature:
      return "parameters.temperature";
    case CallField::kSamplingTopK:
      return "parameters.top_k";
    case CallField::kTopP:
      return "parameters.top_p";
    case CallField::kMinP:
      return "parameters.min_p";
    case CallField::kRepetitionPenalty:
      return "parameters.repetition_penalty";
    case CallField::kFrequencyPenalty:
      return "parameters.frequency_penalty";
    case CallField::kPresencePenalty:
      return "parameters.presence_penalty";
    // What no request of this protocol has.
    case CallField::kOptions:
    case CallField::kTokenLogProbabilities:
    case CallField::kTopAlternatives:
    case CallField::kLogitBias:
    case CallField::kSession:
    case CallField::kSessionId:
    case CallField::kExpectedTokens:
    case CallField::kSessionBytes:
    case CallField::kOwner:
    case CallField::kKeepOwner:
    case CallField::kAllOwners:
    case CallField::kPageSize:
    case CallField::kPageToken:
      break;
  }
  return "";
}

// One element is called by its input's name.
CallField WithIndex(CallField field) {
  if (field == CallField::kTexts) return CallField::kText;
  if (field == CallField::kSecondTexts) return CallField::kSecondText;
  if (field == CallField::kImages) return CallField::kImage;
  return field;
}

}  // namespace

std::string OpenInferenceNames::Of(const FieldPath& path) const {
  std::string name = NameOf(path.index.has_value() ? WithIndex(path.field) : path.field);
  if (path.index.has_value()) absl::StrAppend(&name, "[", *path.index, "]");
  if (path.id_index.has_value()) absl::StrAppend(&name, " (token ", *path.id_index, ")");
  return name;
}

std::string OpenInferenceNames::KindsOf(CallField field) const {
  return field == CallField::kImage ? "the bytes of an image, or pixels" : "text or token ids";
}

}  // namespace longshort
