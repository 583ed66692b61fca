// The input and output tensors of each kind of model. Metadata, configurations and the parsing of requests use this one
// list.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "open_inference/v2/service.pb.h"
#include "server/calls/request_limits.h"

namespace longshort::server {

enum class Output {
  // For classifiers.
  kLogits,
  kProbabilities,
  kEmbedding,
  // For language models with a prompt.
  kText,
  kTokenIds,
  kFinishReason,
  // For language models with documents.
  kLogLikelihood,
  kTokenCount,
  kScoredTokenCount,
};

struct TensorDescription {
  std::string_view name;
  std::string_view datatype;
  // Without the batch dimension; -1: any size.
  std::vector<int64_t> dims;
  bool optional = false;
};

struct OutputDescription {
  Output output = Output::kLogits;
  TensorDescription tensor;
};

struct ModelTensors {
  // Maximum number of items of a request; 0 if the tensors have no batch dimension.
  int64_t max_batch_size = 0;
  // Whether a streamed request may have several answers.
  bool decoupled = false;
  std::vector<TensorDescription> inputs = {};
  std::vector<OutputDescription> outputs = {};
};

ModelTensors TensorsOf(const core::ServedModel& model, const RequestLimits& limits);

std::string_view NameOf(Output output);
std::string_view DatatypeOf(Output output);

// Metadata of the server and its models. `model_control`: whether clients may load and unload models.
inference::ServerMetadataResponse DescribeServer(bool model_control);

// `versions`: the served ones.
inference::ModelMetadataResponse ToMetadata(const core::ServedModel& model, const RequestLimits& limits,
                                            const std::vector<int64_t>& versions);
inference::ModelConfig ToConfig(const core::ServedModel& model, const RequestLimits& limits);
inference::ModelStatistics ToStatistics(const core::ServedModel& model);

// Raw binary requests of the protocol's extension of binary data (Triton's): the body is the only input of the model,
// and the model says which name, datatype and shape it has. Until the model is known, the input has a name that no
// model has.
void SetRawBinaryInput(std::string body, inference::ModelInferRequest& request);
bool HasRawBinaryInput(const inference::ModelInferRequest& request);

// Sets the input's name, datatype and shape. The body of a BYTES input is one element. Errors: INVALID_ARGUMENT if the
// model has several inputs, or the shape does not follow from the body's length.
absl::Status DescribeRawBinaryInput(const ModelTensors& tensors, const std::string& model,
                                    inference::ModelInferRequest& request);

}  // namespace longshort::server
