#include "server/open_inference_v2/model_tensors.h"

#include "server/open_inference_v2/names.h"

namespace longshort {
namespace {

OutputDescription Describe(Output output, std::string_view datatype, std::vector<int64_t> dims) {
  return {.output = output, .tensor = {.name = NameOf(output), .datatype = datatype, .dims = std::move(dims)}};
}

ModelTensors OfLanguageModel(const ServedLanguageModel& model) {
  const bool text = model.tokenizer != nullptr;
  ModelTensors tensors{.decoupled = true};
  // Of texts one dimension: how many. Of ids two: how many, and of how many tokens each.
  const std::vector<int64_t> one = text ? std::vector<int64_t>{1} : std::vector<int64_t>{1, -1};
  const std::vector<int64_t> some = text ? std::vector<int64_t>{-1} : std::vector<int64_t>{-1, -1};
  const std::string_view datatype = text ? "BYTES" : "INT32";
  tensors.inputs = {{.name = kPromptInput, .datatype = datatype, .dims = one},
                    {.name = kDocumentInput, .datatype = datatype, .dims = some, .optional = true}};
  tensors.outputs = {text ? Describe(Output::kText, "BYTES", {-1}) : Describe(Output::kTokenIds, "INT32", {-1}),
                     Describe(Output::kFinishReason, "BYTES", {-1}), Describe(Output::kLogLikelihood, "FP64", {-1}),
                     Describe(Output::kTokenCount, "INT64", {-1}), Describe(Output::kScoredTokenCount, "INT64", {-1})};
  return tensors;
}

ModelTensors OfClassifier(const ServedClassifier& model, const ModelLimits& limits) {
  const ClassifierInfo& info = model.info;
  ModelTensors tensors;
  if (info.input == ClassifierInput::kText) {
    tensors.max_batch_size = limits.texts;
    const bool text = model.tokenizer != nullptr;
    const std::vector<int64_t> dims = {text ? 1 : -1};
    const std::string_view datatype = text ? "BYTES" : "INT32";
    tensors.inputs.push_back({.name = kDocumentInput, .datatype = datatype, .dims = dims});
    if (info.documents == 2) {
      tensors.inputs.push_back({.name = kSecondDocumentInput, .datatype = datatype, .dims = dims});
    }
  } else {
    tensors.max_batch_size = limits.images;
    tensors.inputs.push_back({.name = kImageInput, .datatype = "BYTES", .dims = {1}});
  }
  tensors.outputs = {Describe(Output::kLogits, "FP32", {info.classes}),
                     Describe(Output::kProbabilities, "FP32", {info.classes})};
  return tensors;
}

}  // namespace

ModelTensors TensorsOf(const ModelDescription& model) {
  if (const ServedLanguageModel* language_model = model.served.language_model(); language_model != nullptr) {
    return OfLanguageModel(*language_model);
  }
  return OfClassifier(*model.served.classifier(), model.limits);
}

std::string_view NameOf(Output output) {
  switch (output) {
    case Output::kLogits:
      return "logits";
    case Output::kProbabilities:
      return "probabilities";
    case Output::kText:
      return "text";
    case Output::kTokenIds:
      return "token_ids";
    case Output::kFinishReason:
      return "finish_reason";
    case Output::kLogLikelihood:
      return "log_likelihood";
    case Output::kTokenCount:
      return "token_count";
    case Output::kScoredTokenCount:
      return "scored_token_count";
  }
  return "";
}

}  // namespace longshort
