// Converts a request of the protocol to a call, and reads the requested form of the answer.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "open_inference/v2/service.pb.h"
#include "server/call/call_record.h"
#include "server/calls/classify_call.h"
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

}  // namespace longshort::server
