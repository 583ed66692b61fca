// Raw binary requests of the protocol's extension of binary data (Triton's): the body is the only input of the model,
// and the model says which name, datatype and shape it has. Until the model is known, the input has a name that no
// model has.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "open_inference/v2/service.pb.h"
#include "server/fronts/open_inference/model_tensors.h"

namespace longshort::server {

void SetRawBinaryInput(std::string body, inference::ModelInferRequest& request);
bool HasRawBinaryInput(const inference::ModelInferRequest& request);

// Sets the input's name, datatype and shape. The body of a BYTES input is one element. Errors: INVALID_ARGUMENT if the
// model has several inputs, or the shape does not follow from the body's length.
absl::Status DescribeRawBinaryInput(const ModelTensors& tensors, const std::string& model,
                                    inference::ModelInferRequest& request);

}  // namespace longshort::server
