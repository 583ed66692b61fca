// What each family of models takes and gives, as tensors: the one list that metadata, configurations and the reading of
// requests go by.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "open_inference/v2/service.pb.h"
#include "server/calls/request_limits.h"

namespace longshort::server {

enum class Output {
  // Classifiers.
  kLogits,
  kProbabilities,
  // Language models, of a prompt.
  kText,
  kTokenIds,
  kFinishReason,
  // Language models, of documents.
  kLogLikelihood,
  kTokenCount,
  kScoredTokenCount,
};

struct TensorDescription {
  std::string_view name;
  std::string_view datatype;
  // Without the batch's dimension; -1 is any size.
  std::vector<int64_t> dims;
  bool optional = false;
};

struct OutputDescription {
  Output output = Output::kLogits;
  TensorDescription tensor;
};

struct ModelTensors {
  // Items of one request, at the most; 0 if its tensors have no dimension for them.
  int64_t max_batch_size = 0;
  // Whether a stream answers a request bit by bit.
  bool decoupled = false;
  std::vector<TensorDescription> inputs = {};
  std::vector<OutputDescription> outputs = {};
};

ModelTensors TensorsOf(const core::ServedModel& model, const RequestLimits& limits);

std::string_view NameOf(Output output);
std::string_view DatatypeOf(Output output);

// The metadata of the server and its models. `model_control`: whether clients may load and unload models.
inference::ServerMetadataResponse DescribeServer(bool model_control);

// `versions`: those that serve.
inference::ModelMetadataResponse ToMetadata(const core::ServedModel& model, const RequestLimits& limits,
                                            const std::vector<int64_t>& versions);
inference::ModelConfig ToConfig(const core::ServedModel& model, const RequestLimits& limits);
inference::ModelStatistics ToStatistics(const core::ServedModel& model);

}  // namespace longshort::server
