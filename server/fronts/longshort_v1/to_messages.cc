#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/schedule/refusal.h"
#include "server/fronts/longshort_v1/longshort_v1.h"
#include "server/handlers/item_answer.h"

namespace longshort::server {
namespace {

void Set(const ModelReference& model, v1::ModelSelector& message) {
  message.set_name(model.name);
  message.set_version(model.version);
}

void Set(const Usage& usage, v1::Usage& message) {
  message.set_prompt_tokens(usage.prompt_tokens);
  message.set_generated_tokens(usage.generated_tokens);
  message.set_cached_tokens(usage.cached_tokens);
}

void Set(const core::RequestTimings& timings, v1::Timings& message) {
  message.set_queue_seconds(absl::ToDoubleSeconds(timings.queue));
  message.set_prefill_seconds(absl::ToDoubleSeconds(timings.prefill));
  message.set_decode_seconds(absl::ToDoubleSeconds(timings.decode));
}

void Set(const core::ClassificationTimings& timings, v1::ClassificationTimings& message) {
  message.set_preparation_seconds(absl::ToDoubleSeconds(timings.preparation));
  message.set_queue_seconds(absl::ToDoubleSeconds(timings.queue));
  message.set_run_seconds(absl::ToDoubleSeconds(timings.run));
}

void Set(int32_t id, float log_probability, const models::Tokenizer* tokenizer, v1::TokenLogProbability& message) {
  message.set_id(id);
  if (tokenizer != nullptr) message.set_raw(std::string(tokenizer->Decode(id)));
  message.set_log_probability(log_probability);
}

using TokenMessages = google::protobuf::RepeatedPtrField<v1::TokenLogProbability>;

void Add(const std::vector<core::GeneratedToken>& tokens, const models::Tokenizer* tokenizer, TokenMessages& messages) {
  for (const core::GeneratedToken& token : tokens) {
    v1::TokenLogProbability& message = *messages.Add();
    Set(token.token, token.log_probability, tokenizer, message);
    for (const core::TokenLogProbability& alternative : token.alternatives) {
      Set(alternative.token, alternative.log_probability, tokenizer, *message.add_alternatives());
    }
  }
}

v1::FinishReason ToMessage(core::FinishReason reason) {
  switch (reason) {
    case core::FinishReason::kMaxTokens:
      return v1::FINISH_REASON_LENGTH;
    case core::FinishReason::kStopString:
      return v1::FINISH_REASON_STOP;
  }
  return v1::FINISH_REASON_UNSPECIFIED;
}

v1::ClassifierInput ToMessage(models::ClassifierInput input) {
  switch (input) {
    case models::ClassifierInput::kText:
      return v1::CLASSIFIER_INPUT_TEXT;
    case models::ClassifierInput::kPixelSequence:
      return v1::CLASSIFIER_INPUT_PIXEL_SEQUENCE;
    case models::ClassifierInput::kImage:
      return v1::CLASSIFIER_INPUT_IMAGE;
  }
  return v1::CLASSIFIER_INPUT_UNSPECIFIED;
}

v1::ProblemType ToMessage(models::ProblemType type) {
  switch (type) {
    case models::ProblemType::kSingleLabel:
      return v1::PROBLEM_TYPE_SINGLE_LABEL_CLASSIFICATION;
    case models::ProblemType::kMultiLabel:
      return v1::PROBLEM_TYPE_MULTI_LABEL_CLASSIFICATION;
    case models::ProblemType::kRegression:
      return v1::PROBLEM_TYPE_REGRESSION;
  }
  return v1::PROBLEM_TYPE_UNSPECIFIED;
}

void Set(const Classification& classification, v1::Classification& message) {
  for (const ClassProbability& likely : classification.classes) {
    v1::ClassProbability& named = *message.add_classes();
    named.set_index(likely.index);
    named.set_label(likely.label.data(), likely.label.size());
    named.set_probability(likely.probability);
  }
  message.mutable_logits()->Assign(classification.logits.begin(), classification.logits.end());
  Set(classification.timings, *message.mutable_timings());
}

void Set(const TextScore& score, const models::Tokenizer* tokenizer, v1::TextScore& message) {
  message.set_log_likelihood(score.log_likelihood);
  message.set_token_count(score.token_count);
  message.set_scored_token_count(score.scored_token_count);
  if (score.bits_per_byte.has_value()) message.set_bits_per_byte(*score.bits_per_byte);
  if (score.bits_per_character.has_value()) message.set_bits_per_character(*score.bits_per_character);
  Add(score.tokens, tokenizer, *message.mutable_tokens());
  Set(score.timings, *message.mutable_timings());
  if (score.session_tokens.has_value()) message.set_session_tokens(*score.session_tokens);
}

void Add(const std::vector<DocumentReading>& documents,
         google::protobuf::RepeatedPtrField<v1::DocumentReading>& messages) {
  for (const DocumentReading& document : documents) {
    v1::DocumentReading& reading = *messages.Add();
    reading.set_token_count(document.token_count);
    reading.set_truncated(document.truncated);
  }
}

void Set(const TextClassification& text, v1::TextClassification& message) {
  Set(text.classification, *message.mutable_classification());
  Add(text.documents, *message.mutable_documents());
}

void Set(const Embedding& embedding, v1::Embedding& message) {
  message.mutable_values()->Assign(embedding.values.begin(), embedding.values.end());
  Add(embedding.documents, *message.mutable_documents());
  Set(embedding.timings, *message.mutable_timings());
}

const models::Tokenizer* TokenizerOf(const core::ServedModel& model) {
  const core::ServedLanguageModel* language_model = model.language_model();
  return language_model == nullptr ? nullptr : language_model->tokenizer.get();
}

void Set(const models::LanguageModelInfo& info, v1::LanguageModelHyperparameters& message) {
  message.set_layers(info.layers);
  message.set_model_width(info.model_width);
  message.set_heads(info.heads);
  message.set_feed_forward_width(info.feed_forward_width);
  message.set_chunk_size(info.chunk_size);
  message.set_chunk_rank(info.chunk_rank);
  message.set_window_length(info.window_length);
  message.set_memory_length(info.memory_length);
  message.set_segment_length(info.segment_length);
}

void Set(const models::ClassifierInfo& info, v1::ClassifierProperties& message) {
  message.set_input(ToMessage(info.input));
  message.set_classes(info.classes);
  message.set_problem_type(ToMessage(info.problem_type));
  for (const std::string& label : info.labels) message.add_labels(label);
  if (info.input == models::ClassifierInput::kText) {
    message.set_documents(info.documents);
    message.set_max_documents(info.MaxDocuments());
    message.set_trained_on_pairs(info.trained_on_pairs);
    message.set_max_document_tokens(info.max_document_tokens);
  } else {
    message.set_channels(info.channels);
  }
  message.set_embedding_width(info.width);
  for (const Pooling pooling : PoolingsOf(info)) {
    message.add_poolings(pooling == Pooling::kCls ? v1::POOLING_CLS : v1::POOLING_MEAN);
  }
}

template <typename Model>
void SetCommon(const Model& model, const std::string& tokenizer, v1::Model& message) {
  message.set_fingerprint(model.info.fingerprint);
  message.set_precision(model.info.precision);
  message.set_parameters(model.info.parameters);
  message.set_tokenizer(tokenizer);
}

void Set(const core::ServedLanguageModel& model, v1::Model& message) {
  const bool bytes = model.tokenizer != nullptr && model.tokenizer->unit() == models::Tokenizer::Unit::kByte;
  const char* tokenizer = model.tokenizer == nullptr ? "none" : bytes ? "fairseq_bytes" : "fairseq_characters";
  SetCommon(model, tokenizer, message);
  message.set_vocabulary_size(model.info.vocabulary_size);
  Set(model.info, *message.mutable_language_model());
}

void Set(const core::ServedClassifier& model, v1::Model& message) {
  const bool text = model.info.input == models::ClassifierInput::kText;
  SetCommon(model, text ? model.info.tokenizer : "", message);
  if (text) message.set_vocabulary_size(model.info.vocabulary_size);
  Set(model.info, *message.mutable_classifier());
}

void Set(const ModelLimits& limits, v1::Limits& message) {
  message.set_prompt_tokens(limits.prompt_tokens);
  message.set_max_tokens(limits.max_tokens);
  message.set_completions(static_cast<int32_t>(limits.completions));
  message.set_inputs(static_cast<int32_t>(limits.texts));
  message.set_images(static_cast<int32_t>(limits.images));
  message.set_image_bytes(limits.image_bytes);
  message.set_image_pixels(limits.image_pixels);
  message.set_window(static_cast<int32_t>(limits.window));
  message.set_message_bytes(limits.message_bytes);
}

void Set(Completion completion, const models::Tokenizer* tokenizer, v1::Completion& message) {
  message.set_text(std::move(completion.text));
  message.set_raw(std::move(completion.raw));
  Add(completion.tokens, tokenizer, *message.mutable_tokens());
  message.set_finish_reason(ToMessage(completion.finish_reason));
  message.set_stop(std::move(completion.stop));
  Set(completion.timings, *message.mutable_timings());
}

// Sets the part of a stream's message that an event stands for.
class EventMessage {
 public:
  EventMessage(const models::Tokenizer* tokenizer, v1::GenerateStreamResponse& message)
      : tokenizer_(tokenizer), message_(message) {}

