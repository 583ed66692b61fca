// OpenAI's POST /v1/embeddings and TEI's POST /embed, for classifiers of texts.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/call/call_record.h"
#include "server/call/unary.h"
#include "server/calls/embed_call.h"
#include "server/fronts/openai/messages.pb.h"
#include "server/fronts/openai/request_body.h"
#include "server/transports/http/http_codec.h"

namespace longshort::server {

const RequestBody& EmbeddingsBody();
const RequestBody& EmbedBody();

// Reads the body of /v1/embeddings. Errors: INVALID_ARGUMENT; the meter's.
absl::Status ReadEmbeddingsRequest(std::string_view body, const RequestLimits& limits, MemoryMeter& meter,
                                   openai::EmbeddingsRequest& request);

// The work: the vectors that the model's head reads, divided by their length, as OpenAI's are.
absl::Status CreateEmbeddings(CallRecord& record, const openai::EmbeddingsRequest& request,
                              const Answerer<CallAnswer>& answer);
// OpenAI's form of its answer. REQUIRES: no embedding is an error.
std::string EmbeddingsJson(const EmbedResult& result, bool in_base64);

// `limits` must outlive the codec.
std::unique_ptr<HttpCodec> MakeEmbeddingsCodec(const RequestLimits& limits);
std::unique_ptr<HttpCodec> MakeEmbedCodec(const RequestLimits& limits);

}  // namespace longshort::server
