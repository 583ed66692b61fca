#include "clients/cpp/completion_printer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "clients/cpp/tables.h"

namespace longshort {
namespace {

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

// More than a server generates in one call, however many it is asked for.
constexpr int kMostCompletions = 1024;

}  // namespace

CompletionPrinter::CompletionPrinter(Terminal& terminal, Form form, int completions)
    : terminal_(terminal), form_(form), states_(std::clamp(completions, 1, kMostCompletions)) {
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
std::string CompletionPrinter::Render(const Part& part) const {
  if (form_ == Form::kText) return part.text();
  if (form_ == Form::kRaw) return part.raw();
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

}  // namespace longshort