  void operator()(const StreamStart& start) const {
    Set(start.model, *message_.mutable_start()->mutable_model());
    message_.mutable_start()->set_seed(start.seed);
  }
  void operator()(CompletionDelta& delta) const {
    v1::CompletionDelta& message = *message_.mutable_delta();
    message.set_index(delta.index);
    message.set_text(std::move(delta.text));
    message.set_raw(std::move(delta.raw));
    Add(delta.tokens, tokenizer_, *message.mutable_tokens());
    message.set_token_count(delta.token_count);
    if (delta.session_tokens > 0) message.set_session_tokens(delta.session_tokens);
  }
  void operator()(CompletionEnd& end) const {
    v1::CompletionEnd& message = *message_.mutable_end();
    message.set_index(end.index);
    message.set_finish_reason(ToMessage(end.finish_reason));
    message.set_stop(std::move(end.stop));
    Set(end.timings, *message.mutable_timings());
  }
  void operator()(const StreamSummary& summary) const {
    Set(summary.usage, *message_.mutable_summary()->mutable_usage());
    if (summary.session_tokens.has_value()) message_.mutable_summary()->set_session_tokens(*summary.session_tokens);
  }
  void operator()(const KeepAlive&) const { message_.mutable_keep_alive(); }

 private:
  const models::Tokenizer* const tokenizer_;
  v1::GenerateStreamResponse& message_;
};

}  // namespace

v1::Classification ToMessage(const Classification& classification) {
  v1::Classification message;
  Set(classification, message);
  return message;
}

v1::ItemError ToItemError(const absl::Status& status) {
  v1::ItemError error;
  error.set_code(static_cast<int32_t>(status.code()));
  error.set_message(std::string(status.message()));
  if (const auto refusal = core::GetRefusal(status); refusal.has_value()) {
    error.set_retry_after_seconds(absl::ToDoubleSeconds(refusal->retry_after));
  }
  return error;
}

v1::ScoreTextResponse ToMessage(const ScoreResult& result) {
  v1::ScoreTextResponse message;
  const models::Tokenizer* tokenizer = TokenizerOf(*result.served);
  for (const ScoredText& text : result.texts) {
    if (const auto* score = std::get_if<TextScore>(&text.result); score != nullptr) {
      Set(*score, tokenizer, *message.add_scores());
    } else {
      Set(std::get<TextClassification>(text.result), *message.add_classifications());
    }
  }
  Set(result.usage, *message.mutable_usage());
  Set(result.model, *message.mutable_model());
  return message;
}

v1::ScoreTextsResponse ToMessage(uint64_t id, const core::ServedModel& model,
                                 const absl::StatusOr<ScoredText>& scored) {
  v1::ScoreTextsResponse message;
  message.set_id(id);
  Set(ModelReference{.name = model.name, .version = model.version}, *message.mutable_model());
  if (!scored.ok()) {
    *message.mutable_error() = ToItemError(scored.status());
  } else if (const auto* score = std::get_if<TextScore>(&scored->result); score != nullptr) {
    Set(*score, TokenizerOf(model), *message.mutable_score());
  } else if (const auto* embedding = std::get_if<Embedding>(&scored->result); embedding != nullptr) {
    Set(*embedding, *message.mutable_embedding());
  } else {
    Set(std::get<TextClassification>(scored->result), *message.mutable_classification());
  }
  return message;
}

v1::ClassifyImageResponse ToMessage(const ClassifyResult& result) {
  v1::ClassifyImageResponse message;
  for (const absl::StatusOr<Classification>& image : result.images) {
    v1::ImageResult& of_image = *message.add_results();
    if (image.ok()) {
      Set(*image, *of_image.mutable_classification());
    } else {
      *of_image.mutable_error() = ToItemError(image.status());
    }
  }
  Set(result.model, *message.mutable_model());
  return message;
}

v1::EmbedResponse ToMessage(const EmbedResult& result) {
  v1::EmbedResponse message;
  for (const absl::StatusOr<Embedding>& embedding : result.embeddings) {
    v1::EmbedResult& one = *message.add_results();
    if (embedding.ok()) {
      Set(*embedding, *one.mutable_embedding());
    } else {
      *one.mutable_error() = ToItemError(embedding.status());
    }
  }
  Set(result.model, *message.mutable_model());
  Set(result.usage, *message.mutable_usage());
  return message;
}

v1::GenerateResponse ToMessage(GenerateResult result) {
  v1::GenerateResponse message;
  for (size_t i = 0; i < result.completions.size(); ++i) {
    v1::Completion& completion = *message.add_completions();
    completion.set_index(static_cast<int32_t>(i));
    Set(std::move(result.completions[i]), result.tokenizer.get(), completion);
  }
  Set(result.model, *message.mutable_model());
  Set(result.usage, *message.mutable_usage());
  message.set_seed(result.seed);
  if (result.session_tokens.has_value()) message.set_session_tokens(*result.session_tokens);
  return message;
}

v1::TokenizeResponse ToMessage(TokenizeResult result) {
  v1::TokenizeResponse message;
  message.mutable_ids()->Assign(result.ids.begin(), result.ids.end());
  if (result.tokenizer != nullptr) {
    for (const int32_t id : result.ids) message.add_pieces(std::string(result.tokenizer->Decode(id)));
  }
  // A text has less than 2^31 bytes, because a message has.
  for (const models::TokenSpan& span : result.spans) {
    message.add_byte_begins(static_cast<int32_t>(span.byte_begin));
    message.add_byte_ends(static_cast<int32_t>(span.byte_end));
    message.add_character_begins(static_cast<int32_t>(span.character_begin));
    message.add_character_ends(static_cast<int32_t>(span.character_end));
  }
  Set(result.model, *message.mutable_model());
  return message;
}

v1::GenerateStreamResponse ToMessage(StreamEvent event, const models::Tokenizer* tokenizer) {
  v1::GenerateStreamResponse message;
  std::visit(EventMessage(tokenizer, message), event);
  return message;
}

v1::Model ToMessage(const core::ServedModel& served, const RequestLimits& limits) {
  v1::Model message;
  message.set_name(served.name);
  message.set_version(served.version);
  message.set_architecture(served.architecture());
  std::visit([&](const auto& kind) { Set(kind, message); }, served.kind);
  Set(LimitsOf(served, limits), *message.mutable_limits());
  return message;
}

v1::LoadOutcome ToMessage(core::LoadOutcome outcome) {
  switch (outcome) {
    case core::LoadOutcome::kLoaded:
      return v1::LOAD_OUTCOME_LOADED;
    case core::LoadOutcome::kReloaded:
      return v1::LOAD_OUTCOME_RELOADED;
    case core::LoadOutcome::kUnchanged:
      return v1::LOAD_OUTCOME_UNCHANGED;
  }
  return v1::LOAD_OUTCOME_UNSPECIFIED;
}

v1::ListSessionsResponse ToMessage(SessionList list) {
  v1::ListSessionsResponse message;
  for (ListedSession& session : list.sessions) {
    v1::ListedSession& listed = *message.add_sessions();
    listed.set_owner(std::move(session.owner));
    listed.set_session_id(std::move(session.id));
    listed.set_session_tokens(session.tokens);
    listed.set_idle_seconds(absl::ToDoubleSeconds(session.idle));
    listed.set_in_use(session.in_use);
  }
  message.set_next_page_token(std::move(list.next_page_token));
  return message;
}

v1::SessionPart ToMessage(SessionPart part) {
  v1::SessionPart message;
  if (const auto* header = std::get_if<SessionHeader>(&part); header != nullptr) {
    message.mutable_header()->set_data_bytes(header->data_bytes);
    message.mutable_header()->set_fingerprint(header->fingerprint);
    message.mutable_header()->set_session_tokens(header->session_tokens);
    message.mutable_header()->set_server(header->server);
  } else if (auto* data = std::get_if<std::string>(&part); data != nullptr) {
    message.set_data(std::move(*data));
  } else {
    Seal& seal = std::get<Seal>(part);
    message.mutable_seal()->set_checksum(std::move(seal.checksum));
    message.mutable_seal()->set_authentication_code(std::move(seal.authentication_code));
  }
  return message;
}

}  // namespace longshort::server
