#include "server/rpc/tokenize.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "server/requests/answers.h"
#include "server/requests/input_reader.h"

namespace longshort {
namespace {

absl::StatusOr<TextEncoder> EncoderOf(const ServedModel& model) {
  if (model.language_model() != nullptr) return EncoderOf(*model.language_model());
  const ServedClassifier& classifier = *model.classifier();
  if (classifier.info.input == ClassifierInput::kText) return EncoderOf(classifier);
  return absl::FailedPreconditionError(
      absl::StrCat("Tokenize needs a model of texts; model ", model.name, " is a classifier of images"));
}

}  // namespace

absl::StatusOr<v1::TokenizeResponse> Tokenize(const RequestLimits& limits, CallRecord& record,
                                              const v1::TokenizeRequest& request) {
  LS_ASSIGN_OR_RETURN(const std::shared_ptr<const ServedModel> model, record.FindModel(request.model()));
  LS_ASSIGN_OR_RETURN(const TextEncoder encoder, EncoderOf(*model));
  const int64_t most_tokens = std::min(limits.prompt_tokens, limits.described_tokens);
  LS_ASSIGN_OR_RETURN(const std::vector<int32_t> tokens, ReadInput(request.input(), "input", encoder, most_tokens));
  v1::TokenizeResponse response;
  response.mutable_ids()->Assign(tokens.begin(), tokens.end());
  if (const ServedLanguageModel* speaker = model->language_model();
      speaker != nullptr && speaker->tokenizer != nullptr) {
    for (const int32_t token : tokens) response.add_pieces(std::string(speaker->tokenizer->Decode(token)));
  }
  *response.mutable_model() = record.answering_model();
  return response;
}

}  // namespace longshort
