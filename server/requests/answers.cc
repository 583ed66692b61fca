#include "server/requests/answers.h"

#include <algorithm>
#include <cmath>
#include <string>

namespace longshort {
namespace {

v1::TokenLogProbability TokenMessage(const TokenLogProbability& token, const ServedLanguageModel& model) {
  v1::TokenLogProbability message;
  message.set_id(token.token);
  if (model.tokenizer != nullptr) message.set_raw(std::string(model.tokenizer->Decode(token.token)));
  message.set_log_probability(token.log_probability);
  return message;
}

const char* TokenizerName(const ServedLanguageModel& model) {
  if (model.tokenizer == nullptr) return "none";
  return model.tokenizer->unit() == Tokenizer::Unit::kByte ? "fairseq_bytes" : "fairseq_characters";
}

v1::LanguageModelHyperparameters HyperparametersOf(const LanguageModelInfo& info) {
  v1::LanguageModelHyperparameters message;
  message.set_layers(info.layers);
  message.set_model_width(info.model_width);
  message.set_heads(info.heads);
  message.set_feed_forward_width(info.feed_forward_width);
  message.set_chunk_size(info.chunk_size);
  message.set_chunk_rank(info.chunk_rank);
  message.set_window_length(info.window_length);
  message.set_memory_length(info.memory_length);
  message.set_segment_length(info.segment_length);
  return message;
}

v1::ClassifierInput ToMessage(ClassifierInput input) {
  switch (input) {
    case ClassifierInput::kText:
      return v1::CLASSIFIER_INPUT_TEXT;
    case ClassifierInput::kPixelSequence:
      return v1::CLASSIFIER_INPUT_PIXEL_SEQUENCE;
    case ClassifierInput::kImage:
      return v1::CLASSIFIER_INPUT_IMAGE;
  }
  return v1::CLASSIFIER_INPUT_UNSPECIFIED;
}

void Describe(const ServedLanguageModel& model, const RequestLimits& limits, v1::Model& message) {
  message.set_architecture("language_model");
  message.set_fingerprint(model.info.fingerprint);
  message.set_precision(model.info.precision);
  message.set_parameters(model.info.parameters);
  message.set_vocabulary_size(model.info.vocabulary_size);
  message.set_tokenizer(TokenizerName(model));
  *message.mutable_language_model() = HyperparametersOf(model.info);
  v1::Limits& message_limits = *message.mutable_limits();
  message_limits.set_prompt_tokens(limits.prompt_tokens);
  message_limits.set_max_tokens(limits.generate_tokens);
  message_limits.set_completions(static_cast<int32_t>(std::min(limits.completions, model.max_items)));
  message_limits.set_inputs(static_cast<int32_t>(std::min(limits.inputs, model.max_items)));
  message_limits.set_window(static_cast<int32_t>(limits.stream_documents));
}

void Describe(const ServedClassifier& model, const RequestLimits& limits, v1::Model& message) {
  const ClassifierInfo& info = model.info;
  message.set_architecture(info.architecture);
  message.set_fingerprint(info.fingerprint);
  message.set_precision(info.precision);
  message.set_parameters(info.parameters);
  v1::ClassifierProperties& properties = *message.mutable_classifier();
  properties.set_input(ToMessage(info.input));
  properties.set_classes(info.classes);
  for (const std::string& label : info.labels) properties.add_labels(label);
  v1::Limits& message_limits = *message.mutable_limits();
  if (info.input == ClassifierInput::kText) {
    message.set_vocabulary_size(info.vocabulary_size);
    message.set_tokenizer(info.tokenizer);
    properties.set_documents(info.documents);
    properties.set_max_document_tokens(info.max_document_tokens);
    message_limits.set_inputs(static_cast<int32_t>(std::min(limits.inputs, model.max_items)));
    message_limits.set_window(static_cast<int32_t>(limits.stream_documents));
  } else {
    properties.set_channels(info.channels);
    message_limits.set_images(static_cast<int32_t>(std::min(limits.images, model.max_items)));
    message_limits.set_image_bytes(limits.image_bytes);
    message_limits.set_image_pixels(limits.image_pixels);
  }
}

}  // namespace

v1::TokenLogProbability ToMessage(const GeneratedToken& token, const ServedLanguageModel& model) {
  v1::TokenLogProbability message = TokenMessage({token.token, token.log_probability}, model);
  for (const TokenLogProbability& alternative : token.alternatives) {
    *message.add_alternatives() = TokenMessage(alternative, model);
  }
  return message;
}

v1::Timings ToMessage(const RequestTimings& timings) {
  v1::Timings message;
  message.set_queue_seconds(absl::ToDoubleSeconds(timings.queue));
  message.set_prefill_seconds(absl::ToDoubleSeconds(timings.prefill));
  message.set_decode_seconds(absl::ToDoubleSeconds(timings.decode));
  return message;
}

v1::TextScore ToMessage(const Score& score, int64_t token_count, const ServedLanguageModel& model) {
  v1::TextScore message;
  message.set_log_likelihood(score.total_log_probability);
  message.set_token_count(token_count);
  message.set_scored_token_count(score.scored_tokens);
  if (model.tokenizer != nullptr && score.scored_tokens > 0) {
    const double bits = -score.total_log_probability / std::log(2.0) / static_cast<double>(score.scored_tokens);
    if (model.tokenizer->unit() == Tokenizer::Unit::kByte) {
      message.set_bits_per_byte(bits);
    } else {
      message.set_bits_per_character(bits);
    }
  }
  for (const GeneratedToken& token : score.tokens) *message.add_tokens() = ToMessage(token, model);
  *message.mutable_timings() = ToMessage(score.timings);
  if (score.session_tokens > 0) message.set_session_tokens(score.session_tokens);
  return message;
}

v1::FinishReason ToMessage(FinishReason reason) {
  switch (reason) {
    case FinishReason::kMaxTokens:
      return v1::FINISH_REASON_LENGTH;
    case FinishReason::kStopString:
      return v1::FINISH_REASON_STOP;
  }
  return v1::FINISH_REASON_UNSPECIFIED;
}

v1::Model DescribeModel(const ServedModel& model, const RequestLimits& limits) {
  v1::Model message;
  message.set_name(model.name);
  message.set_version(model.version);
  if (model.language_model() != nullptr) {
    Describe(*model.language_model(), limits, message);
  } else {
    Describe(*model.classifier(), limits, message);
  }
  message.mutable_limits()->set_message_bytes(limits.message_bytes);
  return message;
}

}  // namespace longshort
