#include "server/calls/model_description.h"

#include <algorithm>

namespace longshort {
namespace {

std::string_view TokenizerName(const ServedLanguageModel& model) {
  if (model.tokenizer == nullptr) return "none";
  return model.tokenizer->unit() == Tokenizer::Unit::kByte ? "fairseq_bytes" : "fairseq_characters";
}

void Describe(const ServedLanguageModel& model, const RequestLimits& limits, ModelDescription& description) {
  const LanguageModelInfo& info = model.info;
  description.architecture = "language_model";
  description.fingerprint = info.fingerprint;
  description.precision = info.precision;
  description.parameters = info.parameters;
  description.vocabulary_size = info.vocabulary_size;
  description.tokenizer = TokenizerName(model);
  description.limits.prompt_tokens = limits.prompt_tokens;
  description.limits.max_tokens = limits.generate_tokens;
  description.limits.completions = std::min(limits.completions, model.max_items);
  description.limits.texts = std::min(limits.inputs, model.max_items);
  description.limits.window = limits.stream_documents;
}

void Describe(const ServedClassifier& model, const RequestLimits& limits, ModelDescription& description) {
  const ClassifierInfo& info = model.info;
  description.architecture = info.architecture;
  description.fingerprint = info.fingerprint;
  description.precision = info.precision;
  description.parameters = info.parameters;
  if (info.input == ClassifierInput::kText) {
    description.vocabulary_size = info.vocabulary_size;
    description.tokenizer = info.tokenizer;
    description.limits.texts = std::min(limits.inputs, model.max_items);
    description.limits.window = limits.stream_documents;
  } else {
    description.limits.images = std::min(limits.images, model.max_items);
    description.limits.image_bytes = limits.image_bytes;
    description.limits.image_pixels = limits.image_pixels;
  }
}

}  // namespace

ModelDescription DescribeModel(const ServedModel& served, const RequestLimits& limits) {
  ModelDescription description{.served = served};
  description.limits.message_bytes = limits.message_bytes;
  std::visit([&](const auto& kind) { Describe(kind, limits, description); }, served.kind);
  return description;
}

}  // namespace longshort
