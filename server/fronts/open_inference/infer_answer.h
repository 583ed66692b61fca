// Converts results of calls to the protocol's answers, in the requested form.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "open_inference/v2/service.pb.h"
#include "server/call/call_record.h"
#include "server/fronts/open_inference/infer_plan.h"

namespace longshort::server {

// An error of one image fails the whole request, because the protocol has no errors of parts.
absl::StatusOr<inference::ModelInferResponse> AnswerOf(const AnswerForm& form, const ClassifyResult& result);
absl::StatusOr<inference::ModelInferResponse> AnswerOf(const AnswerForm& form, const ScoreResult& result);
absl::StatusOr<inference::ModelInferResponse> AnswerOf(const AnswerForm& form, const GenerateResult& result);

// Has only the names, version and id, without outputs.
inference::ModelInferResponse EmptyAnswer(const AnswerForm& form, const ModelReference& model);

// A piece of a generation, or its end.
struct TextPiece {
  std::string text = {};
  std::vector<int32_t> ids = {};
  std::string finish_reason = {};  // empty except at the end
};
inference::ModelInferResponse AnswerOf(const AnswerForm& form, const ModelReference& model, const TextPiece& piece);

// Add parameters to an answer. The seed is a decimal string, because some clients have no 64-bit unsigned field.
void AddUsage(const Usage& usage, inference::ModelInferResponse& response);
void AddSeed(uint64_t seed, inference::ModelInferResponse& response);

// "length" or "stop".
const char* NameOf(core::FinishReason reason);

// Gets a function that makes the answer, to be called once, on any thread.
using InferDone = std::function<void(absl::AnyInvocable<absl::StatusOr<inference::ModelInferResponse>()> make)>;

// The work of ModelInfer for every kind of model: runs the planned call and converts its result.
// After OK, `done` is called once, at once or later, on any thread; after an error, never. `done` holds `record`. The
// data that the plan views need not outlive the function.
absl::Status Infer(CallRecord& record, InferPlan plan, InferDone done);

}  // namespace longshort::server
