// Converts a request of the protocol to a call, and results of calls to the protocol's answers, in the requested form.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "open_inference/v2/service.pb.h"
#include "server/call/call_record.h"
#include "server/calls/classifier_calls.h"
#include "server/calls/generate_call.h"
#include "server/calls/score_call.h"
#include "server/fronts/json/json_schema.h"
#include "server/fronts/open_inference/model_tensors.h"

namespace longshort::server {

// Most bytes of a request's id. Every answer to the request repeats it.
inline constexpr int64_t kMaxRequestIdBytes = 256;

struct RequestedOutput {
  Output output = Output::kLogits;
  // For a classifier: the number of most likely classes to return instead of the tensor; 0 for the tensor.
  int64_t class_count = 0;
};

struct AnswerForm {
  std::string id;
  // As in the request: raw or typed contents.
  bool raw = false;
  std::vector<RequestedOutput> outputs;
};

struct InferPlan {
  AnswerForm form;
  std::variant<ClassifyCall, ScoreCall, GenerateCall> call;
  // Whether a stream ends the answers with an empty one.
  bool empty_final_answer = false;

  // The data that the call views.
  std::shared_ptr<const inference::ModelInferRequest> request;
  std::vector<int32_t> ids;
  std::vector<int32_t> second_ids;
};

// Errors: INVALID_ARGUMENT with the fault; those of CallRecord::FindModel. Sets the record's priority and deadline to
// the requested ones.
absl::StatusOr<InferPlan> PlanInfer(CallRecord& record, inference::ModelInferRequest request);

// The model version that a request names; empty means the newest. Errors: INVALID_ARGUMENT for an invalid version.
absl::StatusOr<ModelReference> ReferenceOf(const std::string& name, const std::string& version, const CallNames& names);

// The parameters of requests, whatever the model.
std::vector<SchemaField> InferenceParameterFields();

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
