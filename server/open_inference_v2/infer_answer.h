// Results of calls as answers of the protocol, in the form that was asked for.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "open_inference/v2/service.pb.h"
#include "server/admission/call_record.h"
#include "server/open_inference_v2/infer_plan.h"

namespace longshort::server {

// The error of an image is that of the whole request: the protocol has none of parts.
absl::StatusOr<inference::ModelInferResponse> AnswerOf(const AnswerForm& form, const ClassifyResult& result);
absl::StatusOr<inference::ModelInferResponse> AnswerOf(const AnswerForm& form, const ScoreResult& result);
absl::StatusOr<inference::ModelInferResponse> AnswerOf(const AnswerForm& form, const GenerateResult& result);

// Without outputs: names, version and id.
inference::ModelInferResponse EmptyAnswer(const AnswerForm& form, const ModelReference& model);

// A piece of a generation, or its end.
struct TextPiece {
  std::string text = {};
  std::vector<int32_t> ids = {};
  std::string finish_reason = {};  // empty before the end
};
inference::ModelInferResponse AnswerOf(const AnswerForm& form, const ModelReference& model, const TextPiece& piece);

// As parameters of an answer. The seed is a string of digits, because no field of some clients has room for it.
void AddUsage(const Usage& usage, inference::ModelInferResponse& response);
void AddSeed(uint64_t seed, inference::ModelInferResponse& response);

// "length" or "stop".
const char* NameOf(core::FinishReason reason);

using InferDone = std::function<void(absl::StatusOr<inference::ModelInferResponse>)>;

// ModelInfer's work, whatever the model: a request becomes a call, and its result an answer.
// After OK, `done` is called once, at once or later, on any thread; after an error, never. `done` keeps `record`. The
// data that the plan views may go away when this returns.
absl::Status Infer(CallRecord& record, InferPlan plan, InferDone done);

}  // namespace longshort::server
