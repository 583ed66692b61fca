// Requests of the Open Inference Protocol, as clients send them.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "open_inference/v2/service.pb.h"
#include "server/fronts/open_inference/bytes_tensor.h"

namespace longshort::server {

inline std::string RawBytes(const std::vector<std::string>& elements) {
  std::string raw;
  for (const std::string& element : elements) AppendBytesElement(element, raw);
  return raw;
}

inline inference::ModelInferRequest::InferInputTensor& AddInput(inference::ModelInferRequest& request,
                                                                const std::string& name, const std::string& datatype,
                                                                std::initializer_list<int64_t> shape) {
  inference::ModelInferRequest::InferInputTensor& input = *request.add_inputs();
  input.set_name(name);
  input.set_datatype(datatype);
  for (const int64_t size : shape) input.add_shape(size);
  return input;
}

// A request with one input of BYTES, [n].
inline inference::ModelInferRequest RawRequest(const std::string& model, const std::string& input,
                                               const std::vector<std::string>& elements) {
  inference::ModelInferRequest request;
  request.set_model_name(model);
  AddInput(request, input, "BYTES", {static_cast<int64_t>(elements.size())});
  request.add_raw_input_contents(RawBytes(elements));
  return request;
}

inline inference::ModelInferRequest TypedRequest(const std::string& model, const std::string& input,
                                                 const std::vector<std::string>& elements) {
  inference::ModelInferRequest request;
  request.set_model_name(model);
  auto& tensor = AddInput(request, input, "BYTES", {static_cast<int64_t>(elements.size())});
  for (const std::string& element : elements) tensor.mutable_contents()->add_bytes_contents(element);
  return request;
}

}  // namespace longshort::server
