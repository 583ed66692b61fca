#include "server/openai/completion_answer.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "base/utf8.h"

namespace longshort::server {
namespace {

int64_t CountCharacters(std::string_view text) {
  constexpr unsigned char kMask = 0xC0, kContinuation = 0x80;
  return std::count_if(text.begin(), text.end(),
                       [](char byte) { return (static_cast<unsigned char>(byte) & kMask) != kContinuation; });
}

std::optional<int32_t> FirstToken(const TextInput& prompt, const models::Tokenizer* tokenizer) {
  if (prompt.kind == TextInput::Kind::kIds)
    return prompt.ids.empty() ? std::nullopt : std::optional(prompt.ids.front());
  if (tokenizer == nullptr) return std::nullopt;
  const absl::StatusOr<models::DocumentBeginning> first = tokenizer->EncodeBeginning(prompt.text, 1);
  if (!first.ok() || first->ids.empty()) return std::nullopt;  // the work refuses such a prompt
  return first->ids.front();
}

std::string PromptText(const TextInput& prompt, const models::Tokenizer* tokenizer) {
  if (prompt.kind == TextInput::Kind::kText) return std::string(prompt.text);
  if (tokenizer == nullptr) return "";
  core::Utf8Stream stream;
  std::string text;
  for (const int32_t id : prompt.ids) {
    if (id >= 0 && id < tokenizer->vocabulary_size()) text += stream.Append(tokenizer->Decode(id));
  }
  return text + stream.Flush();
}

const char* NameOf(core::FinishReason reason) { return reason == core::FinishReason::kStopString ? "stop" : "length"; }

}  // namespace

CompletionAnswer::CompletionAnswer(const openai::CompletionsRequest& request, const CallRecord& record,
                                   const core::ServedLanguageModel& model)
    : id_(absl::StrCat("cmpl-", record.engine_context().id)),
      created_(absl::ToUnixSeconds(absl::Now())),
      model_(record.answering_model().name),
      tokenizer_(model.tokenizer),
      completions_(request.n()),
      describes_tokens_(request.has_logprobs() || model.tokenizer == nullptr),
      echo_(request.echo()),
      include_usage_(request.include_usage()) {
  for (const openai::Prompt& one : request.prompts()) {
    const TextInput input = FromMessage(one);
    Prompt& prompt = prompts_.emplace_back();
    if (echo_ && describes_tokens_) prompt.first_token = FirstToken(input, tokenizer_.get());
    if (request.max_tokens() == 0) prompt.text = PromptText(input, tokenizer_.get());
  }
}

openai::Completions CompletionAnswer::Begin() const {
  openai::Completions answer;
  answer.set_id(id_);
  answer.set_created(created_);
  answer.set_model(model_);
  return answer;
}

openai::Choice& CompletionAnswer::AddChoice(int64_t index, openai::Completions& answer) const {
  openai::Choice& choice = *answer.add_choices();
  choice.set_index(index);
  return choice;
}

std::string CompletionAnswer::TextOf(int32_t id) const {
  const std::string_view bytes = tokenizer_ == nullptr ? std::string_view() : tokenizer_->Decode(id);
  if (bytes.empty()) return absl::StrCat("token_id:", id);
  if (IsUtf8(bytes)) return std::string(bytes);
  std::string text = "bytes:";
  for (const char byte : bytes) absl::StrAppendFormat(&text, "\\x%02x", static_cast<unsigned char>(byte));
  return text;
}

CompletionAnswer::Position& CompletionAnswer::PositionOf(const openai::Choice& choice) {
  const auto index = static_cast<size_t>(choice.index());
  if (index >= positions_.size()) positions_.resize(index + 1);
  return positions_[index];
}

openai::Token& CompletionAnswer::AddToken(int32_t id, openai::Choice& choice) {
  Position& position = PositionOf(choice);
  openai::Token& token = *choice.add_tokens();
  token.set_text(TextOf(id));
  token.set_text_offset(position.characters);
  if (tokenizer_ != nullptr) position.characters += CountCharacters(position.text.Append(tokenizer_->Decode(id)));
  return token;
}

void CompletionAnswer::AddTokens(const std::vector<core::GeneratedToken>& tokens, bool at_end, openai::Choice& choice) {
  if (!describes_tokens_) return;
  if ((!tokens.empty() || at_end) && !std::exchange(PositionOf(choice).begun, true)) {
    const std::optional<int32_t> first = prompts_[choice.index() / completions_].first_token;
    if (first.has_value()) AddToken(*first, choice);
  }
  for (const core::GeneratedToken& token : tokens) {
    openai::Token& added = AddToken(token.token, choice);
    added.set_logprob(token.log_probability);
    for (const core::TokenLogProbability& one : token.alternatives) {
      openai::Token& top = *added.add_top();
      top.set_text(TextOf(one.token));
      top.set_logprob(one.log_probability);
    }
  }
  choice.set_has_logprobs(choice.tokens_size() > 0);
}

// Each completion of a prompt reads the prompt, which counts once.
void CompletionAnswer::Set(const Usage& usage, openai::Usage& message) const {
  message.set_prompt_tokens(usage.prompt_tokens / completions_);
  message.set_completion_tokens(usage.generated_tokens);
  message.set_cached_tokens(usage.cached_tokens / completions_);
}

openai::Completions CompletionAnswer::OfResult(GenerateResult result) {
  openai::Completions answer = Begin();
  for (size_t i = 0; i < result.completions.size(); ++i) {
    Completion& completion = result.completions[i];
    openai::Choice& choice = AddChoice(static_cast<int64_t>(i), answer);
    choice.set_text(std::move(completion.text));
    AddTokens(completion.tokens, true, choice);
    choice.set_finish_reason(NameOf(completion.finish_reason));
    completion = Completion();
  }
  Set(result.usage, *answer.mutable_usage());
  return answer;
}

openai::Completions CompletionAnswer::OfScores(const ScoreResult& result) {
  openai::Completions answer = Begin();
  for (size_t i = 0; i < result.texts.size(); ++i) {
    openai::Choice& choice = AddChoice(static_cast<int64_t>(i), answer);
    choice.set_text(std::move(prompts_[i].text));
    AddTokens(std::get<TextScore>(result.texts[i].result).tokens, true, choice);
    choice.set_finish_reason(NameOf(core::FinishReason::kMaxTokens));
  }
  Set(result.usage, *answer.mutable_usage());
  return answer;
}

std::optional<openai::Completions> CompletionAnswer::OfEvent(StreamEvent event) {
  openai::Completions part = Begin();
  if (auto* const delta = std::get_if<CompletionDelta>(&event); delta != nullptr) {
    openai::Choice& choice = AddChoice(delta->index, part);
    choice.set_text(std::move(delta->text));
    AddTokens(delta->tokens, false, choice);
    return part;
  }
  if (const auto* const end = std::get_if<CompletionEnd>(&event); end != nullptr) {
    openai::Choice& choice = AddChoice(end->index, part);
    AddTokens({}, true, choice);
    choice.set_finish_reason(NameOf(end->finish_reason));
    return part;
  }
  if (const auto* const summary = std::get_if<StreamSummary>(&event); summary != nullptr) {
    Set(summary->usage, *part.mutable_usage());
    return UsagePart(part);
  }
  if (std::holds_alternative<KeepAlive>(event)) return part;
  return std::nullopt;
}

std::optional<openai::Completions> CompletionAnswer::UsagePart(const openai::Completions& answer) const {
  if (!include_usage_) return std::nullopt;
  openai::Completions part = Begin();
  *part.mutable_usage() = answer.usage();
  return part;
}

}  // namespace longshort::server
