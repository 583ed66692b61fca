#include "clients/cpp/results.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/utf8.h"
#include "google/protobuf/struct.pb.h"
#include "google/protobuf/util/json_util.h"

namespace longshort::client {
namespace {

// Characters of the bar for probability 1.
constexpr int kBarLength = 20;

// Draws in eighths of a character, at least one, so that every class has a bar.
std::string Bar(float probability) {
  constexpr std::array kEighths = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const int eighths = std::max(1, static_cast<int>(std::lround(probability * kBarLength * 8)));
  std::string bar;
  for (int i = 0; i < eighths / 8; ++i) absl::StrAppend(&bar, "█");
  return absl::StrCat(bar, kEighths[static_cast<size_t>(eighths % 8)]);
}

std::string FinishText(v1::FinishReason reason, const std::string& stop) {
  switch (reason) {
    case v1::FINISH_REASON_LENGTH:
      return "length";
    case v1::FINISH_REASON_STOP:
      return absl::StrCat("stop ", QuoteBytes(stop));
    default:
      return v1::FinishReason_Name(reason);
  }
}

std::string JsonOf(const google::protobuf::Message& message) {
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  options.always_print_primitive_fields = true;
  std::string json;
  // Fails only for google.protobuf.Any, which longshort.v1 does not use.
  if (!google::protobuf::util::MessageToJsonString(message, &json, options).ok()) return "{}";
  return json;
}

// Removes "list":[] and one adjacent comma from the JSON. Inside a string, a backslash precedes the quote before the
// colon.
std::string WithoutEmptyLists(std::string json) {
  const std::string empty = "\":[]";
  for (size_t end = json.find(empty); end != std::string::npos; end = json.find(empty, end)) {
    if (json[end - 1] == '\\') {
      ++end;
      continue;
    }
    size_t begin = json.rfind('"', end - 1);
    size_t behind = end + empty.size();
    if (json[begin - 1] == ',') {
      --begin;
    } else if (json[behind] == ',') {
      ++behind;
    }
    json.erase(begin, behind - begin);
    end = begin;
  }
  return json;
}

std::string JsonString(const std::string& bytes) {
  google::protobuf::Value value;
  value.set_string_value(ValidUtf8(bytes));
  return JsonOf(value);
}

// Writes the object with the name and `about` before its fields.
void WriteNamed(const std::string& name, absl::string_view about, absl::string_view object, std::ostream& output) {
  output << "{\"name\":" << JsonString(name) << about << (object == "{}" ? "" : ",") << object.substr(1) << "\n"
         << std::flush;
}

// Above any server's limit.
constexpr int kMaxCompletions = 1024;

}  // namespace

void WriteClassTable(const std::string& heading, const v1::Classification& classification, Terminal& terminal) {
  std::vector<TextRow> rows;
  for (const v1::ClassProbability& entry : classification.classes()) {
    TextRow row = {entry.label().empty() ? absl::StrCat("class ", entry.index()) : entry.label(),
                   absl::StrFormat("%6.2f %%", 100 * entry.probability())};
    if (terminal.output_is_terminal) row.push_back(Bar(entry.probability()));
    rows.push_back(row);
  }
  terminal.output << heading << "\n";
  terminal.output << TextTable(rows, 2);
  if (classification.logits_size() > 0) {
    terminal.output << "  logits by class:";
    for (const float logit : classification.logits()) terminal.output << absl::StrFormat(" %.6g", logit);
    terminal.output << "\n";
  }
  terminal.output << std::flush;
}

std::string TokenLine(const v1::TokenLogProbability& token) {
  std::string line = absl::StrFormat("%9.4f %6d  %s\n", token.log_probability(), token.id(), QuoteBytes(token.raw()));
  for (const v1::TokenLogProbability& alternative : token.alternatives()) {
    absl::StrAppend(&line, "    ", TokenLine(alternative));
  }
  return line;
}

std::string QuoteBytes(const std::string& bytes) {
  // A byte model's token may be part of a UTF-8 character: printed alone, it would garble the terminal.
  const bool partial_character = bytes.size() == 1 && static_cast<unsigned char>(bytes.front()) >= 0x80;
  return absl::StrCat("\"", partial_character ? absl::CHexEscape(bytes) : absl::Utf8SafeCHexEscape(bytes), "\"");
}

std::string ValidUtf8(absl::string_view bytes) {
  std::string text;
  while (!bytes.empty()) {
    const std::optional<Utf8Character> character = FirstUtf8Character({bytes.data(), bytes.size()});
    const size_t length = character.has_value() ? static_cast<size_t>(character->bytes) : 1;
    absl::StrAppend(&text, character.has_value() ? bytes.substr(0, length) : absl::string_view("\uFFFD"));
    bytes.remove_prefix(length);
  }
  return text;
}

void WriteJsonLine(const google::protobuf::Message& message, std::ostream& output) {
  output << JsonOf(message) << "\n" << std::flush;
}

void WriteNamedJsonLine(const std::string& name, const google::protobuf::Message& message, std::ostream& output) {
  WriteNamed(name, "", JsonOf(message), output);
}

void WriteAnswerJsonLine(const std::string& name, const v1::Model& weights, const v1::ModelSelector* model,
                         const google::protobuf::Message& message, std::ostream& output) {
  std::string about;
  if (model != nullptr && !model->name().empty()) absl::StrAppend(&about, ",\"model\":", JsonOf(*model));
  if (!weights.fingerprint().empty()) absl::StrAppend(&about, ",\"fingerprint\":", JsonString(weights.fingerprint()));
  if (!weights.precision().empty()) absl::StrAppend(&about, ",\"precision\":", JsonString(weights.precision()));
  WriteNamed(name, about, WithoutEmptyLists(JsonOf(message)), output);
}

void WriteErrorJsonLine(const std::string& name, const v1::ItemError& error, std::ostream& output) {
  WriteNamed(name, "", absl::StrCat("{\"error\":", JsonOf(error), "}"), output);
}

CompletionPrinter::CompletionPrinter(Terminal& terminal, Form form, int completions)
    : terminal_(terminal), form_(form), states_(std::clamp(completions, 1, kMaxCompletions)) {
  WriteHeading();
}

void CompletionPrinter::OnMessage(const v1::GenerateStreamResponse& message) {
  switch (message.event_case()) {
    case v1::GenerateStreamResponse::kStart:
      seed_ = message.start().seed();
      break;
    case v1::GenerateStreamResponse::kDelta:
      Add(message.delta().index(), Render(message.delta()));
      break;
    case v1::GenerateStreamResponse::kEnd:
      decode_seconds_ = std::max(decode_seconds_, message.end().timings().decode_seconds());
      End(message.end().index(), message.end().finish_reason(), message.end().stop());
      break;
    case v1::GenerateStreamResponse::kSummary:
      Summarize(message.summary().usage());
      break;
    default:
      break;
  }
}

void CompletionPrinter::OnResponse(const v1::GenerateResponse& response) {
  seed_ = response.seed();
  for (const v1::Completion& completion : response.completions()) {
    Add(completion.index(), Render(completion));
    decode_seconds_ = std::max(decode_seconds_, completion.timings().decode_seconds());
    End(completion.index(), completion.finish_reason(), completion.stop());
  }
  Summarize(response.usage());
}

template <typename Part>
std::string CompletionPrinter::Render(const Part& part) {
  if (form_ != Form::kTokens) {
    const std::string& text = form_ == Form::kText ? part.text() : part.raw();
    const auto place = static_cast<size_t>(part.index());
    const bool is_text = std::any_of(part.tokens().begin(), part.tokens().end(),
                                     [](const v1::TokenLogProbability& token) { return !token.raw().empty(); });
    if (!text.empty() || is_text || place >= states_.size()) return text;
    std::string ids;
    for (const v1::TokenLogProbability& token : part.tokens()) {
      absl::StrAppend(&ids, std::exchange(states_[place].has_ids, true) ? " " : "", token.id());
    }
    return ids;
  }
  std::string lines;
  for (const v1::TokenLogProbability& token : part.tokens()) lines += TokenLine(token);
  return lines;
}

void CompletionPrinter::Add(int index, const std::string& text) {
  const auto place = static_cast<size_t>(index);
  if (place >= states_.size()) return;
  if (place == current_) {
    terminal_.output << text << std::flush;
  } else {
    states_[place].waiting += text;
  }
}

void CompletionPrinter::End(int index, v1::FinishReason reason, const std::string& stop) {
  const auto place = static_cast<size_t>(index);
  if (place >= states_.size()) return;
  states_[place].ended = true;
  states_[place].finish = FinishText(reason, stop);
  while (current_ < states_.size() && states_[current_].ended) {
    if (states_.size() > 1) terminal_.output << "\n";
    ++current_;
    WriteHeading();
  }
}

void CompletionPrinter::WriteHeading() {
  if (current_ >= states_.size() || states_.size() == 1) return;
  terminal_.output << "--- " << current_ << " ---\n" << std::exchange(states_[current_].waiting, "") << std::flush;
}

void CompletionPrinter::Summarize(const v1::Usage& usage) {
  std::string finishes;
  for (const State& state : states_) absl::StrAppend(&finishes, state.finish, ", ");
  std::string rate;
  if (decode_seconds_ > 0) {
    rate = absl::StrFormat(" at %.1f a second", static_cast<double>(usage.generated_tokens()) / decode_seconds_);
  }
  terminal_.error << absl::StrFormat("\n[%s%d tokens read, %d generated%s, seed %d]\n", finishes, usage.prompt_tokens(),
                                     usage.generated_tokens(), rate, seed_);
}

}  // namespace longshort::client
