#include "server/rpc/completion_translator.h"

#include <algorithm>

#include "server/requests/answers.h"

namespace longshort {
namespace {

constexpr size_t kEchoBytes = 32 << 10;
constexpr size_t kEchoTokens = 512;

}  // namespace

CompletionTranslator::CompletionTranslator(int32_t index, const ServedLanguageModel& model, const GenerationPlan& plan)
    : index_(index), model_(model), describe_tokens_(plan.describe_tokens), return_raw_(plan.return_raw) {}

v1::CompletionDelta CompletionTranslator::NewText(const std::string& bytes) {
  v1::CompletionDelta message;
  message.set_index(index_);
  message.set_text(text_.Append(bytes));
  if (return_raw_) message.set_raw(bytes);
  return message;
}

std::vector<v1::CompletionDelta> CompletionTranslator::Echo(const std::string& prompt) {
  std::vector<v1::CompletionDelta> pieces;
  for (size_t at = 0; at < prompt.size(); at += kEchoBytes) pieces.push_back(NewText(prompt.substr(at, kEchoBytes)));
  return pieces;
}

std::vector<v1::CompletionDelta> CompletionTranslator::PromptTokens(const std::vector<GeneratedToken>& tokens) const {
  std::vector<v1::CompletionDelta> pieces;
  for (size_t at = 0; at < tokens.size(); at += kEchoTokens) {
    v1::CompletionDelta& piece = pieces.emplace_back();
    piece.set_index(index_);
    const size_t end = std::min(tokens.size(), at + kEchoTokens);
    for (size_t i = at; i < end; ++i) *piece.add_tokens() = ToMessage(tokens[i], model_);
  }
  return pieces;
}

v1::CompletionDelta CompletionTranslator::Delta(const GenerationDelta& delta) {
  v1::CompletionDelta message = NewText(delta.bytes);
  message.set_token_count(static_cast<int64_t>(delta.tokens.size()));
  if (describe_tokens_) {
    for (const GeneratedToken& token : delta.tokens) *message.add_tokens() = ToMessage(token, model_);
  }
  return message;
}

v1::CompletionDelta CompletionTranslator::Rest() {
  v1::CompletionDelta message;
  message.set_index(index_);
  message.set_text(text_.Flush());
  return message;
}

v1::CompletionEnd CompletionTranslator::End(const GenerationSummary& summary) const {
  v1::CompletionEnd message;
  message.set_index(index_);
  message.set_finish_reason(ToMessage(summary.finish_reason));
  // A stop string comes from the request, so it is UTF-8.
  message.set_stop(summary.stop_string);
  *message.mutable_timings() = ToMessage(summary.timings);
  return message;
}

}  // namespace longshort
