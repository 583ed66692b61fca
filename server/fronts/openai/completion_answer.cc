#include "server/fronts/openai/completion_answer.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "base/strict_json.h"
#include "base/utf8.h"
#include "nlohmann/json.hpp"

namespace longshort::server {
namespace {

using nlohmann::ordered_json;

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
  Utf8Stream stream;
  std::string text;
  for (const int32_t id : prompt.ids) {
    if (id >= 0 && id < tokenizer->vocabulary_size()) text += stream.Append(tokenizer->Decode(id));
  }
  return text + stream.Flush();
}

// About the JSON of these. With HttpCodec::copies it covers what they take in the result, too: 32 bytes a token.
size_t BytesOfTokens(const std::vector<core::GeneratedToken>& tokens) {
  constexpr size_t kTokenBytes = 40;
  size_t count = tokens.size();
  for (const core::GeneratedToken& token : tokens) count += token.alternatives.size();
  return count * kTokenBytes;
}
constexpr size_t kShortBytes = 64;  // of what is no text and no token

const char* NameOf(core::FinishReason reason) { return reason == core::FinishReason::kStopString ? "stop" : "length"; }

}  // namespace

std::string ServerSentEvent(const std::string& data) { return absl::StrCat("data: ", data, "\n\n"); }

CompletionAnswer::CompletionAnswer(const CompletionsRequest& request, const CallRecord& record,
                                   const core::ServedLanguageModel& model)
    : id_(absl::StrCat("cmpl-", record.engine_context().id)),
      created_(absl::ToUnixSeconds(absl::Now())),
      model_(record.answering_model().name),
      tokenizer_(model.tokenizer),
      completions_(request.call.completions),
      describes_tokens_(request.call.token_log_probabilities || model.tokenizer == nullptr),
      echo_(request.call.echo),
      include_usage_(request.include_usage) {
  for (const Prompt& one : request.prompts) {
    const TextInput input = ViewOf(one);
    EchoedPrompt& prompt = prompts_.emplace_back();
    if (echo_ && describes_tokens_) prompt.first_token = FirstToken(input, tokenizer_.get());
    if (request.call.max_tokens == 0) prompt.text = PromptText(input, tokenizer_.get());
  }
}

std::string CompletionAnswer::TextOf(int32_t id) const {
  const std::string_view bytes = tokenizer_ == nullptr ? std::string_view() : tokenizer_->Decode(id);
  if (bytes.empty()) return absl::StrCat("token_id:", id);
  if (IsUtf8(bytes)) return std::string(bytes);
  std::string text = "bytes:";
  for (const char byte : bytes) absl::StrAppendFormat(&text, "\\x%02x", static_cast<unsigned char>(byte));
  return text;
}

CompletionAnswer::Position& CompletionAnswer::PositionOf(int64_t index) {
  const auto place = static_cast<size_t>(index);
  if (place >= positions_.size()) positions_.resize(place + 1);
  return positions_[place];
}

std::string CompletionAnswer::Begin() const {
  return absl::StrCat(R"({"id":)", DumpJson(id_), R"(,"object":"text_completion","created":)", created_, R"(,"model":)",
                      DumpJson(model_), R"(,"choices":[)");
}

std::string CompletionAnswer::End(std::string json, const std::optional<ordered_json>& usage) {
  json += ']';
  if (usage.has_value()) absl::StrAppend(&json, R"(,"usage":)", DumpJson(*usage));
  json += '}';
  return json;
}

void CompletionAnswer::Add(const Piece& piece, std::string& json) {
  if (json.back() != '[') json += ',';
  absl::StrAppend(&json, R"({"index":)", piece.index, R"(,"text":)", DumpJson(piece.text), R"(,"logprobs":)");
  AddLogprobs(piece, json);
  absl::StrAppend(&json, R"(,"finish_reason":)",
                  piece.finish_reason.has_value() ? DumpJson(NameOf(*piece.finish_reason)) : "null", "}");
}

