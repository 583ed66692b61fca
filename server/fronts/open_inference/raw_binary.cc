#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/calls/field_error.h"
#include "server/fronts/open_inference/bytes_tensor.h"
#include "server/fronts/open_inference/input_tensors.h"

namespace longshort::server {
namespace {

constexpr char kName[] = "(the body of a raw binary request)";

}  // namespace

void SetRawBinaryInput(std::string body, inference::ModelInferRequest& request) {
  request.add_inputs()->set_name(kName);
  request.add_raw_input_contents(std::move(body));
}

bool HasRawBinaryInput(const inference::ModelInferRequest& request) {
  return request.inputs_size() == 1 && request.raw_input_contents_size() == 1 && request.inputs(0).name() == kName &&
         request.inputs(0).datatype().empty() && request.inputs(0).shape().empty();
}

absl::Status DescribeRawBinaryInput(const ModelTensors& tensors, const std::string& model,
                                    inference::ModelInferRequest& request) {
  if (tensors.inputs.size() != 1) {
    const auto append = [](std::string* names, const TensorDescription& one) { names->append(one.name); };
    return absl::InvalidArgumentError(absl::StrCat("a raw binary request is for models with one input, and model ",
                                                   model, " has ", absl::StrJoin(tensors.inputs, ", ", append),
                                                   "; describe the inputs in JSON"));
  }
  const TensorDescription& known = tensors.inputs.front();
  inference::ModelInferRequest::InferInputTensor& input = *request.mutable_inputs(0);
  input.set_name(std::string(known.name));
  input.set_datatype(std::string(known.datatype));
  if (tensors.max_batch_size > 0) input.add_shape(1);
  std::string& raw = *request.mutable_raw_input_contents(0);
  if (known.datatype == "BYTES") {
    input.add_shape(1);
    std::string element;
    element.reserve(sizeof(uint32_t) + raw.size());
    AppendBytesElement(raw, element);
    raw = std::move(element);
    return absl::OkStatus();
  }
  // A list of token ids, the only other input of a model with one.
  if (raw.size() % sizeof(int32_t) != 0) {
    return FieldError("the length of the body", raw.size(),
                      "a multiple of 4, because the input has the datatype INT32");
  }
  input.add_shape(static_cast<int64_t>(raw.size() / sizeof(int32_t)));
  return absl::OkStatus();
}

}  // namespace longshort::server
