// Classifiers by plain JSON: TEI's POST /predict for texts, and POST /classify with an image file as the body.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/call/call_record.h"
#include "server/call/unary.h"
#include "server/fronts/openai/messages.pb.h"
#include "server/fronts/openai/request_body.h"
#include "server/transports/http/http_codec.h"

namespace longshort::server {

const RequestBody& PredictBody();

// Reads the body of /predict. Errors: INVALID_ARGUMENT; the meter's.
absl::Status ReadPredictRequest(std::string_view body, const RequestLimits& limits, MemoryMeter& meter,
                                openai::PredictRequest& request);

// The work. A request without a model's name means the only model of its kind that the caller may use.
absl::Status Predict(CallRecord& record, openai::PredictRequest request, const Answerer<CallAnswer>& answer);
absl::Status Classify(CallRecord& record, openai::ClassifyRequest request, const Answerer<CallAnswer>& answer);

// Errors are problem details (RFC 9457). `limits` must outlive the codec.
std::unique_ptr<HttpCodec> MakePredictCodec(const RequestLimits& limits);
std::unique_ptr<HttpCodec> MakeClassifyCodec(const RequestLimits& limits);

HttpResponse ProblemDetails(const absl::Status& status);

}  // namespace longshort::server
