// A request of the protocol as a call, and the form that its answer must have.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "open_inference/v2/service.pb.h"
#include "server/admission/call_record.h"
#include "server/calls/classify_call.h"
#include "server/calls/generate_call.h"
#include "server/calls/score_call.h"
#include "server/open_inference_v2/model_tensors.h"

namespace longshort::server {

struct RequestedOutput {
  Output output = Output::kLogits;
  // Of a classifier's outputs: as many of the likeliest classes instead of the tensor; 0 for the tensor.
  int64_t class_count = 0;
};

struct AnswerForm {
  std::string id;
  // As the request's contents.
  bool raw = false;
  std::vector<RequestedOutput> outputs;
};

struct InferPlan {
  AnswerForm form;
  std::variant<ClassifyCall, ScoreCall, GenerateCall> call;
  // A stream tells the end of the answers by one of its own.
  bool empty_final_answer = false;

  // What the call shows.
  std::shared_ptr<const inference::ModelInferRequest> request;
  std::vector<int32_t> ids;
  std::vector<int32_t> second_ids;
};

// Errors: INVALID_ARGUMENT naming what is wrong; those of CallRecord::FindModel. From now on the record has the
// priority and the deadline that the request asks for.
absl::StatusOr<InferPlan> PlanInfer(CallRecord& record, inference::ModelInferRequest request);

// The version that a request names: empty takes the newest. Errors: INVALID_ARGUMENT for what is no version.
absl::StatusOr<ModelReference> ReferenceOf(const std::string& name, const std::string& version, const CallNames& names);

}  // namespace longshort::server