// Appends the JSON itself: a document of it would take many times its memory.
void CompletionAnswer::AddLogprobs(const Piece& piece, std::string& json) {
  if (!describes_tokens_) return void(json += "null");
  std::optional<int32_t> first;  // nothing predicts it
  if (!piece.tokens.empty() || piece.finish_reason.has_value()) {
    if (!std::exchange(PositionOf(piece.index).begun, true)) first = prompts_[piece.index / completions_].first_token;
  }
  if (piece.tokens.empty() && !first.has_value()) return void(json += "null");

  const auto append_list = [&](const char* name, const auto& append) {
    absl::StrAppend(&json, name, "[");
    if (first.has_value()) append(*first, nullptr);
    for (const core::GeneratedToken& token : piece.tokens) {
      if (json.back() != '[') json += ',';
      append(token.token, &token);
    }
    json += ']';
  };
  using Token = const core::GeneratedToken*;
  Position& position = PositionOf(piece.index);
  std::vector<int64_t> offsets;
  append_list(R"({"tokens":)", [&](int32_t id, Token /*token*/) {
    json += DumpJson(TextOf(id));
    offsets.push_back(position.characters);
    if (tokenizer_ != nullptr) position.characters += CountCharacters(position.text.Append(tokenizer_->Decode(id)));
  });
  append_list(R"(,"token_logprobs":)", [&](int32_t /*id*/, Token token) {
    json += token == nullptr ? "null" : DumpJson(token->log_probability);
  });
  append_list(R"(,"top_logprobs":)", [&](int32_t id, Token token) {
    ordered_json top;
    if (token != nullptr) {
      for (const core::TokenLogProbability& one : token->alternatives) top[TextOf(one.token)] = one.log_probability;
      top.emplace(TextOf(id), token->log_probability);
    }
    json += DumpJson(top);
  });
  auto offset = offsets.begin();
  append_list(R"(,"text_offset":)", [&](int32_t /*id*/, Token /*token*/) { absl::StrAppend(&json, *offset++); });
  json += '}';
}

// Each completion of a prompt reads the prompt, which counts once.
ordered_json CompletionAnswer::ToJson(const Usage& usage) const {
  const int64_t prompt_tokens = usage.prompt_tokens / completions_;
  return {{"prompt_tokens", prompt_tokens},
          {"completion_tokens", usage.generated_tokens},
          {"total_tokens", prompt_tokens + usage.generated_tokens},
          {"prompt_tokens_details", {{"cached_tokens", usage.cached_tokens / completions_}}}};
}

std::optional<ordered_json> CompletionAnswer::NoUsage() const {
  return include_usage_ ? std::optional(ordered_json()) : std::nullopt;
}

CallAnswer CompletionAnswer::OfResult(GenerateResult result) {
  size_t bytes = kShortBytes * (1 + result.completions.size());
  for (const Completion& one : result.completions) bytes += one.text.size() + BytesOfTokens(one.tokens);
  return JsonAnswer(bytes, [this, result = std::move(result)]() mutable {
    std::string json = Begin();
    for (size_t i = 0; i < result.completions.size(); ++i) {
      Completion& one = result.completions[i];
      Add({static_cast<int64_t>(i), one.text, one.tokens, one.finish_reason}, json);
      one = Completion();
    }
    return End(std::move(json), ToJson(result.usage));
  });
}

std::string CompletionAnswer::PromptsOf(const ScoreResult& result, bool is_part) {
  std::string json = Begin();
  for (size_t i = 0; i < result.texts.size(); ++i) {
    Add({static_cast<int64_t>(i), prompts_[i].text, std::get<TextScore>(result.texts[i].result).tokens,
         core::FinishReason::kMaxTokens},
        json);
  }
  return is_part ? ServerSentEvent(End(std::move(json), NoUsage())) : End(std::move(json), ToJson(result.usage));
}

CallAnswer CompletionAnswer::OfScores(ScoreResult result, bool is_part) {
  size_t bytes = kShortBytes * (1 + result.texts.size());
  for (size_t i = 0; i < result.texts.size(); ++i) {
    bytes += prompts_[i].text.size() + BytesOfTokens(std::get<TextScore>(result.texts[i].result).tokens);
  }
  return JsonAnswer(bytes, [this, result = std::move(result), is_part] { return PromptsOf(result, is_part); });
}

std::optional<CallAnswer> CompletionAnswer::UsagePart(const Usage& usage) {
  if (!include_usage_) return std::nullopt;
  return JsonAnswer(kShortBytes, [this, usage] { return ServerSentEvent(End(Begin(), ToJson(usage))); });
}

std::optional<CallAnswer> CompletionAnswer::PartOf(StreamEvent event) {
  if (std::holds_alternative<StreamStart>(event)) return std::nullopt;
  if (const auto* const summary = std::get_if<StreamSummary>(&event); summary != nullptr)
    return UsagePart(summary->usage);
  size_t bytes = kShortBytes;
  if (const auto* const delta = std::get_if<CompletionDelta>(&event); delta != nullptr) {
    bytes += delta->text.size() + BytesOfTokens(delta->tokens);
  }
  return JsonAnswer(bytes, [this, event = std::move(event)] { return PartOfEvent(event); });
}

std::string CompletionAnswer::PartOfEvent(const StreamEvent& event) {
  std::string json = Begin();
  if (const auto* const delta = std::get_if<CompletionDelta>(&event); delta != nullptr) {
    Add({delta->index, delta->text, delta->tokens}, json);
  } else if (const auto* const end = std::get_if<CompletionEnd>(&event); end != nullptr) {
    const std::vector<core::GeneratedToken> none;
    Add({end->index, "", none, end->finish_reason}, json);
  } else {
    return ": keepalive\n\n";
  }
  return ServerSentEvent(End(std::move(json), NoUsage()));
}

}  // namespace longshort::server
