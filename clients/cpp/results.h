// Results as a person reads them: tables, classes with their probabilities, tokens, completions as they are generated.
#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "clients/cpp/terminal.h"
#include "longshort/v1/inference.pb.h"

namespace longshort::client {

using TextRow = std::vector<std::string>;

// Columns as wide as their widest cell, two spaces between them; `indent` spaces before each row.
void WriteTable(const std::vector<TextRow>& rows, std::ostream& output, int indent = 0);

// A heading, then a class a row, likeliest first, with a bar if a person reads it; then the logits if there are any.
// A class without a label is "class 281".
//   photos/chelsea.png
//     tabby cat    93.10 %  ██████████████████▌
//     tiger cat     4.25 %  ▊
//     logits by class: -0.1234 2.5000 ...
void WriteClassTable(const std::string& heading, const v1::Classification& classification, Terminal& terminal);

// One token a line, with a newline: log-probability, id, text; then its alternatives the same way on indented lines.
//   -0.1053    101  "e"
//       -0.1053    101  "e"
//       -2.3026     97  "a"
std::string TokenLine(const v1::TokenLogProbability& token);

// The bytes in quotes, with what cannot be printed as escapes.
std::string QuoteBytes(const std::string& bytes);

// Shows completions as they are generated. One completion is written as it arrives, its text and nothing else. Of
// several, the first unfinished one is: the others wait for their turn, each under a line "--- INDEX ---". The closing
// summary goes to terminal.error.
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

}  // namespace longshort::client
