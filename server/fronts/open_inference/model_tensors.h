// The input and output tensors of each kind of model. Metadata, configurations and the parsing of requests use this one
// list.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

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

}  // namespace longshort::server
