// The tokenizer's paths, as vLLM has them: /tokenizer_info, /tokenize and /detokenize. Evaluation harnesses use them
// for models whose tokenizer is published nowhere.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "server/call/call_record.h"
#include "server/call/rpc.h"
#include "server/fronts/openai/messages.pb.h"
#include "server/fronts/openai/request_body.h"
#include "server/transports/http/http_codec.h"

namespace longshort::server {

const RequestBody& TokenizeBody();
const RequestBody& DetokenizeBody();

// A request without a model's name means the only language model that the caller may use.
absl::StatusOr<CallAnswer> AnswerTokenizer(CallRecord& record, const openai::TokenizerRequest& request);

// `limits` must outlive the codec.
std::unique_ptr<HttpCodec> MakeTokenizerCodec(openai::TokenizerRequest::Kind kind, const RequestLimits& limits);

}  // namespace longshort::server
