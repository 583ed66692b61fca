#include "server/handlers/completion_translator.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace longshort::server {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

constexpr size_t kEchoBytes = 32 << 10;
constexpr size_t kEchoTokens = 512;

}  // namespace

std::string Utf8Stream::Append(std::string_view bytes) {
  std::string text;
  for (char byte : bytes) AppendByte(byte, text);
  return text;
}

std::string Utf8Stream::Flush() {
  if (held_.empty()) return std::string();
  held_.clear();
  decoder_.Reset();
  return std::string(kReplacement);
}

void Utf8Stream::AppendByte(char byte, std::string& text) {
  Utf8Decoder::Result result = decoder_.Take(static_cast<uint8_t>(byte));
  if (result == Utf8Decoder::Result::kRejected && !held_.empty()) {
    text += kReplacement;  // for the held bytes; this byte begins a new character
    held_.clear();
    result = decoder_.Take(static_cast<uint8_t>(byte));
  }
  if (result == Utf8Decoder::Result::kRejected) {
    text += kReplacement;
    return;
  }
  held_ += byte;
  if (result == Utf8Decoder::Result::kMore) return;
  text += held_;
  held_.clear();
}
CompletionTranslator::CompletionTranslator(int32_t index, const GenerationPlan& plan)
    : index_(index), describe_tokens_(plan.describe_tokens), return_raw_(plan.return_raw) {}

CompletionDelta CompletionTranslator::NewText(std::string bytes) {
  CompletionDelta delta;
  delta.index = index_;
  delta.text = text_.Append(bytes);
  if (return_raw_) delta.raw = std::move(bytes);
  return delta;
}

std::vector<CompletionDelta> CompletionTranslator::Echo(const std::string& prompt) {
  std::vector<CompletionDelta> pieces;
  for (size_t at = 0; at < prompt.size(); at += kEchoBytes) pieces.push_back(NewText(prompt.substr(at, kEchoBytes)));
  return pieces;
}

std::vector<CompletionDelta> CompletionTranslator::PromptTokens(std::vector<core::GeneratedToken> tokens) const {
  std::vector<CompletionDelta> pieces;
  for (size_t at = 0; at < tokens.size(); at += kEchoTokens) {
    CompletionDelta& piece = pieces.emplace_back();
    piece.index = index_;
    const auto begin = std::make_move_iterator(tokens.begin() + static_cast<std::ptrdiff_t>(at));
    piece.tokens.assign(begin, begin + static_cast<std::ptrdiff_t>(std::min(kEchoTokens, tokens.size() - at)));
  }
  return pieces;
}

CompletionDelta CompletionTranslator::Delta(core::GenerationDelta generated) {
  CompletionDelta delta = NewText(std::move(generated.bytes));
  delta.token_count = static_cast<int64_t>(generated.tokens.size());
  delta.session_tokens = generated.session_tokens;
  if (describe_tokens_) delta.tokens = std::move(generated.tokens);
  return delta;
}

CompletionDelta CompletionTranslator::Rest() {
  CompletionDelta delta;
  delta.index = index_;
  delta.text = text_.Flush();
  return delta;
}

CompletionEnd CompletionTranslator::End(const core::GenerationSummary& summary) const {
  // The stop string is UTF-8, because it comes from the call.
  return {
      .index = index_, .finish_reason = summary.finish_reason, .stop = summary.stop_string, .timings = summary.timings};
}

}  // namespace longshort::server
