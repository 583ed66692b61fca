#include "server/rpc/tokenize.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "models/status_macros.h"
#include "server/requests/answers.h"
#include "server/requests/input_reader.h"

namespace longshort {

absl::StatusOr<v1::TokenizeResponse> Tokenize(const RequestLimits& limits, CallRecord& record,
                                              const v1::TokenizeRequest& request) {
  LS_ASSIGN_OR_RETURN(const std::shared_ptr<ServedModel> model, record.FindModel(request.model()));
  const int64_t most_tokens = std::min(limits.prompt_tokens, limits.described_tokens);
  LS_ASSIGN_OR_RETURN(const std::vector<int32_t> tokens, ReadInput(request.input(), "input", *model, most_tokens));
  v1::TokenizeResponse response;
  response.mutable_ids()->Assign(tokens.begin(), tokens.end());
  if (model->tokenizer != nullptr) {
    for (const int32_t token : tokens) response.add_pieces(std::string(model->tokenizer->Decode(token)));
  }
  *response.mutable_model() = SelectorOf(*model);
  return response;
}

}  // namespace longshort
