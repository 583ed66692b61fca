#include "server/fronts/open_inference/model_tensors.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "longshort_version.h"
#include "server/calls/call_names.h"
#include "server/fronts/open_inference/bytes_tensor.h"
#include "server/fronts/open_inference/open_inference.h"

namespace longshort::server {
namespace {

// Indexed by Output.
constexpr struct {
  std::string_view name;
  std::string_view datatype;
} kOutputs[] = {{"logits", "FP32"},         {"probabilities", "FP32"}, {"embedding", "FP32"},
                {"text", "BYTES"},          {"token_ids", "INT32"},    {"finish_reason", "BYTES"},
                {"log_likelihood", "FP64"}, {"token_count", "INT64"},  {"scored_token_count", "INT64"}};

OutputDescription Describe(Output output, int64_t size) {
  return {.output = output, .tensor = {.name = NameOf(output), .datatype = DatatypeOf(output), .dims = {size}}};
}

ModelTensors OfLanguageModel(const core::ServedLanguageModel& model) {
  const bool text = model.tokenizer != nullptr;
  ModelTensors tensors{.decoupled = true};
  // Texts have one dimension, their number. Ids have two: the number of texts, and the tokens of each.
  const std::vector<int64_t> one = text ? std::vector<int64_t>{1} : std::vector<int64_t>{1, -1};
  const std::vector<int64_t> some = text ? std::vector<int64_t>{-1} : std::vector<int64_t>{-1, -1};
  const std::string_view datatype = text ? "BYTES" : "INT32";
  tensors.inputs = {{.name = kPromptInput, .datatype = datatype, .dims = one},
                    {.name = kDocumentInput, .datatype = datatype, .dims = some, .optional = true}};
  tensors.outputs = {text ? Describe(Output::kText, -1) : Describe(Output::kTokenIds, -1),
                     Describe(Output::kFinishReason, -1), Describe(Output::kLogLikelihood, -1),
                     Describe(Output::kTokenCount, -1), Describe(Output::kScoredTokenCount, -1)};
  return tensors;
}

ModelTensors OfClassifier(const core::ServedClassifier& model, const ModelLimits& limits) {
  const models::ClassifierInfo& info = model.info;
  ModelTensors tensors;
  if (info.input == models::ClassifierInput::kText) {
    tensors.max_batch_size = limits.texts;
    const bool text = model.tokenizer != nullptr;
    const std::vector<int64_t> dims = {text ? 1 : -1};
    const std::string_view datatype = text ? "BYTES" : "INT32";
    tensors.inputs.push_back({.name = kDocumentInput, .datatype = datatype, .dims = dims});
    if (info.MaxDocuments() == 2) {
      tensors.inputs.push_back(
          {.name = kSecondDocumentInput, .datatype = datatype, .dims = dims, .optional = info.documents == 1});
    }
  } else {
    tensors.max_batch_size = limits.images;
    tensors.inputs.push_back({.name = kImageInput, .datatype = "BYTES", .dims = {1}});
  }
  if (info.classes > 0) {
    tensors.outputs = {Describe(Output::kLogits, info.classes), Describe(Output::kProbabilities, info.classes)};
  }
  OutputDescription embedding = Describe(Output::kEmbedding, info.width);
  if (info.vectors > 1) embedding.tensor.dims.insert(embedding.tensor.dims.begin(), info.vectors);
  tensors.outputs.push_back(std::move(embedding));
  return tensors;
}

// Priorities of requests: 1 (high), 2 (normal), 3 (low).
constexpr uint64_t kPriorityLevels = 3;
constexpr uint64_t kNormalPriority = 2;

std::string PlatformOf(const core::ServedModel& model) { return absl::StrCat("longshort_", model.architecture()); }

void Set(const TensorDescription& tensor, bool batched, inference::ModelMetadataResponse::TensorMetadata& message) {
  message.set_name(std::string(tensor.name));
  message.set_datatype(std::string(tensor.datatype));
  if (batched) message.add_shape(-1);
  for (const int64_t size : tensor.dims) message.add_shape(size);
}

void Set(const core::ServingStatistics::Times& times, inference::StatisticDuration& message) {
  message.set_count(times.count());
  message.set_ns(times.nanoseconds());
}

inference::DataType DataTypeOf(std::string_view datatype) {
  if (datatype == "BYTES") return inference::TYPE_STRING;
  if (datatype == "INT32") return inference::TYPE_INT32;
  if (datatype == "INT64") return inference::TYPE_INT64;
  if (datatype == "FP32") return inference::TYPE_FP32;
  if (datatype == "FP64") return inference::TYPE_FP64;
  return inference::TYPE_INVALID;
}

template <typename Message>
void SetConfig(const TensorDescription& tensor, Message& message) {
  message.set_name(std::string(tensor.name));
  message.set_data_type(DataTypeOf(tensor.datatype));
  message.mutable_dims()->Assign(tensor.dims.begin(), tensor.dims.end());
}

}  // namespace

ModelTensors TensorsOf(const core::ServedModel& model, const RequestLimits& limits) {
  if (const core::ServedLanguageModel* language_model = model.language_model(); language_model != nullptr) {
    return OfLanguageModel(*language_model);
  }
  return OfClassifier(*model.classifier(), LimitsOf(model, limits));
}

std::string_view NameOf(Output output) { return kOutputs[static_cast<size_t>(output)].name; }

std::string_view DatatypeOf(Output output) { return kOutputs[static_cast<size_t>(output)].datatype; }

inference::ServerMetadataResponse DescribeServer(bool model_control) {
  inference::ServerMetadataResponse message;
  message.set_name("longshort");
  message.set_version(std::string(kVersion));
  for (const char* extension :
       {"binary_tensor_data", "classification", "model_configuration", "parameters", "schedule_policy", "statistics"}) {
    message.add_extensions(extension);
  }
  if (model_control) message.add_extensions("model_repository");
  return message;
}

inference::ModelMetadataResponse ToMetadata(const core::ServedModel& model, const RequestLimits& limits,
                                            const std::vector<int64_t>& versions) {
  const ModelTensors tensors = TensorsOf(model, limits);
  const bool batched = tensors.max_batch_size > 0;
  inference::ModelMetadataResponse message;
  message.set_name(model.name);
  for (const int64_t version : versions) message.add_versions(absl::StrCat(version));
  message.set_platform(PlatformOf(model));
  for (const TensorDescription& tensor : tensors.inputs) Set(tensor, batched, *message.add_inputs());
  for (const OutputDescription& output : tensors.outputs) Set(output.tensor, batched, *message.add_outputs());
  return message;
}

inference::ModelConfig ToConfig(const core::ServedModel& model, const RequestLimits& limits) {
  const ModelTensors tensors = TensorsOf(model, limits);
  inference::ModelConfig config;
  config.set_name(model.name);
  config.set_platform(PlatformOf(model));
  config.set_backend("longshort");
  config.set_max_batch_size(static_cast<int32_t>(tensors.max_batch_size));
  for (const TensorDescription& tensor : tensors.inputs) {
    inference::ModelInput& input = *config.add_input();
    SetConfig(tensor, input);
    input.set_optional(tensor.optional);
  }
  for (const OutputDescription& output : tensors.outputs) SetConfig(output.tensor, *config.add_output());
  config.mutable_model_transaction_policy()->set_decoupled(tensors.decoupled);
  if (const core::ServedClassifier* classifier = model.classifier(); classifier != nullptr) {
    if (!classifier->info.labels.empty()) {
      for (inference::ModelOutput& output : *config.mutable_output()) {
        if (output.name() != NameOf(Output::kEmbedding)) output.set_label_filename("labels.txt");
      }
    }
    inference::ModelDynamicBatching& batching = *config.mutable_dynamic_batching();
    batching.add_preferred_batch_size(static_cast<int32_t>(classifier->batches.max_size));
    batching.set_max_queue_delay_microseconds(absl::ToInt64Microseconds(classifier->batches.max_queue_delay));
    batching.set_priority_levels(kPriorityLevels);
    batching.set_default_priority_level(kNormalPriority);
  }
  return config;
}

inference::ModelStatistics ToStatistics(const core::ServedModel& model) {
  const core::ServingStatistics& statistics = *model.statistics();
  inference::ModelStatistics message;
  message.set_name(model.name);
  message.set_version(absl::StrCat(model.version));
  message.set_last_inference(statistics.last_milliseconds());
  message.set_inference_count(statistics.items());
  message.set_execution_count(statistics.executions());
  inference::InferStatistics& requests = *message.mutable_inference_stats();
  Set(statistics.answers(), *requests.mutable_success());
  Set(statistics.failures(), *requests.mutable_fail());
  Set(statistics.queue(), *requests.mutable_queue());
  Set(statistics.input(), *requests.mutable_compute_input());
  Set(statistics.run(), *requests.mutable_compute_infer());
  Set(statistics.output(), *requests.mutable_compute_output());
  for (size_t size = 0; size < statistics.batches().size(); ++size) {
    if (statistics.batches()[size].count() == 0) continue;
    inference::InferBatchStatistics& batch = *message.add_batch_stats();
    batch.set_batch_size(size);
    Set(statistics.batches()[size], *batch.mutable_compute_infer());
  }
  return message;
}

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
