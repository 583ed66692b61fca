// Shows completions to a person as they are generated.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "clients/cpp/terminal.h"
#include "longshort/v1/inference.pb.h"

namespace longshort {

// One completion is written as it arrives, its text and nothing else. Of several, the first unfinished one is: the
// others wait for their turn, each under a line "--- INDEX ---". The closing summary goes to terminal.error.
class CompletionPrinter final {
 public:
  enum class Form {
    kText,
    // The bytes behind the text.
    kRaw,
    // A TokenLine each instead of the text.
    kTokens,
  };

  CompletionPrinter(Terminal& terminal, Form form, int completions);

  void OnMessage(const v1::GenerateStreamResponse& message);
  // The same for an answer that came at once.
  void OnResponse(const v1::GenerateResponse& response);

 private:
  struct State {
    std::string waiting;
    std::string finish;
    bool ended = false;
  };

  void Add(int index, const std::string& text);
  void End(int index, v1::FinishReason reason, const std::string& stop);
  void WriteHeading();
  // For every completion how it ended, then rate and seed.
  void Summarize(const v1::Usage& usage);
  // Works for CompletionDelta and Completion.
  template <typename Part>
  std::string Render(const Part& part) const;

  Terminal& terminal_;
  const Form form_;
  std::vector<State> states_;
  // The completion that is written now.
  size_t current_ = 0;
  uint64_t seed_ = 0;
  double decode_seconds_ = 0;
};

}  // namespace longshort
